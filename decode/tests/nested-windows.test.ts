/** Rows of nested columns and the windows they go through: larger than one, over many pages, with memory short, given up midway. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChunkSpec } from '../column/spec.ts';
import { Codec, Encoding } from '../format/enums.ts';
import { BLOCK_BYTES, MEMORY_BYTES_MIN, NESTED_ENTRIES_MAX } from '../limits.ts';
import { kindOf } from './chunk-cases.ts';
import { driveChunk, makeEnvironments, randomFeed } from './chunk-run.ts';
import { leaf, makePages, nestedFile, type PageShape, valueGenerator } from './nested-cases.ts';
import { assertSameRows, type NestedResult, type Projected, projections, runNested, specsOf } from './nested-run.ts';
import { seededRandom } from './random.ts';
import { chunkPlan, type FieldPlan, type NestedValue, type PagePlan } from './writer/index.ts';

const { pool, wasm, scalar } = makeEnvironments(256 << 20);
const random = seededRandom();

const listOf = (element: FieldPlan, optional = true): FieldPlan => ({
  kind: 'list',
  name: 'f',
  optional,
  form: 'three levels',
  element,
});
const NUMBERS = listOf(leaf('element', kindOf('int32')));
const STRINGS = listOf(leaf('element', kindOf('string'), true));

interface Written {
  readonly spec: ChunkSpec;
  readonly chunk: Uint8Array;
  readonly expected: Projected[];
}

/** The only leaf of a field's column. */
function write(
  field: FieldPlan,
  values: readonly NestedValue[],
  pages: (entries: number) => readonly PagePlan[],
  change: Partial<ChunkSpec> = {},
  codec: number = Codec.UNCOMPRESSED,
): Written {
  const plan = (column: Parameters<typeof chunkPlan>[0]) => chunkPlan(column, pages(column.repetition.length), codec);
  const { bytes } = nestedFile([field], [values.map((value) => [value])], plan);
  const spec = specsOf(bytes, change)[0]![0]!;
  const chunk = bytes.subarray(spec.fileOffset, spec.fileOffset + spec.byteLength);
  return { spec, chunk, expected: values.map(projections(field)[0]!) };
}

/** Pages of so many entries. */
const cut =
  (each: number, page: PagePlan = {}) =>
  (entries: number): PagePlan[] =>
    Array.from({ length: Math.ceil(entries / each) }, (_, k) => ({
      ...page,
      rows: Math.min(each, entries - k * each),
    }));

test('a list of more elements than windows have, between short ones', () => {
  const large = NESTED_ENTRIES_MAX + 100_000;
  const values = [[1, 2], [], Array.from({ length: large }, (_, i) => i), null, [3]];
  const pages = cut(100_000, { levelRuns: 'rle' });
  const { spec, chunk } = write(NUMBERS, values, pages, {}, Codec.SNAPPY);
  for (const windowRows of [1, 2, 4096]) {
    const lengths: (number | null)[] = [];
    const before = pool.usedBytes;
    driveChunk(wasm, { ...spec, windowRows }, chunk, { feed: randomFeed(random, 1 << 20, 4) }, (segment) => {
      const [list] = segment.nested!.nodes;
      const offsets = pool.u32.subarray(list!.offsets >>> 2, (list!.offsets >>> 2) + segment.rows + 1);
      for (let row = 0; row < segment.rows; row++) {
        const isNull = list!.validity !== 0 && ((pool.u8[list!.validity + (row >>> 3)]! >>> (row & 7)) & 1) === 0;
        const length = offsets[row + 1]! - offsets[row]!;
        lengths.push(isNull ? null : length);
        if (length !== large) continue;
        const first = (segment.values >>> 2) + offsets[row]!;
        for (let k = 0; k < large; k++) if (pool.u32[first + k] !== k) assert.fail(`element ${k}`);
      }
      return lengths.length;
    });
    assert.deepEqual(lengths, [2, 0, large, null, 1]);
    assert.equal(pool.usedBytes, before);
  }
});

test('rows beside large ones leave in windows of a bounded size', () => {
  const values = Array.from({ length: 250 }, (_, row) => Array.from({ length: 10_000 + (row % 7) }, () => row));
  const { spec, chunk } = write(NUMBERS, values, cut(300_000, { levelRuns: 'rle' }));
  const slots: number[] = [];
  let rows = 0;
  driveChunk(wasm, spec, chunk, {}, (segment) => {
    slots.push(segment.nested!.slots);
    rows += segment.rows;
    return rows;
  });
  assert.equal(rows, 250);
  assert.ok(slots.length >= 3, `${slots.length} segments`);
  for (const count of slots) assert.ok(count <= NESTED_ENTRIES_MAX + 20_000, `${count} slots`);
});

