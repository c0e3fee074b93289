/**
 * Where decoders' time goes: all of it is accounted for, and it goes to who is to blame, under a source that brings
 * bytes slowly, a consumer that takes rows slowly, and a queue in which nothing is. What was decoded is counted.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from '../../decode/tests/random.ts';
import { openTransport } from '../../fetcher/index.ts';
import { type StreamProfile, streamProfileSince, wallNs } from '../../metrics/index.ts';
import { openSource, type Source } from '../../vfs/index.ts';
import { DECODER_REGISTERS_BYTES, Kind, planControlBlock, type SubConfiguration } from '../scan/control-block.ts';
import { ScanEngine } from '../scan/engine.ts';
import type { EngineProfile } from '../scan/engine-profile.ts';
import { Scan, type ScanOptions } from '../scan/scan.ts';
import { GatedTransport } from './gated-transport.ts';
import { Lake, numbersQuery } from './lake.ts';

const MIB = 1 << 20;
const ROWS = 60_000;
const COLUMNS = 6;
/** Milliseconds of a pause that what is measured waits for. */
const PAUSE_MS = 60;
const PAUSES = 5;

/** A profile and between which moments it was read. */
interface Reading {
  readonly before: number;
  readonly profile: EngineProfile;
  readonly after: number;
}

function read(engine: ScanEngine): Reading {
  const before = performance.now();
  const profile = engine.readProfile();
  return { before, profile, after: performance.now() };
}

/** Both sides of each decoder between two readings, after checking that they add up to the time that passed. */
function between(first: Reading, last: Reading): { input: StreamProfile; output: StreamProfile }[] {
  const leastNs = (last.before - first.after) * 1e6;
  const mostNs = (last.after - first.before) * 1e6;
  return last.profile.decoders.map((decoder, k) => {
    const sides = (['input', 'output'] as const).map((side) => {
      const since = streamProfileSince(decoder[side], first.profile.decoders[k]![side]);
      const wall = wallNs(since);
      assert.ok(wall >= leastNs * 0.99 && wall <= mostNs * 1.01, `${wall} of ${leastNs} to ${mostNs} ns`);
      return since;
    });
    return { input: sides[0]!, output: sides[1]! };
  });
}

const sumOf = (counts: Readonly<Record<string, { readonly values: number }>>): number =>
  Object.values(counts).reduce((sum, { values }) => sum + values, 0);

