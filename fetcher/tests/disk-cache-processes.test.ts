/** Several processes on one folder at once, and processes that are killed in the middle of writing. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { BLOCK_BYTES_MAX, LOOK_SHARE, WRITERS } from '../disk-cache/limits.ts';
import { blockFiles, bytesOfFiles, newFolder } from './cache-rig.ts';
import { seededRandom } from './random.ts';

const SCRIPT = fileURLToPath(new URL('cache-process.ts', import.meta.url));

interface Seen {
  readonly hits: number;
  readonly damaged: number;
  readonly evictions: number;
  readonly writes: number;
  readonly lost: number;
  readonly bytesCached: number;
}

interface Reader {
  readonly child: ChildProcess;
  readonly ready: Promise<void>;
  /** What it saw; rejects when it ended otherwise. */
  readonly seen: Promise<Seen>;
}

function startReader(t: TestContext, ...args: readonly (string | number)[]): Reader {
  const child = spawn(process.execPath, [SCRIPT, ...args.map(String)], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const ready = Promise.withResolvers<void>();
  const seen = (async () => {
    let last = '';
    for await (const line of createInterface({ input: child.stdout })) {
      if (line === 'ready') ready.resolve();
      else last = line;
    }
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    assert.equal(child.exitCode, 0);
    return JSON.parse(last) as Seen;
  })();
  seen.catch(() => ready.resolve());
  return { child, ready: ready.promise, seen };
}

test('two processes share a folder: right bytes, nothing damaged, the size kept but for what is being written', async (t) => {
  const random = seededRandom();
  const folder = newFolder(t);
  const limit = 16_000_000;
  const readers = [1, 2].map(() => startReader(t, folder, limit, random.below(2 ** 31), 150));
  const all = Promise.all(readers.map(({ seen }) => seen));
  await Promise.all(readers.map(({ ready }) => ready));
  let most = 0;
  const over = all.then(
    () => true,
    () => true,
  );
  while (!(await Promise.race([over, sleep(10, false)]))) most = Math.max(most, bytesOfFiles(join(folder, 'blocks-1')));
  const seen = await all;
  for (const { damaged, lost } of seen) assert.deepEqual([damaged, lost], [0, 0]);
  for (const { evictions, writes, bytesCached } of seen) assert.ok(evictions > 0 && writes > 0 && bytesCached > 0);
  // what each of them may write before it looks at what the others have
  const unseen = limit / LOOK_SHARE + WRITERS * BLOCK_BYTES_MAX;
  assert.ok(most <= limit + unseen, `${most} bytes on disk`);
  assert.ok(most > limit / 2);
});

test('a process reads what another one keeps', async (t) => {
  const folder = newFolder(t);
  await startReader(t, folder, 2 ** 30, 7, 60).seen;
  const again = await startReader(t, folder, 2 ** 30, 7, 60, 'offline').seen;
  assert.deepEqual([again.lost, again.damaged, again.hits], [0, 0, 60]);
});

test('killed in the middle of writing: nothing is damaged, and drafts go', async (t) => {
  const random = seededRandom();
  const folder = newFolder(t);
  let drafts = 0;
  for (let round = 0; round < 4; round++) {
    const { child, ready, seen } = startReader(t, folder, 40_000_000, random.below(2 ** 31), 100_000);
    const killed = assert.rejects(seen);
    await ready;
    await sleep(20 + random.below(150));
    child.kill('SIGKILL');
    await killed;
    drafts = Math.max(drafts, readdirSync(join(folder, 'blocks-1/drafts')).length);
  }
  assert.ok(blockFiles(join(folder, 'blocks-1')).length > 0);
  const draftFolder = join(folder, 'blocks-1/drafts');
  for (const name of readdirSync(draftFolder)) utimesSync(join(draftFolder, name), 1000, 1000);
  const { damaged, lost, hits } = await startReader(t, folder, 40_000_000, 1, 100).seen;
  assert.deepEqual([damaged, lost], [0, 0]);
  assert.ok(hits > 0);
  assert.deepEqual(readdirSync(draftFolder), []);
  t.diagnostic(`${drafts} drafts were left behind`);
});
