/** Mounts of an ordinary user, through fusermount3: of a user that the test makes, as root, or of who runs the tests. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, test } from 'node:test';
import { mountAt } from '../fuse/mount-table.ts';
import type { User } from './fuse-mount-rig.ts';
import { makeUser, newFolder, run, runScript, StartError, startMount, whyNoMount } from './fuse-mount-rig.ts';
import { patterned } from './fuse-rig.ts';
import type { ServedFile } from './fuse-server.ts';

const FILES: readonly ServedFile[] = [
  { path: 'd/cached', length: 1_500_001, salt: 1, serve: 'cached' },
  { path: 'd/direct', length: 700_001, salt: 2, serve: 'direct' },
  // a user may not have it, and gets direct I/O
  { path: 'pass', length: 300_001, salt: 3, serve: 'passthrough' },
];

const isRoot = process.getuid?.() === 0;
const made = isRoot ? await makeUser() : undefined;
const user: User | undefined = typeof made === 'object' ? made.user : undefined;

async function why(): Promise<string | false> {
  if (typeof made === 'string') return made;
  const cannot = await whyNoMount();
  if (cannot !== false) return cannot;
  const { status } = await run('fusermount3', ['--version'], user);
  return status === 'ENOENT' ? 'fusermount3 is not installed (apt install fuse3)' : false;
}

const skip = await why();
after(async () => {
  if (typeof made === 'object') await made.remove();
});

const as = user === undefined ? {} : { user };

async function assertWhole(folder: string): Promise<void> {
  for (const { path, length, salt } of FILES) {
    const { stdout, stderr } = await run('sha256sum', [`${folder}/${path}`], user);
    const expected = createHash('sha256').update(patterned(length, salt)).digest('hex');
    assert.equal(stdout.slice(0, 64), expected, `${path} ${stderr}`);
  }
}

test('a user mounts, reads and unmounts', { skip }, async () => {
  const rig = await startMount({ folder: newFolder(user), files: FILES, generation: 'g1' }, as);
  try {
    await assertWhole(rig.folder);
    const { opens, problems } = await rig.figures();
    assert.equal(opens.passthrough, 0);
    assert.equal(opens.direct, 2);
    assert.match(problems.join(), /^mount NOT_PERMITTED|no passthrough/);
    assert.equal(rig.ready.readAheadSet, false);
    const entry = mountAt(rig.folder)!;
    assert.deepEqual([entry.type, entry.source], ['fuse.qanat', 'test: a, b']);
    if (isRoot) assert.notEqual((await run('ls', [rig.folder])).status, 0, 'not for others, not even for root');
    assert.equal(await rig.call({ op: 'unmount', graceMs: 5000 }), 'unmounted');
    await rig.exited();
    assert.equal(mountAt(rig.folder), undefined);
  } finally {
    await rig.clear();
  }
});

test('a user’s dead mount is cleared away by the user’s next one, a busy one is detached', { skip }, async () => {
  const folder = newFolder(user);
  const first = await startMount({ folder, files: FILES, generation: 'g1' }, as);
  try {
    await first.kill();
    assert.match((await run('ls', [folder], user)).stderr, /not connected/);
    const second = await startMount({ folder, files: FILES, generation: 'g2' }, as);
    try {
      assert.equal(second.ready.cleared, true);
      await assertWhole(folder);
      await second.call({ op: 'hold', paths: ['d/direct'] });
      const code = `
        const fs = require('node:fs');
        const descriptor = fs.openSync(process.argv[1]);
        try { fs.readSync(descriptor, Buffer.alloc(10)); } catch (error) { console.log(error.code); }`;
      const reader = runScript(code, [`${folder}/d/direct`], user);
      await second.until('the read waits', ({ waiting }) => waiting === 1);
      const how = await second.call({ op: 'unmount', graceMs: 400 });
      assert.equal((await reader).trim(), 'ENOTCONN');
      // the reader goes when its read is answered, which may be in time
      assert.match(String(how), /^(detached|unmounted)$/);
      assert.equal(mountAt(folder), undefined);
    } finally {
      await second.clear();
    }
  } finally {
    await first.clear();
  }
});

test('without fusermount3 a user is told what to install, and of a folder that is not theirs', { skip }, async (t) => {
  const start = (folder: string, env = {}) => startMount({ folder, files: [], generation: 'g' }, { ...as, env });
  const failed = async (what: Promise<unknown>): Promise<StartError> => {
    const error = await what.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof StartError, String(error));
    return error;
  };
  const none = await failed(start(newFolder(user), { PATH: '/nowhere' }));
  assert.equal(none.code, 'NO_FUSERMOUNT');
  assert.match(none.message, /fuse3/);
  if (!isRoot) return t.skip('only root can make a folder of somebody else');
  const { code, message } = await failed(start(newFolder()));
  assert.equal(code, 'NOT_PERMITTED', message);
});
