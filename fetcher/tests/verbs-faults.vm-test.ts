/** What goes wrong between two ends of RDMA: each is an error with a code in time, or heals; never other bytes. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { WC } from '../../storage-server/protocol/index.ts';
import { cutCable, plugCable, SERVER_END } from '../../storage-server/tests/verbs-cable.ts';
import { FetchError } from '../errors.ts';
import { openTransport } from '../transport/open-transport.ts';
import type { FileVersion, Transport } from '../transport/transport.ts';
import { makeFolder, pattern } from './transport-fixtures.ts';
import { openOverRdma, serveOverRdma } from './verbs-rig.ts';

const FILES = { 'a.parquet': pattern(3_000_000, 1), 'b.parquet': pattern(1_000_000, 2) };
const READER = fileURLToPath(new URL('./verbs-reader.ts', import.meta.url));
const SERVE = fileURLToPath(new URL('./verbs-server.ts', import.meta.url));

/** What a read of a server ends with that can't be reached, by where it noticed. */
const GONE = ['LOST', 'STALLED', 'REFUSED'];

const named = (files: readonly FileVersion[], path: string): FileVersion => files.find((file) => file.path === path)!;

function replace(folder: string, path: string, bytes: Uint8Array): void {
  writeFileSync(join(folder, 'new'), bytes);
  renameSync(join(folder, 'new'), join(folder, path));
}

async function until(check: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let left = 1200; !(await check()); left--) {
    assert.ok(left > 0, what);
    await sleep(50);
  }
}

async function readAll(transport: Transport, file: FileVersion): Promise<Uint8Array> {
  const into = new Uint8Array(new SharedArrayBuffer(file.length));
  await transport.read(file, 0, into);
  return into;
}

/** How a read ended: "the bytes", or the code of its error. Other bytes than `expected` are never right. */
async function outcome(transport: Transport, file: FileVersion, expected: Buffer): Promise<string> {
  try {
    assert.ok(expected.equals(await readAll(transport, file)), 'other bytes');
    return 'the bytes';
  } catch (error) {
    if (error instanceof FetchError) return error.code;
    throw error;
  }
}

