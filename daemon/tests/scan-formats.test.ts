/** Arrow streams, counts, checksums and plans of the real command, over rdma:// from a real server. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { DuckDBInstance } from '@duckdb/node-api';
import { DataType, tableFromIPC } from 'apache-arrow';
import { qanat, qanatServe, type Server } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';

const ROWS = 30_000;

let lake: Lake;
let server: Server;
let url: string;

before(async () => {
  lake = await Lake.create();
  await lake.write('numbers.parquet', numbersQuery(ROWS), 'row_group_size 4096');
  await lake.write('more.parquet', numbersQuery(1000));
  server = await qanatServe([lake.folder]);
  url = `rdma://${server.ready.rdma}`;
});
after(async () => {
  await server.stop();
  await lake[Symbol.asyncDispose]();
});

async function duckdb(sql: string): Promise<unknown[][]> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    return (await connection.runAndReadAll(sql)).getRows();
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

describe('arrow', () => {
  test('a stream holds the rows and the types that DuckDB reads', async () => {
    const { code, stdout, errors } = await qanat(['scan', `${url}/numbers.parquet`, '--format', 'arrow']);
    assert.equal(errors, '');
    assert.equal(code, 0);
    const table = tableFromIPC(stdout);
    assert.equal(table.numRows, ROWS);
    assert.deepEqual(
      table.schema.fields.map(({ name, type }) => `${name} ${type}`),
      ['id Int64', 'n Int32', 'd Float64', 'name Utf8', 'note Utf8', 'flag Bool'],
    );
    const rows = await duckdb(
      `select * from read_parquet('${lake.path('numbers.parquet')}', file_row_number = true) order by file_row_number`,
    );
    for (const [k, field] of table.schema.fields.entries()) {
      const values = table.getChild(field.name)!;
      for (const [r, row] of rows.entries()) assert.equal(values.get(r), row[k], `${field.name} of row ${r}`);
    }
  });

  test('dictionaries that change from row group to row group read back as the same values', async () => {
    // each row group has texts of its own
    const file = await lake.write(
      'changing.parquet',
      `select 'group ' || (i // 3000) || ' entry ' || (i % 7) as t, case when i % 5 = 0 then null else 'x' || i % 3 end as u from range(12000) r(i)`,
      'row_group_size 3000',
    );
    const plain = await qanat(['scan', file, '--format', 'arrow']);
    const encoded = await qanat(['scan', file, '--format', 'arrow', '--dictionary', '--batch-rows', '1000']);
    const [expected, table] = [tableFromIPC(plain.stdout), tableFromIPC(encoded.stdout)];
    assert.ok(table.schema.fields.every(({ type }) => DataType.isDictionary(type)));
    assert.equal(table.numRows, expected.numRows);
    for (const name of ['t', 'u']) {
      assert.deepEqual([...table.getChild(name)!], [...expected.getChild(name)!]);
    }
  });

  test('no rows are a schema, and an end of the stream', async () => {
    const { stdout } = await qanat(['scan', `${url}/numbers.parquet`, '--format', 'arrow', '--limit', '0']);
    const table = tableFromIPC(stdout);
    assert.equal(table.numRows, 0);
    assert.equal(table.schema.fields.length, 6);
    assert.deepEqual([...stdout.subarray(-8)], [255, 255, 255, 255, 0, 0, 0, 0]);
  });

  test('a table in a file is complete, elsewhere it is a look', async () => {
    const out = lake.path('out.txt');
    const table = ['scan', `${url}/more.parquet`, '--format', 'table', '--columns', 'id, n'];
    assert.equal((await qanat([...table, '-o', out])).errors, '');
    assert.equal((await readFile(out, 'utf8')).split('\n').length, 1000 + 3);
    const look = await qanat(table);
    assert.equal(look.text.split('\n').length, 40 + 3);
    assert.equal(look.errors, 'first 40 rows: --limit shows more, --format csv all\n');
  });

  test('the format follows the ending of the file', async () => {
    const out = lake.path('out.arrows');
    const { code, text } = await qanat(['scan', `${url}/numbers.parquet`, '-o', out, '--columns', 'id']);
    assert.equal(code, 0);
    assert.equal(text, '');
    assert.equal(tableFromIPC(await readFile(out)).numRows, ROWS);
  });
});

describe('count', () => {
  test('answers from footers alone', async () => {
    const { code, text, errors } = await qanat(['scan', url, '--format', 'count', '--json', '--stats']);
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(text), { rows: ROWS + 1000, files: 2 });
    const report = JSON.parse(errors);
    assert.equal(report.requests, 0);
    assert.equal(report.footerRequests, 2);
    assert.equal(report.bytes.used, 0);
    assert.equal(report.bytes.metadata, report.bytes.onWire);
  });

  test('its report is of footers', async () => {
    const { errors } = await qanat(['scan', url, '--format', 'count', '--stats']);
    assert.match(errors, /^rows +31,000, no data was read\n/);
    assert.doesNotMatch(errors, /rows\/s|decoding/);
  });

  test('stops at the limit; knows its columns', async () => {
    assert.equal((await qanat(['scan', url, '--format', 'count', '--limit', '7'])).text, '7\n');
    const wrong = await qanat(['scan', url, '--format', 'count', '--columns', 'nme']);
    assert.equal(wrong.code, 1);
    assert.match(wrong.errors, /COLUMN: more.parquet: no column "nme"; did you mean "name"\? columns are "id", "n", /);
  });
});

describe('checksum', () => {
  test('is that of the canonical texts, as DuckDB makes them', async () => {
    const { code, text } = await qanat([
      'scan',
      `${url}/numbers.parquet`,
      '--format',
      'checksum',
      '--json',
      '--columns',
      'id,n,name,flag',
    ]);
    assert.equal(code, 0);
    const hash = (sql: string): string =>
      `sha256(string_agg(coalesce(${sql}, 'null') || chr(10), '' order by file_row_number))`;
    const [expected] = await duckdb(
      `select ${['id::varchar', 'n::varchar', 'to_json(name)::varchar', 'flag::varchar'].map(hash).join(', ')}
       from read_parquet('${lake.path('numbers.parquet')}', file_row_number = true)`,
    );
    const { rows, columns } = JSON.parse(text) as {
      rows: number;
      columns: { name: string; sha256: string; nulls: number; rows: number }[];
    };
    assert.equal(rows, ROWS);
    assert.deepEqual(
      columns.map(({ sha256 }) => sha256),
      expected,
    );
    assert.deepEqual(
      columns.map((column) => [column.name, column.rows, column.nulls]),
      ['id', 'n', 'name', 'flag'].map((name) => [name, ROWS, 0]),
    );
  });

  test('does not depend on batches, gaps, depth or memory; a line for each column', async () => {
    const scan = ['scan', `${url}/numbers.parquet`, '--format', 'checksum'];
    const plain = await qanat(scan);
    assert.match(plain.text, /^[0-9a-f]{64} {2}30000 rows {2}10000 nulls {2}d$/m);
    const options = [
      ['--batch-rows', '999', '--max-gap', '0', '--prefetch-depth', '1'],
      ['--max-gap', '8MiB', '--prefetch-depth', 'auto', '--decoders', '3', '--memory', '32MiB'],
      ['--dictionary', '--connections', '2', '--no-verify-checksums'],
    ];
    for (const more of options) {
      const { text, errors } = await qanat([...scan, ...more]);
      assert.equal(text, plain.text, `${more.join(' ')} ${errors}`);
    }
  });
});

describe('explain', () => {
  test('prints the plan and reads the footer alone', async () => {
    const { code, text } = await qanat([
      'scan',
      `${url}/numbers.parquet`,
      '--columns',
      'n,flag',
      '--explain',
      '--json',
      '--max-gap',
      '0',
      '--limit',
      '5000',
    ]);
    assert.equal(code, 0);
    const plan = JSON.parse(text);
    assert.deepEqual(Object.keys(plan).slice(0, 5), ['file', 'fileBytes', 'rows', 'files', 'totals']);
    assert.deepEqual(plan.columns, [
      { index: 1, name: 'n' },
      { index: 5, name: 'flag' },
    ]);
    assert.equal(plan.rowGroups.length, 2);
    assert.equal(plan.totals.requests, 4);
    assert.equal(plan.totals.bytesGap, 0);
    assert.equal(plan.policy.gapBytesMax, 0);
    const needed = plan.rowGroups.flatMap(
      (group: { chunks: { bytes: { start: number; end: number } }[] }) => group.chunks,
    );
    assert.equal(
      plan.totals.bytesNeeded,
      needed.reduce(
        (sum: number, chunk: { bytes: { start: number; end: number } }) => sum + chunk.bytes.end - chunk.bytes.start,
        0,
      ),
    );
    assert.equal(plan.totals.bytesRequested, plan.totals.bytesNeeded);
  });

  test('for people: totals, then row groups', async () => {
    const { text, code } = await qanat(['scan', url, '--columns', 'n,id', '--explain', '--max-gap', '0']);
    assert.equal(code, 0);
    assert.match(text, /^file +more\.parquet, the first of 2 files$/m);
    assert.match(text, /^columns +2: n, id$/m);
    assert.match(text, /^rows +1,000; 1 row group to read, batches of [\d,]+ rows$/m);
    assert.match(text, /^requests +1, /m);
    assert.match(text, /^ +0 +1,000 +1 .*0 B$/m);
    assert.match(text, /--json shows every request\n$/);
  });

  test('what a scan then asks for is what was explained', async () => {
    const scan = ['scan', `${url}/numbers.parquet`, '--columns', 'n,flag', '--max-gap', '4KiB', '--json'];
    const { totals } = JSON.parse((await qanat([...scan, '--explain'])).text);
    const report = JSON.parse((await qanat([...scan, '--stats', '--format', 'checksum'])).errors);
    assert.equal(report.requests, totals.requests);
    assert.equal(report.bytes.used, totals.bytesNeeded);
    assert.equal(report.bytes.wasted.gap, totals.bytesGap);
  });

  test('--stats says where the time of each decoder went and what was decoded', async () => {
    const scan = ['scan', `${url}/numbers.parquet`, '--decoders', '2', '--stats', '--format', 'checksum'];
    const { decoders, encodings, codecs } = JSON.parse((await qanat([...scan, '--json'])).errors);
    assert.equal(decoders.length, 2);
    for (const { utilisation, busyMs, starvedMs, stalledMs, idleMs } of decoders) {
      assert.ok(Math.abs(utilisation - busyMs / (busyMs + starvedMs + stalledMs + idleMs)) < 1e-9);
    }
    const values = (counts: Record<string, { values: number }>): number =>
      Object.values(counts).reduce((sum, one) => sum + one.values, 0);
    assert.equal(values(encodings), values(codecs));
    const { errors } = await qanat(scan);
    assert.match(errors, /^decoded +[\d,]+ [A-Z_]+/m);
    assert.match(
      errors,
      /^decoder +busy +starved +stalled +idle +lines in +lines out\n +0( +\d+ %){4}( +[\d,]+){2}\n +1 /m,
    );
  });
});
