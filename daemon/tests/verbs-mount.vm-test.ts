/** A mount over RDMA: the thread that answers the kernel reads through the device too, and leaves in order. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { pattern } from '../../fetcher/tests/transport-fixtures.ts';
import { CLIENT_END, countedDuring, SERVER_END } from '../../storage-server/tests/verbs-cable.ts';
import { QANAT } from './command-run.ts';

const BYTES = pattern(3_000_000, 1);

/** Starts a command and waits for the line that says that it is ready. */
async function started(t: TestContext, args: readonly string[]): Promise<[child: ChildProcess, ready: string]> {
  const child = spawn(process.execPath, [QANAT, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const [line] = (await once(createInterface({ input: child.stdout! }), 'line')) as [string];
  return [child, line];
}

async function stopped(child: ChildProcess): Promise<unknown[]> {
  child.kill('SIGTERM');
  return once(child, 'exit');
}

test('a mounted file has its bytes, and they went from device to device; mount and server end in order', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'qanat-verbs-mount-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [lake, mounted] = [join(folder, 'lake'), join(folder, 'mounted')];
  for (const one of [lake, mounted]) mkdirSync(one);
  writeFileSync(join(lake, 'a.parquet'), BYTES);
  const [server, line] = await started(t, [
    ...['serve', lake, '--listen', `${SERVER_END.address}:0`, '--insecure-listen', '--http', 'none'],
    ...['--rdma-device', SERVER_END.device],
  ]);
  const { rdma } = JSON.parse(line) as { rdma: string };
  const [mount] = await started(t, [
    ...['mount', `rdma://${rdma}/`, mounted, '--json', '--memory', '64MiB'],
    ...['--transport', 'verbs', '--rdma-device', CLIENT_END.device],
  ]);
  const counted = await countedDuring(SERVER_END, async () => {
    // By a program of its own: who reads its own mount may wait for itself.
    const copy = join(folder, 'copy');
    const [code] = await once(spawn('cp', [join(mounted, 'a.parquet'), copy]), 'exit');
    assert.equal(code, 0);
    assert.ok(readFileSync(copy).equals(BYTES));
  });
  console.log(`# ${JSON.stringify(counted)}`);
  assert.ok(counted.rdmaSent >= BYTES.byteLength / 4096, `${counted.rdmaSent} packets`);
  assert.deepEqual(await stopped(mount), [0, null]);
  assert.deepEqual(await stopped(server), [0, null]);
});
