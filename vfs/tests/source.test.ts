import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { DecodeError } from '../../decode/index.ts';
import type { FetchErrorCode, FileVersion, ReadOptions, Transport } from '../../fetcher/index.ts';
import { FetchError } from '../../fetcher/index.ts';
import { newTransportCounters } from '../../fetcher/transport/transport.ts';
import type { Source } from '../source.ts';
import { openSource } from '../source.ts';

const PARQUET = new Uint8Array(
  parquetWriteBuffer({ columnData: [{ name: 'a', data: [1, 2, 3], type: 'INT32' as const }] }),
);

/** Files in memory by path, under the transport's contract; counts its calls. */
class Files implements Transport {
  readonly listed: string[] = [];
  reads = 0;
  readonly bytes = new Map<string, Uint8Array>();
  etag = 'v1';

  constructor(...paths: string[]) {
    for (const path of paths) this.bytes.set(path, PARQUET);
  }

  async list(prefix: string): Promise<FileVersion[]> {
    this.listed.push(prefix);
    return [...this.bytes]
      .filter(([path]) => path.startsWith(prefix))
      .sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      .map(([path, { length }]) => ({ path, length, etag: this.etag, modifiedMs: 0 }));
  }

  async read(file: FileVersion, start: number, into: Uint8Array, options: ReadOptions = {}): Promise<void> {
    this.reads++;
    await new Promise((resolve) => setImmediate(resolve));
    if (options.signal?.aborted) throw new FetchError('CANCELLED', 'cancelled');
    if (file.etag !== this.etag) throw new FetchError('STALE', file.path);
    into.set(this.bytes.get(file.path)!.subarray(start, start + into.length));
    options.onArrived?.(into.length);
  }

  async close(): Promise<void> {}
}

async function open(files: Files, text: string, path?: string): Promise<{ source: Source; urls: string[] }> {
  const urls: string[] = [];
  const counters = newTransportCounters();
  const source = await openSource(text, { workingFolder: '/' }, async (url) => {
    urls.push(url);
    const inner = decodeURIComponent(new URL(url).pathname).replace(/^\/|\/$/g, '');
    return { transport: files, path: path ?? inner, counters };
  });
  return { source, urls };
}

async function names(files: Files, text: string): Promise<string[]> {
  const { source } = await open(files, text);
  return (await source.list()).map((file) => file.path);
}

async function refuses(act: Promise<unknown>, code: FetchErrorCode, reason: RegExp): Promise<void> {
  await assert.rejects(
    act,
    (error) => error instanceof FetchError && error.code === code && reason.test(error.message),
  );
}

test('a location is a file, a folder, a glob or everything', async () => {
  const files = new Files('a/x.parquet', 'a/b/y.parquet', 'a/b/notes.txt', 'ab/z.parquet', 'c.parquet');
  assert.deepEqual(await names(files, 'rdma://h/a/x.parquet'), ['a/x.parquet']);
  assert.deepEqual(await names(files, 'rdma://h/a'), ['a/b/y.parquet', 'a/x.parquet']);
  assert.deepEqual(await names(files, 'rdma://h/a/'), ['a/b/y.parquet', 'a/x.parquet']);
  assert.deepEqual(await names(files, 'rdma://h/*/*.parquet'), ['a/x.parquet', 'ab/z.parquet']);
  assert.deepEqual(await names(files, 'rdma://h/a/**'), ['a/b/notes.txt', 'a/b/y.parquet', 'a/x.parquet']);
  assert.deepEqual(await names(files, 'rdma://h'), ['a/b/y.parquet', 'a/x.parquet', 'ab/z.parquet', 'c.parquet']);
  assert.deepEqual(await names(files, 'rdma://h/a/b/notes.txt'), ['a/b/notes.txt']);
});

test('only what lies under the literal part is listed', async () => {
  const files = new Files('lake/year=2024/1.parquet', 'lake/year=2024/2.parquet', 'other/3.parquet');
  assert.deepEqual(await names(files, 'rdma://h/lake/year=2024/[1-9].parquet'), [
    'lake/year=2024/1.parquet',
    'lake/year=2024/2.parquet',
  ]);
  assert.deepEqual(await names(files, 'rdma://h/lake/year=2024/2.parquet'), ['lake/year=2024/2.parquet']);
  assert.deepEqual(await names(files, 'rdma://h/lake/year=2*/1.parquet'), ['lake/year=2024/1.parquet']);
  assert.deepEqual(files.listed, [
    'lake/year=2024/',
    'lake/year=2024/2.parquet/',
    'lake/year=2024/2.parquet',
    'lake/year=2',
  ]);
});

