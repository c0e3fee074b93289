/** Column chunks of every kind, written in every way and arriving in every manner, against what was written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BytesOutput, ChunkSpec } from '../column/spec.ts';
import { Codec, Encoding, Physical } from '../format/enums.ts';
import {
  type CaseShape,
  columnOf,
  KINDS,
  makePlan,
  makeValues,
  NULL_SHARES,
  randomShape,
  waysOf,
} from './chunk-cases.ts';
import { assertDecodes, type Feed, LINES, makeEnvironments, randomFeed, WHOLE } from './chunk-run.ts';
import { seededRandom } from './random.ts';
import { CODECS, type Framing, type PagePlan, type RunStyle } from './writer/index.ts';

const { wasm, scalar } = makeEnvironments(32 << 20);
const WINDOWS = [1, 3, 64, 100, 333, 4096];
const PAGES = [0, 1, 7, 64, 333, 5000];
const FRAMINGS: readonly Framing[] = ['one', 'several', 'bare'];
const STYLES: readonly RunStyle[] = ['auto', 'rle', 'packed', 'mixed'];

function describe(shape: CaseShape, spec: Partial<ChunkSpec>): string {
  return JSON.stringify({ ...shape, ...spec, kind: shape.kind.name });
}

/** Every kind, null share, way and kernel; codecs, versions, sizes and feeds take turns so that all pairs come up. */
test('all kinds, nulls and encodings, by both kernels', () => {
  const random = seededRandom();
  let turn = 0;
  for (const kind of KINDS) {
    for (const nulls of NULL_SHARES) {
      for (const way of waysOf(kind)) {
        for (const environment of [wasm, scalar]) {
          turn++;
          const shape: CaseShape = {
            kind,
            nulls,
            way,
            codec: CODECS[turn % CODECS.length]!,
            framing: FRAMINGS[(turn >>> 3) % FRAMINGS.length]!,
            bitPackedLevels: turn % 5 < 2,
            version: (turn >>> 1) % 2 === 0 ? 1 : 2,
            rows: turn % 3 === 0 ? 900 : 257,
            pageRows: PAGES[turn % 5 === 0 ? 5 : turn % PAGES.length]!,
            runs: STYLES[(turn >>> 2) % 4]!,
            distinct: [1, 5, 300][turn % 3]!,
          };
          const spec = {
            windowRows: WINDOWS[(turn * 5 + (turn >>> 3)) % WINDOWS.length]!,
            bytesOutput: (turn % 4 < 2 ? 'values' : 'dictionary') as BytesOutput,
            utf8: kind.utf8 === true,
          };
          const feed: Feed = [WHOLE, LINES, randomFeed(random, 20_000, 2), randomFeed(random, 3000, 9)][turn % 4]!;
          check(() => assertDecodes(environment, makePlan(random, shape), spec, { feed }), shape, spec);
        }
      }
    }
  }
});

test('random chunks', () => {
  const random = seededRandom();
  for (let turn = 0; turn < 700; turn++) {
    const shape = randomShape(random);
    const spec = {
      windowRows: WINDOWS[random.below(WINDOWS.length)]!,
      bytesOutput: (random.below(2) === 0 ? 'values' : 'dictionary') as BytesOutput,
      utf8: shape.kind.utf8 === true && random.below(4) > 0,
    };
    const plan = makePlan(random, shape);
    const feed: Feed = [WHOLE, LINES, randomFeed(random, 20_000, 3), randomFeed(random, 2000, 12)][random.below(4)]!;
    check(() => assertDecodes(random.below(4) === 0 ? scalar : wasm, plan, spec, { feed }), shape, spec);
  }
});

test('every place of a border between two pieces, every size of a step', () => {
  const random = seededRandom();
  for (const codec of [Codec.UNCOMPRESSED, Codec.SNAPPY, Codec.ZSTD]) {
    for (const version of [1, 2] as const) {
      const plan = makePlan(random, {
        kind: KINDS.find((kind) => kind.name === 'string')!,
        nulls: 30,
        way: 'fallback',
        codec,
        version,
        rows: 24,
        pageRows: 6,
        runs: 'auto',
        distinct: 9,
      });
      let total = 1;
      for (let border = 0; border < total; border++) {
        let seen = 0;
        const next = (arrived: number, all: number): number => {
          seen = all;
          return arrived + 1 + (border % 97);
        };
        assertDecodes(
          wasm,
          plan,
          { windowRows: 11, utf8: true },
          { feed: { borders: [border], next, early: border % 2 === 0 } },
        );
        total = seen;
      }
      assert.ok(total > 100);
    }
  }
});

test('Snappy pages decompressed behind the values of others, with short levels in front of them', () => {
  const random = seededRandom();
  for (let turn = 0; turn < 300; turn++) {
    const kind = KINDS.filter(({ physical }) => physical !== Physical.BYTE_ARRAY)[turn % 13]!;
    const optional = turn % 3 > 0;
    const rows = 100 + random.below(900);
    const values = makeValues(random, { kind, nulls: -1, rows, distinct: 1 + random.below(6) });
    // nulls in few stretches, so that the levels are a few bytes
    for (let row = 0; optional && row < rows; row += 20 + random.below(300)) {
      values.fill(null, row, row + random.below(60));
    }
    const pages: PagePlan[] = [];
    for (let row = 0; row < rows; ) {
      const take = Math.min(rows - row, 1 + random.below(200));
      if (
        random.below(12) === 0 &&
        kind.physical !== Physical.BOOLEAN &&
        !pages.some(({ type }) => type !== undefined)
      ) {
        pages.push({ type: 'dictionary' });
      }
      const indexed = pages.some(({ type }) => type !== undefined) && random.below(3) === 0;
      const encoding = indexed ? Encoding.RLE_DICTIONARY : Encoding.PLAIN;
      pages.push({ rows: take, encoding, version: random.below(4) === 0 ? 2 : 1, levelRuns: 'rle' });
      row += take;
    }
    const plan = { column: columnOf(kind, optional), values, codec: Codec.SNAPPY, pages };
    const windowRows = [100, 250, 1000][random.below(3)]!;
    const feed: Feed = [WHOLE, LINES, randomFeed(random, 3000, 6)][random.below(3)]!;
    assertDecodes(turn % 5 === 0 ? scalar : wasm, plan, { windowRows }, { feed });
  }
});

function check(act: () => unknown, shape: CaseShape, spec: Partial<ChunkSpec>): void {
  try {
    act();
  } catch (error) {
    throw new Error(`${describe(shape, spec)}: ${(error as Error).message}`, { cause: error });
  }
}
