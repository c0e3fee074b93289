/** The disk cache in one process: what is kept and served, what becomes of damage, restarts, bounds, and trouble. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { DiskCache } from '../disk-cache/disk-cache.ts';
import { BLOCK_BYTES_MAX, QUEUED_BYTES_MAX } from '../disk-cache/limits.ts';
import { FetchError } from '../errors.ts';
import type { FileVersion } from '../transport/transport.ts';
import { CacheRig, newFolder } from './cache-rig.ts';
import { seededRandom } from './random.ts';
import { pattern } from './transport-fixtures.ts';

const MIB = 2 ** 20;

test('what was read is served from disk, also after a restart, and parts of it', async (t) => {
  const rig = await CacheRig.open(t);
  const bytes = pattern(5 * MIB + 77, 1);
  const file = rig.source.put('a.parquet', bytes, 'v1');
  await rig.readAndKeep(file, 1000, bytes.length);
  assert.equal(rig.source.log.length, 1);
  for (const restart of [false, true]) {
    if (restart) await rig.reopen();
    assert.ok((await rig.read(file, 1000, bytes.length)).equals(bytes.subarray(1000)));
    for (const [start, end] of [
      [1000, 1001],
      [70_000, 70_001],
      [65_536 + 999, 65_536 + 1001],
      [MIB, 4 * MIB],
      [bytes.length - 1, bytes.length],
    ] as const) {
      assert.ok((await rig.read(file, start, end)).equals(bytes.subarray(start, end)));
    }
    assert.equal(rig.source.log.length, 1, 'nothing is fetched again');
    assert.equal(rig.cache.counters.hits, 6);
  }
  assert.ok(rig.blockFiles().length >= 3);
});

test('only what is missing is fetched, neighbours in one request, little in between again', async (t) => {
  const rig = await CacheRig.open(t);
  const bytes = pattern(9 * MIB, 2);
  const file = rig.source.put('a', bytes, 'v1');
  await rig.readAndKeep(file, MIB, 2 * MIB);
  await rig.readAndKeep(file, 5 * MIB, 6 * MIB);
  await rig.readAndKeep(file, 7 * MIB, 7 * MIB + 4096);
  rig.source.log.length = 0;
  assert.ok((await rig.readAndKeep(file, 0, bytes.length)).equals(bytes));
  assert.deepEqual(rig.source.log, [
    ['a', 0, MIB],
    ['a', 2 * MIB, 5 * MIB],
    ['a', 6 * MIB, 9 * MIB],
  ]);
  assert.equal(rig.cache.counters.partial, 1);
  const names = rig.blockFiles().map((path) => basename(path).slice(32));
  assert.ok(!names.includes(`-${(7 * MIB).toString(36)}-${(4096).toString(36)}`), 'covered by a larger one');
  await rig.read(file, 0, bytes.length);
  assert.equal(rig.source.log.length, 3);
});

test('versions are kept apart; weak etags, tiny reads and failed reads are not kept', async (t) => {
  const rig = await CacheRig.open(t);
  const old = rig.source.put('a', pattern(100_000, 3), 'v1');
  await rig.readAndKeep(old, 0, 100_000);
  const young = rig.source.put('a', pattern(100_000, 4), 'v2');
  assert.ok((await rig.readAndKeep(young, 0, 100_000)).equals(pattern(100_000, 4)));
  assert.ok((await rig.read(old, 0, 100_000)).equals(pattern(100_000, 3)), 'bytes of the version that was asked for');
  const kept = rig.blockFiles().length;
  for (const etag of ['', 'W/"x"', 'w/1']) {
    const weak = rig.source.put('weak', pattern(5000, 5), etag);
    await rig.readAndKeep(weak, 0, 5000);
  }
  await rig.readAndKeep(rig.source.put('tiny', pattern(5000, 6), 'v1'), 0, 100);
  rig.source.failure = new FetchError('LOST', 'lost');
  await assert.rejects(rig.readAndKeep(rig.source.put('b', pattern(5000, 7), 'v1'), 0, 5000), /lost/);
  rig.source.failure = undefined;
  assert.equal(rig.blockFiles().length, kept);
  const elsewhere = rig.source.put('b', pattern(5000, 7), 'v1');
  await rig.readAndKeep(elsewhere, 0, 5000);
  assert.equal(rig.blockFiles().length, kept + 1);
});

/** Ways to spoil a block file. */
const DAMAGES: readonly ((path: string, below: (n: number) => number, other: string) => void)[] = [
  (path, below) => {
    const bytes = readFileSync(path);
    if (bytes.length === 0) return;
    const at = below(bytes.length);
    bytes[at]! ^= 1 << below(8);
    writeFileSync(path, bytes);
  },
  (path, below) => truncateSync(path, below(readFileSync(path).length + 1)),
  (path) => unlinkSync(path),
  (path, _below, other) => (path === other ? undefined : copyFileSync(other, path)),
  (path) => appendFileSync(path, 'x'),
  (path) => writeFileSync(path, ''),
  (path, _below, other) => {
    if (path === other) return;
    unlinkSync(path);
    symlinkSync(other, path);
  },
];

