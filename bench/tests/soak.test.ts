/** The checks of the soak run find what is wrong, and nothing else; soak-run.slow-test.ts runs it. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RecordBatch, tableFromArrays } from 'apache-arrow';
import { SoakLake } from '../soak-lake.ts';
import { FILES, RowCheck, rowsOf, type SeenVersions } from '../soak-rows.ts';

function batchOf(
  file: number,
  version: number,
  ids: readonly number[],
  versions = ids.map(() => version),
): RecordBatch {
  return tableFromArrays({
    file: Int32Array.from(ids, () => file),
    version: Int32Array.from(versions),
    id: BigInt64Array.from(ids, BigInt),
    name: ids.map((id) => `version ${version} of row ${id % 997}`),
  }).batches[0]!;
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, id) => id);

describe('the check of rows', () => {
  test('takes whole files, in any batches', () => {
    const check = new RowCheck();
    const ids = upTo(rowsOf(1, 7));
    check.add(batchOf(1, 7, ids.slice(0, 100)));
    check.add(batchOf(1, 7, ids.slice(100)));
    check.add(batchOf(2, 3, upTo(rowsOf(2, 3))));
    check.end();
    assert.deepEqual(check.seen, [
      [1, 7],
      [2, 3],
    ]);
    assert.equal(check.rows, rowsOf(1, 7) + rowsOf(2, 3));
  });

  test('finds two versions in one file, rows that are missing, and values of another version', () => {
    assert.throws(
      () => new RowCheck().add(batchOf(1, 7, [0, 1, 2], [7, 7, 8])),
      /versions 7 and 8 in one scan, at row 2/,
    );
    assert.throws(() => new RowCheck().add(batchOf(1, 7, [0, 2])), /row 2 instead of 1/);
    const cut = new RowCheck();
    cut.add(batchOf(1, 7, [0, 1]));
    assert.throws(() => cut.end(), /2 rows instead of/);
    assert.throws(() => cut.add(batchOf(2, 7, [0])), /2 rows instead of/);
    assert.throws(() => new RowCheck().add(batchOf(1, 8, [0, 1], [7, 7])), /name is "version 8 of row 0" instead/);
  });
});

test('the check of generations takes what was published together, and nothing else', async () => {
  await using lake = await SoakLake.create();
  const seenWith = (...versions: number[]): SeenVersions => versions.map((version, file) => [file, version]);
  const first = upTo(FILES).map((file) => file + 1);
  const began = Date.now();
  // longer than a look at the folder may take, so that it is known what each has found
  await sleep(200);
  await lake.rewrite([0, 1]);
  await sleep(200);
  lake.published(Date.now());
  const second = [FILES + 1, FILES + 2, ...first.slice(2)];
  const complaint = (seen: SeenVersions, isWhole = true) => lake.complaint(seen, began, Date.now(), isWhole);
  assert.equal(complaint(seenWith(...first)), undefined);
  assert.equal(complaint(seenWith(...second)), undefined);
  assert.equal(complaint(seenWith(...second.slice(0, 2)), false), undefined);
  assert.match(complaint(seenWith(FILES + 1, ...first.slice(1)))!, /no generation of that time has moving-0/);
  assert.match(complaint(seenWith(first[0]!, FILES + 2), false)!, /no generation/);
  assert.match(complaint(seenWith(...second.slice(1)))!, /5 of 6 files/);
  assert.match(lake.complaint(seenWith(...second), began, began, true)!, /no generation/, 'not published yet');
});
