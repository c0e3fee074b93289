/**
 * Chunks of nested columns with random damage: well-formed rows or a DecodeError, no matter how the bytes arrived and
 * by which kernels; two runs that both reach the end agree, and so do the rows before an error.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DecodeEnvironment } from '../column/environment.ts';
import type { ChunkSpec } from '../column/spec.ts';
import { DecodeError } from '../errors.ts';
import { type Feed, LINES, makeEnvironments, randomFeed, WHOLE } from './chunk-run.ts';
import { changeHeader, damage, EDGES } from './damage.ts';
import { makePages, nestedFile, pick, randomField, randomPageShape, valueGenerator } from './nested-cases.ts';
import { assertSameRows, type NestedResult, type Projected, runNested, specsOf } from './nested-run.ts';
import { type SeededRandom, seededRandom } from './random.ts';
import type { Tree } from './thrift-twin.ts';
import { chunkPlan, type PagePlan } from './writer/index.ts';

/** Memory that a damaged page may ask for before the run is given up; what it asks for is never touched before. */
const POOL_BYTES = 64 << 20;
const { wasm, scalar } = makeEnvironments(POOL_BYTES);
const secondsMax = Number(process.env.QANAT_FUZZ_SECONDS ?? 3);

interface Outcome {
  readonly rows: readonly Projected[];
  readonly error?: DecodeError;
  readonly memory?: true;
}

class MemoryShort extends Error {}

function outcomeOf(environment: DecodeEnvironment, spec: ChunkSpec, bytes: Uint8Array, feed: Feed): Outcome {
  const result: NestedResult = { rows: [], segments: [] };
  const onMemory = (): void => {
    throw new MemoryShort();
  };
  try {
    return runNested(environment, spec, bytes, { feed, onMemory }, result);
  } catch (error) {
    if (error instanceof MemoryShort) return { rows: result.rows, memory: true };
    if (error instanceof DecodeError) return { rows: result.rows, error };
    throw error;
  }
}

function assertAgree(a: Outcome, b: Outcome): void {
  const common = Math.min(a.rows.length, b.rows.length);
  assertSameRows(a.rows.slice(0, common), b.rows.slice(0, common));
  if (a.memory === true || b.memory === true) return;
  assert.equal(a.error === undefined, b.error === undefined, `${a.error?.message} / ${b.error?.message}`);
  if (a.error === undefined) assert.equal(a.rows.length, b.rows.length);
}

/** A chunk with one page's plan changed; its spec. */
function makeChunk(random: SeededRandom, change: (page: PagePlan) => PagePlan): { spec: ChunkSpec; bytes: Uint8Array } {
  const field = randomField(random, 'f', 1 + random.below(3));
  const make = valueGenerator(random, field, { nulls: 25, elements: 4, distinct: 12 });
  const rows = Array.from({ length: 1 + random.below(60) }, () => [make()]);
  const file = nestedFile([field], [rows], (column) => {
    const shape = randomPageShape(random);
    const pages = makePages(random, column, shape).map((page) => ({ ...page, crc: false }));
    const victim = random.below(pages.length);
    return chunkPlan(
      column,
      pages.map((page, k) => (k === victim ? change(page) : page)),
      shape.codec,
    );
  });
  const specs = specsOf(file.bytes, { windowRows: pick(random, [1, 7, 64, 1000]), utf8: random.below(2) === 0 })[0]!;
  const spec = pick(random, specs);
  return { spec, bytes: file.bytes.slice(spec.fileOffset, spec.fileOffset + spec.byteLength) };
}

function assertOneOutcome(random: SeededRandom, spec: ChunkSpec, bytes: Uint8Array): Outcome {
  const sized = { ...spec, byteLength: bytes.length };
  const whole = outcomeOf(wasm, sized, bytes, WHOLE);
  const feed = random.below(3) === 0 ? LINES : randomFeed(random, bytes.length, 4);
  assertAgree(whole, outcomeOf(wasm, sized, bytes, feed));
  assertAgree(whole, outcomeOf(scalar, sized, bytes, WHOLE));
  return whole;
}

function forSeconds(seconds: number, act: () => void): void {
  const end = performance.now() + seconds * 1000;
  let turns = 0;
  for (; turns < 20 || performance.now() < end; turns++) act();
  console.log(`${turns} turns`);
}

test('random bytes of a chunk are changed, cut out or put in', () => {
  const random = seededRandom();
  let refused = 0;
  forSeconds(secondsMax / 3, () => {
    const { spec, bytes } = makeChunk(random, (page) => page);
    for (let turn = 0; turn < 6; turn++) {
      const numValues = random.below(6) > 0 ? spec.numValues : random.below(2 * spec.numValues + 2);
      const outcome = assertOneOutcome(random, { ...spec, numValues }, damage(random, bytes));
      if (outcome.error !== undefined) refused++;
    }
  });
  assert.ok(refused > 0);
});

test('random fields of page headers are changed', () => {
  const random = seededRandom();
  forSeconds(secondsMax / 3, () => {
    const header = (tree: Tree): void => changeHeader(random, tree);
    const { spec, bytes } = makeChunk(random, (page) => ({ ...page, header }));
    assertOneOutcome(random, spec, bytes);
  });
});

test('random bytes of levels and values are changed under their compression', () => {
  const random = seededRandom();
  forSeconds(secondsMax / 2, () => {
    const hook = pick(random, ['values', 'levels', 'repetition', 'repetition', 'plain'] as const);
    const { spec, bytes } = makeChunk(random, (page) => ({
      ...page,
      [hook]: (made: Uint8Array) => damage(random, made),
    }));
    assertOneOutcome(random, spec, bytes);
  });
});

test('what the footer says of a nested column may be anything', () => {
  const random = seededRandom();
  forSeconds(secondsMax / 6, () => {
    const { spec, bytes } = makeChunk(random, (page) => page);
    const count = (value: number): number =>
      Math.abs(random.below(2) === 0 ? pick(random, EDGES) : value + random.below(9));
    const nested = { ...spec.nested!, rowsHint: count(spec.nested!.rowsHint) };
    const lied = {
      ...spec,
      nested,
      numValues: count(spec.numValues),
      uncompressedBytes: count(spec.uncompressedBytes),
    };
    assertOneOutcome(random, lied, bytes);
  });
});
