/**
 * The deprecated LZ4: in the wild either Hadoop's frames (sizes of 4 bytes, big-endian, decompressed before
 * compressed, then a block, again and again) or a bare block. Says which, and where the blocks are; no block is looked
 * into.
 */
import { LZ4_RATIO_MAX } from '../limits.ts';

/** Calls `onBlock` with where each block lies in `source` and where what it holds lies in `size` bytes of output. */
export function eachLz4Block(
  source: Uint8Array,
  size: number,
  onBlock: (start: number, end: number, outStart: number, outEnd: number) => void,
): void {
  if (areFrames(source, size)) walkFrames(source, size, onBlock);
  else onBlock(0, source.length, 0, size);
}

/** The frames are taken when all of their sizes agree. */
function areFrames(source: Uint8Array, size: number): boolean {
  const { at, total } = walkFrames(source, size, () => {});
  return at === source.length && total === size;
}

/** Frames up to the first that can't be one: where they end, and the sum of their declared sizes. */
function walkFrames(
  source: Uint8Array,
  size: number,
  onBlock: (start: number, end: number, outStart: number, outEnd: number) => void,
): { at: number; total: number } {
  const view = new DataView(source.buffer, source.byteOffset, source.byteLength);
  let total = 0;
  let at = 0;
  while (source.length - at >= 8 && total <= size) {
    const made = view.getUint32(at);
    const start = at + 8;
    const end = start + view.getUint32(at + 4);
    if (end > source.length || made > (end - start) * LZ4_RATIO_MAX) break;
    onBlock(start, end, total, total + made);
    total += made;
    at = end;
  }
  return { at, total };
}
