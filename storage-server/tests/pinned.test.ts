/** Pinned files: the same bytes as storage has, within a budget, and no others whatever happens to the files. */
import assert from 'node:assert/strict';
import { appendFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packRegion, ServeError } from '../index.ts';
import { OpenFiles } from '../open-files.ts';
import { PinnedFiles } from '../pinned-files.ts';
import { scanRoots } from '../scan-roots.ts';
import { fetchDirectory, makeFolder, pattern, startServer } from './lake.ts';
import { randomFrom } from './random.ts';
import { RawClient, readFrame } from './raw-client.ts';

const FILES = {
  'a.parquet': pattern(3_000_000, 1),
  'b/empty.parquet': Buffer.alloc(0),
  'b/one.parquet': pattern(1, 2),
  'b/x.parquet': pattern(100, 3),
  'z.parquet': pattern(70_001, 4),
};
const BYTES = 3_070_102;

const find = async (root: string) => (await scanRoots([root], { all: false })).files;

function bytesOf(pinned: PinnedFiles, file: Parameters<PinnedFiles['visit']>[0], offset = 0, length = file.length) {
  const pieces: Uint8Array[] = [];
  pinned.visit(file, offset, length, { bytes: (piece) => pieces.push(piece) });
  return Buffer.concat(pieces);
}

test('every range of a pinned region is what the directory and the files say, also with checksums', async (t) => {
  const folder = makeFolder(t, FILES);
  const { port, server } = await startServer(t, folder, { pin: { budgetBytes: BYTES } });
  assert.equal(server.region().pinnedBytes, BYTES);
  // From here on storage has nothing to do with it.
  rmSync(folder, { recursive: true });
  const random = randomFrom('pinned ranges');
  for (const checksum of [false, true]) {
    const client = await RawClient.greeted(port, { checksum });
    const { rkey, regionLength } = client.welcome;
    const directory = await fetchDirectory(client);
    const region = Buffer.alloc(regionLength);
    client.socket.write(readFrame({ wrId: 3, rkey, address: 0, length: directory.dataStart }));
    region.set((await client.answer())!.bytes);
    for (const { path, offset } of directory.entries) {
      region.set(FILES[path as keyof typeof FILES], directory.dataStart + offset);
    }
    for (let round = 0; round < 50; round++) {
      const asked = Array.from({ length: 1 + random.below(16) }, (_, i) => {
        const address = random.below(regionLength);
        const longest = random.below(3) === 0 ? regionLength - address : Math.min(40_000, regionLength - address);
        return { wrId: round * 100 + i, rkey, address, length: random.below(longest + 1) };
      });
      client.socket.write(Buffer.concat(asked.map(readFrame)));
      for (const { wrId, address, length } of asked) {
        const answer = await client.answer();
        assert.deepEqual([answer?.wrId, answer?.status], [wrId, 0]);
        assert.ok(answer!.bytes.equals(region.subarray(address, address + length)), `${length} bytes at ${address}`);
      }
    }
    client.socket.destroy();
  }
  assert.equal(server.counters().readErrors, 0);
});

test('what is not allowed is refused as it is without pinning', async (t) => {
  const { port } = await startServer(t, makeFolder(t, FILES), { pin: { budgetBytes: BYTES } });
  const client = await RawClient.greeted(port);
  const { rkey, regionLength } = client.welcome;
  client.socket.write(
    Buffer.concat([
      readFrame({ wrId: 1, rkey, address: 0, length: 50 }),
      readFrame({ wrId: 2, rkey, address: regionLength - 7, length: 8 }),
    ]),
  );
  assert.equal((await client.answer())!.status, 0);
  const refused = (await client.answer())!;
  assert.deepEqual([refused.wrId, refused.status], [2, 10]);
  assert.match(refused.bytes.toString(), /range outside the region/);
  assert.equal(await client.answer(), undefined);
});

