/**
 * The strict Snappy block decoder (format_description.txt of google/snappy): the specification of the `snappy`
 * kernels and their fuzz oracle. Without an output it only checks, which is what the fallback needs in front of
 * snappyjs: that library accepts cut copies and blocks that make too few bytes.
 */
import { DONE, E_LENGTH, E_OFFSET, E_TRUNC } from '../kernels.ts';
import { type Cursor, readVarint32 } from './varint.ts';

/** `size` is the exact size of the output; nothing is allocated. */
export function decodeSnappyBlock(src: Uint8Array, size: number, out?: Uint8Array): number {
  const cursor: Cursor = { at: 0 };
  const declared = readVarint32(src, cursor, src.length);
  if (declared < 0) return declared;
  if (declared !== size) return E_LENGTH;
  let ip = cursor.at;
  let op = 0;
  while (ip < src.length) {
    const tag = src[ip]!;
    const have = src.length - ip;
    if ((tag & 3) === 0) {
      let length = tag >> 2;
      let used = 1;
      if (length >= 60) {
        used = length - 58;
        if (have < used) return E_TRUNC;
        length = littleEndian(src, ip + 1, used - 1);
      }
      length++;
      if (length > size - op) return E_LENGTH;
      ip += used;
      if (length > src.length - ip) return E_TRUNC;
      out?.set(src.subarray(ip, ip + length), op);
      ip += length;
      op += length;
    } else {
      const used = (tag & 3) === 1 ? 2 : (tag & 3) === 2 ? 3 : 5;
      if (have < used) return E_TRUNC;
      const short = used === 2;
      const length = short ? ((tag >> 2) & 7) + 4 : (tag >> 2) + 1;
      const offset = short ? ((tag >> 5) << 8) | src[ip + 1]! : littleEndian(src, ip + 1, used - 1);
      if (offset === 0 || offset > op) return E_OFFSET;
      if (length > size - op) return E_LENGTH;
      if (out !== undefined) for (let k = op; k < op + length; k++) out[k] = out[k - offset]!;
      ip += used;
      op += length;
    }
  }
  return op === size ? DONE : E_TRUNC;
}

function littleEndian(bytes: Uint8Array, at: number, count: number): number {
  let value = 0;
  for (let k = 0; k < count; k++) value += bytes[at + k]! * 2 ** (8 * k);
  return value;
}