describe('the profile of an engine', () => {
  let lake: Lake;
  before(async () => {
    lake = await Lake.create();
    await lake.write('numbers.parquet', numbersQuery(ROWS));
  });
  after(() => lake[Symbol.asyncDispose]());

  async function withEngine(decoders: number, use: (engine: ScanEngine) => Promise<void>): Promise<void> {
    const engine = new ScanEngine({ memoryBytes: 64 * MIB, decoders });
    try {
      // threads are up and compiled before anything is measured
      await withScan(engine, {}, drain);
      await use(engine);
    } finally {
      await engine.close();
    }
  }

  async function withScan<T>(
    engine: ScanEngine,
    options: ScanOptions,
    use: (scan: Scan) => Promise<T>,
    from?: Source,
  ): Promise<T> {
    const source = from ?? (await openSource(lake.path('numbers.parquet')));
    try {
      const scan = await Scan.open(engine, source, options);
      try {
        return await use(scan);
      } finally {
        await scan.close();
      }
    } finally {
      await source.close();
    }
  }

  /** A source whose bytes come in steps, with a pause before each. */
  async function slowSource(pauseMs: number): Promise<Source> {
    return openSource(lake.path('numbers.parquet'), {}, async (url) => {
      const opened = await openTransport(url);
      const gated = new GatedTransport(opened.transport, 32 << 10);
      let next = 0;
      gated.gate = () => {
        const isOpen = performance.now() >= next;
        if (isOpen) next = performance.now() + pauseMs;
        return isOpen;
      };
      return { ...opened, transport: gated };
    });
  }

  test('a source that brings bytes slowly: starved', async () => {
    await withEngine(1, async (engine) => {
      const source = await slowSource(8);
      const first = read(engine);
      await withScan(engine, { columns: ['id', 'note'] }, drain, source);
      const [{ input, output }] = between(first, read(engine)) as [{ input: StreamProfile; output: StreamProfile }];
      for (const side of [input, output]) {
        const { starvedNs, busyNs, stalledNs, idleNs } = side;
        assert.ok(starvedNs > busyNs + stalledNs + idleNs, JSON.stringify(side));
      }
      assert.ok(input.starvedBeats > PAUSES, JSON.stringify(input));
    });
  });

  test('a consumer that takes rows slowly: stalled', async () => {
    for (const decoders of [1, 2]) {
      await withEngine(decoders, async (engine) => {
        await withScan(engine, { prefetchDepth: 2, batchRows: 2048 }, async (scan) => {
          (await scan.nextBatch())!.release();
          const first = read(engine);
          for (let k = 0; k < PAUSES; k++) {
            await sleep(PAUSE_MS);
            (await scan.nextBatch())!.release();
          }
          for (const { input, output } of between(first, read(engine))) {
            for (const side of [input, output]) {
              const { starvedNs, busyNs, stalledNs, idleNs } = side;
              assert.ok(stalledNs > busyNs + starvedNs + idleNs, JSON.stringify(side));
            }
          }
        });
      });
    }
  });

  test('row groups that nobody makes room for: decoders that have finished theirs are stalled, not idle', async () => {
    await withEngine(1, async (engine) => {
      await withScan(engine, { prefetchDepth: 1 }, async (scan) => {
        const batch = (await scan.nextBatch())!;
        const first = read(engine);
        await sleep(PAUSES * PAUSE_MS);
        const last = read(engine);
        const [{ output }] = between(first, last) as [{ input: StreamProfile; output: StreamProfile }];
        assert.ok(output.stalledNs > output.busyNs + output.starvedNs + output.idleNs, JSON.stringify(output));
        batch.release();
      });
    });
  });

  test('nothing to do: idle', async () => {
    await withEngine(2, async (engine) => {
      const first = read(engine);
      await sleep(PAUSES * PAUSE_MS);
      for (const { input, output } of between(first, read(engine))) {
        for (const side of [input, output]) {
          assert.ok(side.idleNs > 0.9 * wallNs(side), JSON.stringify(side));
          assert.deepEqual([side.starvedNs, side.stalledNs, side.handshakeBeats], [0, 0, 0]);
        }
      }
    });
  });

  test('values, bytes and beats are those of the scan', async () => {
    await withEngine(2, async (engine) => {
      const first = engine.readProfile();
      const { bytes, rowGroups } = await withScan(engine, {}, async (scan) => {
        await drain(scan);
        return scan.report();
      });
      const last = engine.readProfile();
      assert.equal(sumOf(last.encodings) - sumOf(first.encodings), ROWS * COLUMNS);
      assert.equal(sumOf(last.codecs) - sumOf(first.codecs), ROWS * COLUMNS);
      assert.deepEqual(Object.keys(last.codecs), ['SNAPPY']);
      const compressed = last.codecs.SNAPPY!.compressedBytes - first.codecs.SNAPPY!.compressedBytes;
      const beats = (side: 'input' | 'output'): number =>
        last.decoders.reduce(
          (sum, one, k) => sum + one[side].handshakeBeats - first.decoders[k]![side].handshakeBeats,
          0,
        );
      // page headers are the difference; each chunk ends within a line
      assert.ok(compressed < bytes.used && compressed > bytes.used * 0.9);
      assert.ok(beats('input') * 64 >= bytes.used && beats('input') * 64 < bytes.used + rowGroups * COLUMNS * 64);
      assert.ok(beats('output') * 64 > (ROWS * (8 + 4 + 8 + 1 + 4 + 4)) / 8);
      await assertEmpty(engine);
    });
  });

  test('totals never fall, whoever reads how often, and stay when the engine is closed', async () => {
    const engine = new ScanEngine({ memoryBytes: 64 * MIB, decoders: 1 });
    let last = engine.readProfile();
    await withScan(engine, { batchRows: 1000 }, async (scan) => {
      for (let batch = await scan.nextBatch(); batch !== undefined; batch = await scan.nextBatch()) {
        batch.release();
        const now = engine.readProfile();
        for (const side of ['input', 'output'] as const) {
          const since = streamProfileSince(now.decoders[0]![side], last.decoders[0]![side]);
          assert.ok(Object.values(since).every((amount) => amount >= 0));
        }
        last = now;
      }
    });
    await engine.close();
    const closed = engine.readProfile();
    assert.equal(sumOf(closed.encodings), ROWS * COLUMNS);
    assert.deepEqual(engine.readProfile(), closed);
  });

  test('an engine without profilers works and says nothing', async () => {
    const engine = new ScanEngine({ memoryBytes: 64 * MIB, decoders: 1, profiler: false });
    await withScan(engine, {}, drain);
    const { decoders, encodings, codecs } = engine.readProfile();
    assert.deepEqual([decoders[0]!.wallNs, encodings, codecs], [0, {}, {}]);
    await engine.close();
  });

  test('more columns than FIFOs have slots, given up at any moment', async () => {
    const columns = Array.from({ length: 300 }, (_, k) => `(i + ${k})::int as c${k}`).join(', ');
    await lake.write('wide.parquet', `select ${columns} from range(4096) t(i)`, 'row_group_size 2048');
    const random = seededRandom();
    for (const slots of [64, 2]) {
      const plan = (decoders: number): SubConfiguration[] =>
        planControlBlock(decoders, true).map((one) =>
          one.kind === Kind.DECODER ? { ...one, bytes: DECODER_REGISTERS_BYTES + slots * 4 } : one,
        );
      const engine = new ScanEngine({ memoryBytes: 64 * MIB, decoders: 2 }, plan);
      try {
        const open = (): Promise<Source> => openSource(lake.path('wide.parquet'));
        for (let round = 0; round < 6; round++) {
          await withScan(
            engine,
            { batchRows: 512, prefetchDepth: 1 + random.below(3) },
            async (scan) => {
              const first = scan.nextBatch();
              for (let turns = random.below(40); turns > 0; turns--) await engine.tick();
              if (random.below(2) === 0) (await first)?.release();
              else first.then((batch) => batch?.release()).catch(() => {});
            },
            await open(),
          );
          await assertEmpty(engine);
        }
        assert.equal(await withScan(engine, { batchRows: 512 }, drain, await open()), 4096);
        await assertEmpty(engine);
      } finally {
        await engine.close();
      }
    }
  });
});

/** Nothing is on a decoder; the slot of a run that was closed before it began is given back a moment later. */
async function assertEmpty(engine: ScanEngine): Promise<void> {
  const load = (): number[][] =>
    engine.readProfile().decoders.map(({ flows, running, waiting }) => [flows, running, waiting]);
  while (load().some(([, running]) => running !== 0)) await sleep(1);
  for (const one of load()) assert.deepEqual(one, [0, 0, 0]);
}

async function drain(scan: Scan): Promise<number> {
  let rows = 0;
  for (;;) {
    const batch = await scan.nextBatch();
    if (batch === undefined) return rows;
    rows += batch.rows;
    batch.release();
  }
}