// SEMANTICS 8
test('random reads against a model, with damage, deletion, new versions and restarts in between', async (t) => {
  const random = seededRandom();
  const rig = await CacheRig.open(t, 24 * MIB);
  const contents = new Map<FileVersion, Buffer>();
  const put = (path: string, version: number): void => {
    const bytes = pattern([7 * MIB, 300_001, 65_536, 513][version % 4]! + random.below(50), version);
    contents.set(rig.source.put(path, bytes, `v${version}`), bytes);
  };
  let versions = 0;
  for (const path of ['a', 'b', 'c/d', 'e']) put(path, versions++);
  let [reads, damaged] = [0, 0];
  for (let step = 0; step < 500; step++) {
    const action = random.below(100);
    if (action < 3) {
      damaged += rig.cache.counters.damaged;
      await rig.reopen();
    } else if (action < 5) {
      put(['a', 'b', 'c/d', 'e'][random.below(4)]!, versions++);
    } else if (action < 30) {
      await rig.cache.settled();
      const paths = rig.blockFiles().filter((path) => lstatSync(path).isFile());
      if (paths.length === 0) continue;
      const [path, other] = [paths[random.below(paths.length)]!, paths[random.below(paths.length)]!];
      DAMAGES[random.below(DAMAGES.length)]!(path, (n) => random.below(n), other);
    } else {
      const current = [...rig.source.files.values()][random.below(4)]!.version;
      const bytes = contents.get(current)!;
      const start = random.below(3) === 0 ? 0 : random.below(bytes.length);
      const most = random.below(4) === 0 ? bytes.length - start : Math.min(70_000, bytes.length - start);
      const end = start + 1 + random.below(most);
      assert.ok((await rig.read(current, start, end)).equals(bytes.subarray(start, end)));
      reads++;
    }
  }
  damaged += rig.cache.counters.damaged;
  const { bytesOnWire, bytesCached, bytesDiscarded } = rig.source.counters;
  assert.equal(bytesOnWire + bytesCached, rig.told + bytesDiscarded, 'every byte is accounted for');
  assert.ok(reads > 100 && damaged > 0 && bytesCached > 0, `${reads} reads, ${damaged} damaged, ${bytesCached} cached`);
  assert.deepEqual(rig.troubles, []);
});

// SEMANTICS 8
test('a damaged block is deleted, counted, fetched and kept again', async (t) => {
  const rig = await CacheRig.open(t);
  const bytes = pattern(1 * MIB, 8);
  const file = rig.source.put('a', bytes, 'v1');
  await rig.readAndKeep(file, 0, bytes.length);
  const [path] = rig.blockFiles();
  const good = readFileSync(path!);
  const bad = Buffer.from(good);
  bad[256 + 700_000]! ^= 1;
  writeFileSync(path!, bad);
  assert.ok((await rig.read(file, 0, 100_000)).equals(bytes.subarray(0, 100_000)), 'its other pieces are right');
  assert.equal(rig.source.log.length, 1);
  assert.ok((await rig.readAndKeep(file, 690_000, 710_000)).equals(bytes.subarray(690_000, 710_000)));
  assert.equal(rig.cache.counters.damaged, 1);
  assert.deepEqual(rig.source.log.at(-1), ['a', 690_000, 710_000]);
  await rig.readAndKeep(file, 0, bytes.length);
  await rig.read(file, 0, bytes.length);
  assert.equal(rig.source.log.length, 3, 'once, over what was fetched before');
});

