/** serve, ls, inspect and cp: a server process and what its clients see of the files. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { DuckDBInstance } from '@duckdb/node-api';
import { qanat, qanatServe, type Server } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';
import { until } from './mount-rig.ts';

let lake: Lake;
let server: Server;
let url: string;

before(async () => {
  lake = await Lake.create();
  await mkdir(lake.path('year=2024'));
  await lake.write('year=2024/a.parquet', numbersQuery(20_000));
  await lake.write(
    'flat.parquet',
    `select i::bigint as id, (i / 100.0)::decimal(9,2) as price, date '2024-01-01' + i::int as day, 'n' || i as name, i % 2 = 0 as flag, case when i < 3 then null else i::uinteger end as u from range(50) t(i)`,
  );
  await writeFile(lake.path('notes.txt'), 'no Parquet\n');
  server = await qanatServe([lake.folder, '--align', '4KiB']);
  url = `rdma://${server.ready.rdma}`;
});
after(async () => {
  await server.stop();
  await lake[Symbol.asyncDispose]();
});

describe('serve', () => {
  test('says in one line what and where, and what it skipped in its log', async () => {
    const { event, files, bytes, generation, pid } = server.ready;
    assert.equal(event, 'ready');
    assert.doesNotThrow(() => process.kill(Number(pid), 0));
    assert.equal(files, 2);
    assert.equal(typeof bytes, 'number');
    assert.match(String(generation), /^[0-9a-f]{16,}$/);
    await until(() => /skipped: notes\.txt: it is not named as Parquet/.test(server.errors()), 'what was skipped');
  });

  test('SIGTERM ends it with 0 and nothing more on standard output', async () => {
    const other = await qanatServe([lake.folder, '--all']);
    assert.equal(other.ready.files, 3);
    assert.deepEqual(await other.stop(), { code: 0, lines: [] });
    assert.match(other.errors(), /stopped after 0 connections/);
  });

  test('a folder that is not there, and an address in use, are told with 1', async () => {
    const missing = await qanat(['serve', lake.path('nothing'), '--listen', '127.0.0.1:0', '--http', 'none']);
    assert.equal(missing.code, 1);
    assert.match(missing.errors, /^qanat serve: serve ROOT: \/.*\/nothing does not exist\n$/);
    const taken = await qanat(['serve', lake.folder, '--listen', server.ready.rdma, '--http', 'none']);
    assert.equal(taken.code, 1);
    assert.match(
      taken.errors,
      /^[^\n]*skipped: [^\n]*\nqanat serve: serve LISTEN: [\d.:]+: the address is in use \(EADDRINUSE\): choose another with --listen, [^\n]*\n$/,
    );
  });

  test('nothing to serve is served with a warning', async () => {
    await using empty = await Lake.create();
    await writeFile(empty.path('.hidden.parquet'), '');
    const other = await qanatServe([empty.folder]);
    assert.equal(other.ready.files, 0);
    await other.stop();
    assert.match(other.errors(), /skipped: \.hidden\.parquet: it is hidden/);
    assert.match(other.errors(), /no file to serve in \/.*\(--all serves files of any name\)/);
  });

  test('a file that was changed says what to do', async () => {
    await using changing = await Lake.create();
    await changing.write('t.parquet', numbersQuery(10));
    const other = await qanatServe([changing.folder]);
    try {
      await changing.write('t.parquet', numbersQuery(20));
      const { code, errors } = await qanat(['scan', `rdma://${other.ready.rdma}/t.parquet`]);
      assert.equal(code, 1);
      assert.match(
        errors,
        /^qanat scan: fetch STALE: t\.parquet: the file has changed since it was published: a SIGHUP .*--watch by itself\n$/,
      );
      await changing.write('new.parquet', numbersQuery(20));
      const added = await qanat(['ls', `rdma://${other.ready.rdma}/new.parquet`]);
      assert.match(added.errors, /NOT_FOUND: .*a server serves what it published last/);
    } finally {
      await other.stop();
    }
  });
});

describe('ls', () => {
  test('for people and as JSON', async () => {
    const { text, code } = await qanat(['ls', url]);
    assert.equal(code, 0);
    assert.match(text, /^ *[\d.]+ KiB {2}\d{4}-\d\d-\d\d \d\d:\d\d {2}flat\.parquet$/m);
    const files = JSON.parse((await qanat(['ls', `${url}/year=*/*.parquet`, '--json'])).text);
    assert.equal(files.length, 1);
    assert.equal(files[0].path, 'year=2024/a.parquet');
    assert.equal(files[0].location, `${url}/year=2024/a.parquet`);
    assert.equal(files[0].bytes, (await readFile(lake.path('year=2024/a.parquet'))).length);
    assert.ok(Math.abs(Date.parse(files[0].modified) - Date.now()) < 3_600_000);
  });

  test('local files are shown as they can be given again', async () => {
    const at = async (cwd: string, location: string): Promise<string[]> => {
      const { text } = await qanat(['ls', location], { cwd });
      return text
        .trimEnd()
        .split('\n')
        .map((line) => line.split('  ').at(-1)!);
    };
    assert.deepEqual(await at(lake.folder, '.'), ['flat.parquet', 'year=2024/a.parquet']);
    assert.deepEqual(await at(lake.path('year=2024'), '..'), ['../flat.parquet', 'a.parquet']);
    assert.deepEqual(await at('/', lake.path('year=2024')), [lake.path('year=2024/a.parquet')]);
    const json = JSON.parse((await qanat(['ls', 'year=2024', '--json'], { cwd: lake.folder })).text);
    assert.equal(json[0].location, lake.path('year=2024/a.parquet'));
  });

  test('files that are no Parquet by name are counted, and listed by a glob', async () => {
    const other = await qanatServe([lake.folder, '--all']);
    try {
      const all = `rdma://${other.ready.rdma}`;
      const { text, errors } = await qanat(['ls', `${all}/`]);
      assert.equal(text.trimEnd().split('\n').length, 2);
      assert.equal(errors, `1 file more, not named as Parquet: qanat ls '${all}/**' lists all\n`);
      assert.match((await qanat(['ls', `${all}/**`])).text, /notes\.txt$/m);
    } finally {
      await other.stop();
    }
  });

  test('nothing found is told with what there is', async () => {
    const { code, errors } = await qanat(['ls', `${url}/flut.parquet`]);
    assert.equal(code, 1);
    assert.match(errors, /no Parquet file at/);
  });
});

