/**
 * The output side of a column decoder: one window of rows being filled, in one slab of the pool. Levels set rows and
 * validity, values arrive densely (nulls left out) and are spread over the nulls when the window is finished, so that
 * a window may take its rows from any number of pages. A window that can't take the next value ends early, in the
 * middle of its rows if need be; the validity of the rows left over is carried to the next one.
 */

import { type Kernels, LEVELS } from '../kernels/kernels.ts';
import { DICTIONARY_SLACK_BYTES, EXPANDED_BYTES_MAX, PLACED_PREFIX_BYTES_MAX } from '../limits.ts';
import type { Pool } from '../pool/pool.ts';
import { kernelError } from './kernel-error.ts';
import type { ChunkSpec, DictionaryValues, Segment, SegmentLayout } from './spec.ts';

export interface WindowShape {
  readonly layout: SegmentLayout;
  /** Bytes of a value; 1 for bits (an eighth is used), 4 for indices and offsets. */
  readonly width: number;
  readonly optional: boolean;
  readonly rowsMax: number;
  /** Room for the data of byte arrays. */
  readonly dataBytes: number;
  /** Indices are turned into offsets and data when the window is finished. */
  readonly expand: boolean;
  /** Values stay dense: their rows are what validity says. */
  readonly keepDense: boolean;
  /** Where the values go, if not into the window's slab. */
  readonly place?: number;
}

/** Validity of rows whose values did not fit any more: bits from bit 0, `valid` of them set. */
interface Carry {
  readonly rows: number;
  readonly valid: number;
  readonly bits: Uint8Array;
}

const align64 = (bytes: number): number => Math.ceil(bytes / 64) * 64;

export class Window {
  readonly shape: WindowShape;
  readonly validity: number;
  readonly values: number;
  readonly dataStart: number;
  readonly dataEnd: number;
  /** Rows whose validity is known. */
  rows = 0;
  /** Values (nulls left out) that these rows have. */
  valid = 0;
  /** Values that have been written. */
  dense = 0;
  /** Rows and values that left in expanded segments. */
  #expandedRows = 0;
  #expandedDense = 0;
  readonly #pool: Pool;
  readonly #kernels: Kernels;
  readonly #slab: number;
  readonly #slabBytes: number;
  readonly #levelState: number;

  private constructor(
    pool: Pool,
    kernels: Kernels,
    shape: WindowShape,
    slab: number,
    slabBytes: number,
    state: number,
  ) {
    this.#pool = pool;
    this.#kernels = kernels;
    this.shape = shape;
    this.#slab = slab;
    this.#slabBytes = slabBytes;
    this.#levelState = state;
    this.validity = shape.optional ? slab : 0;
    const own = slab + validityBytes(shape) + headBytes(shape);
    this.values = shape.place ?? own;
    this.dataStart = own + valueBytes(shape);
    this.dataEnd = this.dataStart + shape.dataBytes;
  }

  /** An empty window; undefined when the pool has no room now. `levelState` is the decoder's LEVELS state. */
  static open(pool: Pool, kernels: Kernels, shape: WindowShape, levelState: number): Window | undefined {
    const slabBytes = validityBytes(shape) + headBytes(shape) + valueBytes(shape) + shape.dataBytes;
    const slab = slabBytes === 0 ? 0 : pool.allocate(slabBytes);
    if (slab === 0 && slabBytes > 0) return undefined;
    const window = new Window(pool, kernels, shape, slab, slabBytes, levelState);
    if (shape.optional) window.#resetLevels(0, 0n, 0);
    if (shape.layout === 'bytes') pool.u32[window.values >>> 2] = 0;
    return window;
  }

  get room(): number {
    return this.shape.rowsMax - this.rows;
  }

