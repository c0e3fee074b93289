/** Which columns are expected of the next row groups. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecentColumns } from '../decoded/recent-columns.ts';

test('a row group begins with the columns of the one before', () => {
  const recent = new RecentColumns();
  assert.deepEqual(recent.note(0, 3), [3]);
  assert.deepEqual(recent.note(0, 5), [5]);
  assert.deepEqual(recent.note(1, 3), [3, 5]);
  assert.deepEqual(recent.note(1, 5), [5]);
  assert.deepEqual(recent.note(1, 3), [3], 'known already');
  assert.deepEqual(recent.note(2, 9), [9, 3, 5], 'another one first');
});

test('of the nearest one below, where readers are at several row groups or skip some', () => {
  const recent = new RecentColumns();
  recent.note(0, 1);
  recent.note(10, 2);
  assert.deepEqual(recent.note(4, 7), [7, 1]);
  assert.deepEqual(recent.note(11, 2), [2]);
  assert.deepEqual(recent.note(20, 8), [8, 2]);
});

test('few row groups are remembered', () => {
  const recent = new RecentColumns();
  recent.note(0, 1);
  for (let group = 100; group < 108; group++) recent.note(group, 2);
  assert.deepEqual(recent.note(5, 9), [9], 'the first one is forgotten');
});
