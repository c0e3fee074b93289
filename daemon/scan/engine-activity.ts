/**
 * What an engine has done over all of its scans, those that have ended too, and what is under way: plain numbers that
 * metrics read when they are asked for. Nothing is counted twice: open scans are summed when somebody looks.
 */
import { type ByteLedger, newLedger } from '../../fetcher/index.ts';
import { BucketCounts, METRICS } from '../../metrics/index.ts';

/** Totals of one scan or of several. */
export interface ScanSums {
  readonly ledger: Readonly<ByteLedger>;
  readonly rows: number;
  readonly batches: number;
  readonly rowGroups: number;
  readonly evictions: number;
  readonly waitedMs: number;
}

export interface ScanActivity {
  readonly totals: ScanSums;
  /** Row groups that it keeps in flight at most. */
  readonly depth: number;
  readonly rowGroupsInFlight: number;
}

export type ScanOutcome = 'complete' | 'closed' | 'failed';

export class EngineActivity {
  readonly fetchSeconds = new BucketCounts(METRICS.fetchSeconds.buckets);
  readonly fetchBytes = new BucketCounts(METRICS.fetchBytes.buckets);
  /** Row groups by what was there of them when their turn came. */
  readonly turns = { hit: 0, late: 0, miss: 0 };
  readonly ended: Record<ScanOutcome, number> = { complete: 0, closed: 0, failed: 0 };
  readonly #open = new Set<ScanActivity>();
  #past: ScanSums = { ledger: newLedger(), rows: 0, batches: 0, rowGroups: 0, evictions: 0, waitedMs: 0 };

  get scans(): ReadonlySet<ScanActivity> {
    return this.#open;
  }

  opened(scan: ScanActivity): void {
    this.#open.add(scan);
  }

  /** The scan's totals do not change any more. Once for each scan; more do nothing. */
  closed(scan: ScanActivity, outcome: ScanOutcome): void {
    if (!this.#open.delete(scan)) return;
    this.#past = sum(this.#past, scan.totals);
    this.ended[outcome]++;
  }

  totals(): ScanSums {
    return [...this.#open].reduce((total, { totals }) => sum(total, totals), this.#past);
  }
}

function sum(a: ScanSums, b: ScanSums): ScanSums {
  const wasted = { ...a.ledger.wasted };
  for (const reason of ['gap', 'speculation', 'cancelled', 'evicted'] as const)
    wasted[reason] += b.ledger.wasted[reason];
  return {
    ledger: { used: a.ledger.used + b.ledger.used, wasted },
    rows: a.rows + b.rows,
    batches: a.batches + b.batches,
    rowGroups: a.rowGroups + b.rowGroups,
    evictions: a.evictions + b.evictions,
    waitedMs: a.waitedMs + b.waitedMs,
  };
}
