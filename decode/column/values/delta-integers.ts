/** DELTA_BINARY_PACKED integers of 32 or 64 bits, wrapping around as the specification says. */
import { DecodeError } from '../../errors.ts';
import { DONE, NEED } from '../../kernels/kernels.ts';
import { DeltaStream } from './delta-stream.ts';
import type { PageContext, PageValues, ValueTarget } from './page-values.ts';

export class DeltaIntegers implements PageValues {
  readonly layout = 'fixed';
  readonly #page: PageContext;
  readonly #stream: DeltaStream;

  constructor(page: PageContext) {
    this.#page = page;
    this.#stream = new DeltaStream(page, page.width === 4 ? 32 : 64);
  }

  decode(window: ValueTarget, count: number): number {
    if (count === 0) return DONE;
    const { width, start } = this.#page;
    if (!this.#stream.begin(start)) return NEED;
    const { code, given } = this.#stream.decode(window.values + window.dense * width, count);
    window.dense += given;
    return given === count ? DONE : code;
  }

  end(): void {
    if (this.#stream.total > 0 && this.#stream.left > 0) {
      throw new DecodeError('PAGE', `${this.#stream.left} delta values more than the page's levels have`);
    }
  }

  close(): void {}
}
