import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CoalescePolicy, FetchRange } from '../coalesce.ts';
import { coalesceRanges } from '../coalesce.ts';
import { seededRandom } from './random.ts';

interface Numbered {
  readonly id: string;
  readonly start: number;
  readonly end: number;
}

const range = (id: string, start: number, end: number): Numbered => ({ id, start, end });
const POLICY: CoalescePolicy = { gapBytesMax: 10, requestBytesMax: 1000, amplificationMax: 4 };

/** Requests in short: "start-end: ids (gap)". */
function show(requests: FetchRange<Numbered>[]): string[] {
  return requests.map(
    (request) =>
      `${request.start}-${request.end}: ${request.parts.map((part) => part.id).join(' ')} (${request.gapBytes})`,
  );
}

test('ranges within the gap are one request', () => {
  const ranges = [range('b', 110, 200), range('a', 0, 100), range('c', 211, 300), range('d', 300, 310)];
  assert.deepEqual(show(coalesceRanges(ranges, POLICY)), ['0-200: a b (10)', '211-310: c d (0)']);
});

test('nothing and empty ranges need no request', () => {
  assert.deepEqual(coalesceRanges([], POLICY), []);
  assert.deepEqual(coalesceRanges([range('empty', 5, 5)], POLICY), []);
});

test('a request of several ranges stays under the maximum, a single larger one passes', () => {
  const ranges = [range('a', 0, 600), range('b', 600, 1000), range('c', 1000, 1001), range('d', 1001, 3001)];
  assert.deepEqual(show(coalesceRanges(ranges, POLICY)), ['0-1000: a b (0)', '1000-1001: c (0)', '1001-3001: d (0)']);
});

test('small ranges far apart do not drag in what lies between', () => {
  const ranges = [range('a', 0, 1), range('b', 8, 9), range('c', 11, 12), range('d', 12, 30)];
  // a + b would be 9 bytes for 2; b + c is 4 for 2; with d, 22 for 20.
  assert.deepEqual(show(coalesceRanges(ranges, POLICY)), ['0-1: a (0)', '8-30: b c d (2)']);
  assert.deepEqual(show(coalesceRanges(ranges, { ...POLICY, amplificationMax: 5 })), ['0-30: a b c d (9)']);
});

test('overlapping and equal ranges are separate requests', () => {
  const ranges = [range('a', 0, 100), range('b', 50, 150), range('c', 50, 150), range('d', 150, 160)];
  assert.deepEqual(show(coalesceRanges(ranges, POLICY)), ['0-100: a (0)', '50-150: b (0)', '50-160: c d (0)']);
});

/** The rule once more, the slow way: may these ranges, in order, be one request? */
function allowed(parts: readonly Numbered[], policy: CoalescePolicy): boolean {
  for (let n = 2; n <= parts.length; n++) {
    const first = parts.slice(0, n);
    const bytes = first.at(-1)!.end - first[0]!.start;
    const gap = first[n - 1]!.start - first[n - 2]!.end;
    const needed = first.reduce((sum, part) => sum + part.end - part.start, 0);
    if (gap < 0 || gap > policy.gapBytesMax || bytes > policy.requestBytesMax) return false;
    if (bytes > policy.amplificationMax * needed) return false;
  }
  return true;
}

test('against a model: covered once, within the guards, in order, and not one request more', () => {
  const random = seededRandom();
  for (let round = 0; round < 2000; round++) {
    const policy: CoalescePolicy = {
      gapBytesMax: random.below(30),
      requestBytesMax: 1 + random.below(200),
      amplificationMax: 1 + random.below(40) / 10,
    };
    const ranges = Array.from({ length: random.below(15) }, (_, i) => {
      const start = random.below(300);
      return range(String(i), start, start + random.below(40));
    });
    const requests = coalesceRanges(ranges, policy);
    const parts = requests.flatMap((request) => [...request.parts]);
    // Every range that needs bytes, once, and as it was given.
    assert.equal(new Set(parts).size, parts.length);
    assert.deepEqual(new Set(parts), new Set(ranges.filter((one) => one.end > one.start)));
    for (const [i, request] of requests.entries()) {
      assert.ok(allowed(request.parts, policy));
      assert.equal(request.start, request.parts[0]!.start);
      assert.equal(request.end, request.parts.at(-1)!.end);
      const needed = request.parts.reduce((sum, part) => sum + part.end - part.start, 0);
      assert.equal(request.gapBytes, request.end - request.start - needed);
      const next = requests[i + 1];
      if (next === undefined) continue;
      assert.ok(next.start >= request.start);
      assert.ok(!allowed([...request.parts, next.parts[0]!], policy), 'the next range would have fitted');
    }
    // The order of the input does not matter, and merging what is merged changes nothing.
    const shuffled = [...ranges].sort(() => random.below(3) - 1);
    assert.deepEqual(shape(coalesceRanges(shuffled, policy)), shape(requests));
    assert.deepEqual(shape(coalesceRanges(parts, policy)), shape(requests));
  }
});

function shape(requests: FetchRange<Numbered>[]): number[][] {
  return requests.map(({ start, end, gapBytes, parts }) => [start, end, gapBytes, parts.length]);
}
