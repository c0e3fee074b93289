/** Real mounts, as root or as whoever runs the tests: bytes, caching, generations, interrupts, unmounts, killed servers. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open, readFile, stat } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { mountFolder, unmountFolder } from '../fuse/mount.ts';
import { mountAt, parseMountInfo, probeMount } from '../fuse/mount-table.ts';
import { inTime, type MountRig, newFolder, run, runScript, startMount, whyNoMount } from './fuse-mount-rig.ts';
import { patterned } from './fuse-rig.ts';
import type { ServedFile } from './fuse-server.ts';

const MIB = 1024 * 1024;
const skip = await whyNoMount();
const { ESTALE } = constants.errno;
const root = process.getuid?.() === 0;

const FILES: readonly ServedFile[] = [
  { path: 'a/cached.bin', length: 3 * MIB + 12_345, salt: 1, serve: 'cached' },
  { path: 'a/direct.bin', length: 2 * MIB + 1, salt: 2, serve: 'direct' },
  { path: 'zwei ä/deep/er/pass.bin', length: 1 * MIB + 777, salt: 3, serve: 'passthrough' },
  { path: 'empty', length: 0, salt: 4, serve: 'cached' },
];

const sha = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const shaOf = ({ length, salt }: ServedFile) => sha(patterned(length, salt));

/** Reads random ranges of a file and says how many differ from the pattern. */
const RANDOM_READS = `
  const fs = require('node:fs');
  const [, path, length, salt] = process.argv;
  const descriptor = fs.openSync(path, 'r');
  let wrong = 0;
  for (let k = 0; k < 300; k++) {
    const offset = Math.floor(Math.random() * (Number(length) + 10));
    const into = Buffer.alloc(1 + Math.floor(Math.random() * (k % 5 === 0 ? 3000000 : 5000)));
    const got = fs.readSync(descriptor, into, 0, into.length, offset);
    if (got !== Math.max(0, Math.min(into.length, length - offset))) wrong++;
    for (let at = 0; at < got; at += 1 + (got >> 8)) {
      const place = offset + at;
      if (into[at] !== ((place * 31 + (place >> 8) * 7 + salt * 101) & 0xff)) wrong++;
    }
  }
  console.log(wrong);`;

async function withMount(
  files: readonly ServedFile[],
  use: (rig: MountRig) => Promise<void>,
  more = {},
): Promise<void> {
  const rig = await startMount({ folder: newFolder(), files, generation: 'g1', ...more });
  try {
    await use(rig);
  } finally {
    await rig.clear();
  }
}

