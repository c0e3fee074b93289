/** A server that dies, comes back, changes or hangs while a client reads: right bytes or a clear error, in bounded time. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { serveRegion } from '../../storage-server/index.ts';
import {
  encodePayloadHeader,
  encodeWelcome,
  FRAME_HEADER_BYTES,
  planDirectory,
  REQUEST_BYTES,
  viewOf,
} from '../../storage-server/protocol/index.ts';
import { FetchError, type FetchErrorCode } from '../errors.ts';
import { openTransport } from '../transport/open-transport.ts';
import type { FileVersion } from '../transport/transport.ts';
import { makeFolder, pattern, spawnServer, startProxy } from './transport-fixtures.ts';

const FILES = { 'a.parquet': pattern(30_000_000, 1), 'b.parquet': pattern(1_000_000, 2) };

const isError =
  (...codes: FetchErrorCode[]) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof FetchError, String(error));
    assert.ok(codes.includes(error.code), error.message);
    return true;
  };

function fileOf(files: readonly FileVersion[], path: string): FileVersion {
  return files.find((file) => file.path === path)!;
}

test('peer killed in the middle, back soon after: reads end with the right bytes', async (t) => {
  const folder = makeFolder(t, FILES);
  let server = await spawnServer(t, folder);
  const { transport, counters } = await openTransport(`rdma://127.0.0.1:${server.port}`, {
    // Small, so that no read is complete before the kill takes effect.
    windowBytes: 1 << 20,
    // a server takes as long to come back as the machine makes it
    retry: { attempts: 10_000, budget: 10_000, baseMs: 20, capMs: 100 },
  });
  t.after(() => transport.close());
  const a = fileOf(await transport.list(''), 'a.parquet');
  for (let round = 0; round < 3; round++) {
    let killed: Promise<void> | undefined;
    const into = [new Uint8Array(a.length), new Uint8Array(a.length)];
    const reads = into.map((bytes) =>
      transport.read(a, 0, bytes, {
        onArrived: (arrived) => {
          if (arrived > (round + 1) * 5_000_000) killed ??= server.kill();
        },
      }),
    );
    while (killed === undefined) await sleep(1);
    await killed;
    server = await spawnServer(t, folder, server.port);
    await Promise.all(reads);
    for (const bytes of into) assert.ok(FILES['a.parquet'].equals(bytes));
  }
  assert.ok(counters.reconnects >= 3 && counters.retries >= 3, JSON.stringify(counters));
});

test('a server that takes its time to come back, or to come up, is waited for', async (t) => {
  const folder = makeFolder(t, FILES);
  const server = await spawnServer(t, folder);
  const url = `rdma://127.0.0.1:${server.port}`;
  const { transport, counters } = await openTransport(url);
  t.after(() => transport.close());
  const a = fileOf(await transport.list(''), 'a.parquet');
  await server.kill();
  const starting = await openTransport(url);
  t.after(() => starting.transport.close());
  const listed = starting.transport.list('');
  // more reads than the retry budget has tokens for, if each of them spent one at every attempt
  const into = Array.from({ length: 60 }, () => new Uint8Array(10_000));
  const reads = into.map((bytes, k) => transport.read(a, k * 100_000, bytes));
  const read = Promise.all([listed, ...reads]);
  await Promise.race([read, sleep(2500)]);
  await spawnServer(t, folder, server.port);
  await read;
  for (const [k, bytes] of into.entries()) {
    assert.ok(FILES['a.parquet'].subarray(k * 100_000, k * 100_000 + 10_000).equals(bytes));
  }
  assert.ok(counters.retries > 60, JSON.stringify(counters));
});

test('peer killed in the middle, never back: a clear error', async (t) => {
  const server = await spawnServer(t, makeFolder(t, FILES));
  const { transport } = await openTransport(`rdma://127.0.0.1:${server.port}`, {
    windowBytes: 1 << 20,
    retry: { attempts: 3, baseMs: 5 },
  });
  t.after(() => transport.close());
  const a = fileOf(await transport.list(''), 'a.parquet');
  const read = transport.read(a, 0, new Uint8Array(a.length), {
    onArrived: () => {
      server.child.kill('SIGKILL');
    },
  });
  await assert.rejects(read, isError('LOST', 'REFUSED'));
  await assert.rejects(transport.list(''), isError('REFUSED'));
});

test('stale generation: a file that is the same is read on, one that is not is STALE', async (t) => {
  const folder = makeFolder(t, FILES);
  const server = await spawnServer(t, folder);
  const { transport } = await openTransport(`rdma://127.0.0.1:${server.port}`, {
    retry: { attempts: 100, baseMs: 20, capMs: 50 },
  });
  t.after(() => transport.close());
  const files = await transport.list('');
  await server.kill();
  writeFileSync(join(folder, 'b.parquet'), pattern(1_000_000, 3));
  await spawnServer(t, folder, server.port);
  const into = new Uint8Array(1_000_000);
  await transport.read(fileOf(files, 'a.parquet'), 7, into);
  assert.ok(FILES['a.parquet'].subarray(7, 1_000_007).equals(into));
  await assert.rejects(transport.read(fileOf(files, 'b.parquet'), 0, into), isError('STALE'));
  await transport.read(fileOf(await transport.list(''), 'b.parquet'), 0, into);
  assert.ok(pattern(1_000_000, 3).equals(into));
});

test('half-open connection: stalls are bounded, and over when the network is back', async (t) => {
  const server = await serveRegion({ roots: [makeFolder(t, FILES)], listen: { host: '127.0.0.1', port: 0 } });
  t.after(() => server.close());
  const proxy = await startProxy(t, () => server.address().port);
  const { transport } = await openTransport(`rdma://127.0.0.1:${proxy.port}`, {
    stallMs: 400,
    connectMs: 1500,
    retry: { attempts: 3, baseMs: 1 },
  });
  t.after(() => transport.close());
  const a = fileOf(await transport.list(''), 'a.parquet');
  const into = new Uint8Array(a.length);
  let frozen = false;
  const read = transport.read(a, 0, into, {
    onArrived: () => {
      proxy.frozen ||= !frozen;
      frozen = true;
    },
  });
  await assert.rejects(read, isError('STALLED', 'REFUSED'));
  proxy.frozen = false;
  proxy.cut();
  await transport.read(a, 0, into);
  assert.ok(FILES['a.parquet'].equals(into));
});

test('half-open connection after an idle time: noticed by the pair, which connects again', async (t) => {
  const server = await serveRegion({ roots: [makeFolder(t, FILES)], listen: { host: '127.0.0.1', port: 0 } });
  t.after(() => server.close());
  const proxy = await startProxy(t, () => server.address().port);
  const { transport, counters } = await openTransport(`rdma://127.0.0.1:${proxy.port}`, {
    stallMs: 200,
    retry: { attempts: 5, baseMs: 1 },
  });
  t.after(() => transport.close());
  const b = fileOf(await transport.list(''), 'b.parquet');
  await sleep(700);
  proxy.swallow();
  const into = new Uint8Array(b.length);
  await transport.read(b, 0, into);
  assert.ok(FILES['b.parquet'].equals(into));
  assert.deepEqual([counters.retries, counters.reconnects], [1, 1]);
});

test('a cancelled read stops asking', async (t) => {
  const server = await serveRegion({ roots: [makeFolder(t, FILES)], listen: { host: '127.0.0.1', port: 0 } });
  t.after(() => server.close());
  const { transport, counters } = await openTransport(`rdma://127.0.0.1:${server.address().port}`, {
    windowBytes: 2 << 20,
  });
  t.after(() => transport.close());
  const a = fileOf(await transport.list(''), 'a.parquet');
  const controller = new AbortController();
  let arrived = 0;
  const onArrived = (bytes: number): void => {
    arrived = bytes;
    controller.abort();
  };
  await assert.rejects(
    transport.read(a, 0, new Uint8Array(a.length), { signal: controller.signal, onArrived }),
    isError('CANCELLED'),
  );
  await sleep(100);
  assert.ok(counters.requests <= 2 + 4, `${counters.requests} requests`);
  assert.ok(counters.bytesOnWire <= counters.bytesDirectory + (4 << 20), `${counters.bytesOnWire} bytes`);
  assert.equal(counters.bytesOnWire, counters.bytesDirectory + counters.bytesDiscarded + arrived);
});

test('servers that are none', async (t) => {
  const listen = async (onSocket: (socket: Socket) => void): Promise<number> => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      onSocket(socket);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    return (server.address() as { port: number }).port;
  };
  const told = async (host: string): Promise<string> => {
    // the time without progress is that of the handshake, too; for who is not silent it is more than anything takes
    const options = { stallMs: host === `127.0.0.1:${silent}` ? 100 : 60_000, retry: { attempts: 2, baseMs: 1 } };
    const { transport, counters } = await openTransport(`rdma://${host}`, options);
    const error = await transport.list('').then(
      () => assert.fail('a server that is none'),
      (reason: unknown) => reason,
    );
    await transport.close();
    assert.ok(error instanceof FetchError, String(error));
    return `${counters.retries} retries, ${error.message}`;
  };
  const sockets: Socket[] = [];
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  const silent = await listen((socket) => sockets.push(socket));
  const http = await listen((socket) => socket.end(`HTTP/1.1 400 Bad Request\r\n${'x'.repeat(100)}\r\n\r\n`));
  const short = await listen((socket) => socket.end('+OK\r\n'));
  const closing = await listen((socket) => socket.end());
  const free = createServer();
  await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve));
  const { port } = free.address() as { port: number };
  await new Promise((resolve) => free.close(resolve));
  const expected: [host: string, message: RegExp][] = [
    [
      `127.0.0.1:${silent}`,
      /^0 retries, fetch STALLED: .* connected, but nothing there speaks Qanat .*`qanat serve`\?$/,
    ],
    [
      `127.0.0.1:${http}`,
      /^0 retries, fetch PROTOCOL: .* connected, but nothing there speaks Qanat .*`qanat serve`\?$/,
    ],
    [
      `127.0.0.1:${short}`,
      /^0 retries, fetch PROTOCOL: .* connected, but nothing there speaks Qanat .*`qanat serve`\?$/,
    ],
    [
      `127.0.0.1:${closing}`,
      /^1 retries, fetch REFUSED: .* before the handshake: is this the port of a `qanat serve`\?/,
    ],
    [
      `127.0.0.1:${port}`,
      /^1 retries, fetch REFUSED: .* nothing listens there \(ECONNREFUSED\): is `qanat serve` running/,
    ],
    ['qanat.invalid', /^[01] retries, fetch HOST: qanat\.invalid:7400: (no host of this name|the name server)/],
  ];
  const messages = await Promise.all(expected.map(([host]) => told(host)));
  for (const [k, [, message]] of expected.entries()) assert.match(messages[k]!, message);
});

test('closing ends a connection that is being made', async (t) => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => sockets.push(socket));
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  t.after(() => silent.close());
  const { port } = silent.address() as { port: number };
  const { transport } = await openTransport(`rdma://127.0.0.1:${port}`, { stallMs: 3_600_000 });
  const listed = assert.rejects(transport.list(''), isError('CLOSED'));
  while (sockets.length === 0) await sleep(5);
  await transport.close();
  await listed;
});

/** A server that shakes hands properly and answers every READ with what `answer` makes of it. */
async function fakeServer(
  t: TestContext,
  answer: (address: number, length: number) => { header?: object; payload: Uint8Array },
  regionLength = 1 << 20,
): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    let greeted = false;
    socket.on('data', (bytes: Buffer) => {
      if (!greeted) {
        greeted = true;
        const generation = new Uint8Array(16).fill(5);
        const depths = { queueDepth: 128, outstandingMax: 16, readBytesMax: 1 << 20 };
        socket.write(encodeWelcome({ ...depths, checksum: false, rkey: 1, regionLength, generation }));
        return;
      }
      for (let at = 0; at + REQUEST_BYTES <= bytes.byteLength; at += REQUEST_BYTES) {
        const length = bytes.readUInt32LE(at + 24);
        const { header, payload } = answer(Number(bytes.readBigUInt64LE(at + 16)), length);
        const head = new Uint8Array(FRAME_HEADER_BYTES);
        const fields = { last: true, wrLow: bytes.readUInt32LE(at + 8), wrHigh: 0, offset: 0, status: 0, crc: 0 };
        encodePayloadHeader(viewOf(head), 0, { ...fields, payloadBytes: payload.byteLength, ...header });
        socket.write(Buffer.concat([head, payload]));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return (server.address() as { port: number }).port;
}

test('servers that lie', async (t) => {
  const { prefix } = planDirectory(new Uint8Array(16).fill(5), 64, []);
  const { prefix: other } = planDirectory(new Uint8Array(16).fill(6), 64, []);
  const size = (bytes: number): Uint8Array => {
    const eight = Buffer.alloc(8);
    eight.writeBigUInt64LE(BigInt(bytes));
    return eight;
  };
  const slice = (bytes: Uint8Array) => (address: number, length: number) => ({
    payload: bytes.subarray(address, address + length),
  });
  const damaged = Uint8Array.from(prefix);
  damaged[12]! ^= 1;
  const honest = await openTransport(`rdma://127.0.0.1:${await fakeServer(t, slice(prefix))}`);
  assert.deepEqual(await honest.transport.list(''), []);
  await honest.transport.close();
  const liars = {
    'a frame of 4 GiB': await fakeServer(t, () => ({
      header: { payloadBytes: 0xffff_ffff },
      payload: new Uint8Array(100),
    })),
    'more than was asked': await fakeServer(t, (_, length) => ({ payload: new Uint8Array(length + 1) })),
    'less than was asked': await fakeServer(t, (_, length) => ({ payload: new Uint8Array(length - 1) })),
    'a directory larger than the region': await fakeServer(t, () => ({ payload: size(2 ** 40) })),
    'a directory of no size': await fakeServer(t, () => ({ payload: size(0) })),
    'a directory that is damaged': await fakeServer(t, slice(damaged)),
    'the directory of another generation': await fakeServer(t, slice(other)),
    'an unknown status': await fakeServer(t, () => ({ header: { status: 77 }, payload: new Uint8Array(0) })),
    'a region without a directory': await fakeServer(t, slice(prefix), 4),
  };
  for (const [name, port] of Object.entries(liars)) {
    const { transport } = await openTransport(`rdma://127.0.0.1:${port}`, { retry: { attempts: 2, baseMs: 1 } });
    await assert.rejects(transport.list(''), isError('PROTOCOL'), name);
    await transport.close();
  }
});
