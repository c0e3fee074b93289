/** What lives how long: lookups and handles, requests that wait, generations, backing files. */
import assert from 'node:assert/strict';
import { constants } from 'node:os';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MountError } from '../errors.ts';
import type { Served } from '../fuse/content.ts';
import { statusTells } from '../fuse/dying.ts';
import { ACTIVE_REQUESTS_MAX, PENDING_REQUESTS_MAX } from '../fuse/limits.ts';
import { OpenFlag } from '../fuse/protocol.ts';
import { chooseServing } from '../fuse/serving.ts';
import { file, type Rig, startRig } from './fuse-rig.ts';

const E = constants.errno;

async function openPath({ kernel }: Rig, path: string): Promise<{ node: number; handle: number; flags: number }> {
  const node = await kernel.walk(path);
  const opened = await kernel.open(node);
  assert.ok('handle' in opened, `${path}: ${JSON.stringify(opened)}`);
  return { node, ...opened };
}

test('lookups are counted as the kernel counts them, down to nothing', async () => {
  const rig = await startRig([file('d/a', 1), file('d/b', 2, 1)]);
  const { kernel, session } = rig;
  const d = await kernel.walk('d');
  await kernel.walk('d/a');
  await kernel.list(d, true);
  await kernel.list(d, false);
  assert.equal(kernel.lookups.get(d), 2);
  const [a, b] = [await kernel.walk('d/a'), await kernel.walk('d/b')];
  assert.deepEqual(
    [a, b].map((node) => kernel.lookups.get(node)),
    [3, 2],
  );
  const nodes = session.activity.nodes;
  session.replaceTree({ generation: 'g2', files: [] });
  assert.equal(session.activity.nodes, nodes, 'the kernel still knows them');
  kernel.forget(a);
  assert.equal(session.activity.nodes, nodes - 1);
  kernel.forget(b, d);
  assert.equal(session.activity.nodes, 1, 'the root');
  kernel.lookups.set(1, 5);
  kernel.forget(1);
  kernel.forget(77, 78);
  assert.equal(session.activity.nodes, 1);
});

test('answers that the kernel does not take are no lookups and no handles', async () => {
  const rig = await startRig([file('d/a', 1)]);
  const { kernel, contents, session } = rig;
  const d = await kernel.walk('d');
  const a = await kernel.walk('d/a');
  kernel.forget(a);
  kernel.takenBack.add(kernel.lastUnique + 2);
  void kernel.lookup(d, 'a');
  const { handle } = (await kernel.opendir(d)) as { handle: number };
  kernel.takenBack.add(kernel.lastUnique + 2);
  void kernel.readdir(d, handle, 0, 4096, true);
  await kernel.releasedir(d, handle);
  const node = await kernel.walk('d/a');
  kernel.takenBack.add(kernel.lastUnique + 2);
  void kernel.open(node);
  kernel.takenBack.add(kernel.lastUnique + 2);
  void kernel.opendir(d);
  assert.equal(session.activity.handles, 0);
  assert.ok(!contents.log.some((line) => line.startsWith('opened')));
  session.replaceTree({ generation: 'g2', files: [] });
  kernel.forget(...kernel.lookups.keys());
  assert.equal(session.activity.nodes, 1);
  assert.equal(session.activity.unwanted, 4);
});

// SEMANTICS 26
test('an interrupt is answered with EINTR: at once for who dies, after a moment for others', async () => {
  const dying = new Set([7]);
  const rig = await startRig([file('f', 1000)], { isDying: (pid) => dying.has(pid) });
  const { kernel, contents, session } = rig;
  contents.hold = true;
  const { node, handle } = await openPath(rig, 'f');
  const killed = kernel.read(node, handle, 0, 10, 7);
  const { lastUnique: killedUnique } = kernel;
  const profiled = kernel.read(node, handle, 10, 10, 8);
  const { lastUnique: profiledUnique } = kernel;
  const patient = kernel.read(node, handle, 20, 10, 8);
  const { lastUnique: patientUnique } = kernel;
  let told = 0;
  contents.held[0]!.signal.onAbort = () => told++;
  kernel.interrupt(killedUnique);
  assert.equal(await killed, E.EINTR);
  assert.equal(told, 1);
  assert.equal(contents.held[0]!.answer(), false, 'nobody wants it any more');
  kernel.interrupt(profiledUnique);
  kernel.interrupt(patientUnique);
  kernel.interrupt(12345);
  await sleep(20);
  assert.equal(contents.held[1]!.answer(), true);
  assert.ok(typeof (await profiled) !== 'number');
  assert.equal(await patient, E.EINTR);
  assert.ok(contents.held[2]!.signal.abortSignal.aborted);
  assert.equal(session.activity.interrupts, 2);
  assert.equal(session.activity.pending, 0);
});

