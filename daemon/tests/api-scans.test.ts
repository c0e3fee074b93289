/** POST /v1/scan: what comes is what the library reads; errors have a status before the first byte and cut it after. */
import assert from 'node:assert/strict';
import { open, readFile, rename, writeFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { type RecordBatch, RecordBatchReader, Table, tableFromIPC } from 'apache-arrow';
import { scan } from '../index.ts';
import { copyBroken, TestApi, until } from './api-fixture.ts';
import { qanatServe } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';

const ROWS = 50_000;

let lake: Lake;
let api: TestApi;
before(async () => {
  lake = await Lake.create();
  await lake.write('a.parquet', numbersQuery(ROWS));
  await lake.write('b.parquet', numbersQuery(1000));
  await lake.write('none.parquet', numbersQuery(0));
  await writeFile(lake.path('noise.parquet'), Buffer.alloc(5000, 'noise'));
  await writeFile(lake.path('readme.txt'), 'no Parquet');
  api = await TestApi.start({
    lake: lake.folder,
    a: lake.path('a.parquet'),
    glob: `${lake.folder}/[ab].parquet`,
    nowhere: '/nowhere/at/all.parquet',
    away: 'rdma://127.0.0.1:1/x',
  });
});
after(async () => {
  await api[Symbol.asyncDispose]();
  await lake[Symbol.asyncDispose]();
});

/** Every column's values, whatever batches they come in. */
function valuesOf(batches: readonly RecordBatch[]): unknown[][] {
  const table = new Table([...batches]);
  return table.schema.fields.map((_, place) => [...table.getChildAt(place)!]);
}

async function libraryValues(location: string, options: Parameters<typeof scan>[1]): Promise<unknown[][]> {
  const batches: RecordBatch[] = [];
  for await (const batch of scan(location, { memoryBytes: 64 << 20, decoders: 1, ...options })) batches.push(batch);
  return valuesOf(batches);
}

describe('rows', () => {
  const requests: [what: string, body: Record<string, unknown>, location: string][] = [
    ['all of a file', { source: 'a' }, 'a.parquet'],
    ['columns in the order asked for', { source: 'a', columns: ['name', 'id'] }, 'a.parquet'],
    ['a limit', { source: 'a', limit: 12_345 }, 'a.parquet'],
    ['small batches', { source: 'a', limit: 5000, batchRows: 100 }, 'a.parquet'],
    ['dictionaries', { source: 'a', columns: ['name'], dictionary: true, limit: 9000 }, 'a.parquet'],
    ['other ways of fetching', { source: 'a', prefetchDepth: 'auto', maxGap: 0, preserveOrder: true }, 'a.parquet'],
    ['a file of a folder', { source: 'lake', path: 'b.parquet' }, 'b.parquet'],
    ['files that a glob matches', { source: 'lake', path: '[ab].*', columns: ['id'] }, '[ab].parquet'],
    ['files of a glob that a glob matches', { source: 'glob', path: 'b*' }, 'b.parquet'],
  ];
  for (const [what, { source, path, ...options }, location] of requests) {
    test(`${what}: as the library reads them`, async () => {
      const { status, headers, bytes } = await api.post({ source, path, ...options });
      assert.equal(status, 200);
      assert.equal(headers.get('content-type'), 'application/vnd.apache.arrow.stream');
      assert.equal(headers.get('cache-control'), 'no-store');
      const batches = [...RecordBatchReader.from(bytes)];
      if (options.dictionary === true) {
        // indices are the stream's own
        const names = tableFromIPC(bytes).getChildAt(0)!;
        assert.equal(names.length, 9000);
        for (const row of [0, 1, 999, 8191, 8192, 8999]) assert.equal(names.get(row), `name ${row % 1000}`);
        return;
      }
      assert.deepEqual(valuesOf(batches), await libraryValues(lake.path(location), options));
      if (options.batchRows === 100) assert.ok(batches.every(({ numRows }) => numRows <= 100));
    });
  }

  test('none: a stream with the schema and no batch', async () => {
    for (const body of [
      { source: 'lake', path: 'none.parquet' },
      { source: 'a', limit: 0 },
    ]) {
      const table = await api.table(body);
      assert.equal(table.numRows, 0);
      assert.deepEqual(
        table.schema.fields.map(({ name }) => name),
        ['id', 'n', 'd', 'name', 'note', 'flag'],
      );
    }
  });

  test('of a server, over connections that stay', async () => {
    const server = await qanatServe([lake.folder, '--http', 'none']);
    try {
      await using remote = await TestApi.start({ lake: `rdma://${server.ready.rdma}/[ab].parquet` });
      const first = await remote.table({ source: 'lake', columns: ['id'] });
      const second = await remote.table({ source: 'lake', columns: ['id'] });
      assert.equal(first.numRows, ROWS + 1000);
      assert.equal(second.numRows, ROWS + 1000);
      assert.equal(remote.log.filter((line) => line.includes('source opened')).length, 1);
      await remote.idle();
    } finally {
      await server.stop();
    }
  });

  test('of a server that publishes other files: the next scan has the new ones', async () => {
    await using published = await Lake.create();
    await published.write('t.parquet', numbersQuery(1000));
    const server = await qanatServe([published.folder]);
    try {
      await using remote = await TestApi.start({ t: `rdma://${server.ready.rdma}/` });
      assert.equal((await remote.table({ source: 't' })).numRows, 1000);
      await published.write('new.parquet', numbersQuery(2000));
      await rename(published.path('new.parquet'), published.path('t.parquet'));
      const stale = await remote.refusal({ source: 't' });
      assert.equal(`${stale.status} ${stale.code} ${stale.retryable}`, '409 STALE true');
      server.hangup();
      // that a file has changed "since it was published" is logged as well
      await until(() => server.errors().includes('published: generation'));
      assert.equal((await remote.table({ source: 't' })).numRows, 2000);
      await remote.idle();
    } finally {
      await server.stop();
    }
  });

  test('leave nothing in memory', () => api.idle());
});

describe('before the first byte an error has a status, a code and a message', () => {
  const cases: [what: string, body: unknown, status: number, code: string, says: RegExp][] = [
    ['no JSON', '{"source":', 400, 'REQUEST', /the body is no JSON/],
    ['bytes that are no text', '\ud800', 400, 'REQUEST', /no JSON/],
    ['no object', '[]', 400, 'REQUEST', /expected a JSON object, found a list/],
    ['nothing named', {}, 400, 'REQUEST', /expected either "source" or "location"/],
    ['both named', { source: 'a', location: '/x' }, 400, 'REQUEST', /expected either "source" or "location"/],
    ['a number for a name', { source: 5 }, 400, 'REQUEST', /source: expected the name of a source, found 5/],
    ['a text for columns', { source: 'a', columns: 'id' }, 400, 'REQUEST', /columns: expected a list of names/],
    ['no columns', { source: 'a', columns: [] }, 400, 'REQUEST', /expected at least one name/],
    ['a fraction', { source: 'a', limit: 1.5 }, 400, 'REQUEST', /limit: expected a whole number from 0 to/],
    ['too deep', { source: 'a', prefetchDepth: 65 }, 400, 'REQUEST', /from 1 to 64/],
    ['a text for a switch', { source: 'a', dictionary: 'yes' }, 400, 'REQUEST', /expected true or false, found "yes"/],
    ['a misspelt name', { source: 'a', prefetchdepth: 2 }, 400, 'REQUEST', /did you mean prefetchDepth\?/],
    ['an unknown name', { source: 'a', where: 'x' }, 400, 'REQUEST', /unknown name; expected one of source, /],
    ['an unknown source', { source: 'lak' }, 404, 'SOURCE', /no source "lak"; GET \/v1\/sources lists them/],
    ['a name of the prototype', { source: '__proto__' }, 404, 'SOURCE', /no source/],
    ['a path that is not there', { source: 'lake', path: 'c.parquet' }, 404, 'NOT_FOUND', /no file .* "c\.parquet"/],
    ['a path out of the source', { source: 'lake', path: '../x' }, 404, 'NOT_FOUND', /no file of the source/],
    ['no file', { source: 'nowhere' }, 404, 'NOT_FOUND', /nowhere/],
    ['an unknown column', { source: 'a', columns: ['idd'] }, 400, 'COLUMN', /no column "idd"; did you mean "id"/],
    ['no Parquet', { source: 'lake', path: 'noise.parquet' }, 422, 'MAGIC', /noise\.parquet/],
    ['a location', { location: '/etc/x.parquet' }, 403, 'LOCATION', /scans its sources only; allow-locations/],
  ];
  for (const [what, body, status, code, says] of cases) {
    test(what, async () => {
      const refusal = await api.refusal(body);
      assert.equal(refusal.status, status);
      assert.equal(refusal.code, code);
      assert.match(refusal.message, says);
      assert.equal(refusal.retryable, false);
      await api.idle();
    });
  }

  test('a server that is not there is told when it was tried long enough', async () => {
    await using away = await TestApi.start({ away: 'rdma://127.0.0.1:1/x' }, { stallTimeout: 200 });
    const { status, code } = await away.refusal({ source: 'away' });
    assert.equal(code, 'REFUSED');
    assert.equal(status, 502);
  });

  test('every mistake of a request has its path', async () => {
    const { problems } = await api.refusal({ source: 'a', limit: -1, columns: ['a', 7], batchRows: 'x' });
    assert.deepEqual(
      problems!.map(({ path }) => path),
      ['columns.1', 'limit', 'batchRows'],
    );
  });

  test('of a request of nothing but mistakes a hundred are told', async () => {
    const names = Array.from({ length: 60_000 }, (_, k) => [`k${k}`, 1]);
    const unknown = await api.refusal(Object.fromEntries(names));
    assert.equal(unknown.problems!.length, 100);
    const columns = await api.refusal({ source: 'a', columns: names.map(([, one]) => one) });
    assert.equal(columns.problems!.length, 100);
  });

  test('secrets of a request do not come back', async () => {
    await using open = await TestApi.start({}, { allowLocations: true });
    const { message, status } = await open.refusal({ location: 'rdma://me:hunter2@host/x' });
    assert.equal(status, 400);
    assert.doesNotMatch(message + open.log.join(), /hunter2/);
  });
});

test('a location is scanned where that is allowed, and its source is closed after it', async () => {
  await using open = await TestApi.start({}, { allowLocations: true });
  const table = await open.table({ location: lake.path('b.parquet'), columns: ['id'] });
  assert.equal(table.numRows, 1000);
  const relative = await open.refusal({ location: 'b.parquet' });
  assert.match(relative.message, /expected an absolute path or a URL/);
  const both = await open.refusal({ location: lake.folder, path: 'b.parquet' });
  assert.match(both.message, /path: belongs to "source"/);
  await open.idle();
});

describe('after the first byte', () => {
  test('an error breaks the connection off: no client takes the stream for whole', async () => {
    await copyBroken(lake.path('a.parquet'), lake.path('broken.parquet'));
    await using cut = await TestApi.start({ broken: lake.path('broken.parquet') });
    const response = await cut.request({ source: 'broken' });
    assert.equal(response.status, 200);
    await assert.rejects(async () => {
      for await (const _ of response.body!) {
        // what came before the error may be taken
      }
    }, /terminated|ECONNRESET/);
    await cut.idle();
    const entry = JSON.parse(cut.log.find((line) => line.includes('scan: failed'))!);
    assert.equal(entry.level, 'warn');
    assert.match(entry.err.message, /decode [A-Z_]+: .*broken\.parquet, column "note", row group \d/);
    // the rest of the daemon is as it was
    assert.equal((await cut.post({ source: 'broken', columns: ['id'] })).status, 200);
  });

  test('a file that is replaced meanwhile is an error, not a mixture', async () => {
    const path = lake.path('replaced.parquet');
    await writeFile(path, await readFile(lake.path('a.parquet')));
    await using api = await TestApi.start({ replaced: path }, { memory: 16 << 20 });
    const response = await api.request({ source: 'replaced', batchRows: 64 });
    const reader = response.body!.getReader();
    await reader.read();
    const file = await open(path, 'r+');
    await file.write(Buffer.from('x'), 0, 1, 100);
    await file.close();
    await assert.rejects(async () => {
      while (!(await reader.read()).done);
    });
    await until(() => api.log.some((line) => line.includes('scan: failed')));
    assert.match(api.log.find((line) => line.includes('scan: failed'))!, /STALE/);
    await api.idle();
  });
});
