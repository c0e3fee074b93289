/**
 * The fallback's `snappy` kernel: the strict walk of snappy-block.ts decides whether the block is valid and with
 * which code it fails, snappyjs decompresses what passed. Waits for the whole block.
 */
import { uncompress } from 'snappyjs';
import { DONE, NEED, SNAPPY } from '../kernels.ts';
import { decodeSnappyBlock } from './snappy-block.ts';
import type { MemoryView } from './view.ts';

export function snappy(view: MemoryView, state: number, mark: number): number {
  const srcEnd = view.u32(state + SNAPPY.srcEnd);
  if (mark < srcEnd) return NEED;
  const src = view.bytes.subarray(view.u32(state + SNAPPY.ip), srcEnd);
  const out = view.bytes.subarray(view.u32(state + SNAPPY.dst), view.u32(state + SNAPPY.dstEnd));
  const code = decodeSnappyBlock(src, out.length);
  if (code !== DONE) return code;
  if (!decompress(src, out)) decodeSnappyBlock(src, out.length, out);
  view.setU32(state + SNAPPY.ip, srcEnd);
  view.setU32(state + SNAPPY.op, view.u32(state + SNAPPY.dstEnd));
  return DONE;
}

/** snappyjs refuses some valid blocks: those whose last literal spells its short length in extra bytes. */
function decompress(src: Uint8Array, out: Uint8Array): boolean {
  try {
    const block = uncompress(src, out.length);
    if (block.length !== out.length) return false;
    out.set(block);
    return true;
  } catch {
    return false;
  }
}
