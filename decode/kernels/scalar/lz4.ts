/**
 * The strict LZ4 block decoder (lz4_Block_format.md of lz4/lz4): the specification of the `lz4` kernels, their fuzz
 * oracle, and the fallback. A block must end with literals, if only with none; how far from the end the last match has
 * to be is a rule for compressors that is not asked of them. Waits for the whole block.
 */
import { DONE, E_LENGTH, E_OFFSET, E_TRUNC, LZ4, NEED } from '../kernels.ts';
import type { MemoryView } from './view.ts';

export function lz4(view: MemoryView, state: number, mark: number): number {
  const srcEnd = view.u32(state + LZ4.srcEnd);
  if (mark < srcEnd) return NEED;
  const src = view.bytes.subarray(view.u32(state + LZ4.ip), srcEnd);
  const out = view.bytes.subarray(view.u32(state + LZ4.dst), view.u32(state + LZ4.dstEnd));
  const code = decodeLz4Block(src, out);
  if (code !== DONE) return code;
  view.setU32(state + LZ4.ip, srcEnd);
  view.setU32(state + LZ4.op, view.u32(state + LZ4.dstEnd));
  return DONE;
}

/** `out` has the exact size of the output. */
function decodeLz4Block(src: Uint8Array, out: Uint8Array): number {
  const cursor = { at: 0 };
  let op = 0;
  for (;;) {
    if (cursor.at === src.length) return E_TRUNC;
    const token = src[cursor.at++]!;
    const literals = readLength(src, cursor, token >>> 4, 0, out.length - op);
    if (literals < 0) return literals;
    if (literals > src.length - cursor.at) return E_TRUNC;
    out.set(src.subarray(cursor.at, cursor.at + literals), op);
    cursor.at += literals;
    op += literals;
    if (cursor.at === src.length) return op === out.length ? DONE : E_TRUNC;

    if (src.length - cursor.at < 2) return E_TRUNC;
    const offset = src[cursor.at]! | (src[cursor.at + 1]! << 8);
    cursor.at += 2;
    if (offset === 0 || offset > op) return E_OFFSET;
    const match = readLength(src, cursor, token & 15, 4, out.length - op);
    if (match < 0) return match;
    if (match <= offset) out.copyWithin(op, op - offset, op - offset + match);
    else for (let k = op; k < op + match; k++) out[k] = out[k - offset]!;
    op += match;
  }
}

/** A length of 4 bits, the bytes that follow when they are all ones, and `base`; an error code when it is over `room`. */
function readLength(src: Uint8Array, cursor: { at: number }, nibble: number, base: number, room: number): number {
  let length = nibble + base;
  if (length > room) return E_LENGTH;
  for (let more = nibble === 15 ? 255 : 0; more === 255; ) {
    if (cursor.at === src.length) return E_TRUNC;
    more = src[cursor.at++]!;
    length += more;
    if (length > room) return E_LENGTH;
  }
  return length;
}
