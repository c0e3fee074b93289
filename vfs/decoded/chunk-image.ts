/**
 * The bytes of a decoded chunk as the view shows them, put together in the pool from the segments of its decoder: page
 * headers, levels and values at the places that `planPlainChunk` gave them. Bytes before `filled` are final, so that a
 * read of a chunk's beginning need not wait for its end. Segments come in the order of their rows, values dense
 * (`ChunkSpec.dense`). Rows that never come leave the image short; who fills it checks `isComplete`.
 */
import type { Kernels, PlainChunk, PlainPage, Pool, Segment, WindowPlaces } from '../../decode/index.ts';

/** Bytes of the length in front of a page's levels. */
const LEVELS_LENGTH_BYTES = 4;

export class ChunkImage {
  /** The pool's address of the image, `pages.length` bytes long. */
  readonly address: number;
  readonly pages: PlainChunk;
  readonly #pool: Pool;
  readonly #kernels: Kernels;
  /** Rows taken of the chunk, pages ended, rows and values put into the page that is being filled. */
  #rows = 0;
  #page = 0;
  #pageRows = 0;
  #pageValues = 0;

  /** `address` is room for `pages.length` bytes, with WINDOW_SLACK_BYTES on both sides; the caller frees it. */
  constructor(pool: Pool, kernels: Kernels, pages: PlainChunk, address: number) {
    this.#pool = pool;
    this.#kernels = kernels;
    this.pages = pages;
    this.address = address;
  }

  /** Where a decoder may put the values of its windows, one window a page; undefined where they must be copied. */
  get places(): WindowPlaces | undefined {
    const { bitsPerValue, full, count, last } = this.pages;
    if (bitsPerValue < 8) return undefined;
    const lastPage = this.address + (count - 1) * full.length;
    return { values: this.address + full.values, stride: full.length, count, last: lastPage + last.values };
  }

  /** Bytes from the start of the chunk that are final. */
  get filled(): number {
    return this.isComplete ? this.pages.length : this.#page * this.pages.full.length;
  }

  get isComplete(): boolean {
    return this.#page === this.pages.count;
  }

  /** Takes the rows of a segment, which can be freed then. Throws RangeError for more rows than the chunk has. */
  add(segment: Segment): void {
    if (this.#rows + segment.rows > this.pages.rows) {
      throw new RangeError(`${this.#rows + segment.rows} rows for a chunk of ${this.pages.rows}`);
    }
    let dense = 0;
    for (let row = 0; row < segment.rows; ) {
      const page = this.#page === this.pages.count - 1 ? this.pages.last : this.pages.full;
      const at = this.address + this.#page * this.pages.full.length;
      if (this.#pageRows === 0) this.#begin(page, at);
      const rows = Math.min(segment.rows - row, page.rows - this.#pageRows);
      const values = segment.validity === 0 ? rows : this.#valuesUpTo(segment, row + rows) - dense;
      if (this.pages.optional) this.#putLevels(segment, row, rows, at + page.bits);
      this.#putValues(segment, dense, values, at + page.values);
      row += rows;
      dense += values;
      this.#pageRows += rows;
      this.#pageValues += values;
      if (this.#pageRows === page.rows) this.#end(page, at);
    }
    this.#rows += segment.rows;
  }

  #valuesUpTo(segment: Segment, row: number): number {
    return row === segment.rows ? segment.rows - segment.nullCount : this.#kernels.countOnes(segment.validity, row);
  }

  #begin(page: PlainPage, at: number): void {
    const { u8 } = this.#pool;
    u8.set(page.header, at);
    u8.set(page.levelsHead, at + page.header.length);
    // bits past the last row
    if (this.pages.optional) u8[at + page.values - 1] = 0;
  }

  #putLevels(segment: Segment, row: number, rows: number, bits: number): void {
    if (segment.validity === 0) setBits(this.#pool.u8, bits, this.#pageRows, rows);
    else this.#kernels.copyBits(segment.validity, row, bits, this.#pageRows, rows);
  }

  #putValues(segment: Segment, from: number, values: number, target: number): void {
    const { bitsPerValue } = this.pages;
    if (bitsPerValue === 1) {
      this.#kernels.copyBits(segment.values, from, target, this.#pageValues, values);
      return;
    }
    const width = bitsPerValue / 8;
    const source = segment.values + from * width;
    const at = target + this.#pageValues * width;
    // where the decoder was told to put them, they are there
    if (source !== at) this.#kernels.copy(at, source, values * width);
  }

  /** Zeros from the last value to the end of the page. */
  #end(page: PlainPage, at: number): void {
    const { u8 } = this.#pool;
    if (this.pages.optional && this.#pageValues === page.rows) {
      // no null: one repeated level in the same room, which readers take in one step
      u8.set(page.repeated, at + page.header.length + LEVELS_LENGTH_BYTES);
    }
    const bits = this.#pageValues * this.pages.bitsPerValue;
    const end = at + page.values + Math.ceil(bits / 8);
    if (bits % 8 > 0) u8[end - 1]! &= (1 << (bits % 8)) - 1;
    u8.fill(0, end, at + page.length);
    this.#page++;
    this.#pageRows = 0;
    this.#pageValues = 0;
  }
}

/** Sets `count` bits from bit `from` on. */
function setBits(u8: Uint8Array, address: number, from: number, count: number): void {
  let at = from;
  const end = from + count;
  for (; at < end && at % 8 !== 0; at++) u8[address + (at >>> 3)]! |= 1 << (at & 7);
  const whole = (end - at) >>> 3;
  u8.fill(0xff, address + (at >>> 3), address + (at >>> 3) + whole);
  for (at += whole * 8; at < end; at++) u8[address + (at >>> 3)]! |= 1 << (at & 7);
}
