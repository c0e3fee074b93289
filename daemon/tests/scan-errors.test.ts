/** Files and servers that fail in the middle of the real command: a line that says where, 1, and no file. */
import assert from 'node:assert/strict';
import { readdirSync, statSync } from 'node:fs';
import { link, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { parquetWriteFile } from 'hyparquet-writer';
import { qanat, qanatServe } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';

let lake: Lake;
before(async () => {
  lake = await Lake.create();
});
after(() => lake[Symbol.asyncDispose]());

describe('broken files', () => {
  /** A good file with some of its bytes changed. */
  async function broken(name: string, change: (bytes: Buffer) => Buffer): Promise<string> {
    const good = await lake.write('good.parquet', numbersQuery(20_000), 'row_group_size 4096');
    await writeFile(lake.path(name), change(await readFile(good)));
    return lake.path(name);
  }

  for (const format of ['csv', 'ndjson', 'arrow', 'table', 'checksum']) {
    test(`a page that does not decode ends ${format} with its place`, async () => {
      const file = await broken('page.parquet', (bytes) => bytes.fill(0xff, 150_000, 151_000));
      await using target = await Lake.create();
      const limit = format === 'table' ? ['--limit', '100000'] : [];
      const { code, errors } = await qanat(['scan', file, '--format', format, '-o', target.path('out'), ...limit]);
      assert.equal(code, 1);
      assert.match(errors, /^qanat scan: decode [A-Z_]+: .*page\.parquet, column "\w+", row group \d+.*\n$/);
      assert.deepEqual(await readdir(target.folder), []);
    });
  }

  const footers: [what: string, change: (bytes: Buffer) => Buffer, says: RegExp][] = [
    ['cut', (bytes) => bytes.subarray(0, bytes.length - 100), /decode MAGIC: .*broken\.parquet/],
    ['encrypted', (bytes) => Buffer.concat([bytes.subarray(0, -4), Buffer.from('PARE')]), /decode ENCRYPTED: /],
    [
      'longer than the file',
      (bytes) => Buffer.concat([bytes.subarray(0, -8), Buffer.from('\0\0\0\x80PAR1', 'latin1')]),
      /decode FOOTER: /,
    ],
    ['that is noise', (bytes) => bytes.fill(0x55, bytes.length - 500, bytes.length - 8), /decode [A-Z]+: /],
    ['of an empty file', () => Buffer.alloc(0), /decode [A-Z]+: .*broken\.parquet/],
  ];
  for (const [what, change, says] of footers) {
    test(`a footer ${what}`, async () => {
      const file = await broken('broken.parquet', change);
      const commands = [
        ['scan', file],
        ['inspect', file],
        ['scan', file, '--format', 'count'],
        ['scan', file, '--explain'],
      ];
      for (const { code, text, errors } of await Promise.all(commands.map((args) => qanat(args)))) {
        assert.equal(code, 1);
        assert.equal(text, '');
        assert.match(errors, says);
        assert.equal(errors.trimEnd().split('\n').length, 1);
      }
    });
  }
});

test('a server that is killed ends a scan with 1 and without a file', async () => {
  await using big = await Lake.create();
  await using target = await Lake.create();
  // the same rows by many names: they do not all come before the server is killed, however busy the machine is
  const file = await big.write('0.parquet', numbersQuery(300_000), 'row_group_size 50000');
  for (let k = 1; k < 40; k++) await link(file, big.path(`${k}.parquet`));
  const server = await qanatServe([big.folder]);
  let killed = false;
  const { code, errors } = await qanat(
    ['scan', `rdma://${server.ready.rdma}/`, '--format', 'ndjson', '-o', target.path('out'), '--stall-timeout', '1s'],
    {
      started: () => {
        const timer = setInterval(() => {
          const [partial] = readdirSync(target.folder);
          if (partial === undefined || statSync(target.path(partial)).size === 0) return;
          clearInterval(timer);
          killed = true;
          server.kill();
        }, 2);
      },
    },
  );
  assert.ok(killed);
  assert.equal(code, 1);
  assert.match(errors, /^qanat scan: fetch [A-Z]+: .*\n$/);
  assert.deepEqual(await readdir(target.folder), []);
});

test('names that repeat and names that objects have', async () => {
  const file = lake.path('names.parquet');
  const names = ['a', '__proto__', 'a', 'constructor', 'a_1'];
  parquetWriteFile({
    filename: file,
    columnData: names.map((name, k) => ({ name, data: [k, k + 10], type: 'INT32' as const })),
  });
  const json = await qanat(['scan', file, '--format', 'ndjson']);
  assert.equal(json.text.split('\n')[1], '{"a":10,"__proto__":11,"a_2":12,"constructor":13,"a_1":14}');
  const csv = await qanat(['scan', file, '--format', 'csv']);
  assert.equal(csv.text, 'a,__proto__,a,constructor,a_1\n0,1,2,3,4\n10,11,12,13,14\n');
  const one = await qanat(['scan', file, '--columns', '__proto__', '--json', '--stats']);
  assert.equal(one.text.split('\n')[0], '{"__proto__":1}');
  assert.deepEqual(Object.keys(JSON.parse(one.errors).columnMs), ['__proto__']);
  const checksums = JSON.parse((await qanat(['scan', file, '--format', 'checksum', '--json'])).text);
  assert.deepEqual(
    checksums.columns.map(({ name }: { name: string }) => name),
    names,
  );
});

describe('one file of several', () => {
  test('that lacks a column, or has another type, is named with the one that gave it', async () => {
    await using several = await Lake.create();
    await several.write('a.parquet', 'select 1::bigint as id, 2 as n');
    await several.write('b.parquet', "select 'x' as id");
    const typed = await qanat(['scan', several.folder, '--columns', 'id']);
    assert.equal(typed.code, 1);
    assert.match(
      typed.errors,
      /decode SCHEMA: \S*b\.parquet, column "id": the column is BYTE_ARRAY String; it is one of 2 files, a glob without it scans the others \(expected INT64 Int\(64, signed\), as in \S*a\.parquet\)\n$/,
    );
    const lacking = await qanat(['scan', several.folder, '--columns', 'n']);
    assert.equal(lacking.code, 1);
    assert.match(lacking.errors, /COLUMN: \S*b\.parquet: no column "n" \(\S*a\.parquet, the first file, has it\)\n$/);
    const unknown = await qanat(['scan', several.folder, '--columns', 'm']);
    assert.match(unknown.errors, /COLUMN: \S*a\.parquet: no column "m"; columns are "id", "n"\n$/);
  });

  test('that is broken, is named with a way on', async () => {
    await using several = await Lake.create();
    await several.write('a.parquet', numbersQuery(10));
    await writeFile(several.path('b.parquet'), 'nothing like it');
    for (const format of ['csv', 'count']) {
      const { code, errors } = await qanat(['scan', several.folder, '--format', format]);
      assert.equal(code, 1);
      assert.match(errors, /decode [A-Z]+: \S*b\.parquet.*it is one of 2 files, a glob without it scans the others/);
    }
    assert.equal((await qanat(['scan', several.path('[!b]*.parquet'), '--format', 'count'])).text, '10\n');
  });
});

test('a file in a folder that is not there', async () => {
  const file = await lake.write('some.parquet', numbersQuery(10));
  const { code, errors } = await qanat(['scan', file, '-o', lake.path('no/such/x.csv')]);
  assert.equal(code, 1);
  assert.match(
    errors,
    /^qanat scan: can't write to \/.*\/no\/such\/x\.csv: the folder \/.*\/no\/such does not exist\n$/,
  );
});

test('no output replaces a file that it is made from, by whatever name', async () => {
  await using own = await Lake.create();
  const file = await own.write('x.parquet', numbersQuery(100));
  await own.write('y.parquet', numbersQuery(100));
  await link(file, own.path('hard.csv'));
  await symlink('x.parquet', own.path('soft.csv'));
  const before = await readFile(file);
  const scans: [from: string, to: string, says: RegExp][] = [
    ['x.parquet', 'x.parquet', /^qanat scan: x\.parquet is read: name another file to write to\n/],
    ['x.parquet', './x.parquet', /x\.parquet, which is read, and \.\/x\.parquet are the same file: name another/],
    ['x.parquet', own.path('hard.csv'), /x\.parquet, which is read, and \/.*hard\.csv are the same file/],
    ['.', 'soft.csv', /x\.parquet, which is read, and soft\.csv are the same file/],
    [`file://${own.folder}/*.parquet`, 'y.parquet', /y\.parquet, which is read, and y\.parquet are the same file/],
  ];
  for (const [from, to, says] of scans) {
    for (const format of ['csv', 'count']) {
      const result = await qanat(['scan', from, '--format', format, '-o', to], { cwd: own.folder });
      assert.match(result.errors, says);
      assert.equal(result.code, 2, `${from} to ${to}`);
    }
  }
  assert.ok(before.equals(await readFile(file)));
  assert.deepEqual((await readdir(own.folder)).sort(), ['hard.csv', 'soft.csv', 'x.parquet', 'y.parquet']);
  assert.equal((await qanat(['scan', 'x.parquet', '-o', 'new.csv'], { cwd: own.folder })).code, 0);
});