test('the size is kept at every moment, and what was used last stays, over restarts too', async (t) => {
  const limit = 20 * MIB;
  const rig = await CacheRig.open(t, limit);
  const bytes = pattern(64 * MIB, 9);
  const file = rig.source.put('a', bytes, 'v1');
  await rig.readAndKeep(file, 0, 2 * MIB);
  for (let start = 2 * MIB; start < bytes.length; start += 2 * MIB) {
    await rig.readAndKeep(file, start, start + 2 * MIB);
    assert.ok(rig.diskBytes() <= limit && rig.cache.bytes === rig.diskBytes(), `${rig.diskBytes()} bytes`);
    // in use all the time
    await rig.read(file, 0, 2 * MIB);
  }
  assert.ok(rig.diskBytes() > limit / 2 && rig.cache.counters.evictions > 20);
  assert.equal(rig.source.counters.bytesOnWire, bytes.length, 'the first ones were never evicted');
  // the files' times say which ones are old
  const paths = rig.blockFiles().sort();
  for (const [k, path] of paths.entries()) utimesSync(path, 1000 + k, 1000 + k);
  await rig.reopen();
  const other = rig.source.put('b', pattern(8 * MIB, 10), 'v1');
  await rig.readAndKeep(other, 0, 8 * MIB);
  const left = new Set(rig.blockFiles());
  const evicted = paths.filter((path) => !left.has(path)).length;
  assert.ok(evicted >= 4);
  assert.deepEqual(
    paths.slice(evicted).filter((path) => !left.has(path)),
    [],
    'the oldest went, and no other',
  );
});

