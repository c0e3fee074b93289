/** Bitmaps, least significant bit first: counting, copying, and values spread over the set bits of one. */
import { DONE, E_LENGTH } from '../kernels.ts';
import type { MemoryView } from './view.ts';

export function countOnes(view: MemoryView, bitmap: number, n: number): number {
  let ones = 0;
  for (let i = 0; i < n; i++) ones += view.bit(bitmap, i);
  return ones;
}

export function copyBits(view: MemoryView, src: number, srcBit: number, dst: number, dstBit: number, n: number): void {
  for (let i = 0; i < n; i++) setBit(view, dst, dstBit + i, view.bit(src, srcBit + i));
}

function setBit(view: MemoryView, at: number, index: number, value: number): void {
  const address = at + Math.floor(index / 8);
  view.bytes[address] = (view.bytes[address]! & ~(1 << (index % 8))) | (value << (index % 8));
}

/** Dense values of `width` bytes to the slots of their bits, from the back, so that none is overwritten too early. */
export function spread(view: MemoryView, at: number, bitmap: number, n: number, have: number, width: number): number {
  if (countOnes(view, bitmap, n) !== have) return E_LENGTH;
  let j = have;
  for (let i = n - 1; i >= 0; i--) {
    if (view.bit(bitmap, i) === 1) {
      j--;
      view.bytes.copyWithin(at + i * width, at + j * width, at + (j + 1) * width);
    } else {
      view.bytes.fill(0, at + i * width, at + (i + 1) * width);
    }
  }
  return DONE;
}

export function spreadBits(view: MemoryView, at: number, bitmap: number, n: number, have: number): number {
  if (countOnes(view, bitmap, n) !== have) return E_LENGTH;
  let j = have;
  for (let i = n - 1; i >= 0; i--) setBit(view, at, i, view.bit(bitmap, i) === 1 ? view.bit(at, --j) : 0);
  for (let i = n; i % 64 !== 0; i++) setBit(view, at, i, 0);
  return DONE;
}

/** A null repeats the end offset before it. */
export function spreadOffsets(view: MemoryView, at: number, bitmap: number, n: number, have: number): number {
  if (countOnes(view, bitmap, n) !== have) return E_LENGTH;
  let j = have;
  for (let i = n; i > 0; i--) {
    view.setU32(at + 4 * i, view.u32(at + 4 * j));
    j -= view.bit(bitmap, i - 1);
  }
  return DONE;
}
