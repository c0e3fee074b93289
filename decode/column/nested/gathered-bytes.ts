/**
 * Dictionary-encoded byte arrays of a nested column, expanded as they are decoded: a row may begin in a page with a
 * dictionary and end in one without, so that the window holds one layout only.
 */
import { DONE, FULL } from '../../kernels/kernels.ts';
import { kernelError } from '../kernel-error.ts';
import type { DictionaryValues } from '../spec.ts';
import { NO_MEMORY, type PageContext, type PageValues, type ValueTarget } from '../values/page-values.ts';

/** Values decoded at a time: 16 KiB of indices. */
const CHUNK_VALUES = 4096;

export class GatheredBytes implements PageValues {
  readonly layout = 'bytes';
  readonly #page: PageContext;
  readonly #indices: PageValues;
  readonly #dictionary: DictionaryValues;
  /** Indices, then their end offsets. */
  #slab = 0;
  #chunk: ValueTarget | undefined;
  /** Indices of the chunk that were gathered. */
  #gathered = 0;

  constructor(page: PageContext, indices: PageValues, dictionary: DictionaryValues) {
    this.#page = page;
    this.#indices = indices;
    this.#dictionary = dictionary;
  }

  decode(window: ValueTarget, count: number): number {
    const { pool } = this.#page;
    if (this.#slab === 0) {
      this.#slab = pool.allocate(CHUNK_VALUES * 4 + (CHUNK_VALUES + 1) * 4);
      if (this.#slab === 0) return NO_MEMORY;
    }
    for (let left = count; left > 0; ) {
      const pending = (this.#chunk?.dense ?? 0) - this.#gathered;
      if (pending > 0) {
        const given = this.#gather(window, Math.min(pending, left));
        if (given === 0) return FULL;
        left -= given;
        continue;
      }
      this.#chunk = { values: this.#slab, dataStart: 0, dataEnd: 0, dense: 0 };
      this.#gathered = 0;
      const code = this.#indices.decode(this.#chunk, Math.min(CHUNK_VALUES, left));
      if (code !== DONE && this.#chunk.dense === 0) return code;
    }
    return DONE;
  }

  /** Gathers up to `count` values that fit; how many. */
  #gather(window: ValueTarget, count: number): number {
    const { pool, kernels } = this.#page;
    const { u32 } = pool;
    const { offsets, data } = this.#dictionary;
    const indices = this.#slab + this.#gathered * 4;
    const ends = this.#ends;
    const at = u32[(window.values >>> 2) + window.dense]!;
    const room = window.dataEnd - window.dataStart - at;
    let fits = count;
    for (; ; fits >>>= 1) {
      if (fits === 0) return 0;
      const total = kernels.gatherOffsets(indices, fits, offsets, ends, 0);
      if (total < 0 && fits === 1) throw kernelError('LIMIT', total, 'a dictionary string');
      if (total >= 0 && total <= room) break;
    }
    const total = u32[(ends >>> 2) + fits - 1]!;
    const start = window.dataStart + at;
    kernels.gatherBytes(indices, fits, offsets, data, start, start + total);
    const slot = (window.values >>> 2) + window.dense + 1;
    for (let k = 0; k < fits; k++) u32[slot + k] = at + u32[(ends >>> 2) + k]!;
    window.dense += fits;
    this.#gathered += fits;
    return fits;
  }

  get #ends(): number {
    return this.#slab + CHUNK_VALUES * 4;
  }

  needBytes(): number {
    const { u32 } = this.#page.pool;
    const entry = (this.#dictionary.offsets >>> 2) + u32[(this.#slab >>> 2) + this.#gathered]!;
    return u32[entry + 1]! - u32[entry]!;
  }

  close(): void {
    this.#indices.close();
    if (this.#slab !== 0) this.#page.pool.free(this.#slab, CHUNK_VALUES * 4 + (CHUNK_VALUES + 1) * 4);
    this.#slab = 0;
  }
}