test('a cache that has become too large is made smaller when it is opened', async (t) => {
  const big = await CacheRig.open(t);
  const file = big.source.put('a', pattern(8 * MIB, 11), 'v1');
  await big.readAndKeep(file, 0, 8 * MIB);
  const small = await CacheRig.open(t, 3 * MIB, big.folder);
  for (let round = 0; small.diskBytes() > 3 * MIB; round++) {
    assert.ok(round < 12_000, 'it is made smaller by itself');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.ok(small.cache.counters.evictions >= 3);
});

test('more than the disk takes at once is dropped, and reads do not wait for it', async (t) => {
  const rig = await CacheRig.open(t);
  const bytes = pattern(8 * MIB, 12);
  const files = Array.from({ length: 8 }, (_, k) => rig.source.put(`f${k}`, bytes, 'v1'));
  let most = 0;
  await Promise.all(
    files.map(async (file) => {
      assert.ok((await rig.read(file, 0, bytes.length)).equals(bytes));
      most = Math.max(most, rig.cache.queuedBytes);
    }),
  );
  assert.ok(most <= QUEUED_BYTES_MAX, `${most} bytes wait`);
  await rig.cache.settled();
  const { writes, dropped, writtenBytes } = rig.cache.counters;
  assert.equal(writes + dropped, (files.length * bytes.length) / BLOCK_BYTES_MAX);
  assert.equal(writtenBytes, writes * BLOCK_BYTES_MAX);
  assert.equal(rig.cache.queuedBytes, 0);
});

test('the folder may be cleared away at any time', async (t) => {
  const rig = await CacheRig.open(t);
  const bytes = pattern(3 * MIB, 13);
  const file = rig.source.put('a', bytes, 'v1');
  await rig.readAndKeep(file, 0, bytes.length);
  rmSync(rig.folder, { recursive: true });
  assert.ok((await rig.readAndKeep(file, 0, bytes.length)).equals(bytes));
  assert.ok(rig.blockFiles().length > 0);
  await rig.read(file, 0, bytes.length);
  assert.equal(rig.source.log.length, 2 + 1);
  assert.deepEqual(rig.troubles, []);
});

test('what is no block of ours is left alone, and drafts of the dead are removed', async (t) => {
  const rig = await CacheRig.open(t);
  const file = rig.source.put('a', pattern(5000, 14), 'v1');
  await rig.readAndKeep(file, 0, 5000);
  const [path] = rig.blockFiles();
  const shelf = join(path!, '..');
  writeFileSync(join(rig.folder, 'notes.txt'), 'mine');
  writeFileSync(join(shelf, 'notes.txt'), 'mine');
  const drafts = join(rig.blockFolder, 'drafts');
  writeFileSync(join(drafts, 'old'), 'x');
  utimesSync(join(drafts, 'old'), 1000, 1000);
  writeFileSync(join(drafts, 'new'), 'x');
  await rig.reopen();
  assert.equal(rig.cache.blocks, 1);
  assert.deepEqual(readdirSync(drafts), ['new']);
  assert.equal(readFileSync(join(shelf, 'notes.txt'), 'utf8'), 'mine');
  assert.equal(readFileSync(join(rig.folder, 'notes.txt'), 'utf8'), 'mine');
});

test('a folder that can not be used is no error', async (t) => {
  const bytes = pattern(MIB, 15);
  const check = async (folder: string, why: RegExp): Promise<void> => {
    const rig = await CacheRig.open(t, 2 ** 28, folder);
    const file = rig.source.put('a', bytes, 'v1');
    for (let round = 0; round < 3; round++) assert.ok((await rig.readAndKeep(file, 0, MIB)).equals(bytes));
    assert.equal(rig.troubles.length, 1, rig.troubles.join('\n'));
    assert.match(rig.troubles[0]!, why);
    assert.equal(rig.source.log.length, 3);
  };
  const file = join(newFolder(t), 'file');
  writeFileSync(file, '');
  await check(file, /it is not used: ENOTDIR|it is not used: EEXIST/);
  const open = newFolder(t);
  mkdirSync(join(open, 'blocks-1'));
  chmodSync(join(open, 'blocks-1'), 0o777);
  await check(open, /others may write/);
  if (process.geteuid?.() !== 0) {
    const closed = newFolder(t);
    chmodSync(closed, 0o500);
    await check(closed, /EACCES/);
  }
});

/** A file system of its own, of so many bytes; undefined with the reason where that is not possible. */
function smallDisk(t: TestContext, bytes: number): string | undefined {
  if (process.geteuid?.() !== 0) return void t.skip('only root can mount a small file system');
  const folder = mkdtempSync(join(tmpdir(), 'qanat-test-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes},mode=700`, 'tmpfs', folder], { stdio: 'pipe' });
  } catch (error) {
    rmdirSync(folder);
    return void t.skip(`mount: ${(error as { stderr: Buffer }).stderr.toString().trim()}`);
  }
  t.after(() => {
    execFileSync('umount', ['-l', folder]);
    rmdirSync(folder);
  });
  return folder;
}

test('a full disk is told once, and reads go on with what is kept', async (t) => {
  const folder = smallDisk(t, 6 * MIB);
  if (folder === undefined) return;
  const rig = await CacheRig.open(t, 2 ** 28, folder);
  const bytes = pattern(16 * MIB, 16);
  const file = rig.source.put('a', bytes, 'v1');
  for (let round = 0; round < 2; round++) {
    for (let start = 0; start < bytes.length; start += MIB) {
      assert.ok((await rig.readAndKeep(file, start, start + MIB)).equals(bytes.subarray(start, start + MIB)));
    }
  }
  assert.equal(rig.troubles.length, 1, rig.troubles.join('\n'));
  assert.match(rig.troubles[0]!, /nothing is kept for now: the disk is full/);
  assert.deepEqual(readdirSync(join(rig.blockFolder, 'drafts')), [], 'no half block stays');
  assert.ok(rig.source.counters.bytesCached >= 3 * MIB && rig.cache.counters.dropped > 0);
});

test('a read-only disk serves what it has', async (t) => {
  const folder = smallDisk(t, 20 * MIB);
  if (folder === undefined) return;
  const rig = await CacheRig.open(t, 2 ** 28, folder);
  const bytes = pattern(4 * MIB, 17);
  const file = rig.source.put('a', bytes, 'v1');
  await rig.readAndKeep(file, 0, MIB);
  const [path] = rig.blockFiles();
  const bad = rig.source.put('b', bytes, 'v1');
  await rig.readAndKeep(bad, 0, MIB);
  const spoilt = rig.blockFiles().find((one) => one !== path)!;
  truncateSync(spoilt, 1000);
  execFileSync('mount', ['-o', 'remount,ro', folder]);
  await rig.reopen();
  for (let round = 0; round < 2; round++) {
    assert.ok((await rig.readAndKeep(file, 0, bytes.length)).equals(bytes));
    assert.ok((await rig.readAndKeep(bad, 0, bytes.length)).equals(bytes));
  }
  assert.equal(rig.source.counters.bytesCached, 2 * MIB);
  assert.equal(rig.troubles.length, 1, rig.troubles.join('\n'));
  assert.match(rig.troubles[0]!, /EROFS/);
});

test('closing writes what waits, and a closed cache keeps nothing more', async (t) => {
  const rig = await CacheRig.open(t);
  const file = rig.source.put('a', pattern(6 * MIB, 18), 'v1');
  await rig.read(file, 0, 6 * MIB);
  await rig.cache.close();
  // a disk that takes none of them within its time is a slow one, but may be
  const { writes, dropped } = rig.cache.counters;
  assert.deepEqual([rig.blockFiles().length, writes + dropped], [writes, 3]);
  const later = rig.source.put('b', pattern(MIB, 19), 'v1');
  assert.ok((await rig.readAndKeep(later, 0, MIB)).equals(pattern(MIB, 19)));
  assert.equal(rig.blockFiles().length, writes);
  const second = await DiskCache.open({ folder: rig.folder, bytes: 2 ** 28 });
  assert.equal(second.blocks, writes);
  await second.close();
});
