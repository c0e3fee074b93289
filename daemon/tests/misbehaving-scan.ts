/** Whole scans of a source that misbehaves: each ends with exactly its rows or an error of ours, in time, and holds nothing then. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { FetchError } from '../../fetcher/index.ts';
import { openSource, type SourceOptions } from '../../vfs/index.ts';
import type { ScanEngine } from '../scan/engine.ts';
import { Scan } from '../scan/scan.ts';

/** Far more than any of these scans may take: stalls are short, and there is an end to attempts. */
const TIME_MS = 240_000;

/** What may come of a source that misbehaves; that it is not there, or that we ask for nonsense, may not. */
const CODES: readonly string[] = ['LOST', 'STALLED', 'SERVER', 'PROTOCOL', 'STALE', 'DENIED', 'REFUSED'];

export interface Ended {
  /** A digest of all rows, or the error's code. */
  readonly result: string;
  readonly retries: number;
  readonly hedges: number;
}

/** Scans a location to its end. Throws when the scan breaks what is promised of all scans. */
export async function endOf(engine: ScanEngine, location: string, options: SourceOptions): Promise<Ended> {
  const held = engine.pool.usedBytes;
  const source = await openSource(location, options);
  const late = new AbortController();
  try {
    const deadline = sleep(TIME_MS, undefined, { signal: late.signal, ref: false }).then(
      () => assert.fail(`${location}: not over after ${TIME_MS} ms`),
      () => '',
    );
    const result = await Promise.race([rowsOrCode(engine, source), deadline]);
    const { retries, hedges } = source.counters;
    assert.equal(engine.pool.usedBytes, held, 'memory that nobody gave back');
    return { result, retries, hedges };
  } finally {
    late.abort();
    await source.close();
  }
}

async function rowsOrCode(engine: ScanEngine, source: Awaited<ReturnType<typeof openSource>>): Promise<string> {
  let scan: Scan | undefined;
  const hash = createHash('sha256');
  let rows = 0;
  try {
    scan = await Scan.open(engine, source, {});
    for (let batch = await scan.nextBatch(); batch !== undefined; batch = await scan.nextBatch()) {
      const arrow = scan.toArrow(batch);
      rows += batch.rows;
      for (let row = 0; row < batch.rows; row++) {
        for (let i = 0; i < arrow.numCols; i++) hash.update(`${arrow.getChildAt(i)!.get(row)}\n`);
      }
      batch.release();
    }
    return `${rows} rows ${hash.digest('hex')}`;
  } catch (error) {
    assert.ok(error instanceof FetchError && CODES.includes(error.code), String(error));
    return error.code;
  } finally {
    await scan?.close();
  }
}
