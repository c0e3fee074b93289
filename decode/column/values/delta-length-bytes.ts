/**
 * DELTA_LENGTH_BYTE_ARRAY: the lengths of all values as one delta stream, then their bytes one after the other. The
 * lengths become end offsets in scratch memory; bytes are copied as they arrive.
 */
import { DecodeError } from '../../errors.ts';
import { DONE, FULL, NEED } from '../../kernels/kernels.ts';
import { kernelError } from '../kernel-error.ts';
import { DeltaStream } from './delta-stream.ts';
import { NO_MEMORY, type PageContext, type PageValues, type ValueTarget } from './page-values.ts';

export class DeltaLengthBytes implements PageValues {
  readonly layout = 'bytes';
  readonly #page: PageContext;
  readonly #lengths: DeltaStream;
  #slab = 0;
  #slabBytes = 0;
  #decoded = 0;
  /** Address of the values' bytes, once all lengths are known. */
  #data = 0;
  #given = 0;

  constructor(page: PageContext) {
    this.#page = page;
    this.#lengths = new DeltaStream(page, 32);
  }

  decode(window: ValueTarget, count: number): number {
    if (count === 0) return DONE;
    const { pool, section, start } = this.#page;
    if (!this.#lengths.begin(start)) return NEED;
    const code = this.#loadLengths();
    if (code !== DONE) return code;
    if (count > this.#lengths.total - this.#given) {
      throw new DecodeError('PAGE', `lengths end after ${this.#lengths.total} values`, {
        expected: 'a value for every level',
      });
    }
    const { i32 } = pool;
    const ends = this.#slab >>> 2;
    const base = this.#endOf(this.#given);
    const first = (window.values >>> 2) + window.dense;
    const at = i32[first]!;
    const room = window.dataEnd - window.dataStart - at;
    const there = section.mark - this.#data;
    // the last value that has arrived and fits
    const limit = Math.min(base + room, there);
    let low = 0;
    let high = count;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if (i32[ends + this.#given + middle - 1]! <= limit) low = middle;
      else high = middle - 1;
    }
    if (low > 0) {
      const bytes = this.#endOf(this.#given + low) - base;
      this.#page.kernels.copy(window.dataStart + at, this.#data + base, bytes);
      const shift = at - base;
      for (let k = 0; k < low; k++) i32[first + 1 + k] = i32[ends + this.#given + k]! + shift;
      this.#given += low;
      window.dense += low;
    }
    if (low === count) return DONE;
    return this.#endOf(this.#given + 1) > there ? NEED : FULL;
  }

  #endOf(values: number): number {
    return values === 0 ? 0 : this.#page.pool.i32[(this.#slab >>> 2) + values - 1]!;
  }

  /** All lengths to end offsets. DONE, NEED or NO_MEMORY. */
  #loadLengths(): number {
    if (this.#data !== 0) return DONE;
    const { pool, kernels, section } = this.#page;
    const { total } = this.#lengths;
    if (this.#slab === 0) {
      this.#slabBytes = Math.max(4, total * 4);
      this.#slab = pool.allocate(this.#slabBytes);
      if (this.#slab === 0) return NO_MEMORY;
    }
    if (!this.#lengths.isOver) {
      const { given, code } = this.#lengths.decode(this.#slab + this.#decoded * 4, total - this.#decoded);
      this.#decoded += given;
      if (code !== DONE) return code;
    }
    this.#data = this.#lengths.end;
    const code = kernels.lengthsToOffsets(this.#slab, total, 0, section.end - this.#data);
    if (code < 0) throw kernelError('PAGE', code, 'delta-length byte arrays');
    return DONE;
  }

  needBytes(): number {
    return this.#endOf(this.#given + 1) - this.#endOf(this.#given);
  }

  end(): void {
    if (this.#lengths.total > this.#given) {
      throw new DecodeError('PAGE', `${this.#lengths.total - this.#given} lengths more than the page's levels have`);
    }
  }

  close(): void {
    if (this.#slab !== 0) this.#page.pool.free(this.#slab, this.#slabBytes);
    this.#slab = 0;
  }
}
