/**
 * Scans of the soak run, whichever way the rows come: what is asked for, what became of it, and the loop that asks again
 * and again. What fails in any other way than with STALE, or gives a wrong row, is a failure of the run.
 */
import type { RecordBatch } from 'apache-arrow';
import { CHECKED_COLUMNS, FURTHER_COLUMNS, RowCheck, type SeenVersions } from './soak-rows.ts';

export interface ScanWish {
  /** Of the source; everything when absent. */
  readonly path?: string;
  readonly columns: readonly string[];
  readonly batchRows: number;
  /** Gives up after so many rows. */
  readonly rowsMax?: number;
  /** Milliseconds between two batches. */
  readonly pauseMs: number;
}

export type ScanOutcome = 'complete' | 'stale' | 'given up' | 'FAILED';

export interface ScanRecord {
  readonly outcome: ScanOutcome;
  /** Milliseconds since 1970. */
  readonly began: number;
  readonly ended: number;
  /** Rows that came, all of them checked. */
  readonly rows: number;
  readonly seen: SeenVersions;
  /** Whether it was of everything and came to its end. */
  readonly isWhole: boolean;
  readonly failure?: string;
}

/** Batches of one scan. A way of scanning throws Stale where it was told so. */
export type ScanWay = (wish: ScanWish) => AsyncIterable<RecordBatch>;

export class Stale extends Error {}

/** How a client scans. */
export interface ScanHabits {
  /** Milliseconds between two batches; 0 for as fast as they come. */
  readonly pauseMs: number;
  /** One of so many scans is given up midway; 0 for none. */
  readonly giveUpOneOf: number;
  /** One of so many is of the files that are never rewritten. */
  readonly fixedOneOf: number;
  /** Every scan is of all columns: what buffers on the way take at once is soon full. */
  readonly isWide: boolean;
}

export function chooseWish(random: (below: number) => number, habits: ScanHabits): ScanWish {
  const further = FURTHER_COLUMNS.filter(() => habits.isWide || random(3) > 0);
  const isFixed = random(habits.fixedOneOf) === 0;
  return {
    ...(isFixed ? { path: 'fixed-*.parquet' } : {}),
    columns: [...CHECKED_COLUMNS, ...further],
    batchRows: 1000 + random(8000),
    ...(habits.giveUpOneOf > 0 && random(habits.giveUpOneOf) === 0 ? { rowsMax: 1 + random(60_000) } : {}),
    pauseMs: habits.pauseMs,
  };
}

/** Runs one scan and checks each of its rows. `isHurried`: the run wants to get to an end, nobody rests any more. */
export async function runScan(way: ScanWay, wish: ScanWish, isHurried: () => boolean): Promise<ScanRecord> {
  const check = new RowCheck();
  const began = Date.now();
  const record = (outcome: ScanOutcome, failure?: string): ScanRecord => ({
    outcome,
    began,
    ended: Date.now(),
    rows: check.rows,
    seen: check.seen,
    isWhole: outcome === 'complete' && wish.path === undefined,
    ...(failure === undefined ? {} : { failure }),
  });
  try {
    for await (const batch of way(wish)) {
      check.add(batch);
      if (check.rows >= (wish.rowsMax ?? Number.POSITIVE_INFINITY)) return record('given up');
      const resumeMs = performance.now() + wish.pauseMs;
      while (performance.now() < resumeMs && !isHurried()) await new Promise((resolve) => setTimeout(resolve, 20));
    }
    check.end();
    return record('complete');
  } catch (error) {
    if (error instanceof Stale) return record('stale');
    return record('FAILED', error instanceof Error ? `${error.stack}` : String(error));
  }
}
