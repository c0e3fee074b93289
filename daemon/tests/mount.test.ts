/** qanat mount and unmount as people use them: both views, listings, figures, the background, refusals. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { METRICS } from '../../metrics/index.ts';
import { parseExposition, type Sample } from '../../metrics/tests/exposition.ts';
import type { MountReport } from '../mount/mount-report.ts';
import { qanatServe, type Server } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';
import { MountRig, until, whyNoMounts } from './mount-rig.ts';

/** Rows of files that differ from those of others, either way; run in a process of its own. */
const COMPARE = `
import { DuckDBInstance } from '@duckdb/node-api';
const [, ours, theirs] = process.argv;
const instance = await DuckDBInstance.create(':memory:');
const connection = await instance.connect();
const count = async (a, b) => {
  const query = "select count(*)::int from (from read_parquet('" + a + "') except all from read_parquet('" + b + "'))";
  return (await connection.runAndReadAll(query)).getRows()[0][0];
};
const rows = (await connection.runAndReadAll("select count(*)::int from read_parquet('" + ours + "')")).getRows()[0][0];
console.log(JSON.stringify([rows, await count(ours, theirs), await count(theirs, ours)]));
process.exit(0);
`;

async function scrape(address: unknown): Promise<Sample[]> {
  return parseExposition(await (await fetch(`http://${address}/metrics`)).text());
}

function sumOf(samples: readonly Sample[], name: string, labels: Readonly<Record<string, string>> = {}): number {
  const isMeant = (one: Sample): boolean =>
    one.name === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value);
  return samples.filter(isMeant).reduce((total, { value }) => total + value, 0);
}

const sha256 = (path: string): string => createHash('sha256').update(readFileSync(path)).digest('hex');