test('a list of strings of 20 MiB, plain, incremental and from a dictionary', () => {
  const long = Array.from({ length: 20 }, (_, k) => 'abcdefgh'.repeat((1 << 17) + k));
  const values = [['x'], long, null, ['y', null, 'z'], [], long.slice(3, 5)];
  const dictionary: PagePlan[] = [{ type: 'dictionary' }];
  for (const [encoding, first] of [
    [Encoding.PLAIN, []],
    [Encoding.DELTA_BYTE_ARRAY, []],
    [Encoding.DELTA_LENGTH_BYTE_ARRAY, []],
    [Encoding.RLE_DICTIONARY, dictionary],
  ] as const) {
    for (const windowRows of [1, 100]) {
      const pages = (entries: number): PagePlan[] => [...first, ...cut(7, { encoding })(entries)];
      // the claimed size makes the first window far too small
      const { spec, chunk, expected } = write(
        STRINGS,
        values,
        pages,
        { windowRows, uncompressedBytes: 10 },
        Codec.SNAPPY,
      );
      const { rows } = runNested(wasm, spec, chunk, { feed: randomFeed(random, 1 << 22, 3) });
      assert.deepEqual(rows, expected);
    }
  }
});

test('a row over many pages, of one entry each', () => {
  const make = valueGenerator(random, STRINGS, { nulls: 20, elements: 30, distinct: 40 });
  const values = Array.from({ length: 60 }, make);
  const page = { encoding: Encoding.RLE_DICTIONARY };
  for (const each of [1, 2, 5]) {
    const pages = (entries: number): PagePlan[] => [{ type: 'dictionary' }, ...cut(each, page)(entries)];
    for (const windowRows of [1, 7, 100]) {
      const { spec, chunk, expected } = write(STRINGS, values, pages, { windowRows });
      assertSameRows(runNested(wasm, spec, chunk).rows, expected);
      assertSameRows(runNested(scalar, spec, chunk, { feed: randomFeed(random, 500, 20) }).rows, expected);
    }
  }
});

test('rows of the first half are out while the second half of the only page is held back', () => {
  const values = Array.from({ length: 20_000 }, (_, row) => [row, row + 1]);
  const { spec, chunk, expected } = write(NUMBERS, values, cut(1 << 20, { levelRuns: 'packed' }), { windowRows: 500 });
  const half = Math.floor(chunk.length / 2);
  let out = 0;
  const result = runNested(wasm, spec, chunk, {
    feed: { borders: [], early: true, next: (arrived, total) => (arrived === 0 ? half : total) },
    onSegment: (rows, arrived) => {
      if (arrived === half) out = rows;
      return true;
    },
  });
  assertSameRows(result.rows, expected);
  assert.ok(out > 7_000, `${out} rows`);
});

const FIELDS: readonly FieldPlan[] = [
  NUMBERS,
  STRINGS,
  listOf(leaf('element', kindOf('boolean'), true)),
  listOf(leaf('element', kindOf('fixed21'), true)),
  listOf({ kind: 'struct', name: 'element', optional: true, fields: [leaf('x', kindOf('binary'), true)] }),
  { kind: 'map', name: 'f', optional: true, key: leaf('key', kindOf('string')) },
];
const SHAPES: readonly PageShape[] = [
  { codec: Codec.UNCOMPRESSED, version: 1, pageEntries: 2500, runs: 'auto', mixed: true },
  { codec: Codec.SNAPPY, version: 2, pageEntries: 900, runs: 'mixed', mixed: true },
  { codec: Codec.ZSTD, version: 1, pageEntries: 4000, runs: 'rle', mixed: true },
];