describe('inspect', () => {
  test("has ClickHouse's fields, and DuckDB's numbers in them", async () => {
    const { text, code } = await qanat(['inspect', `${url}/flat.parquet`, '--json']);
    assert.equal(code, 0);
    const metadata = JSON.parse(text);
    assert.deepEqual(Object.keys(metadata), [
      'num_columns',
      'num_rows',
      'num_row_groups',
      'format_version',
      'metadata_size',
      'total_uncompressed_size',
      'total_compressed_size',
      'columns',
      'row_groups',
    ]);
    assert.deepEqual(Object.keys(metadata.columns[0]), [
      'name',
      'path',
      'max_definition_level',
      'max_repetition_level',
      'physical_type',
      'logical_type',
      'compression',
      'total_uncompressed_size',
      'total_compressed_size',
      'space_saved',
      'encodings',
    ]);
    assert.deepEqual(Object.keys(metadata.row_groups[0]), [
      'file_offset',
      'num_columns',
      'num_rows',
      'total_uncompressed_size',
      'total_compressed_size',
      'columns',
    ]);
    assert.deepEqual(Object.keys(metadata.row_groups[0].columns[0]), [
      'name',
      'path',
      'total_compressed_size',
      'total_uncompressed_size',
      'have_statistics',
      'statistics',
      'bloom_filter_bytes',
    ]);
    assert.equal(metadata.num_rows, 50);
    assert.equal(metadata.num_columns, 6);
    assert.match(metadata.columns[0].space_saved, /^-?\d+\.\d\d%$/);
    assert.deepEqual(
      metadata.columns.map((column: { logical_type: string }) => column.logical_type),
      [
        'Int(bitWidth=64, isSigned=true)',
        'Decimal(precision=9, scale=2)',
        'Date',
        'String',
        'None',
        'Int(bitWidth=32, isSigned=false)',
      ],
    );
    const chunks = metadata.row_groups[0].columns as {
      total_compressed_size: number;
      total_uncompressed_size: number;
      statistics: Record<string, unknown>;
    }[];
    assert.deepEqual(
      chunks.map(({ statistics }) => [statistics.min, statistics.max]),
      [
        ['0', '49'],
        ['0.00', '0.49'],
        ['2024-01-01', '2024-02-19'],
        ['n0', 'n9'],
        ['false', 'true'],
        ['3', '49'],
      ],
    );
    assert.deepEqual([chunks[5]!.statistics.num_values, chunks[5]!.statistics.null_count], [47, 3]);
    const instance = await DuckDBInstance.create(':memory:');
    const connection = await instance.connect();
    const reader = await connection.runAndReadAll(
      `select total_compressed_size::int, total_uncompressed_size::int from parquet_metadata('${lake.path('flat.parquet')}') order by column_id`,
    );
    assert.deepEqual(
      chunks.map((chunk) => [chunk.total_compressed_size, chunk.total_uncompressed_size]),
      reader.getRows(),
    );
    connection.closeSync();
    instance.closeSync();
  });

  test('for people; of one file only', async () => {
    const { text } = await qanat(['inspect', `${url}/flat.parquet`]);
    assert.match(text, /^rows +50 in 1 row group$/m);
    assert.match(text, /^price +INT32 +Decimal\(9, 2\) +yes +SNAPPY +PLAIN.* 0\.00 +0\.49$/m);
    const several = await qanat(['inspect', url]);
    assert.equal(several.code, 2);
    assert.match(several.errors, /2 files: name one, such as flat\.parquet/);
  });

  test('an empty text is a bound, and small sizes are told once', async () => {
    const file = await lake.write('tiny.parquet', "select * from (values ('', 'b'), ('a', '')) t(t, u)");
    const { text } = await qanat(['inspect', file]);
    assert.match(text, /^t .* "" +a$/m);
    assert.match(text, /^size +\d+ bytes, footer/m);
    assert.match(text, new RegExp(`^file +${file}$`, 'm'));
  });

  test('what is no Parquet is told', async () => {
    const { code, errors } = await qanat(['inspect', lake.path('notes.txt')]);
    assert.equal(code, 1);
    assert.match(errors, /^qanat inspect: decode [A-Z]+: .*notes\.txt/);
  });
});