test('files over the borders of chunks, of a folder and of a packed file', async (t) => {
  const folder = makeFolder(t, FILES);
  const output = join(makeFolder(t, {}), 'lake.qanat');
  await packRegion({ roots: [folder], output });
  const random = randomFrom('chunks');
  for (const root of [folder, output]) {
    const files = await find(root);
    for (const chunkBytes of [2 ** 30, 1 + random.below(100_000), 997]) {
      const openFiles = new OpenFiles(8);
      const pinned = await PinnedFiles.load(files, { budgetBytes: BYTES, openFiles }, chunkBytes);
      openFiles.close();
      assert.equal(pinned.bytes, BYTES);
      for (const file of files) {
        const expected = FILES[file.path as keyof typeof FILES];
        assert.ok(bytesOf(pinned, file).equals(expected), file.path);
        for (let k = 0; k < 20; k++) {
          const offset = random.below(file.length + 1);
          const length = random.below(file.length - offset + 1);
          assert.ok(bytesOf(pinned, file, offset, length).equals(expected.subarray(offset, offset + length)));
        }
      }
    }
  }
});

test('a budget that is one byte short says what is needed and what there is', async (t) => {
  const folder = makeFolder(t, FILES);
  await assert.rejects(startServer(t, folder, { pin: { budgetBytes: BYTES - 1 } }), (error) => {
    assert.ok(error instanceof ServeError && error.code === 'PIN', String(error));
    assert.match(
      error.reason,
      /5 files needs 2\.9 MiB \(3070102 bytes\) of memory, the budget is 2\.9 MiB \(3070101 bytes\)/,
    );
    return true;
  });
});

test('the next generation reads only what is new, and keeps to the budget', async (t) => {
  const folder = makeFolder(t, { 'a.parquet': pattern(50_000, 1), 'b.parquet': pattern(50_000, 2) });
  const openFiles = new OpenFiles(8);
  const loaded: number[] = [];
  const options = { openFiles, budgetBytes: 160_000, onProgress: (_: number, total: number) => loaded.push(total) };
  const first = await PinnedFiles.load(await find(folder), options);
  assert.equal(first.bytes, 100_000);
  writeFileSync(join(folder, 'b.parquet'), pattern(50_000, 3));
  const second = await PinnedFiles.load(await find(folder), { ...options, previous: first });
  assert.deepEqual(loaded, [100_000, 50_000], 'what has not changed is not read again');
  assert.equal(second.bytes, 150_000, 'the old b is still in the memory that a lies in');
  // Both arenas and a third would be 200,000: everything moves into one.
  writeFileSync(join(folder, 'b.parquet'), pattern(50_000, 4));
  const third = await PinnedFiles.load(await find(folder), { ...options, previous: second });
  assert.equal(third.bytes <= options.budgetBytes, true, `${third.bytes}`);
  writeFileSync(join(folder, 'c.parquet'), pattern(60_000, 5));
  const last = await find(folder);
  const fourth = await PinnedFiles.load(last, { ...options, previous: third });
  assert.equal(fourth.bytes, 160_000, 'exactly the budget');
  const salts: Record<string, number> = { 'a.parquet': 1, 'b.parquet': 4, 'c.parquet': 5 };
  for (const file of last) assert.ok(bytesOf(fourth, file).equals(pattern(file.length, salts[file.path]!)), file.path);
  writeFileSync(join(folder, 'd.parquet'), pattern(1, 6));
  const files = await find(folder);
  await assert.rejects(PinnedFiles.load(files, { ...options, previous: fourth }), /PIN/);
  openFiles.close();
});

test('a file that changes before it is in memory is an error that names it', async (t) => {
  const folder = makeFolder(t, FILES);
  const files = await find(folder);
  appendFileSync(join(folder, 'z.parquet'), 'x');
  const openFiles = new OpenFiles(8);
  await assert.rejects(
    PinnedFiles.load(files, { budgetBytes: 2 ** 30, openFiles }),
    (error) => error instanceof ServeError && error.code === 'CHANGED' && error.reason.startsWith('z.parquet changed'),
  );
  openFiles.close();
});

test('given up while files are read', async (t) => {
  const files = await find(makeFolder(t, { 'a.parquet': pattern(30_000_000, 1) }));
  const openFiles = new OpenFiles(8);
  const controller = new AbortController();
  const onProgress = (): void => controller.abort(new Error('enough'));
  const options = { budgetBytes: 2 ** 30, openFiles, signal: controller.signal, onProgress };
  await assert.rejects(PinnedFiles.load(files, options), /enough/);
  openFiles.close();
});
