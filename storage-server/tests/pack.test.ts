/** Packing: the packed file is the region byte for byte; what changes, is cut off or has no room leaves nothing behind. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { packRegion, ServeError, type ServeErrorCode } from '../index.ts';
import { parseDirectory, parseDirectorySize } from '../protocol/index.ts';
import { scanRoots } from '../scan-roots.ts';
import { fetchDirectory, makeFolder, pattern, startServer } from './lake.ts';
import { type Random, randomFrom } from './random.ts';
import { RawClient, readFrame } from './raw-client.ts';

const isError =
  (code: ServeErrorCode, reason: RegExp) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof ServeError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.reason, reason);
    return true;
  };

/** A tree of files of all kinds of sizes, many of them empty or tiny. */
function randomTree(random: Random): Record<string, Buffer> {
  const files: Record<string, Buffer> = {};
  const sizes = [0, 1, 63, 64, 65, 4095, 70_000, 300_000];
  for (let k = random.below(40); k >= 0; k--) {
    const folder = ['', 'a/', 'a/b/', 'ü/', 'c d/'][random.below(5)]!;
    files[`${folder}${k}.parquet`] = pattern(sizes[random.below(sizes.length)]! + random.below(3), k);
  }
  if (random.below(3) === 0) files['large.parquet'] = pattern(9_000_000 + random.below(100), 7);
  return files;
}

const directoryOf = (bytes: Buffer) =>
  parseDirectory(bytes.subarray(8, 8 + parseDirectorySize(bytes.subarray(0, 8), bytes.byteLength)), bytes.byteLength);

test('random trees: directory, files, padding, and the same again from the packed file', async (t) => {
  const random = randomFrom('random trees');
  for (let round = 0; round < 8; round++) {
    const files = randomTree(random);
    const folder = makeFolder(t, files);
    const target = makeFolder(t, {});
    const output = join(target, 'lake.qanat');
    const alignBytes = 64 << random.below(10);
    const told: number[] = [];
    const packed = await packRegion({ roots: [folder], output, alignBytes, onProgress: (bytes) => told.push(bytes) });
    const bytes = readFileSync(output);
    assert.deepEqual(readdirSync(target), ['lake.qanat']);
    assert.deepEqual([packed.files, packed.regionBytes], [Object.keys(files).length, bytes.byteLength]);
    assert.equal(told.at(-1), bytes.byteLength);
    const { entries, dataStart, generation } = directoryOf(bytes);
    assert.equal(Buffer.from(generation).toString('hex'), packed.generation);
    assert.deepEqual(entries.map(({ path }) => path).sort(), Object.keys(files).sort());
    const expected = Buffer.alloc(bytes.byteLength);
    bytes.copy(expected, 0, 0, 8 + parseDirectorySize(bytes.subarray(0, 8), bytes.byteLength));
    for (const { path, offset } of entries) expected.set(files[path]!, dataStart + offset);
    assert.ok(bytes.equals(expected), 'every byte');
    // A packed file can be packed again, with another alignment; etags stay.
    const again = join(target, 'again.qanat');
    await packRegion({ roots: [output], output: again });
    const etags = (all: typeof entries) => all.map(({ path, etag, length }) => [path, etag, length]);
    const repacked = readFileSync(again);
    const second = directoryOf(repacked);
    assert.deepEqual(etags(second.entries), etags(entries));
    for (const { path, offset, length } of second.entries) {
      const start = second.dataStart + offset;
      assert.ok(repacked.subarray(start, start + length).equals(files[path]!), path);
    }
  }
});

test('a served packed file has the bytes of its files, alone and beside a folder', async (t) => {
  const files = { 'one/a.parquet': pattern(200_000, 1), 'one/b.parquet': pattern(10, 2), 'c.parquet': pattern(0, 3) };
  const output = join(makeFolder(t, {}), 'lake.qanat');
  await packRegion({ roots: [makeFolder(t, files)], output });
  const more = join(makeFolder(t, { 'two/d.parquet': pattern(3000, 4) }), 'two');
  for (const roots of [[output], [more, output]]) {
    const { port } = await startServer(t, '', { roots });
    const client = await RawClient.greeted(port);
    const directory = await fetchDirectory(client);
    const all: Record<string, Buffer> = {
      ...files,
      ...(roots.length > 1 ? { 'two/d.parquet': pattern(3000, 4) } : {}),
    };
    assert.deepEqual(directory.entries.map(({ path }) => path).sort(), Object.keys(all).sort());
    for (const { path, offset, length } of directory.entries) {
      const { rkey } = client.welcome;
      client.socket.write(readFrame({ wrId: 5, rkey, address: directory.dataStart + offset, length }));
      assert.ok((await client.answer())!.bytes.equals(all[path]!), path);
    }
    client.socket.destroy();
  }
  const clash = join(makeFolder(t, { 'one/a.parquet': pattern(5, 5) }), 'one');
  await assert.rejects(
    startServer(t, '', { roots: [clash, output] }),
    isError('NAMES', /two entries have the same path "one\/a\.parquet"/),
  );
});

