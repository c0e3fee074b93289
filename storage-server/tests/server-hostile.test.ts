/** What peers may do to a server: none of it ends the process, starves the others or holds more than its share. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeHello, WC } from '../protocol/index.ts';
import { fetchDirectory, makeFolder, pattern, startServer } from './lake.ts';
import { randomFrom } from './random.ts';
import { HELLO, RawClient, readFrame } from './raw-client.ts';

const FILES = { 'a.parquet': pattern(8 << 20, 1) };

/** The server still serves who behaves. */
async function assertServes(port: number): Promise<void> {
  const client = await RawClient.greeted(port);
  const { dataStart } = await fetchDirectory(client);
  client.socket.write(readFrame({ wrId: 9, rkey: client.welcome.rkey, address: dataStart + 5, length: 1 << 20 }));
  const answer = await client.answer();
  assert.ok(answer?.bytes.equals(FILES['a.parquet'].subarray(5, 5 + (1 << 20))));
  client.socket.destroy();
}

test('garbage before the handshake', async (t) => {
  const { port, server } = await startServer(t, makeFolder(t, FILES));
  const random = randomFrom('garbage');
  const garbage = [
    Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n            '),
    Buffer.alloc(1000, 0xff),
    Buffer.from(Uint8Array.from({ length: 5000 }, () => random.below(256))),
    Buffer.concat([encodeHello(HELLO).subarray(0, 20), Buffer.alloc(12, 0xff)]),
  ];
  for (const bytes of garbage) {
    const client = await RawClient.connect(port);
    client.socket.write(bytes);
    await client.end();
    assert.equal(await client.take(1), undefined, 'no answer to garbage');
  }
  assert.equal(server.counters().garbage, garbage.length);
  await assertServes(port);
});

test('a hello of another version or with impossible depths is refused with a reason', async (t) => {
  const { port } = await startServer(t, makeFolder(t, FILES));
  const version = await RawClient.connect(port);
  version.socket.write(encodeHello(HELLO).fill(9, 4, 5));
  const answer = (await version.take(64))!;
  assert.equal(answer.readUInt16LE(6), 1);
  assert.match((await version.take(answer.readUInt16LE(50)))!.toString(), /version 9/);
  await version.end();
  for (const hello of [
    { queueDepth: 0 },
    { outstandingMax: 70_000 },
    { readBytesMax: 0 },
    { readBytesMax: 0xffff_ffff },
  ]) {
    await assert.rejects(RawClient.greeted(port, hello), /refused 4/);
  }
  await assertServes(port);
});

test('half a hello, and half a frame', async (t) => {
  const { port } = await startServer(t, makeFolder(t, FILES), { limits: { handshakeMs: 200 } });
  const slow = await RawClient.connect(port);
  slow.socket.write(encodeHello(HELLO).subarray(0, 31));
  await slow.end();
  const half = await RawClient.greeted(port);
  half.socket.write(readFrame({ wrId: 1, rkey: half.welcome.rkey, address: 0, length: 8 }).subarray(0, 31));
  half.socket.end();
  await half.end();
  assert.equal(await half.take(1), undefined);
  await assertServes(port);
});

test('a hello and READs in pieces of every size', async (t) => {
  const { port } = await startServer(t, makeFolder(t, FILES));
  const random = randomFrom('pieces');
  const client = await RawClient.connect(port);
  const bytes = Buffer.concat([
    encodeHello(HELLO, Buffer.from('some token')),
    ...[1, 2, 3, 4].map((wrId) => readFrame({ wrId, rkey: 0, address: 0, length: 0 })),
  ]);
  for (let at = 0; at < bytes.byteLength; ) {
    const end = at + 1 + random.below(40);
    client.socket.write(bytes.subarray(at, end));
    at = end;
    await sleep(1);
  }
  await client.take(64);
  for (const wrId of [1, 2, 3, 4]) assert.equal((await client.answer())?.wrId, wrId);
  client.socket.destroy();
});

test('garbage after the handshake ends that connection only', async (t) => {
  const { port } = await startServer(t, makeFolder(t, FILES));
  const random = randomFrom('garbage after the handshake');
  for (let round = 0; round < 20; round++) {
    const client = await RawClient.greeted(port);
    client.socket.write(Uint8Array.from({ length: 32 + random.below(2000) }, () => random.below(256)));
    await client.end();
  }
  await assertServes(port);
});

