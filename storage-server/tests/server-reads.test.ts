/** READs over a raw connection: right bytes everywhere in the region, right checks in the right order. */
import assert from 'node:assert/strict';
import { appendFileSync, renameSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import { encodeClose, FRAME_KIND, WC } from '../protocol/index.ts';
import { fetchDirectory, makeFolder, pattern, startServer } from './lake.ts';
import { randomFrom } from './random.ts';
import { RawClient, readFrame } from './raw-client.ts';

const FILES = {
  'a.parquet': pattern(3_000_000, 1),
  'b/empty.parquet': new Uint8Array(0),
  'b/one.parquet': pattern(1, 2),
  'b/x.parquet': pattern(100, 3),
  'z.parquet': pattern(70_001, 4),
};

test('every range of the region is what the directory and the files say', async (t) => {
  const { port, server } = await startServer(t, makeFolder(t, FILES));
  const client = await RawClient.greeted(port);
  const { rkey, regionLength } = client.welcome;
  const directory = await fetchDirectory(client);
  assert.deepEqual(
    directory.entries.map(({ path, length }) => [path, length]),
    Object.entries(FILES).map(([path, bytes]) => [path, bytes.byteLength]),
  );
  const region = Buffer.alloc(regionLength);
  client.socket.write(readFrame({ wrId: 3, rkey, address: 0, length: directory.dataStart }));
  region.set((await client.answer())!.bytes);
  for (const entry of directory.entries) {
    region.set(FILES[entry.path as keyof typeof FILES], directory.dataStart + entry.offset);
  }
  const random = randomFrom('region ranges');
  for (let round = 0; round < 100; round++) {
    const asked = Array.from({ length: 1 + random.below(16) }, (_, i) => {
      const address = random.below(regionLength);
      const longest = random.below(3) === 0 ? regionLength - address : Math.min(300, regionLength - address);
      return { wrId: round * 100 + i, rkey, address, length: random.below(longest + 1) };
    });
    client.socket.write(Buffer.concat(asked.map(readFrame)));
    for (const { wrId, address, length } of asked) {
      const answer = await client.answer();
      assert.equal(answer?.wrId, wrId);
      assert.equal(answer.status, WC.SUCCESS);
      assert.ok(answer.bytes.equals(region.subarray(address, address + length)), `${length} bytes at ${address}`);
    }
  }
  assert.equal(server.counters().readErrors, 0);
  client.socket.destroy();
});

test('what is not allowed completes with its status, behind what was asked before it', async (t) => {
  const { port } = await startServer(t, makeFolder(t, FILES));
  const probe = await RawClient.greeted(port);
  const { rkey, regionLength } = probe.welcome;
  probe.socket.destroy();
  const read = { wrId: 7, rkey, address: 0, length: 8 };
  const cases: [string, Uint8Array, number][] = [
    ['length of 4 GiB', readFrame({ ...read, length: 0xffff_ffff }), WC.REM_INV_REQ_ERR],
    ['length over the limit', readFrame({ ...read, length: (8 << 20) + 1 }), WC.REM_INV_REQ_ERR],
    [
      'length over the limit and stale rkey',
      readFrame({ ...read, length: 9 << 20, rkey: rkey ^ 1 }),
      WC.REM_INV_REQ_ERR,
    ],
    ['stale rkey', readFrame({ ...read, rkey: rkey ^ 1 }), WC.REM_ACCESS_ERR],
    ['past the end', readFrame({ ...read, address: regionLength - 7 }), WC.REM_ACCESS_ERR],
    ['at the end', readFrame({ ...read, address: regionLength, length: 1 }), WC.REM_ACCESS_ERR],
    ['wraps around 2^64', readFrame({ ...read, address: 2n ** 64n - 4n }), WC.REM_ACCESS_ERR],
    ['wraps around 2^53', readFrame({ ...read, address: 2n ** 53n - 1n }), WC.REM_ACCESS_ERR],
    ['beyond 2^53', readFrame({ ...read, address: 2n ** 60n }), WC.REM_ACCESS_ERR],
    ['opcode 9', readFrame(read).fill(9, 2, 3), WC.REM_INV_REQ_ERR],
  ];
  for (const [name, frame, status] of cases) {
    const client = await RawClient.greeted(port);
    const good = readFrame({ wrId: 1, rkey, address: 0, length: 100 });
    client.socket.write(Buffer.concat([good, frame, readFrame({ wrId: 8, rkey, address: 0, length: 8 })]));
    assert.deepEqual((await client.answer())?.status, WC.SUCCESS, name);
    const answer = await client.answer();
    assert.deepEqual([answer?.wrId, answer?.status], [7, status], name);
    assert.notEqual(answer?.bytes.toString(), '', name);
    assert.equal(await client.answer(), undefined, `${name}: nothing comes after an error`);
    await client.end();
  }
});

test('a READ of length 0 succeeds whatever its rkey and address', async (t) => {
  const { port } = await startServer(t, makeFolder(t, FILES));
  const client = await RawClient.greeted(port);
  client.socket.write(readFrame({ wrId: 1, rkey: 0, address: 2n ** 64n - 1n, length: 0 }));
  assert.deepEqual(await client.answer(), { wrId: 1, status: WC.SUCCESS, bytes: Buffer.alloc(0) });
  client.socket.destroy();
});

test('more outstanding READs than granted', async (t) => {
  const { port } = await startServer(t, makeFolder(t, FILES));
  const client = await RawClient.greeted(port, { outstandingMax: 3 });
  assert.equal(client.welcome.outstandingMax, 3);
  const { rkey } = client.welcome;
  client.socket.write(Buffer.concat([1, 2, 3, 4].map((wrId) => readFrame({ wrId, rkey, address: 0, length: 1000 }))));
  const statuses = [await client.answer(), await client.answer(), await client.answer(), await client.answer()];
  assert.deepEqual(
    statuses.map((answer) => answer?.status),
    [WC.SUCCESS, WC.SUCCESS, WC.SUCCESS, WC.REM_INV_REQ_ERR],
  );
  await client.end();
});

test('checksums on request', async (t) => {
  const { port } = await startServer(t, makeFolder(t, FILES));
  const client = await RawClient.greeted(port, { checksum: true });
  assert.equal(client.welcome.checksum, true);
  client.socket.write(readFrame({ wrId: 1, rkey: client.welcome.rkey, address: 1, length: 2_500_000 }));
  for (let last = false; !last; ) {
    const frame = (await client.frame())!;
    assert.equal(frame.crc, crc32(frame.payload));
    last = frame.last;
  }
  client.socket.destroy();
});

test('CLOSE completes what is out, then the server says goodbye', async (t) => {
  const { port } = await startServer(t, makeFolder(t, FILES));
  const client = await RawClient.greeted(port);
  const { rkey } = client.welcome;
  client.socket.write(Buffer.concat([readFrame({ wrId: 1, rkey, address: 0, length: 2_000_000 }), encodeClose()]));
  assert.equal((await client.answer())?.bytes.byteLength, 2_000_000);
  assert.equal((await client.frame())?.kind, FRAME_KIND.CLOSED);
  await client.end();
});

const CHANGES: Record<string, (path: string) => void> = {
  'a file that grew': (path) => appendFileSync(path, 'x'),
  'a file that was cut': (path) => truncateSync(path, 1000),
  'a file that was replaced': (path) => {
    writeFileSync(`${path}.new`, FILES['a.parquet']);
    renameSync(`${path}.new`, path);
  },
  'a file that was written to': (path) => writeFileSync(path, pattern(3_000_000, 9)),
  'a file with another modification time': (path) => utimesSync(path, 1, 1),
};

for (const [name, change] of Object.entries(CHANGES)) {
  for (const before of [false, true]) {
    test(`${name} is an error, ${before ? 'opened before' : 'not opened before'}`, async (t) => {
      const folder = makeFolder(t, FILES);
      const { port, server } = await startServer(t, folder);
      const client = await RawClient.greeted(port);
      const { rkey } = client.welcome;
      const directory = await fetchDirectory(client);
      const read = { wrId: 5, rkey, address: directory.dataStart, length: 100 };
      if (before) {
        client.socket.write(readFrame(read));
        assert.equal((await client.answer())?.status, WC.SUCCESS);
      }
      change(join(folder, 'a.parquet'));
      client.socket.write(readFrame(read));
      const answer = await client.answer();
      assert.equal(answer?.status, WC.REM_OP_ERR);
      assert.match(answer.bytes.toString(), /a\.parquet/);
      await client.end();
      // Other files of the generation still are served.
      const other = await RawClient.greeted(port);
      const z = directory.entries.find(({ path }) => path === 'z.parquet')!;
      other.socket.write(readFrame({ wrId: 1, rkey, address: directory.dataStart + z.offset, length: z.length }));
      assert.ok((await other.answer())?.bytes.equals(FILES['z.parquet']));
      other.socket.destroy();
      assert.equal(server.counters().readErrors, 1);
    });
  }
}