for (const inWorker of [false, true]) {
  describe(`a mount served from ${inWorker ? 'a worker' : 'the main thread'}`, { skip }, () => {
    let rig: MountRig;
    before(async () => {
      rig = await startMount({ folder: newFolder(), files: FILES, generation: 'g1', inWorker });
    });
    after(() => rig.clear());

    test('every byte, by several programs at a time', async () => {
      const jobs = [...FILES, ...FILES].map(async (file) => {
        const { stdout, status } = await run('sha256sum', [rig.path(file.path)]);
        assert.equal(status, 0);
        assert.equal(stdout.slice(0, 64), shaOf(file), file.path);
      });
      const random = FILES.slice(0, 3).map(async ({ path, length, salt }) => {
        assert.equal(await runScript(RANDOM_READS, [rig.path(path), String(length), String(salt)]), '0\n', path);
      });
      await Promise.all([...jobs, ...random]);
    });

    test('dd in large and odd blocks', async () => {
      for (const block of ['1M', '4097', '300k']) {
        const args = [`if=${rig.path('a/direct.bin')}`, `bs=${block}`, 'of=/dev/stdout', 'status=none'];
        const out = join(rig.folder, '..', 'copy');
        const { status, stderr } = await run('dd', args.with(2, `of=${out}`));
        assert.equal(status, 0, stderr);
        assert.equal(sha(readFileSync(out)), shaOf(FILES[1]!), block);
      }
      const { requests } = await rig.figures();
      assert.ok(requests.READ! > 0);
    });

    test('the tree as programs see it', async () => {
      const { stdout } = await run('find', [rig.folder, '-type', 'f', '-printf', '%P %s %m\n']);
      const expected = FILES.map(({ path, length }) => `${path} ${length} 444`);
      assert.deepEqual(stdout.trim().split('\n').sort(), expected.sort());
      const entry = mountAt(rig.folder)!;
      assert.equal(entry.type, 'fuse.qanat');
      assert.equal(entry.source, 'test: a, b');
      assert.equal(await probeMount(rig.folder), 'alive');
      assert.equal(rig.ready.readAheadSet, root);
      const { bsize, blocks } = JSON.parse(
        await runScript('console.log(JSON.stringify(require("fs").statfsSync(process.argv[1])))', [rig.folder]),
      ) as { bsize: number; blocks: number };
      const bytes = FILES.reduce((sum, { length }) => sum + length, 0);
      assert.equal(blocks, Math.ceil(bytes / bsize));
    });

    // SEMANTICS 9
    test('nothing can be written', async () => {
      const code = `
        const fs = require('node:fs');
        const [, folder] = process.argv;
        const attempts = [
          () => fs.writeFileSync(folder + '/new', 'x'), () => fs.mkdirSync(folder + '/d'), () => fs.unlinkSync(folder + '/empty'),
          () => fs.truncateSync(folder + '/empty', 3), () => fs.renameSync(folder + '/empty', folder + '/b'),
          () => fs.chmodSync(folder + '/empty', 0o777), () => fs.utimesSync(folder + '/empty', 1, 1),
          () => fs.symlinkSync('x', folder + '/s'), () => fs.openSync(folder + '/empty', 'r+'),
        ];
        console.log(attempts.map((one) => { try { one(); return 'done'; } catch (error) { return error.code; } }).join());`;
      const codes = (await runScript(code, [rig.folder])).trim().split(',');
      assert.deepEqual([...new Set(codes)], ['EROFS']);
    });

    // SEMANTICS 23
    test('extended attributes', async (t) => {
      const code =
        'import os,sys\nfor n in sorted(os.listxattr(sys.argv[1])): print(n, os.getxattr(sys.argv[1], n).decode())';
      const { status, stdout, stderr } = await run('python3', ['-c', code, rig.path('a/cached.bin')]);
      if (status === 'ENOENT') return t.skip('no python3');
      assert.equal(status, 0, stderr);
      assert.equal(stdout, 'user.qanat.etag 1\nuser.qanat.generation g1\nuser.qanat.path a/cached.bin\n');
    });

    // SEMANTICS 21
    test('what was read once comes from the page cache at the next open', async () => {
      await run('cat', [rig.path('a/cached.bin')]);
      const { requests: before } = await rig.figures();
      const { stdout } = await run('sha256sum', [rig.path('a/cached.bin')]);
      assert.equal(stdout.slice(0, 64), shaOf(FILES[0]!));
      const { requests } = await rig.figures();
      assert.equal(requests.READ, before.READ);
    });

    test('passthrough, where it is offered, asks for no bytes', async (t) => {
      if (!rig.ready.offer.passthrough || !root) return t.skip('not offered to this user by this kernel');
      const { requests: before, opens } = await rig.figures();
      assert.ok(opens.passthrough! > 0);
      const { stdout } = await run('sha256sum', [rig.path(FILES[2]!.path)]);
      assert.equal(stdout.slice(0, 64), shaOf(FILES[2]!));
      const { requests, problems } = await rig.figures();
      assert.equal(requests.READ, before.READ);
      assert.deepEqual(problems, []);
    });
  });
}

test('bytes pushed from another thread are read without being asked for', { skip }, async () => {
  await withMount(FILES, async (rig) => {
    const path = rig.path('a/cached.bin');
    assert.equal(await rig.call({ op: 'push', path: 'a/direct.bin' }), 'nothing', 'not looked up yet');
    await run('stat', [path]);
    assert.equal(await rig.call({ op: 'push', path: 'a/cached.bin' }), 'taken');
    const { stdout } = await run('sha256sum', [path]);
    assert.equal(stdout.slice(0, 64), shaOf(FILES[0]!));
    assert.equal((await rig.figures()).requests.READ, undefined);
  });
});

// SEMANTICS 16
test('a new generation: handles of changed files are stale, new opens see new bytes at once', { skip }, async () => {
  await withMount(FILES, async (rig) => {
    const direct = await open(rig.path('a/direct.bin'));
    const cached = await open(rig.path('a/cached.bin'));
    const into = Buffer.alloc(4096);
    await inTime(direct.read(into, 0, 4096, 0), 'a read');
    await inTime(cached.read(into, 0, 4096, 0), 'a read');
    const next = FILES.map((file) => (file.path === 'a/direct.bin' ? { ...file, length: 777, salt: 9 } : file)).slice(
      0,
      2,
    );
    await rig.call({ op: 'replace', generation: 'g2', files: [...next, { ...next[0]!, path: 'b/new', salt: 10 }] });
    await assert.rejects(inTime(direct.read(into, 0, 4096, 0), 'a stale read'), { errno: -ESTALE });
    const same = await inTime(cached.read(into, 0, 4096, 2 * MIB), 'a read of an unchanged file');
    assert.ok(into.equals(patterned(3 * MIB, 1).subarray(2 * MIB, 2 * MIB + same.bytesRead)));
    const fresh = await inTime(readFile(rig.path('a/direct.bin')), 'a new open');
    assert.ok(fresh.equals(patterned(777, 9)));
    assert.equal(sha(await inTime(readFile(rig.path('b/new')), 'a new file')), sha(patterned(next[0]!.length, 10)));
    // the kernel forgets what is gone as soon as a thread of the server could tell it
    for (const since = performance.now(); ; await sleep(5)) {
      const gone = await stat(rig.path('empty')).then(
        () => false,
        (error: NodeJS.ErrnoException) => error.code === 'ENOENT',
      );
      if (gone && (await stat(rig.path('a/direct.bin'))).size === 777) break;
      assert.ok(performance.now() - since < 60_000, 'the old tree is still seen');
    }
    await direct.close();
    await cached.close();
    const { handles, problems } = await rig.until('handles are closed', (figures) => figures.handles === 0);
    assert.deepEqual([handles, problems], [0, []]);
  });
});

