/** Scans end to end: rows, order, limits, memory, cancellation, and the account of every byte. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { DecodeError } from '../../decode/index.ts';
import { FetchError, openTransport } from '../../fetcher/index.ts';
import { serveRegion } from '../../storage-server/index.ts';
import { openSource, type Source } from '../../vfs/index.ts';
import { ScanEngine } from '../scan/engine.ts';
import { Scan, type ScanOptions } from '../scan/scan.ts';
import { GatedTransport } from './gated-transport.ts';
import { Lake, numbersQuery } from './lake.ts';

const ROWS = 60_000;
const MIB = 1 << 20;

/** Ids of a scan's rows, in the order they came. */
async function idsOf(scan: Scan): Promise<number[]> {
  const ids: number[] = [];
  for await (const batch of scan) for (const id of batch.getChild('id')!) ids.push(Number(id));
  return ids;
}

describe('scan', () => {
  let lake: Lake;
  let engine: ScanEngine;
  before(async () => {
    lake = await Lake.create();
    await lake.write('numbers.parquet', numbersQuery(ROWS));
    engine = new ScanEngine({ memoryBytes: 128 * MIB, decoders: 2 });
  });
  after(async () => {
    assert.equal(engine.pool.usedBytes, idleBytes(engine), 'the pool is as empty as at the start');
    await engine.close();
    await lake[Symbol.asyncDispose]();
  });

  async function withScan<T>(
    options: ScanOptions,
    use: (scan: Scan, source: Source) => Promise<T>,
    where: { engine?: ScanEngine; source?: Source } = {},
  ): Promise<T> {
    const source = where.source ?? (await openSource(lake.path('numbers.parquet')));
    try {
      const scan = await Scan.open(where.engine ?? engine, source, options);
      try {
        return await use(scan, source);
      } finally {
        await scan.close();
      }
    } finally {
      await source.close();
    }
  }

  test('gives every row once, in the order of the file', async () => {
    const ids = await withScan({ columns: ['id'] }, idsOf);
    assert.deepEqual(ids, [...Array(ROWS).keys()]);
  });

  test('gives every row once in any order when order is not asked for', async () => {
    const ids = await withScan({ preserveOrder: false, prefetchDepth: 4 }, idsOf);
    assert.deepEqual(
      ids.sort((a, b) => a - b),
      [...Array(ROWS).keys()],
    );
  });

  test('a limit gives exactly the first rows and does not fetch row groups behind it', async () => {
    for (const limit of [0, 1, 8192, 8193, 20_000]) {
      const { ids, rowGroups } = await withScan({ columns: ['id'], limit }, async (scan) => ({
        ids: await idsOf(scan),
        rowGroups: scan.plan.rowGroups.length,
      }));
      assert.deepEqual(ids, [...Array(limit).keys()]);
      assert.equal(rowGroups, Math.ceil(limit / 8192));
    }
  });

  test('batches have at most the rows that were asked for', async () => {
    await withScan({ batchRows: 1000 }, async (scan) => {
      for await (const batch of scan) assert.ok(batch.numRows <= 1000);
    });
  });

  test('every byte over the wire is used or wasted with its reason', async (t) => {
    const server = await serveRegion({ roots: [lake.folder], listen: { host: '127.0.0.1', port: 0 } });
    t.after(() => server.close());
    const { host, port } = server.address();
    const cases: [name: string, options: ScanOptions, rowsMax: number][] = [
      ['everything', {}, Number.POSITIVE_INFINITY],
      ['a projection without gaps', { columns: ['id', 'note'], maxGap: 0 }, Number.POSITIVE_INFINITY],
      ['a projection over gaps', { columns: ['id', 'note'], maxGap: 8 * MIB }, Number.POSITIVE_INFINITY],
      ['a limit', { limit: 10 }, Number.POSITIVE_INFINITY],
      ['a loop that is left', { prefetchDepth: 8 }, 1],
    ];
    for (const [name, options, rowsMax] of cases) {
      const source = await openSource(`rdma://${host}:${port}/numbers.parquet`);
      const scan = await Scan.open(engine, source, options);
      for await (const batch of scan) if (batch.numRows >= rowsMax) break;
      await scan.close();
      const { bytes } = scan.report();
      assert.equal(bytes.accounted, bytes.onWire, name);
      assert.ok(bytes.used > 0, name);
      assert.equal(bytes.wasted.gap > 0, name === 'a projection over gaps', name);
      await source.close();
    }
  });

  test('leaving the loop early enters what was fetched ahead as speculation', async () => {
    await withScan({ prefetchDepth: 8, maxGap: 0 }, async (scan) => {
      for await (const _batch of scan) {
        const { end } = scan.plan.rowGroups[2]!.chunks.at(-1)!.bytes;
        await until(() => scan.report().bytes.onWire > end);
        break;
      }
      const { bytes } = scan.report();
      assert.equal(bytes.accounted, bytes.onWire);
      assert.ok(bytes.wasted.speculation + bytes.wasted.cancelled > 0);
    });
  });

  test('cancelling stops reads, frees memory and rejects', async () => {
    const { source, gated } = await gatedSource(lake.path('numbers.parquet'));
    const controller = new AbortController();
    gated.gate = (_file, offset) => offset < 200_000 || offset > 600_000;
    const options = { prefetchDepth: 4, signal: controller.signal };
    await withScan(
      options,
      async (scan) => {
        const next = assert.rejects(drain(scan), (error) => error instanceof FetchError && error.code === 'CANCELLED');
        await until(() => gated.active > 0);
        controller.abort();
        await next;
        await scan.close();
        assert.equal(gated.active, 0, 'no read is under way');
        assert.ok(gated.cancelled > 0);
      },
      { source },
    );
  });

  test('rows of the first row group come out while later bytes of the file are held back', async () => {
    const { source, gated } = await gatedSource(lake.path('numbers.parquet'), 4096);
    await withScan(
      { prefetchDepth: 2, maxGap: 0 },
      async (scan) => {
        const { chunks } = scan.plan.rowGroups[0]!;
        const end = Math.max(...chunks.map((chunk) => chunk.bytes.end));
        gated.gate = (_file, offset) => offset <= end + 4096;
        const batch = await scan.nextBatch();
        assert.ok(batch !== undefined && batch.rows > 0);
        batch.release();
      },
      { source },
    );
  });

  test('a scan in little memory gives the same rows and stays under the cap', async () => {
    const memoryBytes = 9 * MIB;
    const small = new ScanEngine({ memoryBytes, decoders: 2 });
    try {
      const seen = await withScan(
        { prefetchDepth: 16 },
        async (scan) => ({ ids: await idsOf(scan), report: scan.report() }),
        { engine: small },
      );
      assert.deepEqual(seen.ids, [...Array(ROWS).keys()]);
      assert.ok(seen.report.peakMemoryBytes <= memoryBytes);
      assert.ok(small.pool.peakBytes <= memoryBytes);
      assert.equal(seen.report.bytes.accounted, seen.report.bytes.onWire);
    } finally {
      await small.close();
    }
  });

  test('what does not fit in memory alone is refused with the memory that it would take', async () => {
    await lake.write(
      'wide.parquet',
      `select repeat('x', 30000000) || i as s from range(2) t(i)`,
      'compression uncompressed',
    );
    const small = new ScanEngine({ memoryBytes: 16 * MIB, decoders: 1 });
    const source = await openSource(lake.path('wide.parquet'));
    try {
      const failed = withScan({}, drain, { engine: small, source });
      await assert.rejects(failed, (error) => {
        assert.ok(error instanceof FetchError);
        assert.equal(error.code, 'MEMORY');
        assert.match(error.message, /--memory \d+MiB/);
        return true;
      });
      assert.equal(small.pool.usedBytes, idleBytes(small));
      const ids = await withScan({ columns: ['id'] }, idsOf, { engine: small });
      assert.equal(ids.length, ROWS, 'the engine goes on with the next scan');
    } finally {
      await small.close();
    }
  });

  test('batches of zero copy give their memory back when they are disposed', async () => {
    await withScan({ zeroCopy: true, columns: ['id', 'name'] }, async (scan) => {
      let sum = 0;
      for await (const batch of scan) {
        using held = batch as typeof batch & Disposable;
        for (const id of held.getChild('id')!) sum += Number(id);
      }
      assert.equal(sum, (ROWS * (ROWS - 1)) / 2);
    });
  });

  test('files of one scan must have the same columns', async () => {
    await lake.write('parts-a.parquet', 'select 1::bigint as id, 2 as x');
    await lake.write('parts-b.parquet', `select 2::bigint as id, 'three' as x`);
    const source = await openSource(`${lake.folder}/parts-*.parquet`);
    await assert.rejects(withScan({}, drain, { source }), (error) => {
      assert.ok(error instanceof DecodeError);
      assert.equal(error.code, 'SCHEMA');
      assert.match(error.message, /parts-b\.parquet.*"x"/s);
      return true;
    });
    const ids = await withScan({ columns: ['id'] }, idsOf, {
      source: await openSource(`${lake.folder}/parts-*.parquet`),
    });
    assert.deepEqual(ids, [1, 2]);
  });

  test('two scans in little memory wait for each other', async () => {
    await lake.write('strings.parquet', `select i as id, repeat('x', 1000) || i as s from range(20000) t(i)`);
    const small = new ScanEngine({ memoryBytes: 20 * MIB, decoders: 1 });
    try {
      const one = async (): Promise<number> => {
        const source = await openSource(lake.path('strings.parquet'));
        return withScan({ prefetchDepth: 4 }, async (scan) => (await idsOf(scan)).length, { engine: small, source });
      };
      assert.deepEqual(await Promise.all([one(), one(), one()]), [20000, 20000, 20000]);
    } finally {
      await small.close();
    }
  });

  test('two scans share an engine', async () => {
    const [a, b] = await Promise.all([withScan({ columns: ['id'] }, idsOf), withScan({ prefetchDepth: 3 }, idsOf)]);
    assert.deepEqual(a, b);
  });
});

async function drain(scan: Scan): Promise<void> {
  for (;;) {
    const batch = await scan.nextBatch();
    if (batch === undefined) return;
    batch.release();
  }
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** What an engine's pool holds when nothing is scanned: the marks. */
function idleBytes(engine: ScanEngine): number {
  const other = new ScanEngine({ memoryBytes: 8 * MIB, decoders: engine.streams.count });
  const bytes = other.pool.usedBytes;
  void other.close();
  return bytes;
}

async function gatedSource(path: string, stepBytes?: number): Promise<{ source: Source; gated: GatedTransport }> {
  let gated: GatedTransport | undefined;
  const source = await openSource(path, {}, async (url) => {
    const opened = await openTransport(url);
    gated = new GatedTransport(opened.transport, stepBytes);
    return { ...opened, transport: gated };
  });
  return { source, gated: gated! };
}
