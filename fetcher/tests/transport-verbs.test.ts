/** How READs come to go over RDMA or not, what a hostile or a lacking server does to that, and generations over RDMA. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningServer, type ServeOptions, serveRegion } from '../../storage-server/index.ts';
import {
  encodeVerbsAnswer,
  encodeWelcome,
  HELLO_BYTES,
  REQUEST_BYTES,
  type VerbsEndpoint,
} from '../../storage-server/protocol/index.ts';
import { ModelFabric, type ModelLimits } from '../../storage-server/tests/model-fabric.ts';
import { type OpenVerbsDevice, VerbsError } from '../../storage-server/verbs/index.ts';
import { FetchError } from '../errors.ts';
import { type OpenTransportOptions, openTransport } from '../transport/open-transport.ts';
import type { FileVersion, Transport } from '../transport/transport.ts';
import { makeFolder, pattern } from './transport-fixtures.ts';

const FILES = { 'a.parquet': pattern(700_000, 1), 'b.parquet': pattern(300_000, 2) };

const noDevice: OpenVerbsDevice = async () => {
  throw new VerbsError('NO_DEVICE', 'this machine has no RDMA device');
};

async function serve(t: TestContext, folder: string, options: Partial<ServeOptions> = {}): Promise<RunningServer> {
  const server = await serveRegion({ roots: [folder], listen: { host: '127.0.0.1', port: 0 }, ...options });
  t.after(() => server.close());
  return server;
}

const overRdma = (open: OpenVerbsDevice, budgetBytes = 2 ** 30): Pick<ServeOptions, 'rdma'> => ({
  rdma: { required: true, budgetBytes, open },
});

interface Opened {
  readonly transport: Transport;
  readonly told: string[];
}

async function open(t: TestContext, port: number, options: OpenTransportOptions): Promise<Opened> {
  const told: string[] = [];
  const onTransport = (text: string, outcome: string): void => void told.push(`${outcome}: ${text}`);
  const { transport } = await openTransport(`rdma://127.0.0.1:${port}`, { onTransport, ...options });
  t.after(() => transport.close());
  return { transport, told };
}

const named = (files: readonly FileVersion[], path: string): FileVersion => files.find((file) => file.path === path)!;

async function readAll(transport: Transport, path: keyof typeof FILES, expected: Buffer = FILES[path]): Promise<void> {
  const into = new Uint8Array(expected.byteLength);
  await transport.read(named(await transport.list(''), path), 0, into);
  assert.ok(expected.equals(into));
}

async function until(check: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let left = 6000; !(await check()); left--) {
    assert.ok(left > 0, what);
    await sleep(5);
  }
}

test('auto: over RDMA where both ends have a device, else over TCP with one line that says why', async (t) => {
  const folder = makeFolder(t, FILES);
  const fabric = new ModelFabric();
  const withDevice = await serve(t, folder, overRdma(fabric.open('server')));
  const without = await serve(t, folder);
  const both = await open(t, withDevice.address().port, { rdma: { open: fabric.open('client') } });
  await readAll(both.transport, 'a.parquet');
  assert.match(both.told.join('|'), /^rdma: READs go over RDMA: device client, port 1, RoCE v2 [0-9a-f]{32}$/);
  assert.equal(withDevice.rdma()?.queuePairs, 1);
  assert.ok(fabric.bytes >= 700_000);

  const before = fabric.reads;
  const lacking = await open(t, without.address().port, { rdma: { open: fabric.open('client') } });
  await readAll(lacking.transport, 'a.parquet');
  assert.deepEqual(lacking.told, [
    'tcp: READs go over TCP: the server has no RDMA device in use (`qanat serve --rdma-device`)',
  ]);
  const bare = await open(t, withDevice.address().port, { rdma: { open: noDevice } });
  await readAll(bare.transport, 'a.parquet');
  assert.deepEqual(bare.told, ['no device: READs go over TCP: this machine has no RDMA device']);
  const checked = await open(t, withDevice.address().port, { checksum: true, rdma: { open: fabric.open('client') } });
  await readAll(checked.transport, 'a.parquet');
  assert.match(checked.told.join('|'), /^tcp: READs go over TCP: checksums of payloads were asked for/);
  const plain = await open(t, withDevice.address().port, { rdma: { transport: 'tcp', open: noDevice } });
  await readAll(plain.transport, 'a.parquet');
  assert.deepEqual(plain.told, []);
  assert.equal(fabric.reads, before);
  await both.transport.close();
  await until(() => withDevice.rdma()?.queuePairs === 0, 'the queue pair ends with the connection');
});

test('verbs: what is missing is said, and nothing goes over TCP', async (t) => {
  const folder = makeFolder(t, FILES);
  const fabric = new ModelFabric();
  const isRdma =
    (reason: RegExp) =>
    (error: unknown): boolean =>
      error instanceof FetchError && error.code === 'RDMA' && !error.retryable && reason.test(error.reason);
  const without = await serve(t, folder);
  const bare = await open(t, without.address().port, { rdma: { transport: 'verbs', open: noDevice } });
  await assert.rejects(bare.transport.list(''), isRdma(/^this machine has no RDMA device$/));
  const alone = await open(t, without.address().port, { rdma: { transport: 'verbs', open: fabric.open() } });
  await assert.rejects(alone.transport.list(''), isRdma(/the server has no RDMA device in use/));
  const full = await serve(t, folder, overRdma(fabric.open('server', { queuePairsMax: 0 })));
  const refused = await open(t, full.address().port, { rdma: { transport: 'verbs', open: fabric.open() } });
  await assert.rejects(refused.transport.list(''), isRdma(/the server refuses: no queue pair$/));
  await assert.rejects(
    openTransport('rdma://127.0.0.1:1', { checksum: true, rdma: { transport: 'verbs' } }),
    (error) => error instanceof FetchError && error.code === 'OPTION',
  );
});

test('a device that has no more queue pairs, or locks no more memory, is no obstacle', async (t) => {
  const folder = makeFolder(t, FILES);
  const fabric = new ModelFabric();
  const server = await serve(t, folder, overRdma(fabric.open('server', { queuePairsMax: 1 })));
  const limits: [Partial<ModelLimits>, RegExp][] = [
    [{ lockedBytesMax: 1000 }, /^tcp: READs go over TCP: \d+ bytes can't be locked$/],
    [{ queuePairsMax: 0 }, /^tcp: READs go over TCP: no queue pair$/],
  ];
  for (const [limit, reason] of limits) {
    const opened = await open(t, server.address().port, { rdma: { open: fabric.open('client', limit) } });
    await readAll(opened.transport, 'a.parquet');
    assert.match(opened.told.join('|'), reason);
    await opened.transport.close();
    await until(() => server.rdma()?.queuePairs === 0, 'the queue pair at the server ends');
  }
  const first = await open(t, server.address().port, { rdma: { open: fabric.open('client') } });
  await readAll(first.transport, 'a.parquet');
  const second = await open(t, server.address().port, { rdma: { open: fabric.open('client') } });
  await readAll(second.transport, 'a.parquet');
  assert.match(second.told.join('|'), /^tcp: READs go over TCP: the server refuses: no queue pair$/);
});

test('a server whose region does not fit does not start with a device that it has to have, and says so without', async (t) => {
  const folder = makeFolder(t, FILES);
  const fabric = new ModelFabric();
  await assert.rejects(
    serve(t, folder, overRdma(fabric.open(), 1000)),
    /serve RDMA: a region of \d+ bytes does not fit/,
  );
  await assert.rejects(serve(t, folder, overRdma(noDevice)), /serve RDMA: this machine has no RDMA device/);
  const lines: string[] = [];
  const rdma = { required: false, budgetBytes: 2 ** 30, open: noDevice };
  const server = await serve(t, folder, { rdma, log: (event, _peer, detail) => lines.push(`${event}: ${detail}`) });
  assert.deepEqual(lines, ['rdma: not used: this machine has no RDMA device']);
  assert.equal(server.rdma(), undefined);
  for (const device of fabric.devices) assert.ok(device.closed);
});

test('a new generation is registered anew: reads go on over the same queue pair, changed files are stale', async (t) => {
  const folder = makeFolder(t, FILES);
  const fabric = new ModelFabric();
  const server = await serve(t, folder, overRdma(fabric.open('server')));
  const generations: string[] = [];
  const { transport } = await open(t, server.address().port, {
    rdma: { transport: 'verbs', open: fabric.open('client') },
    onGeneration: (name) => generations.push(name),
  });
  await readAll(transport, 'a.parquet');
  const old = await transport.list('');
  const pairs = [...fabric.pairs.keys()];
  writeFileSync(join(folder, 'new'), pattern(300_000, 3));
  renameSync(join(folder, 'new'), join(folder, 'b.parquet'));
  assert.equal(await server.republish(), 'published');
  await until(() => generations.length === 1, 'the client is told');
  await readAll(transport, 'a.parquet');
  await readAll(transport, 'b.parquet', pattern(300_000, 3));
  const stale = transport.read(named(old, 'b.parquet'), 0, new Uint8Array(10));
  await assert.rejects(stale, (error) => error instanceof FetchError && error.code === 'STALE');
  assert.deepEqual([...fabric.pairs.keys()], pairs);
});

test('a generation that can not be registered: clients go on over TCP', async (t) => {
  const folder = makeFolder(t, FILES);
  const fabric = new ModelFabric();
  const lines: string[] = [];
  const server = await serve(t, folder, {
    ...overRdma(fabric.open('server', { lockedBytesMax: 1_500_000 })),
    log: (event, _peer, detail) => lines.push(`${event}: ${detail}`),
  });
  const { transport, told } = await open(t, server.address().port, { rdma: { open: fabric.open('client') } });
  await readAll(transport, 'a.parquet');
  const large = pattern(600_000, 4);
  writeFileSync(join(folder, 'c.parquet'), large);
  assert.equal(await server.republish(), 'published');
  assert.match(lines.join('|'), /warning: not served over RDMA: \d+ bytes can't be locked\|published: /);
  await until(async () => (await transport.list('')).length === 3, 'the client has the new generation');
  await readAll(transport, 'a.parquet');
  assert.match(told.join('|'), /^rdma: [^|]*\|tcp: READs go over TCP: the server refuses: \d+ bytes can't be locked$/);
});

test('a generation that is published while a queue pair is being connected is the one that it reads', async (t) => {
  const folder = makeFolder(t, FILES);
  const fabric = new ModelFabric();
  const server = await serve(t, folder, overRdma(fabric.open('server')));
  let isFirst = true;
  fabric.onConnect = async () => {
    if (!isFirst) return;
    isFirst = false;
    writeFileSync(join(folder, 'c.parquet'), pattern(1000, 5));
    assert.equal(await server.republish(), 'published');
  };
  const { transport, told } = await open(t, server.address().port, {
    rdma: { transport: 'verbs', open: fabric.open('client') },
  });
  assert.equal((await transport.list('')).length, 3);
  await readAll(transport, 'a.parquet');
  assert.match(told.join('|'), /^rdma: [^|]*$/);
});

test('a client that goes while its queue pair is being connected leaves nothing behind', async (t) => {
  const folder = makeFolder(t, FILES);
  const fabric = new ModelFabric();
  const server = await serve(t, folder, overRdma(fabric.open('server')));
  const { promise: isConnecting, resolve: connecting } = Promise.withResolvers<void>();
  const { promise: goOn, resolve: release } = Promise.withResolvers<void>();
  fabric.onConnect = async () => {
    connecting();
    await goOn;
  };
  const { transport } = await open(t, server.address().port, { rdma: { open: fabric.open('client') } });
  const listing = assert.rejects(transport.list(''), (error) => error instanceof FetchError && error.code === 'CLOSED');
  await isConnecting;
  await transport.close();
  await listing;
  await until(() => server.rdma()?.queuePairs === 0, 'the server gives the queue pair back');
  release();
  await server.close();
  assert.equal(fabric.pairs.size, 0);
  for (const device of fabric.devices) assert.ok(device.closed);
});

/** A server that welcomes, and answers the request for a queue pair with what `answer` makes of it. */
async function hostile(t: TestContext, answer: (client: Buffer, socket: Socket) => Uint8Array): Promise<number> {
  const server = createServer((socket) => {
    let held = Buffer.alloc(0);
    socket.on('error', () => {});
    socket.on('data', (piece: Buffer) => {
      held = Buffer.concat([held, piece]);
      if (held.length === HELLO_BYTES) {
        const depths = { queueDepth: 128, readBytesMax: 1 << 20, outstandingMax: 16 };
        const region = { rkey: 5, regionLength: 1000, generation: new Uint8Array(16).fill(7) };
        socket.write(encodeWelcome({ checksum: false, verbs: true, ...depths, ...region }));
      } else if (held.length === HELLO_BYTES + REQUEST_BYTES) {
        socket.write(answer(held.subarray(HELLO_BYTES), socket));
      }
    });
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  return address.port;
}

test('what a hostile server answers reaches no device', async (t) => {
  const endpoint: VerbsEndpoint = { qpn: 99, psn: 1, lid: 0, gid: new Uint8Array(16).fill(1), mtu: 3, readsMax: 255 };
  const region = { generation: new Uint8Array(16).fill(7), rkey: 1, address: 4096, length: 1000 };
  const good = encodeVerbsAnswer({ endpoint, region }, false);
  const damaged = (at: number, value: number): Uint8Array => {
    const bytes = Uint8Array.from(good);
    bytes[32 + at] = value;
    return bytes;
  };
  const answers: [string, Uint8Array, string][] = [
    ['queue pair number of 25 bits', damaged(7, 1), 'PROTOCOL'],
    ['no MTU', damaged(30, 0), 'PROTOCOL'],
    ['an unknown verdict', damaged(0, 9), 'PROTOCOL'],
    ['an address beyond 2^53', damaged(63, 0xff), 'PROTOCOL'],
    [
      'another generation',
      encodeVerbsAnswer({ endpoint, region: { ...region, generation: new Uint8Array(16) } }, false),
      'RDMA',
    ],
    ['another length', encodeVerbsAnswer({ endpoint, region: { ...region, length: 999 } }, false), 'RDMA'],
    ['a queue pair that is none', good, 'STALLED'],
  ];
  for (const [what, bytes, code] of answers) {
    const fabric = new ModelFabric();
    const port = await hostile(t, () => bytes);
    const { transport } = await open(t, port, {
      rdma: { transport: 'verbs', open: fabric.open('client') },
      connectMs: 5000,
      retry: { attempts: 1 },
    });
    await assert.rejects(transport.list(''), (error) => {
      assert.ok(error instanceof FetchError, `${what}: ${error}`);
      assert.equal(error.code, code, `${what}: ${error.message}`);
      return true;
    });
    await transport.close();
    for (const device of fabric.devices) assert.ok(device.closed, what);
    assert.equal(fabric.reads, 0);
  }
});
