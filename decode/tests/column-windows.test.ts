/** What leaves a decoder when: values before their page is complete, windows that end early, memory that is short. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChunkDecoder } from '../column/chunk-decoder.ts';
import { Codec, Encoding, Physical } from '../format/enums.ts';
import { BLOCK_BYTES, EXPANDED_BYTES_MAX, MEMORY_BYTES_MIN } from '../limits.ts';
import { Pool } from '../pool/pool.ts';
import { columnOf, type Kind, kindOf, makePlan, makeValues, type Way, waysOf } from './chunk-cases.ts';
import { assertDecodes, expectedValues, makeEnvironments, randomFeed, runChunk, specOf } from './chunk-run.ts';
import { seededRandom } from './random.ts';
import { type ChunkPlan, type ColumnValue, type PagePlan, writeChunk } from './writer/index.ts';

const { pool, wasm, scalar } = makeEnvironments(128 << 20);
const random = seededRandom();

const INDEXED: PagePlan = { encoding: Encoding.RLE_DICTIONARY };

/** Random values without stretches, so that their bytes lie evenly in the page. */
function freshValues(kind: Kind, nulls: number, rows: number, distinct: number): ColumnValue[] {
  const choice = Array.from({ length: distinct }, () => kind.make(random));
  return choice.length === rows
    ? choice.map((value) => (random.below(100) < nulls ? null : value))
    : Array.from({ length: rows }, () => choice[random.below(distinct)]!);
}

/** Rows that are out when half of the chunk's bytes have arrived. */
function rowsAtHalf(plan: ChunkPlan): number {
  let half = 0;
  let rowsOut = 0;
  const next = (arrived: number, total: number): number => {
    if (arrived > 0) return total;
    half = Math.floor(total / 2);
    return half;
  };
  assertDecodes(
    wasm,
    plan,
    { windowRows: 1000 },
    {
      feed: { borders: [], next, early: true },
      onSegment: (rows, arrived) => {
        if (arrived === half) rowsOut = rows;
        return true;
      },
    },
  );
  return rowsOut;
}

test('withholds the second half of a single-page chunk and sees values of the first half already out', () => {
  const rows = 20_000;
  const data = { version: 1 as const, encoding: Encoding.PLAIN };
  for (const kind of ['int64', 'double', 'int96', 'fixed16', 'string']) {
    for (const nulls of [-1, 20]) {
      for (const codec of [Codec.UNCOMPRESSED, Codec.SNAPPY]) {
        const values = freshValues(kindOf(kind), nulls, rows, rows);
        const plan = { column: columnOf(kindOf(kind), nulls >= 0), values, codec, pages: [data] };
        assert.ok(rowsAtHalf(plan) > rows * 0.4, `${kind}, nulls ${nulls}, codec ${codec}`);
      }
    }
  }
});

test('the same for a dictionary-encoded page, of both versions', () => {
  const rows = 40_000;
  for (const kind of ['int64', 'int32', 'int96', 'string']) {
    for (const version of [1, 2] as const) {
      for (const codec of [Codec.UNCOMPRESSED, Codec.SNAPPY]) {
        const values = freshValues(kindOf(kind), -1, rows, 200);
        const pages: PagePlan[] = [
          { type: 'dictionary' },
          { version, encoding: Encoding.RLE_DICTIONARY, runs: 'auto' },
        ];
        const out = rowsAtHalf({ column: columnOf(kindOf(kind), false), values, codec, pages });
        assert.ok(out > rows * 0.35, `${kind}, V${version}, codec ${codec}: ${out} rows`);
      }
    }
  }
});

test('the same for delta integers, delta lengths once they are there, and joined streams', () => {
  const rows = 20_000;
  for (const [kind, encoding, least] of [
    ['int64', Encoding.DELTA_BINARY_PACKED, 0.4],
    ['int32', Encoding.DELTA_BINARY_PACKED, 0.4],
    ['string', Encoding.DELTA_LENGTH_BYTE_ARRAY, 0.3],
    ['string', Encoding.DELTA_BYTE_ARRAY, 0.2],
  ] as const) {
    for (const codec of [Codec.UNCOMPRESSED, Codec.SNAPPY]) {
      const values = freshValues(kindOf(kind), -1, rows, rows);
      const out = rowsAtHalf({ column: columnOf(kindOf(kind), false), values, codec, pages: [{ encoding }] });
      assert.ok(out > rows * least, `${kind}, encoding ${encoding}, codec ${codec}: ${out} rows`);
    }
  }
});

