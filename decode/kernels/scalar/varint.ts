/** Unsigned LEB128 numbers; a cursor carries the position. */
import { E_TRUNC, E_VARINT } from '../kernels.ts';

export interface Cursor {
  at: number;
}

/** Up to 32 bits; a negative code when cut by `end` or over-long. */
export function readVarint32(bytes: Uint8Array, cursor: Cursor, end: number): number {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    if (cursor.at >= end) return E_TRUNC;
    const byte = bytes[cursor.at++]!;
    if (shift === 28 && byte > 15) return E_VARINT;
    value += (byte & 127) * 2 ** shift;
    if (byte < 128) return value;
  }
}

/** Up to 64 bits; a negative code when cut by `end` or over-long. */
export function readVarint64(bytes: Uint8Array, cursor: Cursor, end: number): bigint {
  let value = 0n;
  for (let shift = 0n; ; shift += 7n) {
    if (cursor.at >= end) return BigInt(E_TRUNC);
    const byte = bytes[cursor.at++]!;
    if (shift === 63n && byte > 1) return BigInt(E_VARINT);
    value |= BigInt(byte & 127) << shift;
    if (byte < 128) return value;
  }
}
