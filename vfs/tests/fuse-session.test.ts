/** The session over a kernel in the same process: what each request is answered with. */
import assert from 'node:assert/strict';
import { constants } from 'node:os';
import { test } from 'node:test';
import { FetchError } from '../../fetcher/index.ts';
import { MountError } from '../errors.ts';
import { LoopbackKernel, struct, terminated } from '../fuse/loopback.ts';
import { Opcode } from '../fuse/protocol.ts';
import { FuseSession } from '../fuse/session.ts';
import { file, MemoryContents, patterned, startRig } from './fuse-rig.ts';

const E = constants.errno;

async function openPath(
  kernel: LoopbackKernel,
  path: string,
): Promise<{ node: number; handle: number; flags: number }> {
  const node = await kernel.walk(path);
  assert.ok(node > 0, `${path}: ${node}`);
  const opened = await kernel.open(node);
  assert.ok('handle' in opened, `open: ${JSON.stringify(opened)}`);
  return { node, handle: opened.handle, flags: opened.flags };
}

test('names, attributes and listings of the tree', async () => {
  const { kernel } = await startRig([file('a/b/one', 10_000), file('a/two', 0, 2), file('z', 5, 3)]);
  const one = await kernel.lookup(await kernel.walk('a/b'), 'one');
  assert.ok(typeof one === 'object');
  assert.equal(one.validS, 3600);
  assert.deepEqual(one.attributes, { ino: one.nodeId, length: 10_000, modifiedMs: 1000, mode: 0o100444, links: 1 });
  const a = await kernel.getattr(await kernel.walk('a'));
  assert.ok(typeof a === 'object');
  assert.equal(a.mode, 0o040555);
  assert.equal(a.links, 3);
  assert.equal(await kernel.walk('nobody'), -E.ENOENT);
  assert.equal(await kernel.lookup(await kernel.walk('z'), 'x'), E.ENOTDIR);
  assert.equal(await kernel.lookup(4711, 'x'), E.ESTALE);
  const absent = await kernel.lookup(1, Buffer.from([0xff]));
  assert.ok(typeof absent === 'object' && absent.nodeId === 0 && absent.validS === 3600);
  for (const plus of [false, true]) {
    const names = (await kernel.list(1, plus, 400)).map(({ name, type }) => `${name}:${type}`);
    assert.deepEqual(names, ['.:4', '..:4', 'a:4', 'z:8']);
    const inner = await kernel.list(await kernel.walk('a'), plus, 400);
    assert.deepEqual(
      inner.map(({ name, ino }) => [name, ino]),
      [
        ['.', await kernel.walk('a')],
        ['..', 1],
        ['b', await kernel.walk('a/b')],
        ['two', await kernel.walk('a/two')],
      ],
    );
  }
});

// SEMANTICS 3
test('reads give exactly the bytes, to the end and not beyond', async () => {
  const bytes = patterned(100_000);
  const { kernel, session } = await startRig([file('f', 100_000)]);
  const { node, handle, flags } = await openPath(kernel, 'f');
  assert.equal(flags, 0x22, 'kept in the page cache, nothing to flush');
  for (const [offset, size] of [
    [0, 1],
    [0, 100_000],
    [1, 65_536],
    [99_999, 10],
    [100_000, 10],
    [2 ** 52, 10],
    [17, 0],
    [0, 1 << 20],
  ] as const) {
    const got = await kernel.read(node, handle, offset, size);
    assert.ok(typeof got !== 'number');
    assert.deepEqual(Buffer.from(got), Buffer.from(bytes.subarray(offset, offset + size)), `${offset}+${size}`);
  }
  assert.equal(await kernel.read(node, handle, 0, (1 << 20) + 1), E.EINVAL);
  assert.equal(await kernel.read(node, 99, 0, 1), E.EBADF);
  assert.equal(await kernel.release(node, handle), 0);
  assert.equal(await kernel.read(node, handle, 0, 1), E.EBADF);
  assert.equal(await kernel.release(node, handle), E.EBADF);
  assert.equal(session.activity.handles, 0);
  assert.equal(session.counters.readBytes, 100_000 + 65_536 + 100_000 + 2);
});

