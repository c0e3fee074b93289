/** The library used as it should not be: it ends with a typed error or the right rows, never in silence or a leak. */
import assert from 'node:assert/strict';
import { writeFile as writeBytes } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { DecodeError, type DecodeErrorCode, Physical } from '../../decode/index.ts';
import type { Tree } from '../../decode/tests/thrift-twin.ts';
import { type FilePlan, writeFile } from '../../decode/tests/writer/index.ts';
import { FetchError, type FetchErrorCode } from '../../fetcher/index.ts';
import { openSource, type Source } from '../../vfs/index.ts';
import { type EngineOptions, ScanEngine } from '../scan/engine.ts';
import { Scan, type ScanOptions } from '../scan/scan.ts';
import { Lake, numbersQuery } from './lake.ts';

const MIB = 1 << 20;
const ROWS = 60_000;

let lake: Lake;
before(async () => {
  lake = await Lake.create();
  await lake.write('numbers.parquet', numbersQuery(ROWS));
});
after(() => lake[Symbol.asyncDispose]());

const fails =
  (code: FetchErrorCode | DecodeErrorCode, text = /(?:)/) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof FetchError || error instanceof DecodeError, String(error));
    assert.match(error.message, text);
    assert.equal(error.code, code, error.message);
    return true;
  };

/** An engine and a source for `use`; at its end no scan is left open and no byte of the pool is held. */
async function withEngine(
  use: (engine: ScanEngine, source: Source) => Promise<void>,
  { file = 'numbers.parquet', options = {} }: { file?: string; options?: EngineOptions } = {},
): Promise<void> {
  const engine = new ScanEngine({ memoryBytes: 24 * MIB, decoders: 1, ...options });
  const idleBytes = engine.pool.usedBytes;
  const source = await openSource(lake.path(file));
  try {
    await use(engine, source);
    assert.equal(engine.scans.size, 0, 'no scan is left open');
    assert.equal(engine.pool.usedBytes, engine.isClosed ? 0 : idleBytes, 'no memory is held');
  } finally {
    await source.close();
    await engine.close();
  }
}

async function rowsOf(scan: Scan): Promise<number> {
  let rows = 0;
  for await (const batch of scan) rows += batch.numRows;
  return rows;
}

describe('closing', () => {
  test('the engine during a scan: the scan fails, whoever waits for it', async () => {
    await withEngine(async (engine, source) => {
      const scan = await Scan.open(engine, source, { prefetchDepth: 8 });
      const reading = rowsOf(scan);
      const failed = assert.rejects(reading, fails('CLOSED', /the engine was closed/));
      await engine.close();
      await failed;
      await assert.rejects(scan.nextBatch(), fails('CLOSED'));
    });
  });

  test('the engine while the consumer holds a batch: it stays valid until it is released', async () => {
    await withEngine(async (engine, source) => {
      const scan = await Scan.open(engine, source, { columns: ['id'] });
      const batch = (await scan.nextBatch())!;
      await engine.close();
      assert.equal(Number(scan.toArrow(batch).getChild('id')!.get(5)), 5);
      batch.release();
      await assert.rejects(scan.nextBatch(), fails('CLOSED'));
    });
  });

  test('the engine twice, and with several scans', async () => {
    await withEngine(async (engine, source) => {
      const scans = [await Scan.open(engine, source), await Scan.open(engine, source)];
      assert.equal(engine.scans.size, 2);
      await Promise.all([engine.close(), engine.close()]);
      await engine.close();
      for (const scan of scans) await assert.rejects(rowsOf(scan), fails('CLOSED'));
    });
  });

  test('a scan on an engine that is closed', async () => {
    await withEngine(async (engine, source) => {
      const early = await Scan.open(engine, source);
      await engine.close();
      await assert.rejects(Scan.open(engine, source), fails('CLOSED', /the engine was closed/));
      await assert.rejects(rowsOf(early), fails('CLOSED'));
    });
  });

  test('the scan during a scan, and twice: it ends', async () => {
    await withEngine(async (engine, source) => {
      const scan = await Scan.open(engine, source, { prefetchDepth: 8 });
      const reading = rowsOf(scan);
      await Promise.all([scan.close(), scan.close()]);
      assert.ok((await reading) < ROWS);
      assert.equal(await scan.nextBatch(), undefined);
    });
  });

  test('the source during a scan: the scan fails', async () => {
    await withEngine(async (engine, source) => {
      const scan = await Scan.open(engine, source, { prefetchDepth: 1 });
      const reading = assert.rejects(rowsOf(scan), fails('CLOSED'));
      await source.close();
      await reading;
    });
  });
});