test('a packed file that changes while it is served is an error', async (t) => {
  const output = join(makeFolder(t, {}), 'lake.qanat');
  await packRegion({ roots: [makeFolder(t, { 'a.parquet': pattern(5000, 1) })], output });
  const { port } = await startServer(t, output);
  const client = await RawClient.greeted(port);
  const { dataStart } = await fetchDirectory(client);
  appendFileSync(output, 'x');
  client.socket.write(readFrame({ wrId: 9, rkey: client.welcome.rkey, address: dataStart, length: 10 }));
  const answer = (await client.answer())!;
  assert.equal(answer.status, 11);
  assert.match(answer.bytes.toString(), /^a\.parquet: the file has changed/);
});

test('what is packed under which name, and what is left out', async (t) => {
  const folder = makeFolder(t, {
    'a.parquet': pattern(10, 1),
    'notes.txt': pattern(10, 2),
    'old.qanat': pattern(99, 3),
  });
  const output = join(folder, 'old.qanat');
  const some = await packRegion({ roots: [folder], output });
  assert.deepEqual(some.skipped.map(({ path }) => path).sort(), ['notes.txt', 'old.qanat']);
  const all = await packRegion({ roots: [folder], output, all: true });
  assert.deepEqual(all.skipped, [{ path: 'old.qanat', reason: 'it is what is written' }]);
  assert.deepEqual(
    (await scanRoots([output], { all: false })).files.map(({ path }) => path),
    ['a.parquet', 'notes.txt'],
  );
  // What is packed may be replaced by the result.
  const grown = await packRegion({ roots: [output, join(folder, 'notes.txt')], output }).catch((error) => error);
  assert.ok(isError('NAMES', /"notes\.txt"/)(grown));
  await packRegion({ roots: [output], output });
  assert.equal((await scanRoots([output], { all: false })).files.length, 2);
});

test('zeros are holes: borders of 2 MiB cost no room', async (t) => {
  const files = Object.fromEntries(Array.from({ length: 20 }, (_, k) => [`${k}.parquet`, pattern(100, k)]));
  const output = join(makeFolder(t, {}), 'lake.qanat');
  await packRegion({ roots: [makeFolder(t, files)], output, alignBytes: 2 ** 21 });
  const { size, blocks } = statSync(output);
  assert.ok(size > 20 * 2 ** 21);
  assert.ok(blocks * 512 < 2 ** 21, `${blocks} blocks`);
  for (const { store, start, length, path } of (await scanRoots([output], { all: false })).files) {
    assert.ok(
      readFileSync(store.localPath)
        .subarray(start, start + length)
        .equals(files[path]!),
      path,
    );
  }
});

test('a file that changes while it is packed is an error that names it, and nothing is left', async (t) => {
  const folder = makeFolder(t, { 'a.parquet': pattern(20_000_000, 1), 'b.parquet': pattern(5000, 2) });
  const target = makeFolder(t, {});
  const output = join(target, 'lake.qanat');
  let changed = false;
  const onProgress = (): void => {
    if (!changed) appendFileSync(join(folder, 'b.parquet'), 'x');
    changed = true;
  };
  await assert.rejects(
    packRegion({ roots: [folder], output, onProgress }),
    isError('CHANGED', /^b\.parquet changed since it was found/),
  );
  assert.deepEqual(readdirSync(target), []);
});

test('interrupted: nothing is left, and what was there before stays', async (t) => {
  const folder = makeFolder(t, { 'a.parquet': pattern(20_000_000, 1) });
  const target = makeFolder(t, { 'lake.qanat': pattern(10, 9) });
  const output = join(target, 'lake.qanat');
  const controller = new AbortController();
  const seen: string[] = [];
  const onProgress = (): void => {
    seen.push(...readdirSync(target));
    controller.abort(new Error('enough'));
  };
  await assert.rejects(packRegion({ roots: [folder], output, onProgress, signal: controller.signal }), /enough/);
  assert.ok(seen.some((name) => /^\.lake\.qanat\..*\.partial$/.test(name)));
  assert.deepEqual(readdirSync(target), ['lake.qanat']);
  assert.ok(readFileSync(output).equals(pattern(10, 9)));
});

