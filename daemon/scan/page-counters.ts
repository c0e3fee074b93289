/**
 * Page counters of a decoder: 64-bit registers, one for each count of decode's tally. The decoder's thread adds what a
 * step has counted; a reader takes it destructively.
 */
import { PAGE_TALLY_LENGTH, type PageTally } from '../../decode/index.ts';
import type { Bounds } from './control-block.ts';

export class PageCounters {
  readonly #words: BigInt64Array<SharedArrayBuffer>;
  readonly #at: number;
  readonly #length: number;

  constructor(words: BigInt64Array<SharedArrayBuffer>, { start, end }: Bounds) {
    this.#words = words;
    this.#at = start >>> 3;
    this.#length = Math.min(PAGE_TALLY_LENGTH, (end - start) >>> 3);
  }

  /** Moves the counts of `tally` to the registers. */
  add(tally: PageTally): void {
    if (!tally.isChanged) return;
    const { counts } = tally;
    for (let k = 0; k < this.#length; k++) {
      if (counts[k] === 0) continue;
      Atomics.add(this.#words, this.#at + k, BigInt(counts[k]!));
      counts[k] = 0;
    }
    tally.isChanged = false;
  }

  /** Adds to `totals` what was counted since the last time, and leaves zeroes. */
  takeInto(totals: Float64Array): void {
    for (let k = 0; k < this.#length; k++) totals[k]! += Number(Atomics.exchange(this.#words, this.#at + k, 0n));
  }
}
