/** Medians, means, the turning order of runs, and tables. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alternate, formatTable, geometricMean, median, quantile } from '../result.ts';

test('medians and means', () => {
  assert.equal(median([9, 1, 5]), 5);
  assert.equal(median([4, 1, 2, 9]), 3);
  assert.equal(quantile([3, 1, 2, 4], 0.5), 2);
  assert.equal(quantile([3, 1, 2, 4], 0.99), 4);
  assert.equal(quantile([7], 0), 7);
  assert.ok(Math.abs(geometricMean([2, 8]) - 4) < 1e-12);
});

test('sides take turns, each is run once a round', async () => {
  const order: string[] = [];
  let figure = 0;
  const side = (name: string) => (): number => {
    order.push(name);
    return figure++;
  };
  const samples = await alternate(3, { a: side('a'), b: side('b') });
  assert.deepEqual(order, ['a', 'b', 'b', 'a', 'a', 'b']);
  assert.deepEqual(samples, { a: [0, 3, 4], b: [1, 2, 5] });
});

test('tables are aligned', () => {
  const rows = [
    ['name', 'x'],
    ['a', '10.5'],
  ];
  assert.equal(formatTable(rows), 'name     x\na     10.5');
});
