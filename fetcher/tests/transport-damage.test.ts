/** Bytes that are damaged on the way: with checksums they are fetched again, and never given out. */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { serveRegion } from '../../storage-server/index.ts';
import { encodeWelcome } from '../../storage-server/protocol/index.ts';
import { FetchError } from '../errors.ts';
import { openTransport } from '../transport/open-transport.ts';
import { seededRandom } from './random.ts';
import { makeFolder, pattern, startProxy } from './transport-fixtures.ts';

const BYTES = pattern(8_000_000, 1);

/** A server behind a network that flips one bit of every `every` bytes, beginning behind the directory. */
async function damagingProxy(t: TestContext, every: number) {
  const server = await serveRegion({
    roots: [makeFolder(t, { 'a.parquet': BYTES })],
    listen: { host: '127.0.0.1', port: 0 },
  });
  t.after(() => server.close());
  const proxy = await startProxy(t, () => server.address().port);
  const random = seededRandom();
  const damage = { flips: 0 };
  let left = every;
  proxy.onPiece = (piece) => {
    left -= piece.byteLength;
    if (left > 0 || piece.byteLength < 4096) return piece;
    left = every;
    damage.flips++;
    // not the frame's own fields, which are checked by what they say
    const at = 2048 + random.below(piece.byteLength - 2048);
    piece[at]! ^= 1 << random.below(8);
    return piece;
  };
  return { port: proxy.port, damage };
}

test('with checksums damaged payloads are fetched again', async (t) => {
  const { port, damage } = await damagingProxy(t, 3_000_000);
  const { transport, counters } = await openTransport(`rdma://127.0.0.1:${port}/`, {
    checksum: true,
    readBytesMax: 200_000,
    retry: { attempts: 20, baseMs: 0.1 },
  });
  t.after(() => transport.close());
  const [file] = await transport.list('');
  const into = new Uint8Array(BYTES.byteLength);
  let arrived = 0;
  await transport.read(file!, 0, into, {
    onArrived: (bytes) => {
      assert.ok(BYTES.subarray(arrived, bytes).equals(into.subarray(arrived, bytes)), 'damage was told as arrived');
      arrived = bytes;
    },
  });
  assert.ok(BYTES.equals(into));
  assert.ok(damage.flips > 0 && counters.retries > 0, JSON.stringify({ ...damage, ...counters }));
});

test('damage that does not end is an error of the transport', async (t) => {
  const { port } = await damagingProxy(t, 1);
  const options = { checksum: true, retry: { attempts: 3, baseMs: 0.1 } };
  const { transport, counters } = await openTransport(`rdma://127.0.0.1:${port}/`, options);
  t.after(() => transport.close());
  const [file] = await transport.list('');
  await assert.rejects(transport.read(file!, 0, new Uint8Array(BYTES.byteLength)), (error) => {
    assert.ok(error instanceof FetchError);
    assert.match(error.message, /^fetch PROTOCOL: a\.parquet: payload at \d+ of request \d+ fails its checksum \(gave/);
    return true;
  });
  assert.ok(counters.retries >= 2);
});

test('without checksums nothing notices: that is what they are for', async (t) => {
  const { port } = await damagingProxy(t, 3_000_000);
  const { transport, counters } = await openTransport(`rdma://127.0.0.1:${port}/`);
  t.after(() => transport.close());
  const [file] = await transport.list('');
  const into = new Uint8Array(BYTES.byteLength);
  await transport.read(file!, 0, into);
  assert.equal(counters.retries, 0);
  assert.ok(!BYTES.equals(into));
});

test('a server that does not grant checksums is refused', async (t) => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      const depths = { queueDepth: 128, outstandingMax: 16, readBytesMax: 1 << 20 };
      const generation = new Uint8Array(16);
      socket.write(encodeWelcome({ ...depths, checksum: false, rkey: 1, regionLength: 1 << 20, generation }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address() as { port: number };
  const { transport } = await openTransport(`rdma://127.0.0.1:${port}/`, { checksum: true });
  t.after(() => transport.close());
  await assert.rejects(transport.list(''), /fetch PROTOCOL: .* does not send the checksums that were asked for$/);
});
