/** Scans that share a pool too small for all of them: they take turns; who does not ask for rows stands in nobody's way. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { FetchError } from '../../fetcher/index.ts';
import { openSource, type Source } from '../../vfs/index.ts';
import { CONSUMER_IDLE_MS } from '../limits.ts';
import { ScanEngine } from '../scan/engine.ts';
import { Scan, type ScanOptions } from '../scan/scan.ts';
import { Lake, numbersQuery } from './lake.ts';

const ROWS = 240_000;
/** A row group takes most of it: beside one scan there is no room for another. */
const MEMORY_BYTES = 12 << 20;

let lake: Lake;
let source: Source;
before(async () => {
  lake = await Lake.create();
  await lake.write('a.parquet', numbersQuery(ROWS), 'row_group_size 80000');
  source = await openSource(lake.path('a.parquet'));
});
after(async () => {
  await source.close();
  await lake[Symbol.asyncDispose]();
});

async function withEngine(memoryBytes: number, work: (engine: ScanEngine) => Promise<void>): Promise<void> {
  const engine = new ScanEngine({ memoryBytes, decoders: 1 });
  const idleBytes = engine.pool.usedBytes;
  try {
    await work(engine);
    assert.equal(engine.pool.usedBytes, idleBytes, 'the pool is as empty as before');
  } finally {
    await engine.close();
  }
}

/** Reads on to the end; the sum of the ids says that every row came once. */
async function readAll(scan: Scan, seen = { rows: 0, sum: 0n }): Promise<void> {
  for await (const batch of scan) {
    for (const id of batch.getChild('id')!) {
      assert.equal(id, BigInt(seen.rows++));
      seen.sum += id;
    }
  }
  assert.equal(seen.rows, ROWS);
  assert.equal(seen.sum, (BigInt(ROWS) * BigInt(ROWS - 1)) / 2n);
}

const open = (engine: ScanEngine, options: ScanOptions = {}): Promise<Scan> => Scan.open(engine, source, options);

describe('in a pool that has room for one', () => {
  test('eight scans at once come to their end', () =>
    withEngine(MEMORY_BYTES, async (engine) => {
      await Promise.all(
        Array.from({ length: 8 }, async (_, k) => readAll(await open(engine, { prefetchDepth: 1 + (k % 4) }))),
      );
    }));

  test('a scan whose consumer rests makes room, and goes on where it was', () =>
    withEngine(MEMORY_BYTES, async (engine) => {
      const resting = [await open(engine), await open(engine, { prefetchDepth: 3 })];
      const seen: { rows: number; sum: bigint }[] = [];
      for (const scan of resting) {
        const batch = (await scan.nextBatch())!;
        seen.push({ rows: batch.rows, sum: (BigInt(batch.rows) * BigInt(batch.rows - 1)) / 2n });
        batch.release();
      }
      await sleep(CONSUMER_IDLE_MS);
      await Promise.all([open(engine), open(engine)].map(async (scan) => readAll(await scan)));
      assert.ok(
        resting.some((scan) => scan.report().evictions > 0),
        'somebody stepped aside',
      );
      await Promise.all(resting.map((scan, k) => readAll(scan, seen[k])));
    }));
});

test('one for which there is never room says how much it takes, and not that it may come again', () =>
  withEngine(8 << 20, async (engine) => {
    await lake.write('large.parquet', numbersQuery(150_000), 'row_group_size 150000');
    const large = await openSource(lake.path('large.parquet'));
    const results = await Promise.allSettled([1, 2].map(async () => readAll(await Scan.open(engine, large))));
    await large.close();
    for (const result of results) {
      assert.equal(result.status, 'rejected');
      assert.ok(result.reason instanceof FetchError);
      assert.equal(result.reason.code, 'MEMORY');
      assert.match(result.reason.message, /try --memory \d+MiB$/);
      assert.equal(result.reason.retryable, false);
    }
  }));
