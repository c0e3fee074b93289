/** Strings: PLAIN BYTE_ARRAY, lengths to offsets, DELTA_BYTE_ARRAY. Each waits for all input. */
import { BYTES, DELTA_BYTES, DONE, E_LENGTH, E_TRUNC, FULL, NEED } from '../kernels.ts';
import type { MemoryView } from './view.ts';

/** Arrow offsets are signed 32-bit numbers. */
const OFFSET_MAX = 0x7fffffff;

/** value = u32 length, then that many bytes. */
export function plainBytes(view: MemoryView, state: number, mark: number): number {
  const end = view.u32(state + BYTES.srcEnd);
  if (mark < end) return NEED;
  const dataEnd = view.u32(state + BYTES.dataEnd);
  let ip = view.u32(state + BYTES.ip);
  let slot = view.u32(state + BYTES.slot);
  let wanted = view.u32(state + BYTES.wanted);
  let op = view.u32(state + BYTES.op);
  let at = view.u32(state + BYTES.at);
  let code: number = DONE;
  for (; wanted > 0; wanted--) {
    if (end - ip < 4) return E_TRUNC;
    const length = view.u32(ip);
    if (length > end - ip - 4) return E_TRUNC;
    if (length > OFFSET_MAX - at) return E_LENGTH;
    if (length > dataEnd - op) {
      code = FULL;
      break;
    }
    view.bytes.copyWithin(op, ip + 4, ip + 4 + length);
    ip += 4 + length;
    op += length;
    at += length;
    view.setU32(slot, at);
    slot += 4;
  }
  view.setU32(state + BYTES.ip, ip);
  view.setU32(state + BYTES.slot, slot);
  view.setU32(state + BYTES.wanted, wanted);
  view.setU32(state + BYTES.op, op);
  view.setU32(state + BYTES.at, at);
  view.setU32(state + BYTES.valueLeft, 0);
  return code;
}

/** Sum of n i32 lengths. */
export function lengthsTotal(view: MemoryView, lengths: number, n: number): number {
  let total = 0;
  for (let p = lengths; p < lengths + 4 * n; p += 4) {
    total += view.u32(p); // a negative length alone is over the maximum
    if (total > OFFSET_MAX) return E_LENGTH;
  }
  return total;
}

/** n i32 lengths become end offsets in place; none may be negative, none may end over `limit`. */
export function lengthsToOffsets(view: MemoryView, lengths: number, n: number, start: number, limit: number): number {
  let at = start;
  for (let p = lengths; p < lengths + 4 * n; p += 4) {
    const length = view.u32(p);
    if (length > OFFSET_MAX) return E_LENGTH;
    at += length;
    if (at > limit) return E_LENGTH;
    view.setU32(p, at);
  }
  return DONE;
}

/** value = prefix of the value before, then a suffix; both lengths were decoded before. */
export function deltaBytes(view: MemoryView, state: number, mark: number): number {
  const end = view.u32(state + DELTA_BYTES.srcEnd);
  if (mark < end) return NEED;
  const dataEnd = view.u32(state + DELTA_BYTES.dataEnd);
  let ip = view.u32(state + DELTA_BYTES.ip);
  let slot = view.u32(state + DELTA_BYTES.slot);
  let op = view.u32(state + DELTA_BYTES.op);
  let at = view.u32(state + DELTA_BYTES.at);
  let prefixes = view.u32(state + DELTA_BYTES.prefixes);
  let suffixes = view.u32(state + DELTA_BYTES.suffixes);
  let previous = view.u32(state + DELTA_BYTES.previous);
  let previousLength = view.u32(state + DELTA_BYTES.previousLength);
  for (let wanted = view.u32(state + DELTA_BYTES.wanted); wanted > 0; wanted--) {
    const prefix = view.u32(prefixes);
    const suffix = view.u32(suffixes);
    if (prefix > previousLength || suffix > OFFSET_MAX) return E_LENGTH;
    if (prefix + suffix > Math.min(dataEnd - op, OFFSET_MAX - at)) return E_LENGTH;
    if (suffix > end - ip) return E_TRUNC;
    view.bytes.copyWithin(op, previous, previous + prefix);
    view.bytes.copyWithin(op + prefix, ip, ip + suffix);
    previous = op;
    previousLength = prefix + suffix;
    op += previousLength;
    ip += suffix;
    at += previousLength;
    view.setU32(slot, at);
    slot += 4;
    prefixes += 4;
    suffixes += 4;
  }
  view.setU32(state + DELTA_BYTES.ip, ip);
  view.setU32(state + DELTA_BYTES.slot, slot);
  view.setU32(state + DELTA_BYTES.wanted, 0);
  view.setU32(state + DELTA_BYTES.op, op);
  view.setU32(state + DELTA_BYTES.at, at);
  view.setU32(state + DELTA_BYTES.prefixes, prefixes);
  view.setU32(state + DELTA_BYTES.suffixes, suffixes);
  view.setU32(state + DELTA_BYTES.previous, previous);
  view.setU32(state + DELTA_BYTES.previousLength, previousLength);
  return DONE;
}