  #resetLevels(bits: number, pending: bigint, ones: number): void {
    const { u32 } = this.#pool;
    const word = this.#levelState >>> 2;
    u32[word + (LEVELS.op >>> 2)] = this.validity + Math.floor(bits / 64) * 8;
    u32[word + (LEVELS.ones >>> 2)] = ones;
    u32[word + (LEVELS.pendingBits >>> 2)] = bits % 64;
    u32[word + (LEVELS.pendingWord >>> 2)] = Number(pending & 0xffffffffn);
    u32[word + (LEVELS.pendingWord >>> 2) + 1] = Number(pending >> 32n);
  }

  /** Rows left over by `split`, put at the front of this empty window. */
  accept(carry: Carry): void {
    this.rows = carry.rows;
    this.valid = carry.valid;
    if (!this.shape.optional) return;
    const whole = Math.floor(carry.rows / 64) * 8;
    this.#pool.u8.set(carry.bits.subarray(0, whole), this.validity);
    const tail = new Uint8Array(8);
    tail.set(carry.bits.subarray(whole, whole + 8));
    this.#resetLevels(carry.rows, new DataView(tail.buffer).getBigUint64(0, true), carry.valid);
  }

  /**
   * Cuts the rows off whose values are not there: after it rows and values agree. Returns what was cut, for the next
   * window.
   */
  split(): Carry | undefined {
    if (this.dense === this.valid) return undefined;
    if (!this.shape.optional) {
      const rows = this.rows - this.dense;
      const cut = { rows, valid: rows, bits: new Uint8Array(0) };
      this.rows = this.dense;
      this.valid = this.dense;
      return cut;
    }
    this.#kernels.flushBits(this.#levelState);
    const { u8 } = this.#pool;
    let row = 0;
    let seen = 0;
    for (; row < this.rows; row++) {
      if ((u8[this.validity + (row >>> 3)]! >>> (row & 7)) & 1) {
        if (seen === this.dense) break;
        seen++;
      }
    }
    const rows = this.rows - row;
    const bits = new Uint8Array(Math.ceil(rows / 64) * 8);
    for (let k = 0; k < rows; k++) {
      const at = row + k;
      if ((u8[this.validity + (at >>> 3)]! >>> (at & 7)) & 1) bits[k >>> 3]! |= 1 << (k & 7);
    }
    const cut = { rows, valid: this.valid - this.dense, bits };
    this.rows = row;
    this.valid = this.dense;
    return cut;
  }

  /**
   * Makes the segment: spreads values over the nulls, expands indices. `dataUsed` is the end of byte-array data.
   * Undefined when the pool has no room for an expanded copy now; ask again.
   */
  finish(dataUsed: number, dictionary: DictionaryValues | undefined): Segment | undefined {
    const { shape } = this;
    if (shape.layout === 'indices' && shape.expand) return this.#expand(dictionary!);
    const nullCount = this.rows - this.valid;
    if (shape.optional) this.#kernels.flushBits(this.#levelState);
    if (nullCount > 0 && !shape.keepDense) this.#spread();
    const end = shape.layout === 'bytes' ? dataUsed : this.values + usedBytes(shape, this.rows);
    const slabBytes =
      shape.place === undefined ? this.#pool.shrink(this.#slab, this.#slabBytes, end - this.#slab) : this.#slabBytes;
    return {
      rows: this.rows,
      nullCount,
      layout: shape.layout,
      width: shape.width,
      slab: this.#slab,
      slabBytes,
      validity: nullCount > 0 ? this.validity : 0,
      values: this.values,
      data: shape.layout === 'bytes' ? this.dataStart : 0,
      dataBytes: shape.layout === 'bytes' ? dataUsed - this.dataStart : 0,
      ...(shape.layout === 'indices' && dictionary !== undefined ? { dictionary } : {}),
    };
  }

  #spread(): void {
    const { shape, rows, dense, validity, values } = this;
    const k = this.#kernels;
    const code =
      shape.layout === 'bits'
        ? k.spreadBits(values, validity, rows, dense)
        : shape.layout === 'bytes'
          ? k.spreadOffsets(values, validity, rows, dense)
          : shape.width === 8
            ? k.spread8(values, validity, rows, dense)
            : shape.width === 4
              ? k.spread4(values, validity, rows, dense)
              : shape.width === 2
                ? k.spread2(values, validity, rows, dense)
                : shape.width === 1
                  ? k.spread1(values, validity, rows, dense)
                  : shape.width === 16
                    ? k.spread16(values, validity, rows, dense)
                    : k.spreadWide(values, validity, rows, dense, shape.width);
    if (code < 0) throw kernelError('LEVELS', code, 'validity');
  }

  /** Indices to offsets and data: as many rows as make a segment of bounded size; the rest stays for the next. */
  #expand(dictionary: DictionaryValues): Segment | undefined {
    const pool = this.#pool;
    const k = this.#kernels;
    if (this.shape.optional) k.flushBits(this.#levelState);
    const dense = this.#expandable(dictionary);
    const rows = this.#rowsOf(dense);
    const nullCount = rows - dense;
    const ends = this.dataStart;
    const total = pool.u32[(ends >>> 2) + dense]!;
    const bitmapBytes = nullCount > 0 ? align64(Math.ceil(rows / 64) * 8) : 0;
    const offsetBytes = align64((rows + 1) * 4);
    const slabBytes = bitmapBytes + offsetBytes + total;
    const slab = pool.allocate(slabBytes);
    if (slab === 0) return undefined;
    const offsets = slab + bitmapBytes;
    const data = offsets + offsetBytes;
    pool.u8.copyWithin(offsets, ends, ends + (dense + 1) * 4);
    if (nullCount > 0) {
      k.copyBits(this.validity, this.#expandedRows, slab, 0, rows);
      const code = k.spreadOffsets(offsets, slab, rows, dense);
      if (code < 0) throw kernelError('LEVELS', code, 'validity');
    }
    const indices = this.values + this.#expandedDense * 4;
    k.gatherBytes(indices, dense, dictionary.offsets, dictionary.data, data, data + total);
    this.#expandedRows += rows;
    this.#expandedDense += dense;
    if (this.#expandedRows === this.rows) this.discard();
    return {
      rows,
      nullCount,
      layout: 'bytes',
      width: 4,
      slab,
      slabBytes,
      validity: nullCount > 0 ? slab : 0,
      values: offsets,
      data,
      dataBytes: total,
    };
  }

  /** How many of the values left go into the next segment; their end offsets are written behind the indices. */
  #expandable(dictionary: DictionaryValues): number {
    const { u32 } = this.#pool;
    const left = this.dense - this.#expandedDense;
    const indices = this.values + this.#expandedDense * 4;
    const ends = this.dataStart >>> 2;
    u32[ends] = 0;
    for (let count = left; ; count = Math.ceil(count / 2)) {
      const total =
        count === 0 ? 0 : this.#kernels.gatherOffsets(indices, count, dictionary.offsets, this.dataStart + 4, 0);
      if (total < 0) {
        if (count === 1) throw kernelError('LIMIT', total, 'a dictionary string');
        continue; // past 2 GiB: fewer
      }
      if (total <= EXPANDED_BYTES_MAX) return count;
      let low = 1;
      let high = count;
      while (low < high) {
        const middle = (low + high + 1) >>> 1;
        if (u32[ends + middle]! <= EXPANDED_BYTES_MAX) low = middle;
        else high = middle - 1;
      }
      return low;
    }
  }

  /** Rows from the first one not expanded yet that hold `dense` values; all that is left when these are the last. */
  #rowsOf(dense: number): number {
    const left = this.rows - this.#expandedRows;
    if (this.#expandedDense + dense === this.dense) return left;
    if (!this.shape.optional) return dense;
    const { u8 } = this.#pool;
    let row = this.#expandedRows;
    for (let seen = 0; seen < dense; row++) if ((u8[this.validity + (row >>> 3)]! >>> (row & 7)) & 1) seen++;
    return row - this.#expandedRows;
  }

  /** True when `finish` has given out every row. */
  get isSpent(): boolean {
    return !this.shape.expand || this.shape.layout !== 'indices' || this.#expandedRows === this.rows;
  }

  /** Gives the slab back without a segment. */
  discard(): void {
    if (this.#slabBytes > 0) this.#pool.free(this.#slab, this.#slabBytes);
  }
}

function validityBytes(shape: WindowShape): number {
  return shape.optional ? align64(Math.ceil(shape.rowsMax / 64) * 8) : 0;
}

/** Room before the values for the levels of a page that is decompressed in place. */
function headBytes(shape: WindowShape): number {
  if (shape.place !== undefined) return 0;
  return shape.layout === 'fixed' ? PLACED_PREFIX_BYTES_MAX : 0;
}

function usedBytes(shape: WindowShape, rows: number): number {
  if (shape.layout === 'bits') return Math.ceil(rows / 64) * 8;
  if (shape.layout === 'bytes') return (rows + 1) * 4;
  return rows * shape.width;
}

function valueBytes(shape: WindowShape): number {
  if (shape.place !== undefined) return 0;
  return align64(usedBytes(shape, shape.rowsMax));
}

/** The place that the caller has for the values of window `k`, if any. */
export function placeOfWindow({ place }: ChunkSpec, k: number): { place?: number } {
  if (place === undefined || k >= place.count) return {};
  return { place: k === place.count - 1 ? place.last : place.values + k * place.stride };
}

/** Data room that a window of indices needs to be expanded: the ends of its strings. */
export function expandRoomBytes(rows: number): number {
  return align64((rows + 1) * 4) + DICTIONARY_SLACK_BYTES;
}
