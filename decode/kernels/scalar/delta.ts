/**
 * DELTA_BINARY_PACKED (Parquet "Encodings", 5), one value at a time:
 *   header = varint block size, miniblocks a block, value count, zigzag first value
 *   block = zigzag minimum delta, a width byte for each miniblock, then the miniblocks, bit-packed
 * Sums wrap around. Waits for all input. The last miniblock's padding may be missing.
 */
import { DELTA, DONE, E_HEADER, E_LENGTH, E_TRUNC, E_WIDTH, NEED } from '../kernels.ts';
import { type Cursor, readVarint64 } from './varint.ts';
import type { MemoryView } from './view.ts';

const HEADER = 0;
const BLOCK = 1;
const MINIBLOCK = 2;

export function delta(view: MemoryView, state: number, mark: number, bits: 32 | 64): number {
  const get = (word: number): number => view.u32(state + word);
  const set = (word: number, value: number): void => view.setU32(state + word, value);
  const end = get(DELTA.srcEnd);
  let phase = get(DELTA.phase);
  let wanted = get(DELTA.wanted);
  let left = phase === HEADER ? get(DELTA.total) : get(DELTA.left);
  if (wanted > left) return E_LENGTH;
  if (wanted === 0 && left > 0) return DONE;
  if (mark < end) return NEED;

  const cursor: Cursor = { at: get(DELTA.ip) };
  let op = get(DELTA.op);
  const put = (value: bigint): void => {
    if (bits === 64) view.setU64(op, value);
    else view.setU32(op, Number(BigInt.asUintN(32, value)));
    op += bits / 8;
    wanted--;
    left--;
  };
  if (phase === HEADER) {
    const header: bigint[] = [];
    for (let k = 0; k < 4; k++) {
      const value = readVarint64(view.bytes, cursor, end);
      if (value < 0n) return Number(value);
      header.push(value);
    }
    const [size, count, values, first] = header as [bigint, bigint, bigint, bigint];
    if (size === 0n || size > 65536n || size % 128n !== 0n || count === 0n || count > 512n) return E_HEADER;
    if (size % count !== 0n || (size / count) % 32n !== 0n) return E_HEADER;
    if (values !== BigInt(left)) return E_LENGTH;
    set(DELTA.miniblocks, Number(count));
    set(DELTA.valuesPerMiniblock, Number(size / count));
    view.setU64(state + DELTA.last, unzigzag(first));
    phase = BLOCK;
    if (wanted > 0) put(unzigzag(first));
  }
  let [miniblock, width, widths] = [get(DELTA.miniblock), get(DELTA.width), get(DELTA.widths)];
  let [miniblockLeft, used] = [get(DELTA.miniblockLeft), get(DELTA.groupUsed)];
  let last = view.u64(state + DELTA.last);
  let minimum = view.u64(state + DELTA.minimum);
  while (wanted > 0) {
    if (phase === BLOCK) {
      const value = readVarint64(view.bytes, cursor, end);
      if (value < 0n) return Number(value);
      if (get(DELTA.miniblocks) > end - cursor.at) return E_TRUNC;
      minimum = unzigzag(value);
      widths = cursor.at;
      cursor.at += get(DELTA.miniblocks);
      [miniblock, miniblockLeft, phase] = [0, 0, MINIBLOCK];
    }
    if (miniblockLeft === 0) {
      if (miniblock === get(DELTA.miniblocks)) {
        phase = BLOCK;
        continue;
      }
      width = view.bytes[widths + miniblock++]!;
      // DuckDB takes differences of 32-bit values in 64 bits: up to 33 of them are stored
      if (width > 64) return E_WIDTH;
      miniblockLeft = get(DELTA.valuesPerMiniblock);
    }
    const count = Math.min(wanted, 8 - used);
    const have = Math.min(width, end - cursor.at);
    if (8 * have < (used + count) * width) return E_TRUNC;
    for (let k = 0; k < count; k++) {
      last += minimum + packedValue(view.bytes, cursor.at, (used + k) * width, width);
      put(last);
    }
    used += count;
    if (used === 8 || left === 0) {
      cursor.at += have;
      miniblockLeft -= 8;
      used = 0;
    }
  }
  if (left === 0 && phase === MINIBLOCK) {
    cursor.at = Math.min(end, cursor.at + (miniblockLeft / 8) * width);
    miniblockLeft = 0;
  }
  set(DELTA.ip, cursor.at);
  set(DELTA.op, op);
  set(DELTA.wanted, wanted);
  set(DELTA.left, left);
  set(DELTA.phase, phase);
  set(DELTA.miniblock, miniblock);
  set(DELTA.miniblockLeft, miniblockLeft);
  set(DELTA.width, width);
  set(DELTA.widths, widths);
  set(DELTA.groupUsed, used);
  view.setU64(state + DELTA.last, last);
  view.setU64(state + DELTA.minimum, minimum);
  return DONE;
}

function unzigzag(value: bigint): bigint {
  return (value >> 1n) ^ -(value & 1n);
}

function packedValue(bytes: Uint8Array, at: number, bit: number, width: number): bigint {
  let value = 0n;
  for (let k = 0; k < width; k++) {
    if ((bytes[at + ((bit + k) >> 3)]! >> ((bit + k) & 7)) & 1) value |= 1n << BigInt(k);
  }
  return value;
}
