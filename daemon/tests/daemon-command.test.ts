/** `qanat daemon` as a process: ready, reloaded, stopped; what it tells a service manager; that it leaves nothing behind. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { tableFromIPC } from 'apache-arrow';
import { tellServiceManager } from '../service-manager.ts';
import { until } from './api-fixture.ts';
import { cleanEnvironment, QANAT, qanat } from './command-run.ts';
import { DatagramSocket } from './datagram-socket.ts';
import { Lake, numbersQuery } from './lake.ts';

let lake: Lake;
before(async () => {
  lake = await Lake.create();
  await lake.write('a.parquet', numbersQuery(100_000), 'row_group_size 20000');
  await lake.write('b.parquet', numbersQuery(1000));
});
after(() => lake[Symbol.asyncDispose]());

const ADDRESSES = 'listen: 127.0.0.1:0\nmetrics: 127.0.0.1:0\nmemory: 32MiB\ndecoders: 1\n';

const whyNoProc = process.platform === 'linux' ? false : 'needs /proc';

class Daemon {
  readonly child: ChildProcess;
  readonly ready: { readonly http: string; readonly metrics: string; readonly sources: string[]; readonly pid: number };
  readonly #errors: () => string;

  private constructor(child: ChildProcess, ready: string, errors: () => string) {
    this.child = child;
    this.ready = JSON.parse(ready);
    this.#errors = errors;
  }

  static async start(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Daemon> {
    const child = spawn(process.execPath, [QANAT, 'daemon', ...args], {
      env: { ...cleanEnvironment(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let errors = '';
    child.stderr.on('data', (data) => {
      errors += data;
    });
    const ended = once(child, 'exit').then(() => {
      throw new Error(`the daemon ended: ${errors}`);
    });
    const [line] = (await Promise.race([once(createInterface({ input: child.stdout }), 'line'), ended])) as [string];
    ended.catch(() => {});
    return new Daemon(child, line, () => errors);
  }

  /** The log's lines of a message. */
  log(message: RegExp): Record<string, unknown>[] {
    // behind the last end of a line a piece of the next one may be there
    const entries = this.#errors()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    return entries.filter(({ msg }) => message.test(String(msg)));
  }

  async reload(reloads: number): Promise<void> {
    this.child.kill('SIGHUP');
    await until(() => this.log(/^(reloaded|not reloaded)/).length === reloads);
  }

  scan(body: unknown): Promise<Response> {
    return fetch(`http://${this.ready.http}/v1/scan`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
  }

  async rows(body: unknown): Promise<number> {
    const response = await this.scan(body);
    assert.equal(response.status, 200);
    return tableFromIPC(new Uint8Array(await response.arrayBuffer())).numRows;
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    // not 'exit': what it logged last is read behind that
    const closed = once(this.child, 'close');
    this.child.kill(signal);
    return ((await closed) as [number | null])[0];
  }
}

function configFile(text: string): string {
  const path = lake.path(`${Math.random().toString(36).slice(2)}.yaml`);
  writeFileSync(path, text);
  return path;
}

test('scans, metrics and readiness of a file, with a flag over a variable over it', async () => {
  const path = configFile(`${ADDRESSES}max-scans: 3\nsources:\n  a: ./a.parquet\n`);
  const args = ['--config', path, '--source', `lake=${lake.folder}`, '--log-level', 'debug'];
  const daemon = await Daemon.start(args, { QANAT_MEMORY: '48MiB', QANAT_LOG_LEVEL: 'error' });
  try {
    assert.deepEqual(daemon.ready.sources, ['a', 'lake']);
    assert.equal(daemon.ready.pid, daemon.child.pid);
    await until(() => daemon.log(/^ready$/).length === 1);
    assert.equal(daemon.log(/^ready$/)[0]!.memory, '48 MiB');
    assert.equal(await daemon.rows({ source: 'a', columns: ['id'] }), 100_000);
    assert.equal(await daemon.rows({ source: 'lake', path: 'b.parquet' }), 1000);
    assert.equal((await fetch(`http://${daemon.ready.metrics}/readyz`)).status, 200);
    const metrics = await (await fetch(`http://${daemon.ready.metrics}/metrics`)).text();
    assert.match(metrics, /^qanat_scan_rows_total 101000$/m);
    assert.match(metrics, new RegExp(`^qanat_pool_capacity_bytes ${48 << 20}$`, 'm'));
    assert.match(metrics, /^qanat_fetch_sources 2$/m);
  } finally {
    assert.equal(await daemon.stop(), 0);
  }
  assert.equal(daemon.log(/^stopped$/).length, 1);
});