// SEMANTICS 9
test('whatever would write is refused, what is unknown is told so', async () => {
  const { kernel } = await startRig([file('f', 10)]);
  const node = await kernel.walk('f');
  const writes = [
    'SETATTR',
    'SYMLINK',
    'MKNOD',
    'MKDIR',
    'UNLINK',
    'RMDIR',
    'RENAME',
    'LINK',
    'WRITE',
    'SETXATTR',
  ] as const;
  const more = ['REMOVEXATTR', 'CREATE', 'FALLOCATE', 'RENAME2', 'COPY_FILE_RANGE', 'TMPFILE'] as const;
  for (const name of [...writes, ...more]) {
    const { errno } = await kernel.request(Opcode[`FUSE_${name}`], node, Buffer.alloc(100));
    assert.equal(errno, E.EROFS, name);
  }
  assert.deepEqual(await kernel.open(node, 1), { errno: E.EROFS });
  assert.deepEqual(await kernel.open(node, 2), { errno: E.EROFS });
  assert.deepEqual(await kernel.open(node, 0o1000), { errno: E.EROFS });
  assert.deepEqual(await kernel.open(1), { errno: E.EISDIR });
  assert.deepEqual(await kernel.opendir(node), { errno: E.ENOTDIR });
  const body = Buffer.alloc(64);
  for (const [opcode, errno] of [
    [Opcode.FUSE_FLUSH, E.ENOSYS],
    [Opcode.FUSE_FSYNC, E.ENOSYS],
    [Opcode.FUSE_LSEEK, E.ENOSYS],
    [4000, E.ENOSYS],
    [Opcode.FUSE_IOCTL, E.ENOTTY],
    [Opcode.FUSE_READLINK, E.EINVAL],
    [Opcode.FUSE_DESTROY, 0],
    [Opcode.FUSE_STATFS, 0],
  ] as const) {
    assert.equal((await kernel.request(opcode, node, body)).errno, errno, `opcode ${opcode}`);
  }
  assert.equal((await kernel.request(Opcode.FUSE_ACCESS, node, struct(8, [4]))).errno, 0);
  assert.equal((await kernel.request(Opcode.FUSE_ACCESS, node, struct(8, [2]))).errno, E.EROFS);
});

// SEMANTICS 23
test('extended attributes', async () => {
  const contents = new MemoryContents();
  const plain = contents.tree('the generation', [file('d/f', 10, 7)]);
  const tree = { ...plain, files: plain.files.map((one) => ({ ...one, attributes: { 'user.qanat.view': 'raw' } })) };
  const { kernel } = await startRig([], { tree, contents: (one) => contents.make(one) });
  const node = await kernel.walk('d/f');
  const get = async (name: string, size = 100) => {
    const body = Buffer.concat([struct(8, [size]), terminated(name)]);
    const { errno, body: value } = await kernel.request(Opcode.FUSE_GETXATTR, node, body);
    return errno === 0 ? Buffer.from(value).toString('utf8') : errno;
  };
  assert.equal(await get('user.qanat.etag'), 'e7');
  assert.equal(await get('user.qanat.generation'), 'the generation');
  assert.equal(await get('user.qanat.path'), 'd/f');
  assert.equal(await get('user.qanat.view'), 'raw');
  assert.equal(await get('user.qanat.view', 0), '\x03\0\0\0\0\0\0\0');
  assert.equal(await get('user.qanat.view', 2), E.ERANGE);
  assert.equal(await get('security.selinux'), E.ENODATA);
  assert.equal(await get('constructor'), E.ENODATA);
  const list = await kernel.request(Opcode.FUSE_LISTXATTR, node, struct(8, [1000]));
  assert.equal(
    Buffer.from(list.body).toString(),
    'user.qanat.etag\0user.qanat.generation\0user.qanat.path\0user.qanat.view\0',
  );
  assert.equal((await kernel.request(Opcode.FUSE_LISTXATTR, node, struct(8, [10]))).errno, E.ERANGE);
});

// SEMANTICS 4
test('errors of contents become numbers, and broken contents EIO', async () => {
  const { kernel, contents, session, problems } = await startRig([file('f', 1000), file('g', 10, 1)]);
  const { node, handle } = await openPath(kernel, 'f');
  const reading = (read: typeof contents.read) => {
    contents.read = read;
    return kernel.read(node, handle, 0, 100);
  };
  const failing = (error: unknown) => reading((_o, _l, _s, done) => void done(error));
  assert.equal(await failing(new FetchError('STALLED', 'x')), E.ETIMEDOUT);
  assert.equal(await failing(new FetchError('STALE', 'x')), E.ESTALE);
  assert.equal(await failing(new FetchError('ACCESS', 'x')), E.ESTALE);
  assert.equal(await failing(new FetchError('LOST', 'x')), E.EIO);
  assert.equal(await failing(new FetchError('MEMORY', 'x')), E.ENOMEM);
  assert.equal(await failing(new FetchError('CANCELLED', 'x')), E.EINTR);
  assert.equal(await failing(new MountError('TIMEOUT', 'x')), E.ETIMEDOUT);
  assert.equal(await failing(new Error('x')), E.EIO);
  assert.equal(await failing('text'), E.EIO);
  assert.equal(await failing(AbortSignal.abort().reason), E.EINTR);
  const throwing = await reading(() => {
    throw new FetchError('NOT_FOUND', 'x');
  });
  assert.equal(throwing, E.ENOENT);
  assert.equal(session.counters.broken, 0);
  assert.equal(await reading((_o, _l, _s, done) => void done(undefined, [new Uint8Array(99)])), E.EIO);
  assert.equal(await reading((_o, _l, _s, done) => void done(undefined)), E.EIO);
  assert.equal(await reading((_o, _l, _s, done) => void done(undefined, [new Uint8Array(101)])), E.EIO);
  assert.equal(session.counters.broken, 3);
  assert.equal(problems.length, 3);
  const twice = await reading((_o, length, _s, done) => {
    assert.equal(done(undefined, [new Uint8Array(length)]), true);
    assert.equal(done(undefined, [new Uint8Array(length)]), false);
    assert.equal(done(new Error('late')), false);
  });
  assert.ok(typeof twice !== 'number' && twice.length === 100);
  const many = await reading((_o, length, _s, done) => {
    done(
      undefined,
      Array.from({ length: 3000 }, (_, k) => new Uint8Array(k < length ? 1 : 0).fill(k)),
    );
  });
  assert.ok(typeof many !== 'number' && many.length === 100 && many[99] === 99);
  contents.openWith = (_signal, done) => done(new FetchError('DENIED', 'x'));
  assert.deepEqual(await kernel.open(await kernel.walk('g')), { errno: E.EACCES });
  contents.openWith = () => {
    throw new FetchError('HOST', 'x');
  };
  assert.deepEqual(await kernel.open(await kernel.walk('g')), { errno: E.EIO });
  assert.equal(session.activity.pending, 0);
});