// SEMANTICS 26
test('a reader that is killed while its read waits goes at once', { skip }, async () => {
  await withMount(FILES, async (rig) => {
    await rig.call({ op: 'hold', paths: ['a/direct.bin'] });
    const reader = spawn('dd', [`if=${rig.path('a/direct.bin')}`, 'of=/dev/null', 'bs=64k'], { stdio: 'ignore' });
    const gone = new Promise<void>((resolve) => reader.once('exit', () => resolve()));
    await rig.until('the read waits', ({ waiting }) => waiting === 1);
    reader.kill('SIGKILL');
    await inTime(gone, 'the end of the killed reader');
    const { interrupts } = await rig.until('the interrupt is counted', ({ pending }) => pending === 0);
    assert.equal(interrupts, 1);
  });
});

// SEMANTICS 24
test('a source that never answers: readers get ETIMEDOUT', { skip }, async () => {
  await withMount(
    FILES,
    async (rig) => {
      await rig.call({ op: 'hold', paths: ['a/direct.bin', 'a/cached.bin'] });
      const direct = await run('dd', [`if=${rig.path('a/direct.bin')}`, 'of=/dev/null', 'bs=64k']);
      assert.match(direct.stderr, /timed out/);
      // the page cache knows one error only
      const cached = await run('dd', [`if=${rig.path('a/cached.bin')}`, 'of=/dev/null', 'bs=64k']);
      assert.match(cached.stderr, /timed out|Input\/output error/);
    },
    { answerMs: 50 },
  );
});

// SEMANTICS 28
test('unmounting: at once when idle, detached when busy, and what waits is answered', { skip }, async () => {
  await withMount(FILES, async (rig) => {
    assert.equal(await rig.call({ op: 'unmount', graceMs: 5000 }), 'unmounted');
    await rig.exited();
    assert.equal(mountAt(rig.folder), undefined);
  });
  await withMount(FILES, async (rig) => {
    await rig.call({ op: 'hold', paths: ['a/direct.bin'] });
    const handle = await open(rig.path('a/direct.bin'));
    const read = assert.rejects(inTime(handle.read(Buffer.alloc(10), 0, 10, 0), 'the waiting read'), {
      code: 'ENOTCONN',
    });
    await rig.until('the read waits', ({ waiting }) => waiting === 1);
    assert.equal(await rig.call({ op: 'unmount', graceMs: 300 }), 'detached');
    await read;
    assert.equal(mountAt(rig.folder), undefined);
    await assert.rejects(inTime(handle.read(Buffer.alloc(10), 0, 10, 0), 'a read after the end'));
    await handle.close();
    await rig.kill();
  });
});

test('unmounted by somebody else, the server ends by itself', { skip }, async () => {
  await withMount(FILES, async (rig) => {
    assert.equal(await unmountFolder(rig.folder, { graceMs: 5000 }), 'unmounted');
    await rig.exited();
    assert.equal(rig.child.exitCode, 0);
    await assert.rejects(unmountFolder(rig.folder, { graceMs: 0 }), { code: 'NOT_MOUNTED' });
  });
});

// SEMANTICS 31
test('a connection that is cut leaves no dead mount', { skip }, async (t) => {
  if (!root) return t.skip('only root can mount fusectl');
  const control = newFolder();
  const { status, stderr } = await run('mount', ['-t', 'fusectl', 'none', control]);
  if (status !== 0) return t.skip(`mount -t fusectl: ${stderr.trim()}`);
  try {
    await withMount(FILES, async (rig) => {
      const handle = await open(rig.path('a/direct.bin'));
      await rig.call({ op: 'hold', paths: ['a/direct.bin'] });
      const read = assert.rejects(inTime(handle.read(Buffer.alloc(10), 0, 10, 0), 'the read'), /ENOTCONN|ECONNABORTED/);
      await rig.until('the read waits', ({ waiting }) => waiting === 1);
      const [, minor] = mountAt(rig.folder)!.device.split(':');
      writeFileSync(join(control, minor!, 'abort'), '1');
      await read;
      await rig.exited();
      assert.equal(mountAt(rig.folder), undefined);
      await handle.close();
    });
  } finally {
    await run('umount', ['-l', control]);
    rmSync(join(control, '..'), { recursive: true });
  }
});