test('a chunk whose last page is incomplete keeps back no more than the rows that need the missing bytes', () => {
  const values = Array.from({ length: 1000 }, (_, i) => BigInt(i));
  const plan = { column: columnOf(kindOf('int64'), false), values, pages: [{}] };
  const chunk = writeChunk(plan);
  const steps: number[] = [];
  let arrived = 0;
  runChunk(wasm, specOf(plan, chunk, { windowRows: 10 }), chunk.bytes, {
    feed: {
      borders: [],
      early: true,
      next: (now) => {
        arrived = now + 64;
        return arrived;
      },
    },
    onSegment: (rows) => {
      steps.push(arrived - chunk.pages[0]!.body - rows * 8);
      return true;
    },
  });
  assert.equal(steps.length, 100);
  for (const spare of steps) assert.ok(spare >= 0 && spare < 64 + 80, `${spare} bytes more than needed`);
});

/** Strings whose length jumps after the window's room was guessed. */
function jumpingStrings(nulls: number, rows: number): ColumnValue[] {
  return Array.from({ length: rows }, (_, row) => {
    if (random.below(100) < nulls) return null;
    const length = row < rows / 3 ? 1 : random.below(7) === 0 ? random.below(9000) : random.below(30);
    return Uint8Array.from({ length }, () => random.below(128));
  });
}

test('windows that can not take the next string end early, with the validity of the rest carried over', () => {
  let early = 0;
  for (let turn = 0; turn < 40; turn++) {
    const nulls = [-1, 0, 10, 60, 95][turn % 5]!;
    const rows = 200 + random.below(700);
    const pageRows = [10, 64, 100, 5000][turn % 4]!;
    const pages: PagePlan[] = [];
    const encodings = [Encoding.PLAIN, Encoding.DELTA_LENGTH_BYTE_ARRAY, Encoding.DELTA_BYTE_ARRAY];
    for (let row = 0; row < rows; row += pageRows) {
      const encoding = encodings[(turn + (turn % 3 === 0 ? pages.length : 0)) % 3]!;
      pages.push({ rows: Math.min(pageRows, rows - row), version: turn % 2 === 0 ? 1 : 2, encoding });
    }
    const column = { name: 's', physical: Physical.BYTE_ARRAY, optional: nulls >= 0 };
    const windowRows = [33, 128, 1000][turn % 3]!;
    const codec = turn % 2 === 0 ? Codec.SNAPPY : Codec.UNCOMPRESSED;
    const { segments } = assertDecodes(
      turn % 4 === 3 ? scalar : wasm,
      { column, values: jumpingStrings(nulls, rows), codec, pages },
      { windowRows, uncompressedBytes: 0, utf8: true },
      { feed: randomFeed(random, 5000, 4) },
    );
    if (segments.length > Math.ceil(rows / windowRows)) early++;
  }
  assert.ok(early > 13, `${early} runs had early windows`);
});

test('expanded dictionary strings leave in segments of a bounded size', () => {
  for (const nulls of [-1, 60]) {
    const entries = [1 << 20, 3 << 20, 5, 17 << 20].map((length, i) => new Uint8Array(length).fill(65 + i));
    const values = Array.from({ length: 400 }, (_, row) => {
      if (row === 200) return entries[3]!;
      if (row % 20 === 0) return entries[row % 40 === 0 ? 0 : 1]!;
      return random.below(100) < nulls ? null : entries[2]!;
    });
    const column = { name: 's', physical: Physical.BYTE_ARRAY, optional: nulls >= 0 };
    const pages = [{ type: 'dictionary' as const }, { encoding: Encoding.RLE_DICTIONARY }];
    const plan = { column, values, pages, codec: Codec.SNAPPY, dictionary: entries };
    const { segments, dataBytes } = assertDecodes(wasm, plan, { utf8: true });
    assert.ok(segments.length > 3, `${segments.length} segments`);
    for (const bytes of dataBytes) assert.ok(bytes <= EXPANDED_BYTES_MAX || bytes === 17 << 20, `${bytes} bytes`);
    const { segments: whole } = assertDecodes(wasm, plan, { utf8: true, bytesOutput: 'dictionary' });
    assert.deepEqual(whole, [400]);
  }
});

