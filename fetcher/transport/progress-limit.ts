/**
 * How long a read may be without progress: a multiple of what the slowest reads of late took to their first byte, within
 * a floor and a cap. Every stall doubles it until a first byte comes, so that a source that has become slow is not given
 * up for what it once was. Before enough is known it is the cap. Pure.
 */
import type { LatencyWindow } from './latency-window.ts';
import { STALL_FACTOR, STALL_FLOOR_MS, STALL_QUANTILE } from './limits.ts';

export class ProgressLimit {
  readonly #latencies: LatencyWindow;
  readonly #capMs: number;
  readonly #floorMs: number;
  #doublings = 0;

  constructor(latencies: LatencyWindow, capMs: number, floorMs: number = STALL_FLOOR_MS) {
    this.#latencies = latencies;
    this.#capMs = capMs;
    this.#floorMs = Math.min(floorMs, capMs);
  }

  get capMs(): number {
    return this.#capMs;
  }

  get milliseconds(): number {
    const usual = this.#latencies.quantile(STALL_QUANTILE);
    if (usual === undefined) return this.#capMs;
    return Math.min(this.#capMs, Math.max(this.#floorMs, STALL_FACTOR * usual) * 2 ** this.#doublings);
  }

  /** The first byte of a read has come after so long. */
  arrived(milliseconds: number): void {
    this.#latencies.observe(milliseconds);
    this.#doublings = 0;
  }

  /** A read that was allowed `limitMs` has stalled; those that were allowed as little do not count again. */
  stalled(limitMs: number): void {
    if (limitMs >= this.milliseconds && limitMs < this.#capMs) this.#doublings++;
  }
}
