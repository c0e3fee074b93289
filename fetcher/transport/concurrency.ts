/**
 * How many reads of a source may be under way: more while reads have to wait for their turn, half as many when the source
 * is busy or silent, somewhat fewer when first bytes take far longer than they did. Reads that began before the last step
 * down do not ask for another: what they met is what it was for. Pure.
 */
import type { ConcurrencyReason } from './events.ts';
import {
  BEST_GROWTH,
  CONCURRENCY,
  CONCURRENCY_BUSY_FACTOR,
  CONCURRENCY_MAX,
  CONCURRENCY_MIN,
  CONCURRENCY_SLOW_FACTOR,
  CONCURRENCY_SLOW_MIN,
  SLOW_FACTOR,
  SLOW_MS,
} from './limits.ts';

export interface ConcurrencyBounds {
  readonly start: number;
  readonly least: number;
  readonly slowLeast: number;
  readonly most: number;
}

/** Bounds around a given start; with `isFixed` there is nothing to adapt. */
export function concurrencyBounds(start = CONCURRENCY, isFixed = false): ConcurrencyBounds {
  if (isFixed) return { start, least: start, slowLeast: start, most: start };
  const slowLeast = Math.min(start, CONCURRENCY_SLOW_MIN);
  return { start, least: CONCURRENCY_MIN, slowLeast, most: Math.max(start, CONCURRENCY_MAX) };
}

/** How a read went. */
export interface ReadOutcome {
  readonly how: 'good' | 'busy' | 'stalled' | 'other';
  /** Time to its first byte; undefined where there was none. */
  readonly latencyMs: number | undefined;
  /** Others are waiting for their turn. */
  readonly othersWait: boolean;
}

export class ConcurrencyControl {
  readonly #bounds: ConcurrencyBounds;
  readonly #onChange: (from: number, to: number, why: ConcurrencyReason) => void;
  #limit: number;
  /** Counts steps down. */
  #era = 0;
  /** The round of reads that is under way: as many as the limit. */
  #reads = 0;
  #latencySumMs = 0;
  #latencies = 0;
  #othersWaited = false;
  /** The mean latency of the best round of late. */
  #bestMs = Number.POSITIVE_INFINITY;

  constructor(
    bounds: ConcurrencyBounds,
    onChange: (from: number, to: number, why: ConcurrencyReason) => void = () => {},
  ) {
    this.#bounds = bounds;
    this.#limit = bounds.start;
    this.#onChange = onChange;
  }

  get limit(): number {
    return this.#limit;
  }

  /** A read begins; its era goes back with its outcome. */
  began(): number {
    return this.#era;
  }

  ended(era: number, { how, latencyMs, othersWait }: ReadOutcome): void {
    const { least, slowLeast, most } = this.#bounds;
    if (least === most) return;
    if (how === 'busy' || how === 'stalled') {
      if (era === this.#era) this.#change(Math.max(least, Math.floor(this.#limit * CONCURRENCY_BUSY_FACTOR)), how);
      return;
    }
    if (how === 'other' || era !== this.#era) return;
    this.#reads++;
    this.#othersWaited ||= othersWait;
    if (latencyMs !== undefined) {
      this.#latencySumMs += latencyMs;
      this.#latencies++;
    }
    if (this.#reads < this.#limit) return;
    const meanMs = this.#latencies === 0 ? 0 : this.#latencySumMs / this.#latencies;
    const isSlow = meanMs > SLOW_FACTOR * this.#bestMs + SLOW_MS;
    if (this.#latencies > 0) this.#bestMs = Math.min(meanMs, this.#bestMs * BEST_GROWTH);
    const isWanted = this.#othersWaited;
    this.#newRound();
    if (isSlow && this.#limit > slowLeast) {
      this.#change(Math.max(slowLeast, Math.floor(this.#limit * CONCURRENCY_SLOW_FACTOR)), 'latency');
    } else if (!isSlow && isWanted) this.#change(Math.min(most, this.#limit + 1), 'demand');
  }

  #change(to: number, why: ConcurrencyReason): void {
    const from = this.#limit;
    if (to < from || why !== 'demand') this.#era++;
    if (to === from) return;
    this.#limit = to;
    this.#newRound();
    this.#onChange(from, to, why);
  }

  #newRound(): void {
    this.#reads = this.#latencySumMs = this.#latencies = 0;
    this.#othersWaited = false;
  }
}