test('who is dying', () => {
  const status = (fields: Record<string, string>) =>
    Object.entries({ Name: 'x', SigPnd: '0', ShdPnd: '0', SigBlk: '0', SigIgn: '0', SigCgt: '0', ...fields })
      .map(([name, value]) => `${name}:\t${value.padStart(16, '0')}`)
      .join('\n');
  assert.equal(statusTells(status({})), false);
  assert.equal(statusTells(status({ SigPnd: '100' })), true, 'SIGKILL');
  assert.equal(statusTells(status({ ShdPnd: '4000' })), true, 'SIGTERM without a handler');
  assert.equal(statusTells(status({ ShdPnd: '4000', SigCgt: '4000' })), false);
  assert.equal(statusTells(status({ ShdPnd: '4000', SigIgn: '4000' })), false);
  assert.equal(statusTells(status({ ShdPnd: '4000', SigBlk: '4000' })), false);
  assert.equal(statusTells(status({ ShdPnd: '10000' })), false, 'SIGCHLD');
  assert.equal(statusTells(''), false);
});

// SEMANTICS 24
test('what is not answered in time gets ETIMEDOUT', async () => {
  const rig = await startRig([file('f', 1000)], { answerMs: 10 });
  rig.contents.hold = true;
  const { node, handle } = await openPath(rig, 'f');
  const read = rig.kernel.read(node, handle, 0, 10);
  // the session's timer alone keeps no process
  const alive = setInterval(() => undefined, 1000);
  assert.equal(await read, E.ETIMEDOUT);
  clearInterval(alive);
  assert.ok(rig.contents.held[0]!.signal.aborted);
  assert.equal(rig.session.activity.timeouts, 1);
});

test('a bounded number of reads is worked on, the others wait in order, and a stop answers all', async () => {
  const rig = await startRig([file('f', 10_000)]);
  const { kernel, contents, session } = rig;
  contents.hold = true;
  const { node, handle } = await openPath(rig, 'f');
  const reads = Array.from({ length: 600 }, (_, k) => kernel.read(node, handle, k, 1));
  assert.equal(contents.held.length, ACTIVE_REQUESTS_MAX);
  assert.equal(session.activity.pending, 600);
  for (let k = 0; k < 300; k++) contents.held[k]!.answer();
  assert.equal(contents.held.length, ACTIVE_REQUESTS_MAX + 300);
  assert.deepEqual(
    contents.held.map(({ offset }) => offset),
    [...Array(ACTIVE_REQUESTS_MAX + 300).keys()],
  );
  session.stop();
  assert.equal(contents.held.length, ACTIVE_REQUESTS_MAX + 300, 'no more is begun');
  const answers = await Promise.all(reads);
  assert.equal(answers.filter((answer) => answer === E.ENOTCONN).length, 300);
  assert.equal(session.activity.pending, 0);
  assert.equal(await kernel.read(node, handle, 0, 1), E.ENOTCONN);
  assert.equal(await kernel.lookup(1, 'f'), E.ENOTCONN);
  assert.equal(await kernel.release(node, handle), 0);
});

// SEMANTICS 27
test('more requests than can wait are refused, and those that wait are answered', async () => {
  const rig = await startRig([file('f', 1000)]);
  const { kernel, contents, session } = rig;
  contents.hold = true;
  const { node, handle } = await openPath(rig, 'f');
  const reads = Array.from({ length: PENDING_REQUESTS_MAX }, () => kernel.read(node, handle, 0, 1));
  for (let k = 0; k < 3; k++) assert.equal(await kernel.read(node, handle, 0, 1), E.EAGAIN);
  assert.equal(session.activity.refused, 3);
  contents.hold = false;
  for (const held of contents.held) held.answer();
  const answers = await Promise.all(reads);
  assert.ok(answers.every((answer) => typeof answer !== 'number'));
  assert.equal(session.activity.pending, 0);
});