test('a thousand connections, and the one beyond the limit', async (t) => {
  const { port, server } = await startServer(t, makeFolder(t, FILES), { limits: { connectionsMax: 1000 } });
  const clients = await Promise.all(Array.from({ length: 1000 }, () => RawClient.greeted(port)));
  await assert.rejects(RawClient.greeted(port), /refused 3/);
  await Promise.all(
    clients.map(async (client, i) => {
      client.socket.write(readFrame({ wrId: i, rkey: client.welcome.rkey, address: i, length: 4096 }));
      assert.equal((await client.answer())?.status, WC.SUCCESS);
    }),
  );
  for (const client of clients) client.socket.destroy();
  while (server.counters().connections > 0) await sleep(10);
  await assertServes(port);
});

test('slow readers hold a bounded amount, do not stop the others, and are dropped in the end', async (t) => {
  const { port, server } = await startServer(t, makeFolder(t, FILES), {
    limits: { slabsMax: 4, stallMs: 1000, outstandingMax: 64 },
  });
  const slow = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const client = await RawClient.greeted(port, { outstandingMax: 64 });
      client.socket.pause();
      const { rkey } = client.welcome;
      client.socket.write(
        Buffer.concat(Array.from({ length: 64 }, (_, wrId) => readFrame({ wrId, rkey, address: 0, length: 8 << 20 }))),
      );
      return client;
    }),
  );
  await sleep(300);
  await assertServes(port);
  const asked = 10 * 64 * (8 << 20);
  assert.ok(server.counters().bytesSent < asked / 10, `${server.counters().bytesSent} of ${asked} bytes were taken up`);
  while (server.counters().stalled < 10) await sleep(20);
  await assertServes(port);
  for (const client of slow) client.socket.destroy();
});

test('a reader that becomes slow after an idle time is dropped too', async (t) => {
  const { port, server } = await startServer(t, makeFolder(t, FILES), { limits: { stallMs: 200 } });
  const client = await RawClient.greeted(port);
  const { rkey } = client.welcome;
  await sleep(700);
  client.socket.pause();
  client.socket.write(Buffer.concat([1, 2, 3].map((wrId) => readFrame({ wrId, rkey, address: 0, length: 8 << 20 }))));
  while (server.counters().stalled === 0) await sleep(20);
  client.socket.destroy();
});

test('resets in the middle', async (t) => {
  const { port, server } = await startServer(t, makeFolder(t, FILES));
  const random = randomFrom('resets');
  for (let round = 0; round < 30; round++) {
    const client = await RawClient.greeted(port);
    const { rkey } = client.welcome;
    const reads = Array.from({ length: 8 }, (_, wrId) => readFrame({ wrId, rkey, address: 0, length: 8 << 20 }));
    client.socket.write(Buffer.concat(reads));
    if (round % 2 === 0) await once(client.socket, 'data');
    await sleep(random.below(5));
    client.socket.resetAndDestroy();
  }
  while (server.counters().connections > 0) await sleep(10);
  await assertServes(port);
});

test('closing drains what is posted, refuses what comes, and is not held up by a peer that does not read', async (t) => {
  const { port, server } = await startServer(t, makeFolder(t, FILES), { limits: { drainMs: 1500 } });
  const good = await RawClient.greeted(port);
  const { rkey } = good.welcome;
  const stuck = await RawClient.greeted(port);
  stuck.socket.pause();
  for (const [client, length] of [
    [good, 1 << 20],
    [stuck, 4 << 20],
  ] as const) {
    const reads = Array.from({ length: 8 }, (_, wrId) => readFrame({ wrId, rkey, address: 0, length }));
    client.socket.write(Buffer.concat(reads));
  }
  const first = await good.frame();
  const closed = server.close();
  let completed = first?.last ? 1 : 0;
  for (let frame = await good.frame(); frame !== undefined && frame.kind === 1; frame = await good.frame()) {
    if (frame.last) completed++;
  }
  assert.equal(completed, 8);
  await closed;
  await assert.rejects(RawClient.connect(port), /ECONNREFUSED/);
  stuck.socket.destroy();
});