// SEMANTICS 13
test('files that have to be measured: looked up when they are, listed before', async () => {
  const { kernel, contents, session } = await startRig([{ ...file('d/f', 77), unmeasured: true }]);
  const folder = await kernel.walk('d');
  const before = await kernel.list(folder, true);
  assert.equal(before.find(({ name }) => name === 'f')!.entry!.nodeId, 0, 'a name without a lookup');
  const waiting: ((error: unknown, length?: number) => void)[] = [];
  contents.measureWith = (_signal, done) => void waiting.push(done);
  const first = kernel.lookup(folder, 'f');
  const second = kernel.lookup(folder, 'f');
  assert.equal(kernel.waiting, 2);
  waiting[0]!(undefined, 77);
  waiting[1]!(new FetchError('LOST', 'x'));
  const entry = await first;
  assert.ok(typeof entry === 'object' && entry.attributes.length === 77);
  assert.equal(await second, E.EIO);
  assert.equal((await kernel.list(folder, true)).find(({ name }) => name === 'f')!.entry!.attributes.length, 77);
  const third = await kernel.lookup(folder, 'f');
  assert.ok(typeof third === 'object');
  assert.equal(waiting.length, 2, 'measured once and for all');
  const statfs = await kernel.request(Opcode.FUSE_STATFS, 1);
  assert.equal(Number(Buffer.from(statfs.body).readBigUInt64LE(24)), 1);
  assert.equal(session.activity.pending, 0);
});

test('a length that is none is an error', async () => {
  const { kernel, contents, problems } = await startRig([{ ...file('f', 77), unmeasured: true }]);
  for (const wrong of [undefined, -1, 1.5, Number.NaN, 2 ** 60]) {
    contents.measureWith = (_signal, done) => done(undefined, wrong);
    assert.equal(await kernel.lookup(1, 'f'), E.EIO);
  }
  assert.equal(problems.length, 5);
});

test('the end of the kernel: everything is closed, and nothing is asked of contents any more', async () => {
  const { kernel, contents, session } = await startRig([file('f', 1000), file('g', 10, 1)]);
  const { node, handle } = await openPath(kernel, 'f');
  contents.hold = true;
  void kernel.read(node, handle, 0, 10);
  const { signal } = contents.held[0]!;
  kernel.end();
  assert.equal(await session.ended, undefined);
  assert.ok(signal.aborted && signal.abortSignal.aborted);
  assert.ok(contents.log.includes('closed f@e0'));
  assert.ok(!contents.log.some((line) => line.includes('g@')), 'never used, never made');
  assert.throws(() => session.replaceTree({ generation: 'x', files: [] }), /STOPPED/);
});

test('a kernel that goes before it began, and one that is too old', async () => {
  const contents = new MemoryContents();
  const start = (kernel: LoopbackKernel) =>
    new FuseSession({ binding: kernel, tree: contents.tree('g', []), contents: (one) => contents.make(one) });
  const gone = new LoopbackKernel();
  const never = start(gone);
  gone.end(new Error('cut'));
  await assert.rejects(never.ready, /cut/);
  assert.match(String(await never.ended), /cut/);
  const old = new LoopbackKernel();
  const session = start(old);
  assert.equal((await old.init({ minor: 20 })).errno, E.EPROTO);
  await assert.rejects(session.ready, /7\.20/);
  const newer = new LoopbackKernel();
  const again = start(newer);
  const answer = await newer.init({ major: 8 });
  assert.equal(Buffer.from(answer.body).readUInt32LE(0), 7);
  await newer.init();
  assert.equal((await again.ready).minor, 45);
});

test('messages that do not parse are answered where they can be, and cost nothing else', async () => {
  const { kernel, session, problems } = await startRig([file('f', 10)]);
  kernel.deliver(new Uint8Array(7));
  assert.equal((await kernel.request(Opcode.FUSE_READ, 2, new Uint8Array(3))).errno, E.EINVAL);
  assert.equal(session.counters.malformed, 2);
  assert.equal(problems.length, 2);
  assert.ok((await kernel.walk('f')) > 0);
});
