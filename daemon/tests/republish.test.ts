/**
 * Republication under load, over the whole client: every read is of one version of its file or STALE, scans of files
 * that are the same do not notice, listings are new. The writer replaces files by renaming, as people should.
 */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { FetchError, type FileVersion } from '../../fetcher/index.ts';
import { type RunningServer, serveRegion } from '../../storage-server/index.ts';
import { openSource, type Source, type SourceOptions } from '../../vfs/index.ts';
import { ScanEngine } from '../scan/engine.ts';
import { Scan } from '../scan/scan.ts';
import { qanatServe } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';

const PUBLICATIONS = 30;
const FACTOR = 0x9e3779b1;

/** Words that tell the version that they are of, wherever they lie. */
function wordsOf(version: number, words: number): Uint8Array {
  return new Uint8Array(Uint32Array.from({ length: words }, (_, i) => Math.imul(i + 1, FACTOR) ^ version).buffer);
}

/** The version that bytes from `start` on, a multiple of 4, are of. Throws if they are of more than one. */
function versionOf(bytes: Uint8Array, start: number): number {
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  let version: number | undefined;
  for (let i = 0; i < words.length; i++) {
    const found = (words[i]! ^ Math.imul(start / 4 + i + 1, FACTOR)) >>> 0;
    if (version === undefined) version = found;
    else if (version !== found) assert.fail(`versions ${version} and ${found} in one read, at word ${i}`);
  }
  return version!;
}

