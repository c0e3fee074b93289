/**
 * RLE / bit-packed hybrid (Parquet "Encodings", RLE = 3), one value at a time:
 *   run = varint header, then header & 1 ? (header >> 1) groups of 8 bit-packed values : one value, (header >> 1) times
 * Waits for all input, then gives `wanted` values a call. The state carries the rest of a run to the next call.
 */
import { DONE, E_INDEX, E_TRUNC, E_VALUE, E_WIDTH, HYBRID, LEVELS, NEED } from '../kernels.ts';
import { type Cursor, readVarint32 } from './varint.ts';
import type { MemoryView } from './view.ts';

/** Writes one value at `op`. */
type Put = (view: MemoryView, op: number, value: number, dictionary: number) => void;

const RLE = 1;
const PACKED = 2;
/** State words that only the kernels use. */
const RUN_VALUE = 36;
const GROUP_USED = 44;

/** Calls `take` for each of the wanted values in turn; one that is not below `limit` is the error `bad`. */
function decodeRuns(
  view: MemoryView,
  state: number,
  width: number,
  limit: number,
  bad: number,
  take: (value: number) => void,
): number {
  const { bytes } = view;
  const end = view.u32(state + HYBRID.srcEnd);
  const cursor: Cursor = { at: view.u32(state + HYBRID.ip) };
  let wanted = view.u32(state + HYBRID.wanted);
  let kind = view.u32(state + HYBRID.runKind);
  let left = view.u32(state + HYBRID.runLeft);
  let value = view.u32(state + RUN_VALUE);
  let used = kind === 0 ? 0 : view.u32(state + GROUP_USED);
  while (wanted > 0) {
    if (kind === 0) {
      const header = readVarint32(bytes, cursor, end);
      if (header < 0) return header;
      left = Math.floor(header / 2);
      kind = header % 2 === 1 ? PACKED : RLE;
      if (kind === RLE) {
        const size = (width + 7) >> 3;
        if (size > end - cursor.at) return E_TRUNC;
        value = readBits(bytes, cursor.at, 0, 8 * size);
        cursor.at += size;
        if (left > 0 && value >= limit) return bad;
      }
    } else if (kind === RLE) {
      const count = Math.min(wanted, left);
      for (let k = 0; k < count; k++) take(value);
      wanted -= count;
      left -= count;
    } else {
      const count = Math.min(wanted, 8 - used);
      const have = Math.min(width, end - cursor.at);
      for (let k = 0; k < count; k++, used++) {
        if (8 * have < (used + 1) * width) return E_TRUNC;
        const packed = readBits(bytes, cursor.at, used * width, width);
        if (packed >= limit) return bad;
        take(packed);
      }
      wanted -= count;
      if (used === 8) {
        used = 0;
        left--;
        cursor.at += width;
      }
    }
    if (left === 0) kind = 0;
  }
  view.setU32(state + HYBRID.ip, cursor.at);
  view.setU32(state + HYBRID.wanted, 0);
  view.setU32(state + HYBRID.runKind, kind);
  view.setU32(state + HYBRID.runLeft, left);
  view.setU32(state + RUN_VALUE, value);
  view.setU32(state + GROUP_USED, used);
  return DONE;
}

/** `width` bits from bit `bit` of [at..), least significant first. */
function readBits(bytes: Uint8Array, at: number, bit: number, width: number): number {
  let value = 0;
  for (let got = 0; got < width; ) {
    const offset = (bit + got) & 7;
    const count = Math.min(8 - offset, width - got);
    value += ((bytes[at + ((bit + got) >> 3)]! >> offset) & ((1 << count) - 1)) * 2 ** got;
    got += count;
  }
  return value;
}

/** A hybrid kernel whose values are `size` bytes, at most `cap` different ones, written by `put`. */
export function hybrid(view: MemoryView, state: number, mark: number, size: number, cap: number, put: Put): number {
  const width = view.u32(state + HYBRID.width);
  if (width > 32) return E_WIDTH;
  const wanted = view.u32(state + HYBRID.wanted);
  const limit = Math.min(view.u32(state + HYBRID.limit), cap);
  const dictionary = view.u32(state + HYBRID.dictionary);
  let op = view.u32(state + HYBRID.op);
  if (wanted === 0) return DONE;
  if (width === 0) {
    if (limit === 0) return E_INDEX;
    for (let k = 0; k < wanted; k++) put(view, op + k * size, 0, dictionary);
    view.setU32(state + HYBRID.wanted, 0);
  } else {
    if (mark < view.u32(state + HYBRID.srcEnd)) return NEED;
    const code = decodeRuns(view, state, width, limit, E_INDEX, (value) => {
      put(view, op, value, dictionary);
      op += size;
    });
    if (code !== DONE) return code;
    op -= wanted * size;
  }
  view.setU32(state + HYBRID.op, op + wanted * size);
  return DONE;
}

export const putU32: Put = (view, op, value) => view.setU32(op, value);
export const putU16: Put = (view, op, value) => view.data.setUint16(op, value, true);
export const putU8: Put = (view, op, value) => view.data.setUint8(op, value);
export const putDict4: Put = (view, op, value, dictionary) => view.setU32(op, view.u32(dictionary + 4 * value));
export const putDict8: Put = (view, op, value, dictionary) => view.setU64(op, view.u64(dictionary + 8 * value));

/** Width-1 levels to a bitmap; whole words go to `op`, the bits after them stay in the state. */
export function levelBitmap(view: MemoryView, state: number, mark: number): number {
  if (view.u32(state + LEVELS.wanted) === 0) return DONE;
  if (mark < view.u32(state + LEVELS.srcEnd)) return NEED;
  let op = view.u32(state + LEVELS.op);
  let ones = view.u32(state + LEVELS.ones);
  let pending = view.u32(state + LEVELS.pendingBits);
  const word = new Uint32Array([view.u32(state + LEVELS.pendingWord), view.u32(state + LEVELS.pendingWord + 4)]);
  const code = decodeRuns(view, state, 1, 2, E_VALUE, (value) => {
    word[pending >> 5]! |= value << (pending & 31);
    ones += value;
    if (++pending < 64) return;
    view.setU32(op, word[0]!);
    view.setU32(op + 4, word[1]!);
    op += 8;
    pending = 0;
    word.fill(0);
  });
  if (code !== DONE) return code;
  view.setU32(state + LEVELS.op, op);
  view.setU32(state + LEVELS.ones, ones);
  view.setU32(state + LEVELS.pendingBits, pending);
  view.setU32(state + LEVELS.pendingWord, word[0]!);
  view.setU32(state + LEVELS.pendingWord + 4, word[1]!);
  return DONE;
}

export function flushBits(view: MemoryView, state: number): void {
  if (view.u32(state + LEVELS.pendingBits) === 0) return;
  view.setU64(view.u32(state + LEVELS.op), view.u64(state + LEVELS.pendingWord));
}