describe('mounts', { skip: whyNoMounts() }, () => {
  let rig: MountRig;
  let lake: Lake;
  let server: Server;
  let url: string;

  before(async () => {
    rig = new MountRig();
    lake = await Lake.create();
    mkdirSync(lake.path('year=2024'));
    await lake.write('numbers.parquet', numbersQuery(150_000), 'row_group_size 20480');
    await lake.write('year=2024/more.parquet', numbersQuery(5000));
    await rig.run('cp', ['/bin/sh', lake.path('year=2024/program.bin')]);
    server = await qanatServe([lake.folder, '--all']);
    url = `rdma://${server.ready.rdma}`;
  });
  after(async () => {
    await rig[Symbol.asyncDispose]();
    await server.stop();
    await lake[Symbol.asyncDispose]();
  });

  const compare = async (ours: string, theirs: string): Promise<unknown> => {
    const script = ['--input-type=module', '-e', COMPARE, ours, theirs];
    const { text, errors } = await rig.run(process.execPath, script, { cwd: import.meta.dirname });
    return errors === '' ? JSON.parse(text) : errors;
  };

  // SEMANTICS 5, 36
  test('the raw view is the source byte for byte, and says what it did', async () => {
    const mount = await rig.mount(url, 'raw', '--stats', '--json', '--metrics', '127.0.0.1:0');
    const { event, source, view, files, bytes, generation, pid } = mount.ready;
    assert.deepEqual([event, source, view, files], ['ready', url, 'raw', 3]);
    assert.deepEqual([bytes, generation, pid], [server.ready.bytes, server.ready.generation, mount.child.pid]);
    const list = await rig.run('find', [mount.folder, '-printf', '%P %s %m\n']);
    const sizes = ['numbers.parquet', 'year=2024/more.parquet', 'year=2024/program.bin'].map(
      (name) => `${name} ${readFileSync(lake.path(name)).length} 444`,
    );
    assert.deepEqual(list.text.trim().split('\n').sort(), ['0 555', ...sizes, 'year=2024 0 555'].sort());
    for (const name of ['numbers.parquet', 'year=2024/more.parquet', 'year=2024/program.bin']) {
      const sum = await rig.run('sha256sum', [`${mount.folder}/${name}`]);
      assert.equal(sum.text.split(' ')[0], sha256(lake.path(name)), sum.errors);
    }
    const copied = await rig.run('cp', ['-r', mount.folder, rig.path('copy')]);
    assert.equal(copied.code, 0, copied.errors);
    assert.equal(sha256(rig.path('copy/numbers.parquet')), sha256(lake.path('numbers.parquet')));
    for (const [program, ...args] of [
      ['touch', 'new'],
      ['rm', '-f', 'numbers.parquet'],
      ['cp', '/bin/sh', 'numbers.parquet'],
    ]) {
      const refused = await rig.run(program!, args, { cwd: mount.folder });
      assert.equal(refused.code, 1);
      assert.match(refused.errors, /Read-only file system/);
    }
    const samples = await scrape(mount.ready.metrics);
    const sum = (name: string, labels: Record<string, string> = {}): number => sumOf(samples, name, labels);
    assert.equal(sum(METRICS.mountFiles.name), 3);
    assert.ok(sum(METRICS.mountRequests.name, { operation: 'READ' }) > 0);
    assert.ok(sum(METRICS.mountReads.name, { serving: 'cached' }) > 0);
    assert.equal(sum(METRICS.fetchSources.name), 1);
    assert.equal(
      sum(METRICS.fetchUsedBytes.name) + sum(METRICS.fetchWastedBytes.name) + sum(METRICS.fetchUndecidedBytes.name),
      sum(METRICS.fetchWireBytes.name),
    );
    const ready = await fetch(`http://${mount.ready.metrics}/readyz`);
    assert.equal(ready.status, 200);
    const { code, errors, text } = await mount.end('SIGTERM');
    assert.equal(code, 0, errors);
    assert.equal(text.trim().split('\n').length, 1, 'nothing but the ready line');
    const report = JSON.parse(errors.split('\n').find((line) => line.includes('"mountedMs"'))!) as MountReport;
    assert.ok(report.requests.READ! > 0 && report.opens.cached >= 6);
    assert.ok(report.readBytes >= Number(bytes));
    const wasted = Object.values(report.bytes.wasted).reduce((a, b) => a + b);
    assert.equal(report.bytes.undecided, 0);
    assert.equal(report.bytes.metadata + report.bytes.used + wasted, report.bytes.onWire);
    assert.equal((await rig.run('mountpoint', ['-q', mount.folder])).code, 32);
  });

  // SEMANTICS 6, 10
  test('the decoded view has the same rows to DuckDB, other files are as they are', async () => {
    const raw = await rig.mount(url, 'plain');
    const small = ['--memory', '64MiB', '--decoders', '1', '--metrics', '127.0.0.1:0', '--stats'];
    const decoded = await rig.mount(url, 'decoded', '--view', 'decoded', ...small);
    for (const name of ['numbers.parquet', 'year=2024/more.parquet']) {
      const rows = name === 'numbers.parquet' ? 150_000 : 5000;
      assert.deepEqual(await compare(`${raw.folder}/${name}`, lake.path(name)), [rows, 0, 0]);
      assert.deepEqual(await compare(`${decoded.folder}/${name}`, `${raw.folder}/${name}`), [rows, 0, 0]);
    }
    const program = await rig.run('sha256sum', [`${decoded.folder}/year=2024/program.bin`]);
    assert.equal(program.text.split(' ')[0], sha256(lake.path('year=2024/program.bin')));
    // what nobody reads any more goes into the kernel's page cache, and is the same there
    const total = async ({ name }: { readonly name: string }): Promise<number> =>
      sumOf(await scrape(decoded.ready.metrics), name);
    await until(async () => (await total(METRICS.mountPushedBytes)) > 1_000_000, 'pages in the cache');
    const before = await total(METRICS.mountReads);
    assert.deepEqual(await compare(`${decoded.folder}/numbers.parquet`, lake.path('numbers.parquet')), [150_000, 0, 0]);
    const asked = (await total(METRICS.mountReads)) - before;
    assert.ok(asked < before / 2, `${asked} more reads came to us, after ${before}`);
    const sizes = await rig.run('stat', ['-c', '%s', `${decoded.folder}/numbers.parquet`]);
    assert.ok(Number(sizes.text) > readFileSync(lake.path('numbers.parquet')).length);
    const { code, errors } = await decoded.end('SIGINT');
    assert.equal(code, 0, errors);
    assert.match(errors, /^decoded +[\d,]+ there, .* [1-9]\d* chunks/m);
    assert.equal((await raw.end('SIGTERM')).code, 0);
  });

  test('folders and globs are mounted by the names within them', async () => {
    for (const [location, names] of [
      [`${url}/year=2024`, ['more.parquet', 'program.bin']],
      [`${url}/**/more.parquet`, ['year=2024/more.parquet']],
      [lake.path('year=2024'), ['more.parquet', 'program.bin']],
    ] as const) {
      const mount = await rig.mount(location, 'part');
      const list = await rig.run('find', [mount.folder, '-type', 'f', '-printf', '%P\n']);
      assert.deepEqual(list.text.trim().split('\n').sort(), names, location);
      assert.equal((await mount.end('SIGTERM')).code, 0);
    }
  });

  test('--daemon returns when the mount answers; pid and log file; qanat unmount ends it', async () => {
    const folder = rig.mountPoint('background');
    const [pidFile, logFile] = [rig.path('mount.pid'), rig.path('mount.log')];
    const files = ['--pid-file', pidFile, '--log-file', logFile];
    const { code, text, errors } = await rig.qanat(['mount', url, folder, '--daemon', ...files]);
    assert.equal(code, 0, errors);
    const ready = JSON.parse(text);
    assert.equal(readFileSync(pidFile, 'utf8'), `${ready.pid}\n`);
    const sum = await rig.run('sha256sum', [`${folder}/numbers.parquet`]);
    assert.equal(sum.text.split(' ')[0], sha256(lake.path('numbers.parquet')));
    const unmounted = await rig.qanat(['unmount', folder, '--json']);
    assert.equal(unmounted.code, 0, unmounted.errors);
    assert.deepEqual(JSON.parse(unmounted.text), { event: 'unmounted', mount: folder, how: 'unmounted' });
    await until(() => !isRunning(ready.pid), 'the end of the background process');
    assert.match(readFileSync(logFile, 'utf8'), /"msg":"mounted"[\s\S]*"msg":"unmounted by somebody else"/);
    assert.throws(() => readFileSync(pidFile), { code: 'ENOENT' });
    const again = await rig.qanat(['unmount', folder]);
    assert.equal(again.code, 1);
    assert.match(again.errors, /^qanat unmount: mount NOT_MOUNTED: nothing of qanat is mounted at [^\n]*\n$/);
  });

  test('what keeps it from mounting is told in one line, in the background too', async () => {
    rig.write('full/file', 'x');
    const empty = rig.mountPoint('empty');
    for (const [args, pattern] of [
      [[url, rig.path('full')], /mount NOT_EMPTY: .* is not empty/],
      [[url, rig.path('full'), '--daemon'], /mount NOT_EMPTY: .* is not empty/],
      [[url, rig.path('nowhere')], /mount NOT_FOUND: .*: mkdir /],
      [[url, rig.path('full/file')], /mount NOT_A_FOLDER: /],
      [[`${url}/nothing`, empty, '--daemon'], /fetch NOT_FOUND: no Parquet file at /],
      [['rdma://127.0.0.1:1', empty, '--stall-timeout', '100ms'], /fetch REFUSED: /],
    ] as const) {
      const { code, text, errors } = await rig.qanat(['mount', ...args]);
      assert.equal(code, 1, errors);
      assert.equal(text, '');
      assert.match(errors, pattern);
      assert.match(errors, /^qanat mount: [^\n]*\n$/);
    }
    const both = await rig.qanat(['mount', url, empty, '--daemon', '--foreground']);
    assert.equal(both.code, 2);
    const mount = await rig.mount(url, 'once');
    const twice = await rig.qanat(['mount', url, mount.folder]);
    assert.equal(twice.code, 1);
    assert.match(twice.errors, /mount MOUNTED: .* is mounted at .* already: qanat unmount /);
    assert.equal((await mount.end('SIGTERM')).code, 0);
  });

  // SEMANTICS 32
  test('a mount never reads itself', async () => {
    rig.write('self/data/a.txt', 'a');
    rig.mountPoint('self/data/inside');
    const refused = async (source: string, folder: string, pattern: RegExp): Promise<void> => {
      const { code, errors } = await rig.qanat(['mount', source, folder]);
      assert.equal(code, 2, errors);
      assert.match(errors, pattern);
    };
    await refused(rig.path('self/data'), rig.path('self/data/inside'), /it would hold itself/);
    await refused(`file://${rig.path('self')}`, rig.path('self/data/inside'), /it would hold itself/);
    symlinkSync(rig.path('self/data/inside'), rig.path('self-link'));
    await refused(rig.path('self'), rig.path('self-link'), /it would hold itself/);
    await refused(rig.path('self/data/a.txt'), rig.path('self/data'), /which the mount would hide/);
    // a link among the files that leads into the mount
    rig.write('outside/b.txt', 'b');
    symlinkSync(rig.path('loop/b.txt'), rig.path('outside/again.txt'));
    const mount = await rig.mount(rig.path('outside'), 'loop', '--watch-interval', '100ms');
    rig.write('outside/c.txt', 'c');
    await until(() => mount.errors().includes('the source has changed'), 'the new file');
    const list = await rig.run('find', [mount.folder, '-type', 'f', '-printf', '%P\n']);
    assert.deepEqual(list.text.trim().split('\n').sort(), ['b.txt', 'c.txt']);
    assert.equal((await mount.end('SIGTERM')).code, 0);
  });

  // SEMANTICS 29
  test('unmounting what is in use says who uses it, or takes it away', async () => {
    const mount = await rig.mount(url, 'used');
    const reader = rig.reader();
    const file = `${mount.folder}/numbers.parquet`;
    assert.equal(await reader.ask(`open ${file}`), 'ok');
    const busy = await rig.qanat(['unmount', mount.folder, '--drain-timeout', '100ms']);
    assert.equal(busy.code, 1);
    assert.ok(busy.errors.includes(`(${reader.child.pid})`), busy.errors);
    assert.match(busy.errors, /mount BUSY: .* --lazy\n$/);
    assert.match(await reader.ask(`read ${file} 1000 1000`), /^[0-9a-f]{64}$/);
    const taken = await rig.qanat(['unmount', mount.folder, '--lazy', '--json']);
    assert.equal(JSON.parse(taken.text).how, 'detached');
    assert.equal((await rig.run('mountpoint', ['-q', mount.folder])).code, 32);
    // whoever has it open reads on until that is closed; then the process ends
    assert.match(await reader.ask(`read ${file} 2000000 1000`), /^[0-9a-f]{64}$/);
    assert.equal(await reader.ask(`close ${file}`), 'ok');
    assert.equal((await mount.ended()).code, 0);
  });
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
