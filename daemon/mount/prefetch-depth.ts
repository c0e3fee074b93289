/**
 * `--prefetch-depth auto` of a mount: deeper while reads find that their bytes are still on their way though memory is
 * free, less deep when what was fetched ahead has to leave before anybody read it.
 */
import { nextDepth, PREFETCH_DEPTH_DEFAULT } from '../../fetcher/index.ts';
import { DEPTH_LOOK_MS, DEPTH_READS_MIN } from './limits.ts';

/** Totals since the mount began. */
export interface ReadTotals {
  /** Reads whose bytes were there. */
  readonly there: number;
  /** Reads that waited. */
  readonly waited: number;
  /** Bytes that left memory unread. */
  readonly evictedBytes: number;
  /** Share of the memory in use, 0 to 1. */
  readonly memoryShare: number;
}

export class PrefetchDepth {
  current: number;
  readonly #timer: NodeJS.Timeout | undefined;
  #before: ReadTotals = { there: 0, waited: 0, evictedBytes: 0, memoryShare: 0 };

  constructor(depth: number | 'auto', totals: () => ReadTotals, onChange: (depth: number, reason: string) => void) {
    this.current = depth === 'auto' ? PREFETCH_DEPTH_DEFAULT : depth;
    if (depth !== 'auto') return;
    this.#timer = setInterval(() => this.#look(totals(), onChange), DEPTH_LOOK_MS);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(now: ReadTotals, onChange: (depth: number, reason: string) => void): void {
    const waited = now.waited - this.#before.waited;
    const reads = waited + now.there - this.#before.there;
    if (reads < DEPTH_READS_MIN) return;
    const evictions = now.evictedBytes > this.#before.evictedBytes ? 1 : 0;
    // the share of reads that waited stands for the share of the time
    const change = nextDepth(this.current, {
      wallMs: reads,
      waitedMs: waited,
      evictions,
      memoryShare: now.memoryShare,
    });
    this.#before = now;
    if (change === undefined) return;
    this.current = change.depth;
    onChange(
      change.depth,
      evictions > 0 ? 'bytes fetched ahead left memory unread' : `${waited} of ${reads} reads waited`,
    );
  }
}
