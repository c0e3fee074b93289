/**
 * Chunks with random damage. Whatever the bytes, a decoder gives well-formed values or throws a DecodeError: no other
 * exception, no trap, no leak (the driver looks), no hang. What it gives depends neither on how the bytes arrived nor
 * on the kernels: two runs that both reach the end agree, and so do the rows before an error.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DecodeEnvironment } from '../column/environment.ts';
import type { BytesOutput, ChunkSpec } from '../column/spec.ts';
import { DecodeError } from '../errors.ts';
import { makePlan, randomShape } from './chunk-cases.ts';
import {
  assertSameValues,
  type DecodedValue,
  expectedValues,
  type Feed,
  LINES,
  makeEnvironments,
  randomFeed,
  runChunk,
  specOf,
  WHOLE,
} from './chunk-run.ts';
import { changeHeader, damage } from './damage.ts';
import { type SeededRandom, seededRandom } from './random.ts';
import type { Tree } from './thrift-twin.ts';
import { type ChunkPlan, CODECS, type PagePlan, type WrittenChunk, writeChunk } from './writer/index.ts';

/** Memory that a damaged page may ask for before the run is given up; what it asks for is never touched before. */
const POOL_BYTES = 64 << 20;
const { wasm, scalar } = makeEnvironments(POOL_BYTES);
const secondsMax = Number(process.env.QANAT_FUZZ_SECONDS ?? 3);

type Outcome = { readonly rows: DecodedValue[]; readonly error?: DecodeError; readonly memory?: true };

class MemoryShort extends Error {}

function outcomeOf(environment: DecodeEnvironment, spec: ChunkSpec, bytes: Uint8Array, feed: Feed): Outcome {
  let rows: DecodedValue[] = [];
  const onMemory = (): void => {
    throw new MemoryShort();
  };
  try {
    const onStart = (values: DecodedValue[]): void => {
      rows = values;
    };
    runChunk(environment, spec, bytes, { feed, onMemory, onStart });
    return { rows };
  } catch (error) {
    if (error instanceof MemoryShort) return { rows, memory: true };
    if (error instanceof DecodeError) return { rows, error };
    throw error;
  }
}

function assertAgree(a: Outcome, b: Outcome): void {
  const common = Math.min(a.rows.length, b.rows.length);
  assertSameValues(a.rows.slice(0, common), b.rows.slice(0, common));
  if (a.memory === true || b.memory === true) return;
  assert.equal(a.error === undefined, b.error === undefined, `${a.error?.message} / ${b.error?.message}`);
  if (a.error === undefined) assert.equal(a.rows.length, b.rows.length);
}

/** The chunk, decoded in three manners. */
function assertOneOutcome(random: SeededRandom, spec: ChunkSpec, bytes: Uint8Array): Outcome {
  const whole = outcomeOf(wasm, spec, bytes, WHOLE);
  assertAgree(whole, outcomeOf(wasm, spec, bytes, random.below(3) === 0 ? LINES : randomFeed(random, bytes.length, 4)));
  assertAgree(whole, outcomeOf(scalar, spec, bytes, WHOLE));
  return whole;
}

function makeSpec(random: SeededRandom, plan: ChunkPlan, chunk: WrittenChunk): ChunkSpec {
  return specOf(plan, chunk, {
    windowRows: [7, 64, 100, 1000][random.below(4)]!,
    bytesOutput: (random.below(2) === 0 ? 'values' : 'dictionary') as BytesOutput,
    utf8: random.below(2) === 0,
  });
}

function small(random: SeededRandom): ChunkPlan {
  const shape = randomShape(random);
  return makePlan(random, { ...shape, rows: Math.min(shape.rows, 250), distinct: Math.min(shape.distinct, 40) });
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
    const plan = small(random);
    const chunk = writeChunk({ ...plan, pages: plan.pages.map((page) => ({ ...page, crc: false })) });
    for (let turn = 0; turn < 8; turn++) {
      const bytes = damage(random, chunk.bytes);
      const spec = makeSpec(random, plan, { ...chunk, bytes });
      const outcome = assertOneOutcome(random, { ...spec, numValues: someCount(random, chunk.numValues) }, bytes);
      if (outcome.error !== undefined) refused++;
    }
  });
  assert.ok(refused > 0);
});

test('damage to the body of a page with a CRC is always found', () => {
  const random = seededRandom();
  forSeconds(secondsMax / 6, () => {
    const plan = small(random);
    const chunk = writeChunk({ ...plan, pages: plan.pages.map((page) => ({ ...page, crc: true })) });
    const bodies = chunk.pages.filter((page, i) => page.end > page.body && plan.pages[i]!.type !== 'index');
    const used = bodies.filter((page) => isUsed(plan, chunk, page));
    const page = used[random.below(Math.max(1, used.length))];
    if (page === undefined) return;
    const bytes = Uint8Array.from(chunk.bytes);
    bytes[page.body + random.below(page.end - page.body)]! ^= 1 + random.below(255);
    const spec = { ...makeSpec(random, plan, chunk), utf8: false };
    const outcome = outcomeOf(wasm, spec, bytes, randomFeed(random, bytes.length, 4));
    assert.equal(outcome.error?.code, 'CHECKSUM', outcome.error?.message);
    assertSameValues(outcome.rows, expectedValues(plan.column, plan.values).slice(0, outcome.rows.length));
  });
});

/** A page without values is stepped over. */
function isUsed(plan: ChunkPlan, chunk: WrittenChunk, page: WrittenChunk['pages'][number]): boolean {
  const made = plan.pages[chunk.pages.indexOf(page)]!;
  return made.type === 'dictionary' || made.rows !== 0;
}

test('random fields of page headers are changed', () => {
  const random = seededRandom();
  forSeconds(secondsMax / 3, () => {
    const plan = small(random);
    const victim = random.below(plan.pages.length);
    const pages: PagePlan[] = plan.pages.map((page, i) =>
      i === victim ? { ...page, header: (header: Tree) => changeHeader(random, header) } : page,
    );
    const changed = { ...plan, pages };
    const chunk = writeChunk(changed);
    assertOneOutcome(random, makeSpec(random, changed, chunk), chunk.bytes);
  });
});

test('random bytes of levels, values and dictionaries are changed under their compression', () => {
  const random = seededRandom();
  forSeconds(secondsMax / 3, () => {
    const plan = small(random);
    const victim = random.below(plan.pages.length);
    const hook = (['values', 'levels', 'plain'] as const)[random.below(3)]!;
    const pages: PagePlan[] = plan.pages.map((page, i) =>
      i === victim ? { ...page, [hook]: (bytes: Uint8Array) => damage(random, bytes) } : page,
    );
    const changed = { ...plan, pages };
    const chunk = writeChunk(changed);
    assertOneOutcome(random, makeSpec(random, changed, chunk), chunk.bytes);
  });
});

function someCount(random: SeededRandom, count: number): number {
  return random.below(6) > 0 ? count : random.below(2 * count + 2);
}

test('the fuzz reaches every codec', () => {
  // randomShape draws from these; a codec left out there would never be damaged
  const random = seededRandom();
  const seen = new Set(Array.from({ length: 500 }, () => randomShape(random).codec));
  const wanted = CODECS;
  assert.deepEqual([...seen].sort(), [...wanted].sort());
});