/** A server in a process of its own, over RDMA. */
async function spawnServer(t: { after(end: () => void): void }, folder: string, port = 0) {
  const child = spawn(process.execPath, [SERVE, String(port), folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => void child.kill('SIGKILL'));
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  return { port: Number(line), kill };
}

test('a new generation: what is the same is read on, what is not is stale, and the old key goes', async (t) => {
  const folder = makeFolder(t, FILES);
  const server = await serveOverRdma(t, folder);
  const told: string[] = [];
  const { transport, activity } = await openOverRdma(server.address().port, {
    onGeneration: (name) => told.push(name),
  });
  t.after(() => transport.close());
  const files = await transport.list('');
  for (const [path, bytes] of Object.entries(FILES)) {
    assert.equal(await outcome(transport, named(files, path), bytes), 'the bytes');
  }
  const before = server.rdma()!.registeredBytes;
  replace(folder, 'b.parquet', pattern(900_000, 3));
  assert.equal(await server.republish(), 'published');
  await until(() => told.length > 0, 'the client is told');
  assert.equal(await outcome(transport, named(files, 'a.parquet'), FILES['a.parquet']), 'the bytes');
  assert.equal(await outcome(transport, named(files, 'b.parquet'), FILES['b.parquet']), 'STALE');
  const now = await transport.list('');
  assert.equal(await outcome(transport, named(now, 'b.parquet'), pattern(900_000, 3)), 'the bytes');
  await until(() => server.rdma()!.registeredBytes < before, 'the memory of the old generation is given back');
  assert.equal(await outcome(transport, named(now, 'a.parquet'), FILES['a.parquet']), 'the bytes');
  console.log(`# completions of the device: ${JSON.stringify([...(activity!.rdma()?.completions ?? [])])}`);
});

test('reads under way while generations come and go: the bytes of one version each, or stale', async (t) => {
  const folder = makeFolder(t, FILES);
  const server = await serveOverRdma(t, folder);
  const { transport } = await openOverRdma(server.address().port);
  t.after(() => transport.close());
  const versions = Array.from({ length: 8 }, (_, k) => pattern(1_000_000, k + 2));
  let publishing = true;
  const outcomes = new Map<string, number>();
  const reading = Array.from({ length: 3 }, async () => {
    while (publishing) {
      const file = named(await transport.list(''), 'b.parquet');
      const into = new Uint8Array(new SharedArrayBuffer(file.length));
      let said = 'the bytes';
      await transport.read(file, 0, into).catch((error: unknown) => {
        assert.ok(error instanceof FetchError, String(error));
        said = error.code;
      });
      outcomes.set(said, (outcomes.get(said) ?? 0) + 1);
      if (said !== 'the bytes') continue;
      assert.ok(
        versions.some((version) => version.equals(into)),
        'the bytes of no version, or of several',
      );
    }
  });
  for (const bytes of versions.slice(1)) {
    replace(folder, 'b.parquet', bytes);
    assert.equal(await server.republish(), 'published');
    await sleep(100);
  }
  publishing = false;
  await Promise.all(reading);
  console.log(`# ${JSON.stringify([...outcomes])}`);
  assert.deepEqual(
    [...outcomes.keys()].filter((said) => said !== 'the bytes' && said !== 'STALE'),
    [],
  );
  assert.ok((outcomes.get('the bytes') ?? 0) > 0);
});

test('a killed server: reads fail with a code, and go on with the next one at the same address', async (t) => {
  const folder = makeFolder(t, FILES);
  const server = await spawnServer(t, folder);
  const { transport, counters } = await openOverRdma(server.port, { stallMs: 2000, retry: { attempts: 3 } });
  t.after(() => transport.close());
  const file = named(await transport.list(''), 'a.parquet');
  assert.equal(await outcome(transport, file, FILES['a.parquet']), 'the bytes');
  const reads = Array.from({ length: 4 }, () => outcome(transport, file, FILES['a.parquet']));
  await server.kill();
  const outcomes = await Promise.all(reads);
  console.log(`# reads that were under way: ${outcomes.join(', ')}`);
  for (const said of outcomes) assert.ok(['the bytes', ...GONE].includes(said), said);
  assert.notEqual(await outcome(transport, file, FILES['a.parquet']), 'the bytes');
  await spawnServer(t, folder, server.port);
  await until(async () => (await transport.list('').catch(() => [])).length > 0, 'the server is back');
  assert.equal(await outcome(transport, file, FILES['a.parquet']), 'the bytes');
  assert.ok(counters.reconnects > 0);
});

test('a killed client: its queue pair goes, and others read on', async (t) => {
  const folder = makeFolder(t, FILES);
  const server = await serveOverRdma(t, folder);
  const { port } = server.address();
  const child = spawn(process.execPath, [READER, String(port), 'a.parquet'], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => void child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout });
  for (let k = 0; k < 2; k++) await once(lines, 'line');
  assert.equal(server.rdma()!.queuePairs, 1);
  const { transport } = await openOverRdma(port);
  t.after(() => transport.close());
  const file = named(await transport.list(''), 'a.parquet');
  assert.equal(server.rdma()!.queuePairs, 2);
  child.kill('SIGKILL');
  await once(child, 'exit');
  await until(() => server.rdma()!.queuePairs === 1, 'the queue pair of the killed client is gone');
  assert.equal(await outcome(transport, file, FILES['a.parquet']), 'the bytes');
});

