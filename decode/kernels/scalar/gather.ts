/** Dictionary entries by indices that are already checked. */
import { E_LENGTH } from '../kernels.ts';
import type { MemoryView } from './view.ts';

export function gatherWide(
  view: MemoryView,
  indices: number,
  n: number,
  dictionary: number,
  width: number,
  out: number,
): void {
  for (let i = 0; i < n; i++) {
    const entry = dictionary + view.u32(indices + 4 * i) * width;
    view.bytes.copyWithin(out + i * width, entry, entry + width);
  }
}

export function gatherOffsets(
  view: MemoryView,
  indices: number,
  n: number,
  dictionaryOffsets: number,
  slot: number,
  start: number,
): number {
  let at = start;
  for (let i = 0; i < n; i++) {
    const entry = dictionaryOffsets + 4 * view.u32(indices + 4 * i);
    at += view.u32(entry + 4) - view.u32(entry);
    view.setU32(slot + 4 * i, at);
  }
  return at > 0x7fffffff ? E_LENGTH : at;
}

export function gatherBytes(
  view: MemoryView,
  indices: number,
  n: number,
  dictionaryOffsets: number,
  dictionaryData: number,
  out: number,
): void {
  let op = out;
  for (let i = 0; i < n; i++) {
    const entry = dictionaryOffsets + 4 * view.u32(indices + 4 * i);
    const from = view.u32(entry);
    const to = view.u32(entry + 4);
    view.bytes.copyWithin(op, dictionaryData + from, dictionaryData + to);
    op += to - from;
  }
}
