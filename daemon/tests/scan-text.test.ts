/** CSV, NDJSON and tables of the real command, over every flat type, against what DuckDB reads in the same file. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { ALL_TYPES, allTypesQuery, expectedTexts, sameText } from './all-types.ts';
import { qanat } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';

const ROWS = 5000;
const SEED = Number(process.env.QANAT_SEED ?? Math.floor(Math.random() * 2 ** 31));

let lake: Lake;
let file: string;
let expected: (string | null)[][];

before(async () => {
  console.log(`QANAT_SEED=${SEED}`);
  lake = await Lake.create();
  file = await lake.write('types.parquet', allTypesQuery(ROWS, SEED), 'row_group_size 2048');
  expected = await expectedTexts(file);
});
after(() => lake[Symbol.asyncDispose]());

/** RFC 4180: fields in rows; a field without quotes that is empty is a null. */
function parseCsv(text: string): (string | null)[][] {
  const rows: (string | null)[][] = [];
  const field = /("(?:[^"]|"")*"|[^",\n\r]*)(,|\n)/y;
  let row: (string | null)[] = [];
  while (field.lastIndex < text.length) {
    const at = field.lastIndex;
    const match = field.exec(text);
    assert.ok(match, `no CSV at ${at}: ${JSON.stringify(text.slice(at, at + 80))}`);
    const [, value = '', end] = match;
    row.push(value === '' ? null : value.startsWith('"') ? value.slice(1, -1).replaceAll('""', '"') : value);
    if (end === '\n') {
      rows.push(row);
      row = [];
    }
  }
  assert.equal(row.length, 0);
  return rows;
}

function assertTexts(rows: readonly (readonly (string | null)[])[]): void {
  assert.equal(rows.length, expected.length);
  for (const [r, row] of rows.entries()) {
    assert.equal(row.length, ALL_TYPES.length);
    for (const [k, type] of ALL_TYPES.entries()) {
      const [ours, theirs] = [row[k]!, expected[r]![k]!];
      assert.ok(
        sameText(type, ours, theirs),
        `row ${r}, ${type.name}: ${JSON.stringify(ours)}, DuckDB ${JSON.stringify(theirs)}`,
      );
    }
  }
}

describe('every flat type', () => {
  test('the table has its edges, nulls and random values', () => {
    assert.equal(expected.length, ROWS);
    for (const [k, { name }] of ALL_TYPES.entries()) {
      assert.ok(
        expected.some((row) => row[k] === null),
        name,
      );
      assert.ok(new Set(expected.map((row) => row[k])).size > 2, name);
    }
  });

  test('as CSV', async () => {
    const { code, text, errors } = await qanat(['scan', file, '--format', 'csv']);
    assert.equal(errors, '');
    assert.equal(code, 0);
    const [header, ...rows] = parseCsv(text);
    assert.deepEqual(
      header,
      ALL_TYPES.map(({ name }) => name),
    );
    assertTexts(rows);
  });

  test('as NDJSON, numbers with all their digits', async () => {
    const { code, text } = await qanat(['scan', file, '--format', 'ndjson']);
    assert.equal(code, 0);
    assert.ok(text.endsWith('\n'));
    const rows = text
      .slice(0, -1)
      .split('\n')
      .map((line) => {
        const row: (string | null)[] = [];
        // The texts of numbers, not their values: a double does not hold them.
        const reviver = function (this: unknown, key: string, value: unknown, context: { source?: string }): unknown {
          const k = ALL_TYPES.findIndex(({ name }) => name === key);
          if (k < 0) return value;
          const type = ALL_TYPES[k]!;
          if (value === null) row[k] = null;
          else if (typeof value === 'string') {
            assert.ok(!type.bare, `${key} is a text`);
            row[k] = value;
          } else {
            assert.ok(type.bare || type.float !== undefined, `${key} is bare`);
            row[k] = context.source!;
          }
          return value;
        };
        const object = JSON.parse(line, reviver as (this: unknown, key: string, value: unknown) => unknown);
        assert.equal(Object.keys(object).length, ALL_TYPES.length);
        return row;
      });
    assertTexts(rows);
  });

  test('as a table that shows control characters and cuts long values', async () => {
    const { code, text } = await qanat(['scan', file, '--format', 'table', '--columns', 'text,bigint', '--limit', '9']);
    assert.equal(code, 0);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
    assert.doesNotMatch(text, /[\x00-\x09\x0b-\x1f]/);
    assert.match(text, /line\\nfeed\\r/);
    assert.match(text, /…/);
    assert.match(text, /NULL/);
    const lines = text.trimEnd().split('\n');
    assert.equal(lines.length, 2 + 9);
    assert.match(lines[0]!, /^text +bigint$/);
    assert.match(lines[2]!, / -9223372036854775808$/);
  });
});

