/**
 * The latest times that reads of a source took to their first byte, and what they say of the next one. Bounded, and of the
 * recent past only, so that another network or a busier server is noticed. Pure.
 */
import { LATENCIES_KEPT, LATENCIES_MIN } from './limits.ts';

export class LatencyWindow {
  readonly #samples: number[] = [];
  #next = 0;
  /** Sorted when somebody asks, and for as long as little has come since. */
  #sorted: number[] = [];
  #sinceSorted = 0;

  observe(milliseconds: number): void {
    this.#samples[this.#next] = milliseconds;
    this.#next = (this.#next + 1) % LATENCIES_KEPT;
    this.#sinceSorted++;
  }

  /** The time within which this part of the reads had their first byte; undefined while too few are known. */
  quantile(part: number): number | undefined {
    if (this.#samples.length < LATENCIES_MIN) return undefined;
    if (this.#sorted.length === 0 || this.#sinceSorted >= LATENCIES_MIN) {
      this.#sorted = this.#samples.toSorted((a, b) => a - b);
      this.#sinceSorted = 0;
    }
    return this.#sorted[Math.min(this.#sorted.length - 1, Math.floor(part * this.#sorted.length))];
  }
}