describe('cp', () => {
  const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

  test('exact bytes, to a file, into a folder, to standard output', async () => {
    await using target = await Lake.create();
    const original = sha256(await readFile(lake.path('year=2024/a.parquet')));
    const from = `${url}/year=2024/a.parquet`;
    const named = await qanat(['cp', from, target.path('copy.parquet'), '--json']);
    assert.equal(named.errors, '');
    assert.equal(JSON.parse(named.text).output, target.path('copy.parquet'));
    assert.equal((await qanat(['cp', from, target.folder])).code, 0);
    assert.deepEqual((await readdir(target.folder)).sort(), ['a.parquet', 'copy.parquet']);
    for (const name of ['a.parquet', 'copy.parquet']) assert.equal(sha256(await readFile(target.path(name))), original);
    assert.equal(sha256((await qanat(['cp', from, '-'])).stdout), original);
  });

  test('files of many reads, and of none', async () => {
    await using both = await Lake.create();
    const large = Buffer.alloc(21_000_001, 'qanat ');
    await writeFile(both.path('large'), large);
    await writeFile(both.path('none'), '');
    const all = await qanatServe([both.folder, '--all']);
    try {
      for (const name of ['large', 'none']) {
        const { code, errors } = await qanat(['cp', `rdma://${all.ready.rdma}/${name}`, both.path(`${name}.copy`)]);
        assert.equal(errors, '');
        assert.equal(code, 0);
      }
    } finally {
      await all.stop();
    }
    assert.equal(sha256(await readFile(both.path('large.copy'))), sha256(large));
    assert.equal((await readFile(both.path('none.copy'))).length, 0);
  });

  test('a target that can not be written leaves what was there', async () => {
    const { code, errors } = await qanat(['cp', `${url}/flat.parquet`, join(lake.folder, 'no', 'such', 'folder', 'x')]);
    assert.equal(code, 1);
    assert.match(errors, /^qanat cp: can't write to .*\/x: the folder \/.*\/no\/such\/folder does not exist\n$/);
    await using target = await Lake.create();
    await writeFile(target.path('kept.parquet'), 'as it was');
    const missing = await qanat(['cp', `${url}/missing.parquet`, target.path('kept.parquet')]);
    assert.equal(missing.code, 1);
    assert.equal(await readFile(target.path('kept.parquet'), 'utf8'), 'as it was');
    assert.deepEqual(await readdir(target.folder), ['kept.parquet']);
  });
});

test('a file is not copied onto itself', async () => {
  const before = await readFile(lake.path('flat.parquet'));
  await symlink('flat.parquet', lake.path('link.parquet'));
  for (const target of ['flat.parquet', 'link.parquet', '.']) {
    const { code, errors } = await qanat(['cp', 'flat.parquet', target], { cwd: lake.folder });
    assert.equal(code, 2);
    assert.match(
      errors,
      /^qanat cp: flat\.parquet(, which is read, and .* are the same file| is read): name another file to write to\n$/,
    );
  }
  await rm(lake.path('link.parquet'));
  assert.ok(before.equals(await readFile(lake.path('flat.parquet'))));
});

describe('bounds over row groups', () => {
  test('are those of the values, not of their texts', async () => {
    const file = await lake.write(
      'groups.parquet',
      `select (i * 7 - 9000)::bigint as n, (i - 50)::decimal(20, 2) as d, i::utinyint as u, 'v' || i as t, null::int as nothing
       from range(200) r(i)`,
      'row_group_size 64',
    );
    const { text } = await qanat(['inspect', file]);
    const row = (name: string): string[] => new RegExp(`^${name} .*$`, 'm').exec(text)![0].split(/ {2,}/);
    assert.deepEqual(row('n').slice(-2), ['-9000', '-7607']);
    assert.deepEqual(row('d').slice(-2), ['-50.00', '149.00']);
    assert.deepEqual(row('u').slice(-2), ['0', '199']);
    assert.deepEqual(row('t').slice(-2), ['v0', 'v99']);
    assert.equal(row('nothing').at(-1), '200');
  });
});

test('a local folder with an entry that can not be looked at', async () => {
  await using folder = await Lake.create();
  await folder.write('a.parquet', numbersQuery(10));
  await symlink('loop.parquet', folder.path('loop.parquet'));
  const listed = await qanat(['ls', folder.folder, '--json']);
  assert.equal(listed.code, 0);
  assert.deepEqual(
    JSON.parse(listed.text).map(({ location }: { location: string }) => location),
    [folder.path('a.parquet')],
  );
  assert.match(listed.errors, /^skipped: \/.*\/loop\.parquet: the link leads round in a circle \(ELOOP\)\n$/);
  const counted = await qanat(['scan', '.', '--format', 'count'], { cwd: folder.folder });
  assert.deepEqual([counted.code, counted.text, counted.errors], [0, '10\n', listed.errors]);
  const asked = await qanat(['scan', 'loop.parquet'], { cwd: folder.folder });
  assert.equal(asked.code, 1);
  assert.match(asked.errors, /^qanat scan: fetch STORAGE: \/.*\/loop\.parquet: the link leads round in a circle/);
});

test('--wire-checksum asks the server for checksums', async (t) => {
  const flags: number[] = [];
  const asked = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (hello: Buffer) => {
      flags.push(hello.readUInt16LE(6));
      socket.end('nothing that a client knows');
    });
  });
  await new Promise<void>((resolve) => asked.listen(0, '127.0.0.1', resolve));
  t.after(() => asked.close());
  const location = `rdma://127.0.0.1:${(asked.address() as { port: number }).port}/a.parquet`;
  for (const command of ['ls', 'inspect', 'scan', 'cp']) {
    const to = command === 'cp' ? ['-'] : [];
    assert.equal((await qanat([command, location, ...to, '--wire-checksum'])).code, 1);
  }
  await qanat(['ls', location], { env: { QANAT_WIRE_CHECKSUM: '1' } });
  await qanat(['ls', location]);
  assert.deepEqual(flags, [1, 1, 1, 1, 1, 0]);
  const counted = await qanat(['scan', `${url}/flat.parquet`, '--format', 'count', '--wire-checksum']);
  assert.equal(counted.text, '50\n');
});
