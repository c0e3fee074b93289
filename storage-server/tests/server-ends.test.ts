/** How connections begin and end: strangers, silence, half a connection, CLOSE. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { encodeClose, encodeHello, FRAME_KIND, WC } from '../protocol/index.ts';
import { makeFolder, pattern, startServer } from './lake.ts';
import { HELLO, RawClient, readFrame } from './raw-client.ts';

const FILES = { 'a.parquet': pattern(8 << 20, 1) };
/** Longer than any test may take: what ends, ends for another reason. */
const NEVER_MS = 3_600_000;

test('what does not begin with the magic is ended at once, be it ever so short', async (t) => {
  const limits = { handshakeMs: NEVER_MS };
  const { port, server } = await startServer(t, makeFolder(t, FILES), { limits });
  const magic = Buffer.from(encodeHello(HELLO).subarray(0, 4));
  const strangers = [
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    Buffer.from('x'),
    Buffer.from([0x16, 3, 1]),
    ...[0, 1, 2, 3].map((at) => Buffer.concat([magic.subarray(0, at), Buffer.of(magic[at]! ^ 1)])),
  ];
  for (const bytes of strangers) {
    const client = await RawClient.connect(port);
    client.socket.write(bytes);
    await client.end();
    assert.equal(await client.take(1), undefined);
  }
  assert.equal(server.counters().garbage, strangers.length);
  const slow = await RawClient.connect(port);
  for (const byte of encodeHello(HELLO)) {
    slow.socket.write(Uint8Array.of(byte));
    await sleep(1);
  }
  assert.ok(await slow.take(64), 'the magic byte by byte');
  slow.socket.destroy();
});

test('a CLOSE with anything in its other fields is no request', async (t) => {
  const { port, server } = await startServer(t, makeFolder(t, FILES));
  for (const at of [3, 4, 8, 15, 16, 23, 24, 27, 28, 31]) {
    const client = await RawClient.greeted(port);
    client.socket.write(encodeClose().fill(1, at, at + 1));
    await client.end();
    assert.equal(await client.take(1), undefined, `byte ${at}`);
  }
  assert.equal(server.counters().garbage, 10);
  const client = await RawClient.greeted(port);
  client.socket.write(encodeClose());
  assert.equal((await client.frame())?.kind, FRAME_KIND.CLOSED);
  await client.end();
});

test('a client that ends its direction gets all its answers, then CLOSED', async (t) => {
  const { port } = await startServer(t, makeFolder(t, FILES));
  const client = await RawClient.greeted(port);
  const { rkey } = client.welcome;
  const reads = Array.from({ length: 16 }, (_, wrId) => readFrame({ wrId, rkey, address: 0, length: 4 << 20 }));
  client.socket.end(Buffer.concat(reads));
  for (let wrId = 0; wrId < 16; wrId++) {
    const answer = await client.answer();
    assert.deepEqual([answer?.wrId, answer?.status, answer?.bytes.byteLength], [wrId, WC.SUCCESS, 4 << 20]);
  }
  assert.equal((await client.frame())?.kind, FRAME_KIND.CLOSED);
  await client.end();
  const refused = await RawClient.connect(port);
  refused.socket.end(encodeHello({ ...HELLO, queueDepth: 0 }));
  assert.equal((await refused.take(64))?.readUInt16LE(6), 4, 'a refusal too');
  await refused.end();
});

test('an end in the middle of a message, or without one', async (t) => {
  const { port, server } = await startServer(t, makeFolder(t, FILES), { limits: { handshakeMs: NEVER_MS } });
  const silent = await RawClient.connect(port);
  silent.socket.end();
  await silent.end();
  assert.equal(server.counters().garbage, 0, 'a probe that connects and goes is not garbage');
  const half = await RawClient.connect(port);
  half.socket.end(encodeHello(HELLO).subarray(0, 20));
  await half.end();
  const request = await RawClient.greeted(port);
  request.socket.end(encodeClose().subarray(0, 20));
  await request.end();
  assert.equal(await request.take(1), undefined);
  assert.equal(server.counters().garbage, 2);
});

test('silent connections, however many, keep nobody out', async (t) => {
  const limits = { handshakeMs: NEVER_MS, connectionsMax: 200 };
  const { port, server } = await startServer(t, makeFolder(t, FILES), { limits });
  const crowd = await Promise.all(Array.from({ length: 600 }, () => RawClient.connect(port)));
  crowd[599]!.socket.write(encodeHello(HELLO).subarray(0, 31));
  // room for all who speak, though more are silent than there are slots
  const clients: Awaited<ReturnType<typeof RawClient.greeted>>[] = [];
  while (clients.length < 200) clients.push(await RawClient.greeted(port));
  await assert.rejects(RawClient.greeted(port), /refused 3/);
  await sleep(600);
  // the next one to come costs all but a quarter of the slots, the oldest first
  const late = await RawClient.connect(port);
  while (crowd.filter(({ ended }) => !ended).length > 50) await sleep(5);
  assert.ok(crowd.slice(-40).every(({ ended }) => !ended));
  assert.ok(crowd.slice(0, 500).every(({ ended }) => ended));
  for (const [i, client] of clients.entries()) {
    client.socket.write(readFrame({ wrId: i, rkey: client.welcome.rkey, address: 0, length: 64 }));
  }
  for (const client of clients) assert.equal((await client.answer())?.status, WC.SUCCESS);
  assert.ok(server.counters().connections <= 251, String(server.counters().connections));
  for (const client of [...crowd, ...clients, late]) client.socket.destroy();
});