test('the transport may call the folder as it likes', async () => {
  // A transport whose root is the folder of the URL, not that of the source.
  const files = new Files('1.parquet', 'sub/2.parquet');
  const { source, urls } = await open(files, 'file:///data/odd%20%5B1%5D/**/*.parquet', '');
  assert.deepEqual(urls, ['file:///data/odd%20%5B1%5D/']);
  assert.deepEqual(
    (await source.list()).map((file) => file.path),
    ['1.parquet', 'sub/2.parquet'],
  );
  assert.deepEqual(files.listed, ['']);
});

test('a file that is named like a glob is that file', async () => {
  const files = new Files('part[1].parquet', 'part1.parquet', 'x/{a,b}/1.parquet', 'x/a/1.parquet');
  assert.deepEqual(await names(files, 'part[1].parquet'), ['part[1].parquet']);
  assert.deepEqual(await names(files, 'part[0-9].parquet'), ['part1.parquet']);
  assert.deepEqual(await names(files, 'x/{a,b}'), ['x/{a,b}/1.parquet']);
  assert.deepEqual(await names(files, 'x/{a,c}/*'), ['x/a/1.parquet']);
});

test('a name with a percent sign is that name first, and can be escaped', async () => {
  const files = new Files(
    'a%41.parquet',
    'aA.parquet',
    'x%20y/1.parquet',
    'x y/2.parquet',
    '50%.parquet',
    'a?.parquet',
  );
  assert.deepEqual(await names(files, 'rdma://h/a%41.parquet'), ['a%41.parquet']);
  assert.deepEqual(await names(files, 'rdma://h/a%2541.parquet'), ['a%41.parquet']);
  assert.deepEqual(await names(files, 'rdma://h/aA.parquet'), ['aA.parquet']);
  assert.deepEqual(await names(files, 'rdma://h/%61A.parquet'), ['aA.parquet']);
  assert.deepEqual(await names(files, 'rdma://h/x%20y'), ['x%20y/1.parquet']);
  assert.deepEqual(await names(files, 'rdma://h/x y'), ['x y/2.parquet']);
  assert.deepEqual(await names(files, 'rdma://h/50%.parquet'), ['50%.parquet']);
  const { source } = await open(files, 'rdma://h');
  for (const { path } of await source.list()) {
    assert.deepEqual(await names(files, source.locationOf(path)), [path]);
    assert.deepEqual(await names(files, `rdma://h/${source.shown(path)}`), [path]);
  }
  assert.equal(source.locationOf('a?%.parquet'), 'rdma://h:7400/a%3F%25.parquet');
});

test('a folder says how many files it leaves out', async () => {
  const files = new Files('a/x.parquet', 'a/notes.txt', 'a/_SUCCESS', 'b/y.parquet');
  const leftOut = async (text: string) => (await (await open(files, text)).source.listing()).leftOut;
  assert.deepEqual(
    await Promise.all(['rdma://h', 'rdma://h/a', 'rdma://h/b', 'rdma://h/**'].map(leftOut)),
    [2, 2, 0, 0],
  );
});