test('contents that answer at once do not pile up calls', async () => {
  const rig = await startRig([file('f', 100_000)]);
  const { kernel, contents } = rig;
  contents.hold = true;
  const { node, handle } = await openPath(rig, 'f');
  const reads = Array.from({ length: 20_000 }, (_, k) => kernel.read(node, handle, k, 1));
  contents.hold = false;
  contents.held[0]!.answer();
  for (const held of contents.held) held.answer();
  const answers = await Promise.all(reads);
  assert.ok(answers.every((answer) => typeof answer !== 'number'));
});

// SEMANTICS 17, 18
test('a new generation: unchanged files go on, of the others everything is stale', async () => {
  const before = [file('d/same', 100), file('d/changed', 100, 1), file('gone', 100, 2), file('e/moved', 5, 3)];
  const rig = await startRig(before);
  const { kernel, contents, session, notified } = rig;
  const same = await openPath(rig, 'd/same');
  const changed = await openPath(rig, 'd/changed');
  const gone = await openPath(rig, 'gone');
  const d = await kernel.walk('d');
  contents.hold = true;
  const pending = [same, changed, gone].map(({ node, handle }) => kernel.read(node, handle, 1, 9));
  const after = [file('d/same', 100), file('d/changed', 120, 4), file('new', 10, 5), file('e/moved/in', 5, 3)];
  const change = session.replaceTree(contents.tree('g2', after));
  assert.deepEqual(change, { generation: 'g2', added: 2, removed: 2, changed: 1, leftOut: [] });
  assert.deepEqual(await Promise.all(pending.slice(1)), [E.ESTALE, E.ESTALE]);
  contents.held[0]!.answer();
  assert.ok(typeof (await pending[0]!) !== 'number');
  contents.hold = false;
  assert.ok(typeof (await kernel.read(same.node, same.handle, 0, 9)) !== 'number');
  assert.equal(await kernel.walk('d/same'), same.node);
  assert.equal(await kernel.walk('d'), d);
  for (const { node, handle } of [changed, gone]) {
    assert.equal(await kernel.read(node, handle, 0, 9), E.ESTALE);
    assert.equal(await kernel.getattr(node, handle), E.ESTALE);
    assert.deepEqual(await kernel.open(node), { errno: E.ESTALE });
  }
  const fresh = await openPath(rig, 'd/changed');
  assert.notEqual(fresh.node, changed.node);
  const got = await kernel.read(fresh.node, fresh.handle, 0, 200);
  assert.ok(typeof got !== 'number');
  assert.deepEqual(Buffer.from(got), Buffer.from(after[1]!.bytes));
  assert.equal(await kernel.walk('gone'), -E.ENOENT);
  // "e" was never looked up: nothing of it can be kept
  const names = notified
    .filter((message) => Buffer.from(message).readInt32LE(4) === 3)
    .map((message) => `${Buffer.from(message).readUInt32LE(16)}/${Buffer.from(message.subarray(32, -1)).toString()}`);
  assert.deepEqual(names.sort(), [`1/gone`, `1/new`, `${d}/changed`].sort());
  assert.ok(contents.log.includes('closed d/changed@e1') && contents.log.includes('closed gone@e2'));
  assert.ok(contents.log.includes(`released ${gone.handle} gone@e2`));
  assert.ok(!contents.log.includes('closed d/same@e0'));
  assert.equal(await kernel.release(gone.node, gone.handle), 0);
});

// SEMANTICS 20
test('a listing that was begun is of one generation', async () => {
  const rig = await startRig([file('a', 1), file('b', 2, 1)]);
  const { handle } = (await rig.kernel.opendir(1)) as { handle: number };
  const some = await rig.kernel.readdir(1, handle, 0, 100, false);
  rig.session.replaceTree(rig.contents.tree('g2', [file('a', 1, 9), file('x', 2, 1), file('y', 3, 2)]));
  const rest = await rig.kernel.readdir(1, handle, some.at(-1)!.next, 4096, true);
  assert.deepEqual(
    [...some, ...rest].map(({ name }) => name),
    ['.', '..', 'a', 'b'],
  );
  assert.ok(
    rest.every(({ entry }) => entry!.nodeId === 0),
    'what is no longer there is not looked up',
  );
});