test('a window of more than 2 GiB of dictionary strings', () => {
  for (const environment of [wasm, scalar]) {
    const entry = new Uint8Array(1 << 20).fill(120);
    const values = Array.from({ length: 5000 }, () => entry);
    const plan = {
      column: { name: 's', physical: Physical.BYTE_ARRAY },
      values,
      pages: [{ type: 'dictionary' as const }, { encoding: Encoding.RLE_DICTIONARY, indexWidth: 1 }],
      dictionary: [entry],
    };
    const chunk = writeChunk(plan);
    const result = runChunk(environment, specOf(plan, chunk, { windowRows: 8192 }), chunk.bytes, {
      onSegment: (rows) => rows < 32,
    });
    assert.deepEqual(result.segments, [16, 16]);
    assert.ok(result.values.every((value) => value?.equals(entry)));
  }
});

test('short of memory at every allocation, then goes on with the same values', () => {
  const small = makeEnvironments(MEMORY_BYTES_MIN);
  const shapes: [kind: string, way: Way, codec: number, version: 1 | 2][] = [
    ['int64', 'plain', Codec.UNCOMPRESSED, 1],
    ['int64', 'fallback', Codec.SNAPPY, 2],
    ['fixed16', 'dictionary', Codec.SNAPPY, 1],
    ['int96', 'fallback', Codec.GZIP, 2],
    ['boolean', 'runs', Codec.ZSTD, 1],
    ['boolean', 'runs', Codec.UNCOMPRESSED, 2],
    ['string', 'plain', Codec.SNAPPY, 1],
    ['string', 'fallback', Codec.BROTLI, 2],
    ['string', 'fallback', Codec.UNCOMPRESSED, 1],
    ['binary', 'dictionary', Codec.LZ4_RAW, 2],
    ['int64', 'delta', Codec.UNCOMPRESSED, 1],
    ['int32', 'delta', Codec.SNAPPY, 2],
    ['string', 'delta lengths', Codec.LZ4, 1],
    ['string', 'delta bytes', Codec.SNAPPY, 2],
    ['binary', 'delta bytes', Codec.UNCOMPRESSED, 1],
    ['fixed16', 'delta bytes', Codec.ZSTD, 2],
    ['double', 'split', Codec.UNCOMPRESSED, 1],
    ['fixed3', 'split', Codec.SNAPPY, 2],
  ];
  for (const [kind, way, codec, version] of shapes) {
    for (const nulls of [-1, 40]) {
      for (const bytesOutput of ['values', 'dictionary'] as const) {
        const bitPackedLevels = bytesOutput === 'values';
        const shape = { kind: kindOf(kind), nulls, way, codec, version, rows: 5000, pageRows: 1800, bitPackedLevels };
        const plan = makePlan(random, { ...shape, runs: 'auto', distinct: 700 });
        let hog = 0;
        let hogBytes = 0;
        let shortages = 0;
        const inner = randomFeed(random, 20_000, 4);
        const next = (arrived: number, total: number): number => {
          if (arrived === 0) {
            hogBytes = small.pool.capacityBytes - small.pool.usedBytes;
            hog = small.pool.allocate(hogBytes);
            assert.ok(hog > 0);
          }
          return inner.next(arrived, total);
        };
        const onMemory = (): void => {
          shortages++;
          assert.ok(hogBytes > 0, 'memory is short with nothing in it');
          small.pool.free(hog, BLOCK_BYTES);
          hog += BLOCK_BYTES;
          hogBytes -= BLOCK_BYTES;
        };
        const before = small.pool.usedBytes;
        const chunk = writeChunk(plan);
        const spec = specOf(plan, chunk, { windowRows: 2000, utf8: shape.kind.utf8 === true, bytesOutput });
        const environment = bytesOutput === 'values' || nulls < 0 ? small.wasm : small.scalar;
        // the hog holds memory when the run ends, so it is given back before the run counts
        const result = runChunk(environment, spec, chunk.bytes, {
          feed: { ...inner, next },
          onMemory,
          onSegment: (rows) => {
            if (rows === plan.values.length) small.pool.free(hog, hogBytes);
            return true;
          },
        });
        assert.ok(shortages > 1, `${kind} ${way}: ${shortages} shortages`);
        assert.equal(small.pool.usedBytes, before);
        assert.deepEqual(result.values, expectedValues(plan.column, plan.values));
      }
    }
  }
});

