/**
 * The control block: what is laid is found, whatever its order, number and profilers; the same engine works with all of
 * them; and a table with any bound that leads elsewhere is refused.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Pool } from '../../decode/index.ts';
import { seededRandom } from '../../decode/tests/random.ts';
import { openSource } from '../../vfs/index.ts';
import { CONTROL_ENTRIES_MAX } from '../limits.ts';
import {
  type Bounds,
  type ControlBlock,
  Kind,
  layControlBlock,
  planControlBlock,
  readControlBlock,
  type SubConfiguration,
} from '../scan/control-block.ts';
import { DecoderQueue } from '../scan/decoder-queue.ts';
import { ScanEngine } from '../scan/engine.ts';
import { Scan } from '../scan/scan.ts';
import { Lake, numbersQuery } from './lake.ts';

const MIB = 1 << 20;
const ROWS = 12_000;

/** Sub-configurations that no reader knows, and room that nobody asked for. */
const STRANGE: readonly SubConfiguration[] = [
  { kind: 77, ordinal: 0, bytes: 1000 },
  { kind: 78, ordinal: 3, bytes: 0 },
];

const withoutProfilers = (plan: readonly SubConfiguration[]): SubConfiguration[] =>
  plan.filter(({ kind }) => kind !== Kind.PROFILER && kind !== Kind.PAGE_COUNTERS);

/** Every register file of a block, the block's own bounds first. */
const boundsOf = ({ start, end, fetcher, decoders }: ControlBlock): [block: Bounds, ...parts: Bounds[]] => [
  { start, end },
  fetcher,
  ...decoders,
  ...decoders.flatMap(({ input, output, pages }) => [input, output, pages].filter((one) => one !== undefined)),
];

function assertApart([block, ...parts]: readonly [Bounds, ...Bounds[]]): void {
  const inOrder = parts.sort((a, b) => a.start - b.start);
  for (const [k, part] of inOrder.entries()) {
    assert.ok(part.start >= block.start + 64 && part.end <= block.end);
    assert.ok(k === 0 || inOrder[k - 1]!.end <= part.start);
  }
}

test('what was laid is found, in any order', () => {
  const random = seededRandom();
  for (const decoders of [1, 2, 7, 256]) {
    const plan = planControlBlock(decoders, true);
    const shuffled = [...plan, ...STRANGE].sort(() => random.below(3) - 1);
    for (const one of [plan, plan.toReversed(), shuffled, withoutProfilers(shuffled)]) {
      const pool = Pool.create(8 * MIB);
      pool.allocate(5000);
      const block = readControlBlock(pool, layControlBlock(pool, one).start);
      assert.deepEqual(
        block.decoders.map(({ ordinal }) => ordinal),
        [...Array(decoders).keys()],
      );
      assert.equal(new DecoderQueue(pool, block.decoders[0]!).slots, 64);
      for (const { input, output, pages } of block.decoders) {
        const profiled = one.length > decoders + 1 + STRANGE.length;
        assert.ok([input, output, pages].every((bounds) => (bounds !== undefined) === profiled));
      }
      assertApart(boundsOf(block));
    }
  }
});

describe('one engine code for every block', () => {
  let lake: Lake;
  before(async () => {
    lake = await Lake.create();
    await lake.write('numbers.parquet', numbersQuery(ROWS), 'row_group_size 2048');
  });
  after(() => lake[Symbol.asyncDispose]());

  const plans: Record<string, (decoders: number) => readonly SubConfiguration[]> = {
    'as planned': (decoders) => planControlBlock(decoders, true),
    'without profilers': (decoders) => planControlBlock(decoders, false),
    'one decoder more than was asked for': (decoders) => planControlBlock(decoders + 1, true),
    'in reverse, with unknown kinds between': (decoders) =>
      [...STRANGE, ...planControlBlock(decoders, true), ...STRANGE].reverse(),
    'profilers of the second decoder and of outputs only': (decoders) =>
      planControlBlock(decoders, true).filter(({ kind, decoder, port }) =>
        kind === Kind.PROFILER ? decoder === 1 || port === 1 : true,
      ),
    'FIFOs of two slots': (decoders) =>
      planControlBlock(decoders, true).map((one) =>
        one.kind === Kind.DECODER ? { ...one, bytes: one.bytes - 62 * 4 } : one,
      ),
  };
  for (const [name, plan] of Object.entries(plans)) {
    test(name, async () => {
      const engine = new ScanEngine({ memoryBytes: 64 * MIB, decoders: 2 }, plan);
      const source = await openSource(lake.path('numbers.parquet'));
      try {
        const scan = await Scan.open(engine, source, { prefetchDepth: 4 });
        let rows = 0;
        let sum = 0n;
        for await (const batch of scan) {
          rows += batch.numRows;
          for (const id of batch.getChild('id')!) sum += BigInt(id);
        }
        assert.deepEqual([rows, sum], [ROWS, (BigInt(ROWS) * BigInt(ROWS - 1)) / 2n]);
        const { decoders } = engine.readProfile();
        const kinds = plan(2);
        assert.equal(decoders.length, kinds.filter(({ kind }) => kind === Kind.DECODER).length);
        for (const [ordinal, { input, output }] of decoders.entries()) {
          for (const [port, profile] of [input, output].entries()) {
            const isWatched = kinds.some(
              (one) => one.kind === Kind.PROFILER && one.decoder === ordinal && one.port === port,
            );
            assert.equal(profile.idleNs > 0, isWatched);
          }
        }
      } finally {
        await source.close();
        await engine.close();
      }
      assert.equal(engine.pool.usedBytes, 0, 'the block goes with the engine');
    });
  }
});