describe('SIGHUP', () => {
  test('changes what can be changed, says what can not, and a bad file changes nothing', async () => {
    const path = configFile(`${ADDRESSES}sources:\n  a: ${lake.path('a.parquet')}\n`);
    const daemon = await Daemon.start(['--config', path]);
    try {
      const running = await daemon.scan({ source: 'a', batchRows: 512 });
      writeFileSync(path, `${ADDRESSES}memory: 1GiB\nsources: {}\n`);
      await daemon.reload(1);
      const [bad] = daemon.log(/^not reloaded/);
      assert.match(String(bad!.msg), /everything stays as it was: .*:5:1: not valid YAML: Map keys must be unique/);
      assert.equal(await daemon.rows({ source: 'a', limit: 5 }), 5);

      writeFileSync(path, 'memory: 1GiB\ndecoders: lots\nlog-levle: debug\n');
      await daemon.reload(2);
      const [, worse] = daemon.log(/^not reloaded/);
      assert.equal((worse!.problems as string[]).length, 2);
      assert.match((worse!.problems as string[])[1]!, /log-levle: unknown key; did you mean "log-level"\?/);

      const next = ADDRESSES.replace('32MiB', '1GiB');
      writeFileSync(path, `${next}log-level: debug\nsources:\n  b: ${lake.path('b.parquet')}\n`);
      await daemon.reload(3);
      assert.deepEqual(
        daemon.log(/^only a restart/).map(({ setting, holds, file }) => [setting, holds, file]),
        [['memory', '32 MiB', '1 GiB']],
      );
      assert.deepEqual(
        daemon.log(/^changed$/).map(({ setting }) => setting),
        ['log-level', 'sources.a', 'sources.b'],
      );
      assert.equal(await daemon.rows({ source: 'b' }), 1000);
      assert.equal((await daemon.scan({ source: 'a' })).status, 404);
      // a scan that was under way goes on with the source that it had
      assert.equal(tableFromIPC(new Uint8Array(await running.arrayBuffer())).numRows, 100_000);

      unlinkSync(path);
      await daemon.reload(4);
      assert.match(String(daemon.log(/^not reloaded/)[2]!.msg), /there is no such file/);
      assert.equal(await daemon.rows({ source: 'b' }), 1000);
    } finally {
      assert.equal(await daemon.stop(), 0);
    }
  });
});

describe('an end', () => {
  test('waits for scans, then cuts them off; 0 in any case', async () => {
    const path = configFile(`${ADDRESSES}drain-timeout: 300ms\nsources:\n  a: ${lake.path('a.parquet')}\n`);
    const daemon = await Daemon.start(['--config', path]);
    const response = await daemon.scan({ source: 'a', batchRows: 512 });
    const reader = response.body!.getReader();
    await reader.read();
    assert.equal(await daemon.stop('SIGINT'), 0);
    await assert.rejects(async () => {
      while (!(await reader.read()).done);
    });
    assert.equal(daemon.log(/^ended scans that were still running$/)[0]!.scans, 1);
  });

  test('an address in use is told with 1', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as { port: number };
    for (const [option, other] of [
      ['--listen', '--metrics'],
      ['--metrics', '--listen'],
    ] as const) {
      const { code, text, errors } = await qanat(['daemon', option, `127.0.0.1:${port}`, other, '127.0.0.1:0']);
      assert.equal(code, 1);
      assert.equal(text, '');
      assert.match(errors, new RegExp(`^qanat daemon: .*127\\.0\\.0\\.1:${port}.*EADDRINUSE.*${option}.*\\n$`));
    }
    taken.close();
  });
});

describe('a service manager', { skip: process.platform === 'linux' ? false : 'only on Linux' }, () => {
  test('hears when the daemon is ready, reloads and stops', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'qanat-test-'));
    const socket = new DatagramSocket(join(folder, 'notify'));
    try {
      const path = configFile(ADDRESSES);
      const daemon = await Daemon.start(['--config', path], { NOTIFY_SOCKET: join(folder, 'notify') });
      await daemon.reload(1);
      assert.equal(await daemon.stop(), 0);
      const messages = socket.receiveAll();
      assert.deepEqual(
        messages.map((message) => message.split('\n')[0]),
        ['READY=1', 'RELOADING=1', 'READY=1', 'STOPPING=1'],
      );
      assert.match(messages[0]!, new RegExp(`^STATUS=scans on ${daemon.ready.http}$`, 'm'));
      // systemd takes a reload for begun by the clock of the message
      assert.match(messages[1]!, /^MONOTONIC_USEC=\d{6,}$/m);
    } finally {
      socket.close();
      rmSync(folder, { recursive: true });
    }
  });

  test('that is not there, or has a name that is too long, is an error; none is none', async () => {
    assert.equal(await tellServiceManager('ready', 'x', ''), false);
    await assert.rejects(tellServiceManager('ready', 'x', '/nowhere/at/all'), /takes nothing: errno \d+/);
    await assert.rejects(tellServiceManager('ready', 'x', `/${'x'.repeat(200)}`), /longer than/);
    await assert.rejects(tellServiceManager('ready', 'x', '@qanat-test-nobody'), /takes nothing/);
  });
});

test('connections and files are closed when scans have ended', { skip: whyNoProc }, async () => {
  const daemon = await Daemon.start([
    ...['--listen', '127.0.0.1:0', '--metrics', 'none', '--memory', '32MiB', '--allow-locations'],
    ...['--source', `lake=${lake.folder}`],
  ]);
  try {
    const open = (): number => readdirSync(`/proc/${daemon.child.pid}/fd`).length;
    await daemon.rows({ source: 'lake', limit: 10 });
    const before = open();
    for (let round = 0; round < 5; round++) {
      await Promise.all([
        daemon.rows({ source: 'lake', path: 'b.parquet' }),
        daemon.rows({ location: lake.path('b.parquet') }),
        daemon.scan({ location: '/nowhere/x.parquet' }).then((response) => response.text()),
        daemon.scan({ source: 'lake' }).then((response) => response.body!.cancel()),
      ]);
    }
    // idle connections of this client are the daemon's, too
    await until(() => open() <= before + 5);
  } finally {
    assert.equal(await daemon.stop(), 0);
  }
});