test('cable cut in the middle: reads fail with a code in time, and go on when it is back', async (t) => {
  t.after(plugCable);
  const folder = makeFolder(t, FILES);
  const server = await serveOverRdma(t, folder);
  const { transport, activity } = await openOverRdma(server.address().port, { stallMs: 2000, retry: { attempts: 3 } });
  t.after(() => transport.close());
  const file = named(await transport.list(''), 'a.parquet');
  assert.equal(await outcome(transport, file, FILES['a.parquet']), 'the bytes');
  const reads = Array.from({ length: 3 }, () => outcome(transport, file, FILES['a.parquet']));
  cutCable();
  const began = performance.now();
  const outcomes = await Promise.all(reads);
  const again = await outcome(transport, file, FILES['a.parquet']);
  console.log(`# ${outcomes.join(', ')}; then ${again}, after ${Math.round(performance.now() - began)} ms`);
  console.log(`# completions of the device: ${JSON.stringify([...(activity!.rdma()?.completions ?? [])])}`);
  for (const said of outcomes) assert.ok(['the bytes', ...GONE].includes(said), said);
  assert.ok(GONE.includes(again), again);
  plugCable();
  await until(async () => (await transport.list('').catch(() => [])).length > 0, 'the server can be reached again');
  assert.equal(await outcome(transport, file, FILES['a.parquet']), 'the bytes');
});

test('a short cut of the cable is bridged by the devices and the attempts, and the read is none the wiser', async (t) => {
  t.after(plugCable);
  const folder = makeFolder(t, FILES);
  const server = await serveOverRdma(t, folder);
  const { transport } = await openOverRdma(server.address().port);
  t.after(() => transport.close());
  const file = named(await transport.list(''), 'a.parquet');
  const reads = Array.from({ length: 3 }, () => outcome(transport, file, FILES['a.parquet']));
  cutCable();
  await sleep(500);
  plugCable();
  assert.deepEqual(await Promise.all(reads), ['the bytes', 'the bytes', 'the bytes']);
});

test('more reads than the queues take: all wait their turn and get their bytes, no completion fails', async (t) => {
  const folder = makeFolder(t, FILES);
  const server = await serveOverRdma(t, folder);
  const { transport, activity } = await openOverRdma(server.address().port, {
    concurrency: 400,
    readBytesMax: 4096,
    windowBytes: 64 << 20,
    outstandingMax: 64,
  });
  t.after(() => transport.close());
  const file = named(await transport.list(''), 'a.parquet');
  const memory = new Uint8Array(new SharedArrayBuffer(400 * 7000));
  await Promise.all(
    Array.from({ length: 400 }, (_, k) => transport.read(file, k * 7000, memory.subarray(k * 7000, (k + 1) * 7000))),
  );
  assert.ok(FILES['a.parquet'].subarray(0, memory.byteLength).equals(memory));
  assert.deepEqual([...activity!.completions.keys()], [WC.SUCCESS]);
  assert.deepEqual([...activity!.rdma()!.completions.keys()], [WC.SUCCESS]);
});

test('without a device at the other end: TCP with a reason, or an error where RDMA must be', async (t) => {
  const folder = makeFolder(t, FILES);
  const server = await serveOverRdma(t, folder, { rdma: undefined } as never);
  const { port } = server.address();
  const told: string[] = [];
  const auto = await openTransport(`rdma://${SERVER_END.address}:${port}/`, { onTransport: (text) => told.push(text) });
  t.after(() => auto.transport.close());
  const file = named(await auto.transport.list(''), 'a.parquet');
  assert.equal(await outcome(auto.transport, file, FILES['a.parquet']), 'the bytes');
  console.log(`# ${told.join('; ')}`);
  assert.equal(told.length, 1);
  assert.match(told[0]!, /^READs go over TCP: the server has no RDMA device/);
  const must = await openOverRdma(port);
  t.after(() => must.transport.close());
  await assert.rejects(must.transport.list(''), (error) => error instanceof FetchError && error.code === 'RDMA');
  const misnamed = await openOverRdma(port, { rdma: { transport: 'verbs', device: 'mlx5_7' } });
  t.after(() => misnamed.transport.close());
  await assert.rejects(misnamed.transport.list(''), /mlx5_7/);
});