describe('a broken block is refused', () => {
  const pool = Pool.create(8 * MIB);
  const { start } = layControlBlock(pool, planControlBlock(2, true));
  const base = start >>> 2;
  const ENTRY_WORDS = 8;
  const entry = (k: number, word: number): number => base + 16 + k * ENTRY_WORDS + word;
  const blockBytes = pool.u32[base + 2]!;
  // the fetcher, then of each decoder: registers, profilers of input and output, page counters
  const cases: [what: string, word: number, value: number, message: RegExp][] = [
    ['system id', base, 1, /system id/],
    ['version', base + 1, 2, /version 2/],
    ['size past the memory', base + 2, 0xffffffff, /4294967295 bytes/],
    ['size of nothing', base + 2, 0, /0 bytes/],
    ['table in the header', base + 3, 0, /table is at 0/],
    ['table past the end', base + 3, blockBytes - 32, /table is at/],
    ['table between words', base + 3, 66, /table is at 66/],
    ['too many entries', base + 4, CONTROL_ENTRIES_MAX + 1, /entries/],
    ['entries past the end', base + 4, CONTROL_ENTRIES_MAX, /begins at|table/],
    ['short entries', base + 5, 16, /entries of 16 bytes/],
    ['registers that begin in the table', entry(1, 2), 64, /begins at 64/],
    ['registers that begin within a line', entry(1, 2), pool.u32[entry(1, 2)]! + 4, /begins at/],
    ['registers that end before they begin', entry(1, 3), 0, /ends at 0/],
    ['registers that end past the block', entry(1, 3), blockBytes + 64, /ends at/],
    ['registers that are too few', entry(2, 3), pool.u32[entry(2, 2)]! + 64, /needs/],
    ['a FIFO whose positions do not wrap', entry(1, 3), pool.u32[entry(1, 3)]! - 4, /FIFO of 63 slots/],
    ['two that overlap', entry(3, 2), pool.u32[entry(2, 2)]!, /overlap/],
    ['no fetcher', entry(0, 0), 99, /fetcher/],
    ['two fetchers', entry(1, 0), Kind.FETCHER, /fetcher/],
    ['no first decoder', entry(1, 1), 5, /decoder 0 is missing/],
    ['the same decoder twice', entry(5, 1), 0, /decoder 1 is missing or there twice/],
    ['a profiler of a decoder that is not there', entry(2, 4), 2, /decoder 2, which there is not/],
    ['a profiler of an unknown port', entry(2, 5), 2, /port 2/],
    ['two profilers of a port', entry(2, 5), 1, /two of output/],
    ['page counters of a decoder that is not there', entry(4, 4), 0xffffffff, /which there is not/],
  ];
  for (const [what, word, value, message] of cases) {
    test(what, () => {
      const old = pool.u32[word]!;
      pool.u32[word] = value;
      try {
        assert.throws(() => readControlBlock(pool, start), { name: 'RangeError', message });
      } finally {
        pool.u32[word] = old;
      }
      readControlBlock(pool, start);
    });
  }

  test('addresses that can be no block', () => {
    for (const address of [0, -64, 4, 1.5, Number.NaN, pool.u8.length, pool.u8.length - 64, 2 ** 33]) {
      assert.throws(() => readControlBlock(pool, address), RangeError);
    }
  });

  test('random words: every register stays inside, or the block is refused', (context) => {
    const random = seededRandom();
    const words = 16 + 9 * ENTRY_WORDS;
    let refused = 0;
    for (let k = 0; k < 5000; k++) {
      const old = pool.u32.slice(base, base + words);
      for (let n = random.below(3); n >= 0; n--) {
        const word = base + random.below(words);
        const near = (pool.u32[word]! + 64 * (random.below(9) - 4)) >>> 0;
        pool.u32[word] = random.below(2) === 0 ? near : random.below(2 ** (1 + random.below(32)));
      }
      try {
        assertApart(boundsOf(readControlBlock(pool, start)));
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        refused++;
      }
      pool.u32.set(old, base);
    }
    context.diagnostic(`${refused} of 5000 were refused`);
    assert.ok(refused > 1000);
  });
});

test('a FIFO keeps the order, wraps, and takes no more than it has slots', () => {
  const pool = Pool.create(8 * MIB);
  const block = readControlBlock(pool, layControlBlock(pool, planControlBlock(1, false)).start);
  const scheduler = new DecoderQueue(pool, block.decoders[0]!);
  const decoder = new DecoderQueue(Pool.attach(pool.memory), block.decoders[0]!);
  const random = seededRandom();
  let pushed = 0;
  let popped = 0;
  let running = 0;
  for (let k = 0; k < 20_000; k++) {
    const move = random.below(4);
    if (move < 2) {
      const took = scheduler.push(0xffff0000 + pushed);
      assert.equal(took, running + (pushed - popped) < 64);
      if (took) pushed++;
    } else if (move === 2) {
      const flow = decoder.pop(decoder.tail);
      assert.equal(flow, popped < pushed ? 0xffff0000 + popped : undefined);
      if (flow === undefined) continue;
      popped++;
      running++;
    } else if (running > 0) {
      decoder.free();
      running--;
    }
    assert.equal(scheduler.occupancy, running + (pushed - popped));
  }
  assert.ok(pushed > 1000);
});
