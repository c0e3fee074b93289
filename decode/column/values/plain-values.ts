/** PLAIN: values one after the other as they are (parquet-format, Encodings.md, "Plain"). */
import { DecodeError } from '../../errors.ts';
import { BYTES, DONE, NEED } from '../../kernels/kernels.ts';
import { kernelError } from '../kernel-error.ts';
import { type PageContext, type PageValues, readU32, type ValueTarget } from './page-values.ts';

/** PLAIN values of a fixed width: INT32, INT64, INT96, FLOAT, DOUBLE, FIXED_LEN_BYTE_ARRAY. */
export class PlainFixed implements PageValues {
  readonly layout = 'fixed';
  readonly #page: PageContext;
  #at: number;

  constructor(page: PageContext) {
    this.#page = page;
    this.#at = page.start;
  }

  decode(window: ValueTarget, count: number): number {
    const { kernels, section, width } = this.#page;
    const there = width === 0 ? count : Math.floor((section.mark - this.#at) / width);
    const take = Math.min(count, there);
    if (take > 0) {
      const target = window.values + window.dense * width;
      if (target !== this.#at) kernels.copy(target, this.#at, take * width); // else decompressed in place
      this.#at += take * width;
      window.dense += take;
    }
    if (take === count) return DONE;
    if (section.isComplete) throw new DecodeError('PAGE', 'PLAIN values end before the page has all of its values');
    return NEED;
  }

  close(): void {}
}

/** PLAIN booleans: one bit a value, least significant first. */
export class PlainBits implements PageValues {
  readonly layout = 'bits';
  readonly #page: PageContext;
  #bit = 0;

  constructor(page: PageContext) {
    this.#page = page;
  }

  decode(window: ValueTarget, count: number): number {
    const { kernels, section, start } = this.#page;
    const take = Math.min(count, (section.mark - start) * 8 - this.#bit);
    if (take > 0) {
      kernels.copyBits(start, this.#bit, window.values, window.dense, take);
      this.#bit += take;
      window.dense += take;
    }
    if (take === count) return DONE;
    if (section.isComplete) throw new DecodeError('PAGE', 'PLAIN booleans end before the page has all of its values');
    return NEED;
  }

  close(): void {}
}

/** PLAIN BYTE_ARRAY values: a 4-byte length before each. */
export class PlainBytes implements PageValues {
  readonly layout = 'bytes';
  readonly #page: PageContext;
  #at: number;
  #window: ValueTarget | undefined;
  /** 1 while the bytes of a value whose length is known are still arriving. */
  #pending = 0;

  constructor(page: PageContext) {
    this.#page = page;
    this.#at = page.start;
  }

  decode(window: ValueTarget, count: number): number {
    const { pool, kernels, section, states } = this.#page;
    const { u32 } = pool;
    const word = states.bytes >>> 2;
    if (section.mark < this.#at) return NEED; // levels are still arriving
    if (this.#window !== window) {
      // a new page, or a new window: the state follows the input here and the output there
      u32[word + (BYTES.ip >>> 2)] = this.#at;
      u32[word + (BYTES.srcEnd >>> 2)] = section.end;
      u32[word + (BYTES.slot >>> 2)] = window.values + 4 + window.dense * 4;
      u32[word + (BYTES.at >>> 2)] = u32[(window.values + window.dense * 4) >>> 2]!;
      u32[word + (BYTES.op >>> 2)] = window.dataStart + u32[word + (BYTES.at >>> 2)]!;
      u32[word + (BYTES.dataEnd >>> 2)] = window.dataEnd;
      u32[word + (BYTES.valueLeft >>> 2)] = 0;
      this.#window = window;
    }
    u32[word + (BYTES.wanted >>> 2)] = count - this.#pending;
    const code = kernels.plainBytes(states.bytes, section.mark);
    if (code < 0) throw kernelError('PAGE', code, 'PLAIN byte arrays');
    const slot = u32[word + (BYTES.slot >>> 2)]!;
    this.#pending = u32[word + (BYTES.valueLeft >>> 2)]! > 0 ? 1 : 0;
    window.dense = (slot - window.values) / 4 - 1 - this.#pending;
    this.#at = u32[word + (BYTES.ip >>> 2)]!;
    return code;
  }

  needBytes(): number {
    // after FULL, `ip` stands on the length of the value that did not fit
    return readU32(this.#page.pool, this.#at);
  }

  close(): void {}
}
