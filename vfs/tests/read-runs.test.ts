/** What reads tell of a program behind a kernel that reads ahead of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReadRuns } from '../raw/read-runs.ts';

const KIB = 1024;

test('a read says that its reader came to where the one before began', () => {
  const runs = new ReadRuns();
  const first = runs.note(100 * KIB, 116 * KIB);
  assert.ok(first.isNew);
  assert.deepEqual(first.reached, { start: 100 * KIB, end: 104 * KIB });
  // the first page was known already
  const second = runs.note(116 * KIB, 148 * KIB);
  assert.equal(second.isNew, false);
  assert.equal(second.reached.end, second.reached.start);
  const third = runs.note(148 * KIB, 212 * KIB);
  assert.deepEqual(third.reached, { start: 104 * KIB, end: 116 * KIB + 1 });
  const fourth = runs.note(212 * KIB, 340 * KIB);
  assert.deepEqual(fourth.reached, { start: 116 * KIB + 1, end: 148 * KIB + 1 });
  assert.equal(fourth.start, 100 * KIB);
  assert.equal(fourth.next, 340 * KIB);
});

test('threads that share a handle have a run each; runs that nobody goes on with are forgotten', () => {
  const runs = new ReadRuns();
  for (let k = 0; k < 8; k++) assert.ok(runs.note(k * 1000 * KIB, k * 1000 * KIB + KIB).isNew);
  for (let k = 0; k < 8; k++) assert.equal(runs.note(k * 1000 * KIB + KIB, k * 1000 * KIB + 2 * KIB).isNew, false);
  for (let k = 100; k < 200; k++) runs.note(k * 1000 * KIB, k * 1000 * KIB + KIB);
  assert.ok(runs.note(2 * KIB, 3 * KIB).isNew);
});

test('what comes ahead doubles while reads go on, skips included where they may be', () => {
  const runs = new ReadRuns();
  assert.equal(runs.note(0, 64 * KIB, 512 * KIB).ahead, 256 * KIB);
  assert.equal(runs.note(64 * KIB, 128 * KIB, 512 * KIB).ahead, 512 * KIB);
  assert.equal(runs.note(300 * KIB, 364 * KIB, 512 * KIB).ahead, 1024 * KIB);
  for (let at = 364; at < 2000; at += 64) runs.note(at * KIB, (at + 64) * KIB);
  assert.equal(runs.note(2028 * KIB, 2092 * KIB, 512 * KIB).ahead, 8192 * KIB);
  assert.equal(runs.note(9000 * KIB, 9064 * KIB, 512 * KIB).ahead, 0);
  assert.ok(runs.note(9100 * KIB, 9164 * KIB).isNew);
});
