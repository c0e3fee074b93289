/**
 * Entries of nested columns (Dremel levels), one at a time. An entry is a repetition and a definition level; `rep` = 0
 * stands for repetition levels that are all 0. A slot is an entry with rep <= repMax and def >= defMin.
 */
import { E_LENGTH } from '../kernels.ts';
import type { MemoryView } from './view.ts';

function repetition(view: MemoryView, rep: number, i: number): number {
  return rep === 0 ? 0 : view.bytes[rep + i]!;
}

export function countRows(view: MemoryView, rep: number, n: number): number {
  let rows = 0;
  for (let i = 0; i < n; i++) if (repetition(view, rep, i) === 0) rows++;
  return rows;
}

export function findRow(view: MemoryView, rep: number, n: number, k: number): number {
  let before = 0;
  for (let i = 0; i < n; i++) if (repetition(view, rep, i) === 0 && before++ === k) return i;
  return n;
}

export function checkNesting(
  view: MemoryView,
  rep: number,
  def: number,
  n: number,
  least: number,
  before: number,
): number {
  let previous = before;
  for (let i = 0; i < n; i++) {
    const level = view.bytes[def + i]!;
    if (Math.min(level, previous) < view.bytes[least + view.bytes[rep + i]!]!) return i;
    previous = level;
  }
  return n;
}

/** Calls `take` for each slot, with its definition level. */
function eachSlot(
  view: MemoryView,
  rep: number,
  def: number,
  n: number,
  repMax: number,
  defMin: number,
  take: (level: number) => void,
): void {
  for (let i = 0; i < n; i++) {
    const level = view.bytes[def + i]!;
    if (repetition(view, rep, i) <= repMax && level >= defMin) take(level);
  }
}

export function countSlots(
  view: MemoryView,
  rep: number,
  def: number,
  n: number,
  repMax: number,
  defMin: number,
): number {
  let slots = 0;
  eachSlot(view, rep, def, n, repMax, defMin, () => slots++);
  return slots;
}

export function nestedValidity(
  view: MemoryView,
  rep: number,
  def: number,
  n: number,
  repMax: number,
  defMin: number,
  defValid: number,
  bitmap: number,
): number {
  let [slots, ones] = [0, 0];
  eachSlot(view, rep, def, n, repMax, defMin, (level) => {
    if (slots % 64 === 0) view.setU64(bitmap + slots / 8, 0n);
    if (level >= defValid) {
      view.bytes[bitmap + Math.floor(slots / 8)]! |= 1 << (slots % 8);
      ones++;
    }
    slots++;
  });
  return ones;
}

export function nestedOffsets(
  view: MemoryView,
  rep: number,
  def: number,
  n: number,
  repMax: number,
  defMin: number,
  repElement: number,
  defElement: number,
  offsets: number,
): number {
  let [slots, elements] = [0, 0];
  for (let i = 0; i < n; i++) {
    const [repeated, level] = [repetition(view, rep, i), view.bytes[def + i]!];
    if (repeated <= repMax && level >= defMin) view.setU32(offsets + 4 * slots++, elements);
    if (repeated <= repElement && level >= defElement) {
      if (slots === 0) return E_LENGTH;
      elements++;
    }
  }
  view.setU32(offsets + 4 * slots, elements);
  return elements;
}