describe('asking several times', () => {
  test('several nextBatch() at once are answered in turn, each row once', async () => {
    await withEngine(async (engine, source) => {
      const scan = await Scan.open(engine, source, { columns: ['id'], batchRows: 5000 });
      const ids: number[] = [];
      for (let done = false; !done; ) {
        const batches = await Promise.all(Array.from({ length: 5 }, () => scan.nextBatch()));
        for (const batch of batches) {
          done ||= batch === undefined;
          if (batch === undefined) continue;
          assert.ok(!done, 'nothing behind the end');
          for (const id of scan.toArrow(batch).getChild('id')!) ids.push(Number(id));
          batch.release();
        }
      }
      assert.deepEqual(ids, [...Array(ROWS).keys()]);
    });
  });

  test('nextBatch() at once, all of which fail', async () => {
    await withEngine(async (engine, source) => {
      const controller = new AbortController();
      const scan = await Scan.open(engine, source, { signal: controller.signal });
      const asked = Array.from({ length: 3 }, () => assert.rejects(scan.nextBatch(), fails('CANCELLED')));
      controller.abort();
      await Promise.all(asked);
      await scan.close();
    });
  });

  test('two loops over one scan share its rows; a third finds none', async () => {
    await withEngine(async (engine, source) => {
      const scan = await Scan.open(engine, source, { batchRows: 5000 });
      const [one, other] = await Promise.all([rowsOf(scan), rowsOf(scan)]);
      assert.equal(one! + other!, ROWS);
      assert.equal(await rowsOf(scan), 0);
    });
  });
});

describe('options that make no sense', () => {
  test('decoders', () => {
    for (const decoders of [0, -1, 1.5, Number.NaN, 100_000]) {
      assert.throws(() => new ScanEngine({ memoryBytes: 24 * MIB, decoders }), RangeError, String(decoders));
    }
  });

  test('memory', () => {
    for (const memoryBytes of [0, -1, Number.NaN, 1000, 2 ** 40]) {
      assert.throws(() => new ScanEngine({ memoryBytes, decoders: 1 }), Error, String(memoryBytes));
    }
  });

  test('columns, limits and the like leave no scan behind', async () => {
    await withEngine(async (engine, source) => {
      const wrong: [options: object, code: FetchErrorCode][] = [
        [{ columns: 'id' }, 'OPTION'],
        [{ columns: [5] }, 'OPTION'],
        [{ columns: ['nothing'] }, 'COLUMN'],
        [{ limit: -1 }, 'OPTION'],
        [{ limit: 1.5 }, 'OPTION'],
        [{ limit: Number.NaN }, 'OPTION'],
        [{ prefetchDepth: 0 }, 'OPTION'],
        [{ prefetchDepth: 'x' }, 'OPTION'],
        [{ maxGap: -1 }, 'OPTION'],
        [{ batchRows: 0 }, 'OPTION'],
        [{ signal: AbortSignal.abort() }, 'CANCELLED'],
      ];
      for (const [options, code] of wrong) {
        await assert.rejects(Scan.open(engine, source, options as ScanOptions), fails(code), JSON.stringify(options));
        assert.equal(engine.scans.size, 0, JSON.stringify(options));
      }
    });
  });
});