test('everything in a folder, by paths within it', async () => {
  const files = new Files('a/x.parquet', 'a/notes.txt', 'a/b/c.csv', 'z.txt');
  const everything = async (text: string) => {
    const { source } = await open(files, text);
    return (await source.everything()).map(({ path }) => source.pathWithin(path));
  };
  assert.deepEqual(await everything('rdma://h/a'), ['b/c.csv', 'notes.txt', 'x.parquet']);
  assert.deepEqual(await everything('rdma://h'), ['a/b/c.csv', 'a/notes.txt', 'a/x.parquet', 'z.txt']);
  assert.deepEqual(await everything('rdma://h/z.txt'), ['z.txt']);
  assert.deepEqual(await everything('rdma://h/a/*.parquet'), ['x.parquet']);
  await refuses(everything('rdma://h/q'), 'NOT_FOUND', /nothing there begins with "q/);
});

test('nothing there is an error that says what is', async () => {
  const files = new Files('a/x.parquet', 'a/y.parquet');
  await refuses(
    names(files, 'rdma://h/b/*.parquet'),
    'NOT_FOUND',
    /"rdma:\/\/h\/b\/\*.parquet".*nothing there begins with "b\/"/,
  );
  await refuses(names(files, 'rdma://h/a/*.pq'), 'NOT_FOUND', /2 other files, such as "a\/x.parquet"/);
  await refuses(
    names(files, 'rdma://h/c.parquet'),
    'NOT_FOUND',
    /no Parquet file .*nothing there begins with "c.parquet" \(a server serves what it published last\)$/,
  );
  await refuses(
    names(files, 'rdma://h/c.txt'),
    'NOT_FOUND',
    /published last, and only Parquet files unless it has --all\)$/,
  );
  await refuses(names(files, 'rdma://h/a/x*.pq'), 'NOT_FOUND', /there is one other file, "a\/x.parquet"$/);
  await refuses(
    names(files, 'rdma://h/*.parquet'),
    'NOT_FOUND',
    /; `\*` does not cross folders, try `\*\*\/\*.parquet`$/,
  );
  await refuses(names(files, '127.0.0.1:7400'), 'NOT_FOUND', /; a server is written rdma:\/\/127.0.0.1:7400$/);
  await refuses(names(new Files(), 'rdma://h'), 'NOT_FOUND', /the source has no files/);
});

test('stat and open by path or by version', async () => {
  const files = new Files('a/x.parquet');
  const { source } = await open(files, 'rdma://h/a');
  const version = await source.stat('a/x.parquet');
  assert.deepEqual(version, { path: 'a/x.parquet', length: PARQUET.length, etag: 'v1', modifiedMs: 0 });
  await refuses(source.stat('a'), 'NOT_FOUND', /no file "a"/);
  await refuses(source.open('a/z.parquet'), 'NOT_FOUND', /a\/z.parquet/);
  assert.deepEqual((await source.open('a/x.parquet')).version, version);
  assert.equal((await source.open(version)).version, version);
});

test('any range reads exactly, or fails with a code', async () => {
  const files = new Files('x.parquet');
  const { source } = await open(files, 'rdma://h');
  const file = await source.open('x.parquet');
  const { length } = PARQUET;
  assert.deepEqual(await file.read({ start: 0, end: 4 }), PARQUET.subarray(0, 4));
  assert.deepEqual(await file.read({ start: length - 4, end: length }), PARQUET.subarray(-4));
  const into = new Uint8Array(new SharedArrayBuffer(10), 2, 4);
  assert.equal(await file.read({ start: 1, end: 5 }, into), into);
  assert.deepEqual([...into], [...PARQUET.subarray(1, 5)]);
  const before = files.reads;
  assert.equal((await file.read({ start: length, end: length })).length, 0);
  assert.equal(files.reads, before);
  for (const [start, end] of [
    [-1, 4],
    [5, 4],
    [0, length + 1],
    [0.5, 4],
    [0, Number.NaN],
    [2 ** 53, 2 ** 53],
  ]) {
    await refuses(file.read({ start: start!, end: end! }), 'OUT_OF_RANGE', /x.parquet/);
  }
  await assert.rejects(file.read({ start: 0, end: 4 }, new Uint8Array(5)), RangeError);
  const huge = await source.open({ path: 'x.parquet', length: 2 ** 50, etag: 'v1', modifiedMs: 0 });
  await refuses(huge.read({ start: 0, end: 2 ** 49 }), 'MEMORY', /at once/);
});

test('closing a file cancels its reads, a changed file is stale', async () => {
  const files = new Files('x.parquet');
  const { source } = await open(files, 'rdma://h');
  const file = await source.open('x.parquet');
  const reading = file.read({ start: 0, end: 4 });
  file.close();
  await refuses(reading, 'CANCELLED', /cancelled/);
  await refuses(file.read({ start: 0, end: 4 }), 'CLOSED', /x.parquet/);
  await refuses(file.footer(), 'CLOSED', /x.parquet/);
  const other = await source.open('x.parquet');
  files.etag = 'v2';
  await refuses(other.read({ start: 0, end: 4 }), 'STALE', /x.parquet/);
  const again = await source.open('x.parquet');
  assert.equal((await again.read({ start: 0, end: 4 })).length, 4);
});

