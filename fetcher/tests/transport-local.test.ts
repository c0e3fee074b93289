/** Local folders as they are: entries that can't be looked at, and folders and files that this user may not read. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { FetchError, type FetchErrorCode } from '../errors.ts';
import { openTransport } from '../transport/open-transport.ts';
import { makeFolder, pattern } from './transport-fixtures.ts';

const isError = (code: FetchErrorCode, text: RegExp) => (error: unknown) => {
  assert.ok(error instanceof FetchError, String(error));
  assert.match(error.message, text);
  return error.code === code;
};

/** Acts while nobody may read these paths, as a user for whom that holds: root may read everything. */
async function keptFromUs(paths: readonly string[], act: () => Promise<void>): Promise<void> {
  for (const path of paths) chmodSync(path, 0);
  const isRoot = process.getuid!() === 0;
  try {
    if (isRoot) process.seteuid!(65534);
    await act();
  } finally {
    if (isRoot) process.seteuid!(0);
    for (const path of paths) chmodSync(path, 0o700);
  }
}

async function open(t: TestContext, folder: string) {
  const skipped: [path: string, reason: string][] = [];
  const { transport } = await openTransport(`file://${folder}`, {
    onSkipped: (path, reason) => skipped.push([path.slice(folder.length + 1), reason]),
    retry: { attempts: 1 },
  });
  t.after(() => transport.close());
  const list = async (prefix: string) => (await transport.list(prefix)).map(({ path }) => path);
  return { transport, list, skipped };
}

test('entries that can not be looked at are left out and told once', async (t) => {
  const folder = makeFolder(t, { 'a.parquet': pattern(10, 1), 'x/b.parquet': pattern(10, 1) });
  chmodSync(folder, 0o755);
  symlinkSync('loop.parquet', join(folder, 'loop.parquet'));
  symlinkSync('nothing', join(folder, 'x/dangling'));
  mkdirSync(join(folder, 'closed'));
  writeFileSync(join(folder, 'closed/c.parquet'), pattern(10, 1));
  writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.of(0x61, 0xff)]), 'x');
  await keptFromUs([join(folder, 'closed')], async () => {
    const { list, skipped } = await open(t, folder);
    for (let round = 0; round < 2; round++) {
      assert.deepEqual(await list(''), ['a.parquet', 'x/b.parquet']);
      assert.deepEqual(skipped.toSorted(), [
        ['a\ufffd', 'its name is not UTF-8'],
        ['closed', 'this user may not read it (EACCES)'],
        ['loop.parquet', 'the link leads round in a circle (ELOOP)'],
        ['x/dangling', 'the link leads to nothing'],
      ]);
    }
  });
});

test('what was asked for itself is an error that says why', async (t) => {
  const folder = makeFolder(t, { 'closed/c.parquet': pattern(10, 1), 'a.parquet': pattern(10, 1) });
  chmodSync(folder, 0o755);
  symlinkSync('loop.parquet', join(folder, 'loop.parquet'));
  symlinkSync('loop', join(folder, 'loop'));
  const kept = ['closed', 'a.parquet'].map((name) => join(folder, name));
  await keptFromUs(kept, async () => {
    const { list, transport, skipped } = await open(t, folder);
    await assert.rejects(list('loop.parquet'), isError('STORAGE', /\/loop\.parquet: the link leads round in a circle/));
    for (const prefix of ['closed', 'closed/', 'closed/c.parquet']) {
      await assert.rejects(list(prefix), isError('DENIED', /\/closed: this user may not read it \(EACCES\)/), prefix);
    }
    assert.deepEqual(await list('lo-nothing'), []);
    assert.deepEqual(skipped, [], 'an error is told as such only');
    const [file] = await transport.list('a.parquet');
    const read = transport.read(file!, 0, new Uint8Array(1));
    await assert.rejects(read, isError('DENIED', /a\.parquet: this user may not read it/));
    const closed = await open(t, join(folder, 'closed'));
    await assert.rejects(closed.list(''), isError('DENIED', /\/closed: this user may not read it/));
    await assert.rejects(openTransport(`file://${folder}/closed/deeper/`), isError('DENIED', /may not read it/));
    await assert.rejects(openTransport(`file://${folder}/loop/x`), isError('STORAGE', /round in a circle/));
    await assert.rejects(openTransport(`file://${folder}/none/x`), isError('NOT_FOUND', /there is no none in/));
  });
});