describe('files with next to nothing in them', () => {
  const INTS: FilePlan = {
    rowGroups: [10, 7].map((rows) => [
      {
        column: { name: 'i', physical: Physical.INT32 },
        values: Array.from({ length: rows }, (_, i) => i),
        pages: [{}],
      },
      {
        column: { name: 'j', physical: Physical.INT32 },
        values: Array.from({ length: rows }, (_, i) => i),
        pages: [{}],
      },
    ]),
  };
  const groups = (footer: Tree): Tree[] => footer.row_groups as Tree[];

  test('no columns: the rows that the footer has', async () => {
    await withEngine(async (engine, source) => {
      assert.equal(await rowsOf(await Scan.open(engine, source, { columns: [] })), ROWS);
      assert.equal(await rowsOf(await Scan.open(engine, source, { columns: [], limit: 12_345 })), 12_345);
    });
    const none = (footer: Tree): void => {
      footer.schema = [{ name: 'schema', num_children: 0 }];
      for (const group of groups(footer)) group.columns = [];
    };
    await writeBytes(lake.path('no-columns.parquet'), writeFile({ ...INTS, footer: none }).bytes);
    await withEngine(async (engine, source) => assert.equal(await rowsOf(await Scan.open(engine, source)), 17), {
      file: 'no-columns.parquet',
    });
  });

  test('a column chunk with values and no bytes is damaged', async () => {
    const empty = (footer: Tree): void => {
      const chunk = (groups(footer)[1]!.columns as Tree[])[1]!.meta_data as Tree;
      chunk.total_compressed_size = 0n;
    };
    await writeBytes(lake.path('no-bytes.parquet'), writeFile({ ...INTS, footer: empty }).bytes);
    await withEngine(
      async (engine, source) => {
        const scan = await Scan.open(engine, source);
        await assert.rejects(
          rowsOf(scan),
          fails('METADATA', /column "j", row group 1.*the column chunk has 7 values and no bytes/),
        );
        assert.equal(await rowsOf(await Scan.open(engine, source, { columns: ['i'] })), 17);
      },
      { file: 'no-bytes.parquet' },
    );
  });

  test('a first file that can not be opened leaves no scan behind', async () => {
    await writeBytes(lake.path('broken.parquet'), 'nothing like it');
    await withEngine(
      async (engine, source) => {
        await assert.rejects(Scan.open(engine, source), DecodeError);
        assert.equal(engine.scans.size, 0);
      },
      { file: 'broken.parquet' },
    );
  });
});

test('six scans that share an engine with little memory all finish', async () => {
  await lake.write(
    'wide.parquet',
    `select i::bigint as id, ${Array.from({ length: 6 }, (_, k) => `md5((i * ${k + 3})::varchar) as s${k}`).join(', ')}
     from range(120000) t(i)`,
    'row_group_size 40000',
  );
  await withEngine(
    async (engine) => {
      const scans = Array.from({ length: 6 }, async (_, k) => {
        const [file, rows] = k % 2 === 0 ? ['wide.parquet', 120_000] : ['numbers.parquet', ROWS];
        const source = await openSource(lake.path(file as string));
        try {
          assert.equal(await rowsOf(await Scan.open(engine, source, { prefetchDepth: 8 })), rows);
        } finally {
          await source.close();
        }
      });
      await Promise.all(scans);
    },
    { options: { memoryBytes: 24 * MIB, decoders: 2 } },
  );
});

test('an abort while a scan is opened at a server that says nothing', async (t) => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => sockets.push(socket));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  t.after(() => silent.close());
  const { port } = silent.address() as { port: number };
  const engine = new ScanEngine({ memoryBytes: 24 * MIB, decoders: 1 });
  // nothing but the abort ends this before an hour has passed
  const source = await openSource(`rdma://127.0.0.1:${port}/x.parquet`, { stallMs: 3_600_000 });
  const controller = new AbortController();
  const opened = assert.rejects(Scan.open(engine, source, { signal: controller.signal }), fails('CANCELLED'));
  while (sockets.length === 0) await sleep(5);
  controller.abort();
  await opened;
  assert.equal(engine.scans.size, 0);
  await source.close();
  await engine.close();
});