function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return Math.floor((((x ^ (x >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'qanat-test-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function replace(folder: string, name: string, bytes: Uint8Array): void {
  writeFileSync(join(folder, `.${name}.new`), bytes);
  renameSync(join(folder, `.${name}.new`), join(folder, name));
}

async function serve(t: TestContext, folder: string): Promise<{ server: RunningServer; url: string }> {
  const server = await serveRegion({ roots: [folder], listen: { host: '127.0.0.1', port: 0 } });
  t.after(() => server.close());
  return { server, url: `rdma://127.0.0.1:${server.address().port}` };
}

const isStale = (error: unknown): boolean => error instanceof FetchError && error.code === 'STALE';

interface Tally {
  good: number;
  stale: number;
}

/** Reads random ranges of one version of a file until that is stale, or for a while. */
async function readVersion(source: Source, file: FileVersion, random: (below: number) => number, tally: Tally) {
  const handle = await source.open(file);
  let version: number | undefined;
  const one = async (): Promise<void> => {
    const start = 4 * random(file.length / 4);
    const end = start + 4 * (1 + random(Math.min(file.length - start, 400_000) / 4));
    const found = versionOf(await handle.read({ start, end }), start);
    version ??= found;
    assert.equal(found, version, `${file.path}: a handle reads one version`);
    tally.good++;
  };
  try {
    for (let n = 0; n < 10; n++) await settled([one(), one(), one()]);
  } catch (error) {
    if (!isStale(error)) throw error;
    tally.stale++;
  } finally {
    handle.close();
  }
}

/** Waits for all, then throws the first error that there was. */
async function settled(promises: Promise<void>[]): Promise<void> {
  for (const result of await Promise.allSettled(promises)) if (result.status === 'rejected') throw result.reason;
}

test('clients that read at random while files are rewritten and republished', async (t) => {
  const seed = Number(process.env.QANAT_SEED ?? Date.now() % 2 ** 31);
  console.log(`republish: QANAT_SEED=${seed}`);
  const random = randomFrom(seed);
  const folder = makeFolder(t);
  let version = 1;
  const rewrite = (name: string): void =>
    replace(folder, name, wordsOf(version++, 1 + random(random(4) === 0 ? 250_000 : 5000)));
  const names = Array.from({ length: 8 }, (_, k) => `f${k}.parquet`);
  for (const name of names) rewrite(name);
  const { server, url } = await serve(t, folder);
  let over = false;
  const tally: Tally = { good: 0, stale: 0 };
  const client = async (number: number, options: SourceOptions): Promise<void> => {
    const mine = randomFrom(seed + number);
    const source = await openSource(url, options);
    try {
      while (!over) {
        const files = await source.list();
        await readVersion(source, files[mine(files.length)]!, mine, tally);
      }
      // what is there in the end is seen by all
      for (let left = 6000; ; left--) {
        const found = (await source.list()).map(({ path, length }) => `${path} ${length}`).join();
        if (found === final()) break;
        assert.ok(left > 0, `${found} is not ${final()}`);
        await sleep(5);
      }
      for (const file of await source.list()) {
        const handle = await source.open(file);
        versionOf(await handle.read({ start: 0, end: file.length }), 0);
      }
    } finally {
      await source.close();
    }
  };
  const final = (): string => lastFiles;
  let lastFiles = '';
  const clients = Promise.all([
    client(1, {}),
    client(2, { connections: 3 }),
    client(3, { checksum: true, readBytesMax: 64 << 10 }),
    client(4, { readBytesMax: 32 << 10, windowBytes: 64 << 10 }),
  ]);
  clients.catch(() => {
    over = true;
  });
  for (let n = 0; n < PUBLICATIONS && !over; n++) {
    for (let k = random(3); k >= 0; k--) rewrite(names[random(names.length)]!);
    if (n % 10 === 5) rmSync(join(folder, 'f0.parquet'), { force: true });
    if (n % 10 === 9) rewrite('f0.parquet');
    await sleep(random(10));
    assert.equal(await server.republish(), 'published');
    await sleep(random(25));
  }
  const own = await openSource(url);
  lastFiles = (await own.list()).map(({ path, length }) => `${path} ${length}`).join();
  await own.close();
  over = true;
  await clients;
  assert.equal(server.counters().generations, 1 + PUBLICATIONS);
  assert.ok(tally.good > PUBLICATIONS && tally.stale > 0, JSON.stringify(tally));
});

test('a scan over files that are the same goes on over republications', async (t) => {
  await using lake = await Lake.create();
  await lake.write('numbers.parquet', numbersQuery(60_000), 'row_group_size 2048');
  const { server, url } = await serve(t, lake.folder);
  const engine = new ScanEngine({ memoryBytes: 64 << 20, decoders: 1 });
  t.after(() => engine.close());
  let over = false;
  const scans = (async () => {
    try {
      for (let n = 0; n < 2; n++) {
        const source = await openSource(`${url}/numbers.parquet`);
        const scan = await Scan.open(engine, source, { columns: ['id', 'name'], batchRows: 1000 });
        let rows = 0;
        for await (const batch of scan) {
          for (const id of batch.getChild('id')!) assert.equal(Number(id), rows++);
          await sleep(1);
        }
        assert.equal(rows, 60_000);
        assert.ok(source.counters.generations > 0, 'generations change while it scans');
        await source.close();
      }
    } finally {
      over = true;
    }
  })();
  for (let n = 0; !over; n++) {
    // in front of it and behind it in the region, so that it moves
    replace(lake.folder, 'a.parquet', wordsOf(n, 1 + (n % 7) * 1000));
    replace(lake.folder, 'z.parquet', wordsOf(n, 10));
    assert.equal(await server.republish(), 'published');
    await sleep(5);
  }
  await scans;
});

test('a scan of a file that is replaced gives its rows or STALE', async (t) => {
  await using lake = await Lake.create();
  const { server, url } = await serve(t, lake.folder);
  const engine = new ScanEngine({ memoryBytes: 64 << 20, decoders: 1 });
  t.after(() => engine.close());
  let stale = 0;
  for (let n = 0; n < 6; n++) {
    const rows = 20_000 + 5000 * n;
    await lake.write('numbers.parquet', numbersQuery(rows), 'row_group_size 2048');
    await server.republish();
    const source = await openSource(url);
    const scan = await Scan.open(engine, source, { columns: ['id'], batchRows: 1000 });
    let seen = 0;
    try {
      for await (const batch of scan) {
        seen += batch.numRows;
        if (seen < 2000 || seen > 3000 || n % 2 === 1) continue;
        replace(lake.folder, 'numbers.parquet', wordsOf(n, 10));
        if (n % 4 === 0) await server.republish();
      }
      assert.equal(seen, rows);
    } catch (error) {
      if (!isStale(error)) throw error;
      stale++;
    }
    assert.ok(n % 2 === 0 || seen === rows);
    await source.close();
  }
  assert.ok(stale > 0);
});

test('qanat serve publishes at SIGHUP, and by itself with --watch', async (t) => {
  const folder = makeFolder(t);
  replace(folder, 'a.parquet', wordsOf(1, 10));
  const until = async (check: () => boolean | Promise<boolean>, what: string): Promise<void> => {
    for (let left = 2400; !(await check()); left--) {
      assert.ok(left > 0, what);
      await sleep(25);
    }
  };
  for (const watch of [false, true]) {
    const server = await qanatServe([folder, ...(watch ? ['--watch'] : [])]);
    try {
      server.hangup();
      await until(() => server.errors().includes('SIGHUP: nothing has changed'), 'nothing has changed');
      replace(folder, 'b.parquet', wordsOf(2, watch ? 20 : 10));
      if (!watch) server.hangup();
      await until(() => /published: generation [0-9a-f]{32}, 2 files: /.test(server.errors()), 'published');
      const listed = async (): Promise<string[]> => {
        const source = await openSource(`rdma://${server.ready.rdma}`);
        const files = await source.list();
        await source.close();
        return files.map(({ path, length }) => `${path} ${length}`);
      };
      assert.deepEqual(await listed(), ['a.parquet 40', watch ? 'b.parquet 80' : 'b.parquet 40']);
      rmSync(folder, { recursive: true });
      server.hangup();
      await until(() => server.errors().includes('what was served before is still served'), 'not published');
      assert.equal((await listed()).length, 2);
    } finally {
      const { code } = await server.stop();
      assert.equal(code, 0);
    }
    mkdirSync(folder);
    replace(folder, 'a.parquet', wordsOf(1, 10));
  }
});
