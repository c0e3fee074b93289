/** Gap and depth: what `auto` chooses from what was measured. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GapEstimator } from '../gap.ts';
import { GAP_BYTES_MAX, GAP_BYTES_MIN, PREFETCH_DEPTH_DEFAULT, PREFETCH_DEPTH_MAX } from '../limits.ts';
import { firstDepth, nextDepth } from '../prefetch.ts';

test('the gap is latency times bandwidth', () => {
  const gap = new GapEstimator();
  assert.equal(gap.gapBytes(), GAP_BYTES_MIN, 'nothing measured');
  gap.observe(1000, 10);
  assert.equal(gap.gapBytes(), 1_000_000, '10 ms at the 100 MB/s assumed');
  for (let k = 0; k < 30; k++) gap.observe(10_000_000, 60);
  assert.ok(Math.abs(gap.gapBytes() - 2_000_000) < 1000, '10 MB in 50 ms beside the latency: 200 kB/ms');
});

test('the gap stays in its bounds and forgets old networks', () => {
  const gap = new GapEstimator();
  gap.observe(100, 5000);
  assert.equal(gap.gapBytes(), GAP_BYTES_MAX);
  for (let k = 0; k < 30; k++) gap.observe(100, 0.001);
  assert.equal(gap.gapBytes(), GAP_BYTES_MIN);
  gap.observe(100, 0);
  assert.equal(gap.gapBytes(), GAP_BYTES_MIN, 'a clock that stands still tells nothing');
});

test('the first depth is what comes in a few round trips, within a share of the memory', () => {
  const MIB = 1 << 20;
  assert.equal(firstDepth(0, MIB, 256 * MIB), PREFETCH_DEPTH_DEFAULT, 'a network without latency');
  assert.equal(firstDepth(5 * MIB, MIB, 256 * MIB), 21);
  assert.equal(firstDepth(5 * MIB, MIB, 32 * MIB), 9, 'a quarter of the memory');
  assert.equal(firstDepth(5 * MIB, 100 * MIB, 256 * MIB), PREFETCH_DEPTH_DEFAULT);
  assert.equal(firstDepth(5 * MIB, 1000, 256 * MIB), PREFETCH_DEPTH_MAX);
  assert.equal(firstDepth(5 * MIB, 0, 256 * MIB), PREFETCH_DEPTH_DEFAULT, 'row groups without bytes');
});

test('depth deepens while the consumer waits and memory is free', () => {
  const seen = { wallMs: 100, waitedMs: 50, evictions: 0, memoryShare: 0.1 };
  assert.deepEqual(nextDepth(2, seen), { depth: 3, reason: 'the consumer waited 50 % of the time' });
  assert.equal(nextDepth(2, { ...seen, waitedMs: 10 }), undefined);
  assert.equal(nextDepth(2, { ...seen, memoryShare: 0.6 }), undefined);
  assert.equal(nextDepth(PREFETCH_DEPTH_MAX, seen), undefined);
});

test('depth shrinks to none ahead when row groups had to be given up', () => {
  const seen = { wallMs: 100, waitedMs: 90, evictions: 2, memoryShare: 0.1 };
  assert.equal(nextDepth(3, seen)?.depth, 2);
  assert.match(nextDepth(3, seen)!.reason, /2 row groups/);
  assert.equal(nextDepth(1, seen), undefined);
});