test('leftovers of processes that have ended are removed, and told; others stay', async (t) => {
  const host = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);
  const ended = Number(execFileSync('sh', ['-c', 'echo $$'], { encoding: 'utf8' }));
  const crashed = `.lake.qanat.${host}-${ended}-0123abcd.partial`;
  const ofParent = `.lake.qanat.${host}-${process.ppid}-0123abcd.partial`;
  const elsewhere = `.lake.qanat.ffffffff-${ended}-0123abcd.partial`;
  const ofAnother = `.pond.qanat.${host}-${ended}-0123abcd.partial`;
  const target = makeFolder(t, {
    [crashed]: pattern(9, 1),
    [ofParent]: pattern(9, 2),
    [elsewhere]: pattern(9, 3),
    [ofAnother]: pattern(9, 4),
  });
  const told: string[] = [];
  const folder = makeFolder(t, { 'a.parquet': pattern(10, 1) });
  const output = join(target, 'lake.qanat');
  await packRegion({ roots: [folder], output, onLeftover: (name) => told.push(name) });
  assert.deepEqual(told, [crashed]);
  assert.deepEqual(readdirSync(target).sort(), [ofParent, elsewhere, ofAnother, 'lake.qanat'].sort());
});

test('two packings of one file at a time do not disturb each other', async (t) => {
  const target = makeFolder(t, {});
  const output = join(target, 'lake.qanat');
  const folders = [1, 2].map((salt) => makeFolder(t, { 'a.parquet': pattern(9_000_000, salt) }));
  const packed = await Promise.all(folders.map((folder) => packRegion({ roots: [folder], output })));
  assert.deepEqual(readdirSync(target), ['lake.qanat']);
  const bytes = readFileSync(output);
  const generation = Buffer.from(directoryOf(bytes).generation).toString('hex');
  const winner = packed.findIndex((one) => one.generation === generation);
  const { dataStart } = directoryOf(bytes);
  assert.ok(bytes.subarray(dataStart, dataStart + 9_000_000).equals(pattern(9_000_000, winner + 1)));
});

test('where it can not be written', async (t) => {
  const folder = makeFolder(t, { 'a.parquet': pattern(10, 1) });
  const target = makeFolder(t, { file: pattern(1, 1) });
  mkdirSync(join(target, 'folder.qanat'));
  symlinkSync('/dev/null', join(target, 'null.qanat'));
  const pack = (name: string) => packRegion({ roots: [folder], output: join(target, name) });
  await assert.rejects(pack('lake.bin'), isError('OUTPUT', /the name of a packed file ends in \.qanat/));
  await assert.rejects(pack('none/lake.qanat'), isError('OUTPUT', /the folder .*none does not exist/));
  await assert.rejects(pack('file/lake.qanat'), isError('OUTPUT', /file is no folder/));
  await assert.rejects(pack('folder.qanat'), isError('OUTPUT', /it is a folder/));
  await assert.rejects(pack('null.qanat'), isError('OUTPUT', /it is no file/));
  await assert.rejects(
    packRegion({ roots: [join(target, 'x')], output: join(target, 'y.qanat') }),
    isError('ROOT', /x/),
  );
  assert.deepEqual(readdirSync(target).sort(), ['file', 'folder.qanat', 'null.qanat']);
});

test('a link to a packed file is followed, not replaced', async (t) => {
  const folder = makeFolder(t, { 'a.parquet': pattern(10, 1) });
  const target = makeFolder(t, { 'real.qanat': pattern(1, 1) });
  symlinkSync('real.qanat', join(target, 'current.qanat'));
  await packRegion({ roots: [folder], output: join(target, 'current.qanat') });
  assert.equal((await scanRoots([join(target, 'real.qanat')], { all: false })).files.length, 1);
  assert.equal((await scanRoots([join(target, 'current.qanat')], { all: false })).files[0]!.path, 'a.parquet');
});

test('nothing to pack is a packed file without files', async (t) => {
  const output = join(makeFolder(t, {}), 'lake.qanat');
  assert.equal((await packRegion({ roots: [makeFolder(t, {})], output })).files, 0);
  writeFileSync(join(makeFolder(t, {}), 'x'), '');
  assert.deepEqual((await scanRoots([output], { all: false })).files, []);
});
