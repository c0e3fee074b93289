import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chooseColumns } from '../columns.ts';
import { FetchError } from '../errors.ts';
import { modelMetadata } from './metadata-model.ts';

const FILE = modelMetadata(
  ['id', 'Name', 'NAME', 'point.x', 'point.y', 'deep.er.z', 'l_shipdate'].map((name) => ({ name, bytes: 8 })),
  [10],
);
const choose = (...names: string[]) => chooseColumns(FILE, names).map((leaf) => leaf.name);

test('names choose leaves in the order they are asked for', () => {
  assert.equal(chooseColumns(FILE, undefined), FILE.leaves);
  assert.deepEqual(choose('l_shipdate', 'id'), ['l_shipdate', 'id']);
  assert.deepEqual(choose('point'), ['point.x', 'point.y']);
  assert.deepEqual(choose('point.y', 'point'), ['point.y', 'point.x']);
  assert.deepEqual(choose('deep'), ['deep.er.z']);
  assert.deepEqual(choose('deep.er'), ['deep.er.z']);
  assert.deepEqual(choose('id', 'id'), ['id']);
  assert.deepEqual(choose(), []);
});

test('exact first, then other letter case when there is one', () => {
  assert.deepEqual(choose('Name'), ['Name']);
  assert.deepEqual(choose('ID', 'POINT'), ['id', 'point.x', 'point.y']);
  assert.throws(() => choose('name'), /column "name" could be "Name" or "NAME"/);
});

test('a name the file does not have is an error that helps', () => {
  const refuses = (name: string, reason: RegExp) =>
    assert.throws(
      () => choose(name),
      (error) => error instanceof FetchError && error.code === 'COLUMN' && reason.test(error.message),
    );
  refuses('l_shipdat', /no column "l_shipdat"; did you mean "l_shipdate"\? columns are "id", "Name", "NAME"/);
  refuses('L_SHIPDTAE', /did you mean "l_shipdate"/);
  refuses('point.z', /did you mean "point.x"/);
  refuses('something else', /columns are "id", "Name", "NAME", "point", "point.x"/);
  refuses('', /no column ""/);
  // two letters of four, or the only one: another word
  for (const far of ['Ndme2', 'x', 'ie']) refuses(far, /^fetch COLUMN: no column "\w+"; columns are /);
  refuses('__proto__', /no column "__proto__"/);
});

test('the names of a wide or hostile file are cut', () => {
  const wide = modelMetadata(
    Array.from({ length: 1000 }, (_, k) => ({ name: k === 0 ? 'x'.repeat(100_000) : `c${k}`, bytes: 8 })),
    [10],
  );
  const { message } = assertThrown(() => chooseColumns(wide, ['nothing like it']));
  assert.ok(message.length < 600, message);
  assert.match(message, /"c1", "c2", .*, … \(9\d\d more\)$/);
});

function assertThrown(act: () => unknown): Error {
  try {
    act();
  } catch (error) {
    return error as Error;
  }
  return assert.fail('nothing was thrown');
}

test('columns of the same name are chosen together', () => {
  const twice = modelMetadata([{ name: 'a', bytes: 8 }], [10]);
  const [leaf] = twice.leaves;
  const other = { ...leaf!, index: 1 };
  const second = { ...twice.root.children[0]!, leaf: other, leafRange: { start: 1, end: 2 } };
  const root = { ...twice.root, children: [...twice.root.children, second] };
  assert.deepEqual(
    chooseColumns({ ...twice, root, leaves: [leaf!, other] }, ['a']).map((one) => one.index),
    [0, 1],
  );
});