describe('what is written', () => {
  test('columns in the order asked, rows up to the limit, over files of a glob', async () => {
    await using parts = await Lake.create();
    await parts.write('a.parquet', numbersQuery(100));
    await parts.write('b.parquet', numbersQuery(50));
    const all = await qanat([
      'scan',
      `${parts.folder}/*.parquet`,
      '--columns',
      'note',
      '--columns',
      'id',
      '--format',
      'csv',
    ]);
    const lines = all.text.trimEnd().split('\n');
    assert.equal(lines[0], 'note,id');
    assert.equal(lines.length, 1 + 150);
    assert.equal(lines[101], '0,0');
    const some = await qanat(['scan', parts.folder, '--limit', '120', '--columns', 'id', '--format', 'csv']);
    assert.deepEqual(some.text.trimEnd().split('\n'), [
      'id',
      ...lines.slice(1, 121).map((line) => line.split(',')[1]!),
    ]);
    const none = await qanat(['scan', parts.folder, '--limit', '0', '--format', 'csv']);
    assert.equal(none.text, `${(await qanat(['scan', parts.folder, '--format', 'csv'])).text.split('\n')[0]}\n`);
  });

  test('a value larger than a buffer, and rows that just fit', async () => {
    await using big = await Lake.create();
    const long = await big.write('long.parquet', `select i, repeat('"x,\n', 100000 * i) as t from range(4) r(i)`);
    const { text } = await qanat(['scan', long, '--format', 'csv']);
    assert.deepEqual(
      parseCsv(text).slice(1),
      [0, 1, 2, 3].map((i) => [String(i), '"x,\n'.repeat(100_000 * i)]),
    );
    const json = await qanat(['scan', long, '--format', 'ndjson']);
    assert.deepEqual(
      json.text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line).t.length),
      [0, 400_000, 800_000, 1_200_000],
    );
  });

  test('standard output holds nothing but JSON with --json', async () => {
    const rows = await qanat(['scan', file, '--json', '--limit', '10', '--columns', 'bigint', '--stats']);
    assert.equal(
      rows.text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)).length,
      10,
    );
    assert.equal(JSON.parse(rows.errors).rows, 10);
    const out = lake.path('out.csv');
    const report = JSON.parse((await qanat(['scan', file, '--json', '-o', out])).text);
    assert.equal(report.rows, ROWS);
    assert.equal(report.format, 'csv');
    assert.equal(report.bytes.accounted, report.bytes.onWire);
  });

  test('nested values are JSON: objects, arrays, and maps as arrays of pairs', async () => {
    const nested = await lake.write(
      'nested.parquet',
      `select i as id, [i, null] as list, {'a': i / 2.0, 'b': 'x"y'} as s, map {'k': [i]} as m from range(2) t(i)`,
    );
    const ndjson = await qanat(['scan', nested, '--format', 'ndjson']);
    assert.equal(
      ndjson.text,
      '{"id":0,"list":[0,null],"s":{"a":0,"b":"x\\"y"},"m":[{"key":"k","value":[0]}]}\n' +
        '{"id":1,"list":[1,null],"s":{"a":0.5,"b":"x\\"y"},"m":[{"key":"k","value":[1]}]}\n',
    );
    const csv = await qanat(['scan', nested, '--format', 'csv', '--columns', 'id,list,s.a,m', '--limit', '1']);
    assert.equal(csv.text, 'id,list,s,m\n0,"[0,null]","{""a"":0}","[{""key"":""k"",""value"":[0]}]"\n');
  });
});