// SEMANTICS 30
test('a killed server leaves a dead mount, which the next one clears away', { skip }, async () => {
  const folder = newFolder();
  const first = await startMount({ folder, files: FILES, generation: 'g1' });
  try {
    const handle = await open(join(folder, 'a/direct.bin'));
    await first.call({ op: 'hold', paths: ['a/direct.bin'] });
    const read = assert.rejects(inTime(handle.read(Buffer.alloc(10), 0, 10, 0), 'the read'), /ENOTCONN|ECONNABORTED/);
    await first.until('the read waits', ({ waiting }) => waiting === 1);
    await first.kill();
    await read;
    await assert.rejects(inTime(stat(folder), 'a stat'), { code: 'ENOTCONN' });
    assert.equal(await probeMount(folder), 'dead');
    const second = await startMount({ folder, files: FILES, generation: 'g2' });
    try {
      assert.equal(second.ready.cleared, true);
      assert.equal(
        parseMountInfo(readFileSync('/proc/self/mountinfo', 'utf8')).filter((one) => one.folder === folder).length,
        1,
      );
      assert.equal(sha(await inTime(readFile(join(folder, 'a/direct.bin')), 'a file')), shaOf(FILES[1]!));
      await handle.close();
    } finally {
      await second.clear();
    }
  } finally {
    await first.clear();
  }
});

test('a folder that can’t be mounted on says why and what to do', { skip }, async () => {
  await withMount(FILES, async (rig) => {
    const base = join(rig.folder, '..');
    writeFileSync(join(base, 'file'), 'x');
    const mount = (folder: string) => mountFolder({ folder, source: 'x' });
    await assert.rejects(mount(rig.folder), { code: 'MOUNTED', message: /test: a, b.*qanat unmount/ });
    await assert.rejects(mount(base), { code: 'NOT_EMPTY', message: /empty folder/ });
    await assert.rejects(mount(join(base, 'file')), { code: 'NOT_A_FOLDER' });
    await assert.rejects(mount(join(base, 'file', 'x')), { code: 'NOT_A_FOLDER' });
    await assert.rejects(mount(join(base, 'nobody')), { code: 'NOT_FOUND', message: /mkdir/ });
    await assert.rejects(mount(rig.path('a')), { code: 'NOT_EMPTY' });
    await assert.rejects(unmountFolder(base, { graceMs: 0 }), { code: 'NOT_MOUNTED' });
  });
});

test('without the device, or without the right to mount, one is told what to do', { skip }, async (t) => {
  if (!root) return t.skip('only root can take them away');
  const folder = newFolder();
  t.after(() => rmSync(join(folder, '..'), { recursive: true }));
  const url = new URL('../fuse/mount.ts', import.meta.url).href;
  const code = `
    import { mountFolder } from '${url}';
    await mountFolder({ folder: '${folder}', source: 'x' }).then(() => console.log('mounted'), (error) => console.log(error.message));`;
  const node = [process.execPath, '--input-type=module', '-e', code];
  const noDevice = await run('unshare', ['-m', 'sh', '-c', 'mount -t tmpfs none /dev && exec "$@"', 'sh', ...node]);
  if (noDevice.status !== 0) return t.skip(`unshare: ${noDevice.stderr.trim()}`);
  assert.match(noDevice.stdout, /^mount NO_DEVICE: .*modprobe fuse.*--device \/dev\/fuse/);
  const noRight = await run('setpriv', ['--bounding-set=-sys_admin', ...node]);
  if (noRight.status !== 0) return t.skip(`setpriv: ${noRight.stderr.trim()}`);
  assert.match(noRight.stdout, /^mount NOT_PERMITTED: .*SYS_ADMIN/);
  assert.equal(mountAt(folder), undefined);
});

test('mountinfo: what it holds and what it may hold', () => {
  const text = [
    '36 35 98:0 /mnt1 /mnt/two\\040words\\134 rw,noatime master:1 - ext3 /dev/root rw,errors=continue',
    '42 27 0:39 / /tmp/x ro,nosuid - fuse.qanat rdma://h:1/a\\040b ro',
    '',
    'nonsense',
    '1 2 3',
  ].join('\n');
  assert.deepEqual(parseMountInfo(text), [
    { folder: '/mnt/two words\\', device: '98:0', type: 'ext3', source: '/dev/root' },
    { folder: '/tmp/x', device: '0:39', type: 'fuse.qanat', source: 'rdma://h:1/a b' },
  ]);
  if (existsSync('/proc/self/mountinfo')) assert.equal(mountAt('/proc')?.type, 'proc');
});