test('short of memory at every allocation, then goes on with the same values', () => {
  const small = makeEnvironments(MEMORY_BYTES_MIN);
  for (const field of FIELDS) {
    for (const shape of SHAPES) {
      const make = valueGenerator(random, field, { nulls: 20, elements: 6, distinct: 300 });
      const values = Array.from({ length: 2000 }, make);
      const plan = (column: Parameters<typeof chunkPlan>[0]) =>
        chunkPlan(column, makePages(random, column, shape), shape.codec);
      const { bytes } = nestedFile([field], [values.map((value) => [value])], plan);
      const spec = specsOf(bytes, { windowRows: 700, uncompressedBytes: 20_000 })[0]![0]!;
      const chunk = bytes.subarray(spec.fileOffset, spec.fileOffset + spec.byteLength);
      const expected = values.map(projections(field)[0]!);
      const hog = new Hog(small.pool);
      const inner = randomFeed(random, 20_000, 4);
      let shortages = 0;
      const before = small.pool.usedBytes;
      const result: NestedResult = { rows: [], segments: [] };
      runNested(
        random.below(3) === 0 ? small.scalar : small.wasm,
        spec,
        chunk,
        {
          feed: {
            ...inner,
            next: (arrived, total) => {
              if (arrived === 0) hog.takeAll();
              return inner.next(arrived, total);
            },
          },
          onMemory: () => {
            shortages++;
            hog.giveBack(BLOCK_BYTES);
          },
          onSegment: (rows) => {
            // the hog holds memory when the run ends, so it is given back before the run counts
            if (rows === values.length) hog.giveBack(Number.POSITIVE_INFINITY);
            return true;
          },
        },
        result,
      );
      assertSameRows(result.rows, expected);
      assert.ok(shortages > 3, `${shortages} shortages`);
      assert.equal(small.pool.usedBytes, before);
    }
  }
});

/** Memory that a test holds, and gives back from its start. */
class Hog {
  readonly #pool: typeof pool;
  #at = 0;
  #bytes = 0;

  constructor(of: typeof pool) {
    this.#pool = of;
  }

  takeAll(): void {
    this.#bytes = this.#pool.capacityBytes - this.#pool.usedBytes;
    this.#at = this.#pool.allocate(this.#bytes);
    if (this.#at > 0) return;
    // free memory is not in one piece: what the largest piece has
    for (; this.#at === 0; this.#bytes -= BLOCK_BYTES) this.#at = this.#pool.allocate(this.#bytes - BLOCK_BYTES);
  }

  giveBack(bytes: number): void {
    assert.ok(this.#bytes > 0 || bytes === Number.POSITIVE_INFINITY, 'memory is short with nothing in it');
    const part = Math.min(bytes, this.#bytes);
    if (part > 0) this.#pool.free(this.#at, part);
    this.#at += part;
    this.#bytes -= part;
  }
}

test('closing midway, at any segment or while waiting for input or memory, leaves nothing behind', () => {
  class Stop extends Error {}
  const small = makeEnvironments(MEMORY_BYTES_MIN);
  for (let turn = 0; turn < 200; turn++) {
    const field = FIELDS[turn % FIELDS.length]!;
    const make = valueGenerator(random, field, { nulls: 20, elements: 6, distinct: 100 });
    const values = Array.from({ length: 300 }, make);
    const shape = { ...SHAPES[turn % 3]!, pageEntries: 0 };
    const plan = (column: Parameters<typeof chunkPlan>[0]) =>
      chunkPlan(column, makePages(random, column, shape), shape.codec);
    const { bytes } = nestedFile([field], [values.map((value) => [value])], plan);
    const spec = specsOf(bytes, { windowRows: 30 })[0]![0]!;
    const chunk = bytes.subarray(spec.fileOffset, spec.fileOffset + spec.byteLength);
    const feed = randomFeed(random, chunk.length, 5);
    const stopAt = random.below(chunk.length);
    const rowsMax = random.below(300);
    const hog = new Hog(small.pool);
    let shortages = turn % 4 === 0 ? random.below(12) : -1;
    try {
      runNested(turn % 2 === 0 ? small.wasm : small.scalar, spec, chunk, {
        feed: {
          ...feed,
          next: (arrived, total) => {
            if (arrived === 0 && shortages >= 0) hog.takeAll();
            if (arrived >= stopAt) stop();
            return feed.next(arrived, total);
          },
        },
        onMemory: () => {
          if (shortages-- === 0) stop();
          hog.giveBack(BLOCK_BYTES);
        },
        onSegment: (rows) => {
          if (rows < rowsMax) return true;
          return stop();
        },
      });
    } catch (error) {
      if (!(error instanceof Stop)) throw error;
    }
    function stop(): never {
      hog.giveBack(Number.POSITIVE_INFINITY);
      throw new Stop();
    }
    hog.giveBack(Number.POSITIVE_INFINITY);
    assert.equal(small.pool.usedBytes, 0);
  }
});
