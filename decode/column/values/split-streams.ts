/**
 * BYTE_STREAM_SPLIT (parquet-format, Encodings.md, "Byte Stream Split"): the k-th bytes of all values one after the
 * other, for each k. Values can be joined as far as the last stream has arrived.
 */
import { DecodeError } from '../../errors.ts';
import { DONE, NEED } from '../../kernels/kernels.ts';
import { kernelError } from '../kernel-error.ts';
import type { PageContext, PageValues, ValueTarget } from './page-values.ts';

export class SplitStreams implements PageValues {
  readonly layout = 'fixed';
  readonly #page: PageContext;
  readonly #values: number;
  #given = 0;

  /** Throws PAGE when the bytes are not a whole number of values. */
  constructor(page: PageContext) {
    this.#page = page;
    const bytes = page.section.end - page.start;
    if (bytes % page.width !== 0) {
      throw new DecodeError('PAGE', `${bytes} bytes of split streams`, { expected: `a multiple of ${page.width}` });
    }
    this.#values = bytes / page.width;
  }

  decode(window: ValueTarget, count: number): number {
    const { kernels, section, start, width } = this.#page;
    if (count > this.#values - this.#given) {
      throw new DecodeError('PAGE', `split streams end after ${this.#values} values`, {
        expected: 'a value for every level',
      });
    }
    const there = section.mark - start - (width - 1) * this.#values - this.#given;
    const take = Math.min(count, there);
    if (take > 0) {
      const target = window.values + (window.dense - this.#given) * width;
      const code = kernels.joinStreams(start, this.#values, width, target, this.#given, this.#given + take);
      if (code < 0) throw kernelError('PAGE', code, 'split streams');
      this.#given += take;
      window.dense += take;
    }
    return take === count ? DONE : NEED;
  }

  end(): void {
    if (this.#given < this.#values) {
      throw new DecodeError('PAGE', `${this.#values - this.#given} split values more than the page's levels have`);
    }
  }

  close(): void {}
}