test('what can’t be a tree is left out and told', async () => {
  const rig = await startRig([]);
  const odd = ['', '/a', 'a//b', '../a', 'a/.', 'a\0b', 'x'.repeat(256), 'a\ud800', `${'d/'.repeat(300)}f`];
  const files = [...odd, 'twice', 'twice', 'both', 'both/f', 'late/f', 'late', 'ä'.repeat(127)].map((path) =>
    file(path, 1),
  );
  const { leftOut } = rig.session.replaceTree(rig.contents.tree('g2', files));
  assert.deepEqual(
    leftOut.map(({ path }) => path),
    [...odd, 'twice', 'both', 'late'],
  );
  const names = (await rig.kernel.list(1, true)).map(({ name }) => name);
  assert.deepEqual(names.sort(), ['.', '..', 'both', 'late', 'twice', 'ä'.repeat(127)].sort());
});

test('how handles are served keeps to the kernel’s rules', () => {
  const wish = { serve: 'passthrough', backing: 3, otherwise: 'direct' } as const;
  const none = { cached: 0, direct: 0, passthrough: 0 };
  const serve = (...args: Parameters<typeof chooseServing>) => {
    const { served, flags, backed } = chooseServing(...args);
    assert.equal((flags & OpenFlag.FOPEN_PASSTHROUGH) !== 0, backed);
    return `${served}${backed ? ' backed' : ''}`;
  };
  assert.equal(serve(wish, none, true), 'passthrough backed');
  assert.equal(serve(wish, none, false), 'direct');
  assert.equal(serve(wish, { ...none, cached: 1 }, true), 'cached');
  assert.equal(serve(wish, { ...none, direct: 1 }, true), 'direct');
  assert.equal(serve(wish, { ...none, passthrough: 1 }, true), 'passthrough backed');
  assert.equal(serve({ serve: 'cached' }, { ...none, passthrough: 1 }, true), 'passthrough backed');
  assert.equal(serve({ serve: 'direct' }, { ...none, passthrough: 1 }, true), 'direct backed');
  assert.equal(serve({ serve: 'direct' }, { ...none, cached: 1 }, true), 'direct');
  assert.equal(serve({ serve: 'cached' }, { ...none, direct: 1 }, true), 'cached');
});

test('backing files are open while a handle needs them', async () => {
  const rig = await startRig([file('f', 100)]);
  const { kernel, contents, session } = rig;
  contents.opening = { serve: 'passthrough', backing: 33, otherwise: 'direct' };
  const first = await openPath(rig, 'f');
  assert.deepEqual([...kernel.backingFiles.values()], [33]);
  contents.opening = { serve: 'direct' };
  const second = await openPath(rig, 'f');
  assert.equal(second.flags & OpenFlag.FOPEN_DIRECT_IO, OpenFlag.FOPEN_DIRECT_IO);
  assert.ok(typeof (await kernel.read(second.node, second.handle, 0, 5)) !== 'number');
  await kernel.release(first.node, first.handle, true);
  assert.equal(kernel.backingFiles.size, 1);
  await kernel.release(second.node, second.handle, true);
  assert.equal(kernel.backingFiles.size, 0);
  contents.opening = { serve: 'passthrough', backing: 34, otherwise: 'cached' };
  const third = await openPath(rig, 'f');
  session.replaceTree({ generation: 'g2', files: [] });
  assert.equal(kernel.backingFiles.size, 1, 'its handle is still served');
  await kernel.release(third.node, third.handle, true);
  assert.equal(kernel.backingFiles.size, 0);
  assert.deepEqual(session.counters.opens, { cached: 0, direct: 1, passthrough: 2 });
});

test('where the kernel refuses a backing file, handles are served otherwise, and it is not asked again', async () => {
  const rig = await startRig([file('f', 100), file('g', 100, 1)]);
  let asked = 0;
  rig.kernel.backing.open = () => {
    asked++;
    throw new MountError('NOT_PERMITTED', 'no');
  };
  rig.contents.opening = { serve: 'passthrough', backing: 33, otherwise: 'direct' };
  const served: Served[] = [];
  for (const path of ['f', 'g']) served.push((await openPath(rig, path)).flags & 1 ? 'direct' : 'cached');
  assert.deepEqual(served, ['direct', 'direct']);
  assert.equal(asked, 1);
});