test('a footer is fetched once for each version', async () => {
  const files = new Files('x.parquet', 'y.parquet');
  const { source } = await open(files, 'rdma://h');
  const [one, two] = [await source.open('x.parquet'), await source.open('x.parquet')];
  const [first, second] = await Promise.all([one.footer(), two.footer()]);
  assert.equal(first, second);
  assert.equal(first.numRows, 3);
  assert.equal(files.reads, 1);
  assert.deepEqual(source.footers, { bytes: PARQUET.length, requests: 1 });
  files.etag = 'v2';
  const changed = await source.open('x.parquet');
  assert.notEqual(await changed.footer(), first);
  assert.equal(files.reads, 2);
});

test('a footer that failed is tried again', async () => {
  const files = new Files('x.parquet');
  files.bytes.set(
    'x.parquet',
    PARQUET.map((byte, i) => (i === PARQUET.length - 1 ? 0 : byte)),
  );
  const { source } = await open(files, 'rdma://h');
  const file = await source.open('x.parquet');
  const refused = (error: unknown) => error instanceof DecodeError && error.place.file === 'x.parquet';
  await assert.rejects(file.footer(), refused);
  await assert.rejects(file.footer(), refused);
  assert.equal(files.reads, 2);
  files.bytes.set('x.parquet', PARQUET);
  assert.equal((await file.footer()).numRows, 3);
});

test('local files, through the real transport', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'qanat vfs [1]-'));
  try {
    mkdirSync(join(folder, 'year=2023'));
    mkdirSync(join(folder, 'year=2024/m 1'), { recursive: true });
    for (const name of ['year=2023/a.parquet', 'year=2024/m 1/b.parquet', 'c 100%.parquet']) {
      writeFileSync(join(folder, name), PARQUET);
    }
    writeFileSync(join(folder, 'notes.txt'), 'no');
    const list = async (text: string, workingFolder = folder) => {
      const source = await openSource(text, { workingFolder });
      const files = await source.list();
      const footers = await Promise.all(files.map(async (file) => (await source.open(file)).footer()));
      assert.ok(footers.every((footer) => footer.numRows === 3));
      assert.deepEqual(source.footers, { bytes: source.counters.bytesOnWire, requests: files.length });
      await source.close();
      return files.map((file) => file.path);
    };
    const all = ['c 100%.parquet', 'year=2023/a.parquet', 'year=2024/m 1/b.parquet'];
    const below = all.map((path) => join(basename(folder), path));
    assert.deepEqual(await list('.'), below);
    assert.deepEqual(await list('*/**/*.parquet'), all.slice(1));
    assert.deepEqual(await list('**/*.parquet'), all);
    assert.deepEqual(await list('c 100%.parquet'), ['c 100%.parquet']);
    assert.deepEqual(await list('c*'), ['c 100%.parquet']);
    assert.deepEqual(await list('year=2024'), ['year=2024/m 1/b.parquet']);
    assert.deepEqual(await list(`file://${folder.split('/').map(encodeURIComponent).join('/')}/*/*.parquet`), [
      'year=2023/a.parquet',
    ]);
    await refuses(list('year=2025/*.parquet'), 'NOT_FOUND', /nothing there begins with "year=2025\/"$/);
    await refuses(
      list(join(tmpdir(), 'no such qanat.parquet')),
      'NOT_FOUND',
      /nothing there begins with "\/.*\/no such qanat.parquet"$/,
    );
    await refuses(list('10.0.0.1:7400/a/b.parquet'), 'NOT_FOUND', /a server is written rdma:\/\/10.0.0.1:7400\/a/);
    // what is shown can be opened from the same folder
    for (const text of ['.', 'year=2024', folder, 'c*']) {
      const source = await openSource(text, { workingFolder: folder });
      for (const { path } of await source.list()) {
        for (const again of [source.shown(path), source.locationOf(path)])
          assert.deepEqual((await list(again)).length, 1);
      }
      await source.close();
    }
    await refuses(list('d.parquet'), 'NOT_FOUND', /no Parquet file at "d.parquet"/);
    await refuses(list('year=2024/*'), 'NOT_FOUND', /one other file, "year=2024\/m 1\/b.parquet"; `\*` does not/);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
