/**
 * The units: what systemd says of them, and that what they take away is nothing that the commands use. There is no
 * service manager in a test, so that the system calls of a server, a daemon and a scan are traced and compared with the
 * filter.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { OPTIONS, type OptionName, variableOf } from '../../daemon/options.ts';
import { Lake, numbersQuery } from '../../daemon/tests/lake.ts';
import { check, DEPLOY, missing, ROOT } from './command-check.ts';

const UNITS = ['qanat-serve.service', 'qanat-daemon.service'];
const PROGRAM = '/usr/local/bin/qanat';
const QANAT = join(ROOT, 'daemon/bin/qanat.mjs');
/** Of 100, as `systemd-analyze security` counts: what may talk TCP and read files is at best at about 10. */
const EXPOSURE_MAX = 15;

const unit = (name: string): string => readFileSync(join(DEPLOY, 'systemd', name), 'utf8');
const settings = (text: string, key: string): string[] =>
  [...text.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map((match) => match[1]!);

describe('units', { skip: missing('systemd-analyze') }, () => {
  let folder = '';
  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'qanat-units-'));
    // systemd asks for the program to be there
    for (const name of UNITS) writeFileSync(join(folder, name), unit(name).replaceAll(PROGRAM, QANAT));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  test('are what systemd takes, without a word', () => {
    const { code, text } = check('systemd-analyze', ['verify', '--man=no', ...UNITS.map((name) => join(folder, name))]);
    assert.equal(text, '');
    assert.equal(code, 0);
  });

  for (const name of UNITS) {
    test(`${name} is exposed no more than it has to be`, (context) => {
      const args = ['security', '--offline=true', `--threshold=${EXPOSURE_MAX}`, join(folder, name)];
      const { code, text } = check('systemd-analyze', args);
      assert.equal(code, 0, text);
      context.diagnostic(/Overall exposure level.*: ([\d.]+)/.exec(text)?.[0] ?? text);
    });
  }
});

test('settings in the example are variables of options that serve has', () => {
  const variables = new Set((Object.keys(OPTIONS) as OptionName[]).map(variableOf));
  const text = readFileSync(join(DEPLOY, 'systemd/serve.env.example'), 'utf8');
  const names = [...text.matchAll(/^#?(QANAT_\w+)=/gm)].map((match) => match[1]!);
  assert.ok(names.length > 5);
  assert.deepEqual(
    names.filter((name) => name !== 'QANAT_ROOTS' && !variables.has(name)),
    [],
  );
});

/** The names of calls that a filter lets through. */
function allowedCalls(filters: readonly string[]): Set<string> {
  const allowed = new Set<string>();
  for (const filter of filters) {
    const removes = filter.startsWith('~');
    for (const name of filter.replace('~', '').split(' ')) {
      for (const call of callsOf(name)) removes ? allowed.delete(call) : allowed.add(call);
    }
  }
  return allowed;
}

function callsOf(name: string): string[] {
  if (!name.startsWith('@')) return [name];
  const { text } = check('systemd-analyze', ['syscall-filter', name]);
  const members = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => /^@?[a-z0-9_-]+$/.test(line) && line !== name);
  return members.flatMap(callsOf);
}

interface Trace {
  readonly calls: ReadonlySet<string>;
  readonly families: ReadonlySet<string>;
}

/** What the files that `strace -ff` wrote name. */
function readTraces(folder: string): Trace {
  const calls = new Set<string>();
  const families = new Set<string>();
  for (const name of readdirSync(folder).filter((one) => one.startsWith('trace.'))) {
    for (const line of readFileSync(join(folder, name), 'utf8').split('\n')) {
      const call = /^(\w+)\(/.exec(line)?.[1];
      if (call !== undefined) calls.add(call);
      const family = /^socket\((AF_\w+)/.exec(line)?.[1];
      if (family !== undefined) families.add(family);
    }
  }
  return { calls, families };
}

const reason = missing('strace') || missing('systemd-analyze');
describe('what units take away', { skip: reason }, () => {
  test('is nothing that a server, a daemon and a scan use', { timeout: 120_000 }, async (context) => {
    await using lake = await Lake.create();
    await lake.write('numbers.parquet', numbersQuery(20_000));
    // -D: the command itself is the child that signals reach
    const strace = ['-D', '-f', '-ff', '-qq', '-o', lake.path('trace'), process.execPath, QANAT];
    const running: ChildProcess[] = [];
    const start = async (args: string[]): Promise<Record<string, string>> => {
      const child = spawn('strace', [...strace, ...args], { stdio: ['ignore', 'pipe', 'ignore'] });
      running.push(child);
      const [line] = (await once(createInterface({ input: child.stdout! }), 'line')) as [string];
      return JSON.parse(line) as Record<string, string>;
    };
    try {
      const served = await start(['serve', lake.folder, '--listen', '127.0.0.1:0', '--http', '127.0.0.1:0']);
      // by a name, since looking one up takes calls of its own
      const source = `lake=rdma://${served.rdma!.replace('127.0.0.1', 'localhost')}`;
      const daemon = await start(['daemon', '--source', source, '--listen', '127.0.0.1:0', '--metrics', '127.0.0.1:0']);
      const body = JSON.stringify({ source: 'lake', columns: ['id', 'name'] });
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`http://${daemon.http}/v1/scan`, { method: 'POST', body, headers });
      assert.equal(answer.status, 200, await answer.clone().text());
      assert.ok((await answer.bytes()).length > 100_000);
      for (const address of [served.http, daemon.metrics]) {
        assert.equal((await fetch(`http://${address}/metrics`)).status, 200);
      }
    } finally {
      for (const child of running) {
        const ended = once(child, 'exit');
        child.kill('SIGTERM');
        await ended;
      }
    }
    const { calls, families } = readTraces(lake.folder);
    context.diagnostic(`${calls.size} system calls, socket families ${[...families].join(', ')}`);
    assert.ok(calls.has('mprotect') && calls.has('accept4'));
    for (const name of UNITS) {
      const allowed = allowedCalls(settings(unit(name), 'SystemCallFilter'));
      assert.ok(allowed.size > 150, `${allowed.size} calls allowed`);
      assert.deepEqual(
        [...calls].filter((call) => !allowed.has(call)),
        [],
        name,
      );
      const some = settings(unit(name), 'RestrictAddressFamilies').join(' ').split(' ');
      assert.deepEqual(
        [...families].filter((family) => !some.includes(family)),
        [],
        name,
      );
    }
  });
});
