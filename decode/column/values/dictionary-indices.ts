/** Dictionary-encoded values (parquet-format, Encodings.md, "Dictionary Encoding"). */
import { DecodeError } from '../../errors.ts';
import { DONE, HYBRID, NEED } from '../../kernels/kernels.ts';
import { kernelError } from '../kernel-error.ts';
import type { SegmentLayout } from '../spec.ts';
import {
  type LoadedDictionary,
  NO_MEMORY,
  type PageContext,
  type PageValues,
  type ValueTarget,
} from './page-values.ts';

/** Dictionary-encoded values: a byte with the bit width, then hybrid runs of indices. */
export class DictionaryIndices implements PageValues {
  readonly layout: SegmentLayout;
  readonly #page: PageContext;
  readonly #dictionary: LoadedDictionary;
  #started = false;
  /** Indices of values that have no gathering kernel, until they are gathered. */
  #scratch: { readonly at: number; readonly taken: number } | undefined;

  constructor(page: PageContext, dictionary: LoadedDictionary) {
    this.#page = page;
    this.#dictionary = dictionary;
    this.layout = dictionary.values === 0 ? 'indices' : 'fixed';
  }

  decode(window: ValueTarget, count: number): number {
    const { pool, section, states, start } = this.#page;
    const { u32 } = pool;
    const word = states.hybrid >>> 2;
    if (!this.#started) {
      if (count === 0) return DONE;
      if (section.mark <= start) {
        if (section.isComplete) throw new DecodeError('PAGE', 'dictionary indices have no bit width');
        return NEED;
      }
      u32.fill(0, word, word + 32);
      u32[word + (HYBRID.ip >>> 2)] = start + 1;
      u32[word + (HYBRID.srcEnd >>> 2)] = section.end;
      u32[word + (HYBRID.width >>> 2)] = pool.u8[start]!;
      u32[word + (HYBRID.dictionary >>> 2)] = this.#dictionary.values;
      u32[word + (HYBRID.limit >>> 2)] = this.#dictionary.count;
      this.#started = true;
    }
    return this.#decodeRuns(window, count, word);
  }

  #decodeRuns(window: ValueTarget, count: number, word: number): number {
    const { pool, kernels, section, states, width } = this.#page;
    const { u32 } = pool;
    const wide = this.layout === 'fixed' && width !== 4 && width !== 8;
    if (wide) return this.#decodeWide(window, count, word);
    const size = this.layout === 'indices' ? 4 : width;
    const target = window.values + window.dense * size;
    u32[word + (HYBRID.op >>> 2)] = target;
    u32[word + (HYBRID.wanted >>> 2)] = count;
    const code =
      this.layout === 'indices'
        ? kernels.hybridU32(states.hybrid, section.mark)
        : width === 8
          ? kernels.hybridDict8(states.hybrid, section.mark)
          : kernels.hybridDict4(states.hybrid, section.mark);
    if (code < 0) throw kernelError('DICTIONARY', code, 'dictionary-encoded page');
    window.dense += count - u32[word + (HYBRID.wanted >>> 2)]!;
    return code;
  }

  #decodeWide(window: ValueTarget, count: number, word: number): number {
    const { pool, kernels, section, states, width } = this.#page;
    const { u32 } = pool;
    if (this.#scratch === undefined) {
      const at = pool.allocate(count * 4);
      if (at === 0) return NO_MEMORY;
      this.#scratch = { at, taken: count };
      u32[word + (HYBRID.op >>> 2)] = at;
      u32[word + (HYBRID.wanted >>> 2)] = count;
    }
    const { at, taken } = this.#scratch;
    const code = kernels.hybridU32(states.hybrid, section.mark);
    if (code === NEED) return NEED;
    if (code < 0) throw kernelError('DICTIONARY', code, 'dictionary-encoded page');
    kernels.gatherWide(at, taken, this.#dictionary.values, width, window.values + window.dense * width);
    window.dense += taken;
    this.close();
    return DONE;
  }

  close(): void {
    if (this.#scratch === undefined) return;
    this.#page.pool.free(this.#scratch.at, this.#scratch.taken * 4);
    this.#scratch = undefined;
  }
}