test('a decoder that got no memory at all says so, and works when there is some', () => {
  const small = makeEnvironments(MEMORY_BYTES_MIN);
  const hog = small.pool.allocate(small.pool.capacityBytes);
  const plan = { column: columnOf(kindOf('int64'), false), values: [1n, 2n, 3n], pages: [{}] };
  const decoder = new ChunkDecoder(small.wasm, specOf(plan, writeChunk(plan)));
  assert.equal(decoder.step(), 'memory');
  assert.equal(decoder.step(), 'memory');
  small.pool.free(hog, small.pool.capacityBytes);
  assert.equal(decoder.step(), 'input');
  decoder.close();
  assert.equal(small.pool.usedBytes, 0);
});

test('closing while memory is short writes nothing into memory that was given back', () => {
  class Stop extends Error {}
  const small = makeEnvironments(MEMORY_BYTES_MIN);
  const arena = small.pool.allocate(small.pool.capacityBytes);
  const { free } = Pool.prototype;
  small.pool.free = (address, bytes) => {
    small.pool.u8.fill(0xdb, address, address + Pool.footprint(bytes));
    free.call(small.pool, address, bytes);
  };
  small.pool.free(arena, small.pool.capacityBytes);
  const untouched = Buffer.alloc(small.pool.capacityBytes, 0xdb);
  for (const kind of ['int64', 'fixed3', 'string', 'int32']) {
    for (let spareBlocks = 0; spareBlocks < 24; spareBlocks++) {
      const column = columnOf(kindOf(kind), true);
      const values = makeValues(random, { kind: kindOf(kind), nulls: 0, rows: 900, distinct: 4 });
      // a page that is decompressed behind the values of another, when the memory for indices is not there yet
      const pages: PagePlan[] = [{ rows: 300 }, { type: 'dictionary' }, { rows: 500 }, INDEXED];
      const plan = { column, values, codec: Codec.SNAPPY, pages };
      const chunk = writeChunk(plan);
      let [hog, hogBytes] = [0, 0];
      const next = (arrived: number, total: number): number => {
        if (hog === 0) {
          hogBytes = small.pool.capacityBytes - small.pool.usedBytes;
          hog = small.pool.allocate(hogBytes);
          giveBack(spareBlocks * BLOCK_BYTES);
        }
        return arrived + Math.ceil(total / 3);
      };
      const giveBack = (bytes: number): void => {
        small.pool.free(hog, bytes);
        hog += bytes;
        hogBytes -= bytes;
      };
      const onMemory = (): void => {
        giveBack(hogBytes);
        throw new Stop();
      };
      const onSegment = (rows: number): boolean => {
        if (rows === values.length) giveBack(hogBytes);
        return true;
      };
      try {
        runChunk(small.wasm, specOf(plan, chunk, { windowRows: 850 }), chunk.bytes, {
          feed: { borders: [], early: true, next },
          onMemory,
          onSegment,
        });
      } catch (error) {
        if (!(error instanceof Stop)) throw error;
      }
      const now = small.pool.u8.subarray(arena, arena + small.pool.capacityBytes);
      assert.ok(untouched.equals(now), `${kind}, ${spareBlocks} blocks`);
    }
  }
});

test('closing midway, at any segment or while waiting for input, leaves nothing behind', () => {
  class Stop extends Error {}
  for (let turn = 0; turn < 150; turn++) {
    const kind = kindOf(['string', 'int64', 'fixed16', 'boolean', 'binary'][turn % 5]!);
    const ways = waysOf(kind);
    const way = turn % 2 === 0 && kind.name !== 'boolean' ? 'fallback' : ways[random.below(ways.length)]!;
    const codec = [Codec.UNCOMPRESSED, Codec.SNAPPY, Codec.ZSTD][turn % 3]!;
    const shape = { kind, nulls: 30, way, codec, rows: 600, pageRows: 0, runs: 'mixed', distinct: 100 } as const;
    const plan = makePlan(random, { ...shape, version: turn % 2 === 0 ? 1 : 2 });
    const chunk = writeChunk(plan);
    const spec = specOf(plan, chunk, { windowRows: 50, bytesOutput: turn % 4 < 2 ? 'dictionary' : 'values' });
    const feed = randomFeed(random, chunk.bytes.length, 5);
    const stopAt = random.below(chunk.bytes.length);
    const rowsMax = random.below(600);
    const before = pool.usedBytes;
    try {
      runChunk(wasm, spec, chunk.bytes, {
        feed: {
          ...feed,
          next: (arrived, total) => {
            if (arrived >= stopAt) throw new Stop();
            return feed.next(arrived, total);
          },
        },
        onSegment: (rows) => rows < rowsMax,
      });
    } catch (error) {
      if (!(error instanceof Stop)) throw error;
    }
    assert.equal(pool.usedBytes, before);
  }
});
