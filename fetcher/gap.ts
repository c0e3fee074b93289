/**
 * `--max-gap auto`: reading over a gap pays when it takes less time than another request, so the gap is the source's
 * latency times its bandwidth, as measured on the scan's own requests. Small requests tell the latency, large ones
 * the bandwidth; both are moving averages, since networks change.
 */
import { GAP_BYTES_MAX, GAP_BYTES_MIN } from './limits.ts';

/** Bytes: requests up to this size are all latency. */
const SMALL_BYTES = 128 * 1024;

/** Share of a new observation in the average, as in DuckDB's. */
const WEIGHT = 0.5;

/** Bytes per millisecond assumed until a large request was seen: 100 MB/s, a slow object store. */
const BANDWIDTH_DEFAULT = 100_000;

export class GapEstimator {
  #latencyMs: number | undefined;
  #bytesPerMs = BANDWIDTH_DEFAULT;

  /** A request of `bytes` took `milliseconds` from its start to its last byte. */
  observe(bytes: number, milliseconds: number): void {
    if (milliseconds <= 0) return;
    if (bytes <= SMALL_BYTES) {
      this.#latencyMs =
        this.#latencyMs === undefined ? milliseconds : this.#latencyMs * (1 - WEIGHT) + milliseconds * WEIGHT;
      return;
    }
    const transferMs = Math.max(milliseconds - (this.#latencyMs ?? 0), milliseconds / 10);
    this.#bytesPerMs = this.#bytesPerMs * (1 - WEIGHT) + (bytes / transferMs) * WEIGHT;
  }

  /** Bytes that may lie between two ranges of one request now. */
  gapBytes(): number {
    return Math.min(GAP_BYTES_MAX, Math.max(GAP_BYTES_MIN, this.tripBytes));
  }

  /** Bytes that come in the time of a round trip, as far as is known; 0 before anything was measured. */
  get tripBytes(): number {
    return Math.round((this.#latencyMs ?? 0) * this.#bytesPerMs);
  }
}
