/** Which files are served, under which names, and what is skipped with which reason. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ServeError } from '../index.ts';
import { scanRoots } from '../scan-roots.ts';
import { makeFolder } from './lake.ts';

const BYTE = Buffer.from('x');

test('Parquet by name, all on request, hidden files not', async (t) => {
  const folder = makeFolder(t, {
    'a.parquet': BYTE,
    'deep/er/b.PARQUET': BYTE,
    'empty.parquet': Buffer.alloc(0),
    'readme.txt': BYTE,
    '.c.parquet': BYTE,
    _SUCCESS: BYTE,
  });
  const paths = async (all: boolean) => (await scanRoots([folder], { all })).files.map(({ path }) => path).sort();
  assert.deepEqual(await paths(false), ['a.parquet', 'deep/er/b.PARQUET', 'empty.parquet']);
  assert.deepEqual(await paths(true), [
    '.c.parquet',
    '_SUCCESS',
    'a.parquet',
    'deep/er/b.PARQUET',
    'empty.parquet',
    'readme.txt',
  ]);
  const { skipped } = await scanRoots([folder], { all: false });
  assert.deepEqual(skipped.map(({ path, reason }) => `${path}: ${reason}`).sort(), [
    '.c.parquet: it is hidden',
    '_SUCCESS: it is not named as Parquet',
    'readme.txt: it is not named as Parquet',
  ]);
});

test('several roots appear under their base names, a file under its own', async (t) => {
  const folder = makeFolder(t, {
    'one/a.parquet': BYTE,
    'two/a.parquet': BYTE,
    'lone.bin': BYTE,
    'other/one/x.parquet': BYTE,
  });
  const roots = ['one', 'two', 'lone.bin'].map((name) => join(folder, name));
  const { files } = await scanRoots(roots, { all: false });
  assert.deepEqual(files.map(({ path }) => path).sort(), ['lone.bin', 'one/a.parquet', 'two/a.parquet']);
  symlinkSync('one', join(folder, 'current'));
  const linked = await scanRoots([join(folder, 'current'), join(folder, 'two')], { all: false });
  assert.deepEqual(linked.files.map(({ path }) => path).sort(), ['current/a.parquet', 'two/a.parquet']);
  await assert.rejects(
    scanRoots([join(folder, 'one'), join(folder, 'other/one')], { all: false }),
    (error) =>
      error instanceof ServeError &&
      error.code === 'NAMES' &&
      error.reason.includes(join(folder, 'one')) &&
      /other\/one would both appear as "one": rename one/.test(error.reason),
  );
  await assert.rejects(scanRoots([join(folder, 'one'), `${folder}/two/../one/`], { all: false }), /named twice/);
});

test('roots that can not be served', async (t) => {
  const folder = makeFolder(t, {});
  for (const roots of [[], [join(folder, 'missing')], ['/'], ['/dev/null']]) {
    await assert.rejects(
      scanRoots(roots, { all: false }),
      (error) => error instanceof ServeError && error.code === 'ROOT',
    );
  }
});

test('links: inside yes, outside, dangling and circular no', async (t) => {
  const outside = makeFolder(t, { 'secret.parquet': BYTE });
  const folder = makeFolder(t, { 'real/a.parquet': BYTE });
  symlinkSync('real/a.parquet', join(folder, 'inside.parquet'));
  symlinkSync('real', join(folder, 'folder'));
  symlinkSync(join(outside, 'secret.parquet'), join(folder, 'outside.parquet'));
  symlinkSync(outside, join(folder, 'outside'));
  symlinkSync('nowhere', join(folder, 'dangling.parquet'));
  symlinkSync('..', join(folder, 'real', 'up'));
  symlinkSync('loop.parquet', join(folder, 'loop.parquet'));
  // Named like the root plus something: not inside it.
  mkdirSync(`${folder}-more`);
  t.after(() => execFileSync('rm', ['-r', `${folder}-more`]));
  writeFileSync(`${folder}-more/s.parquet`, BYTE);
  symlinkSync(`${folder}-more/s.parquet`, join(folder, 'beside.parquet'));
  const { files, skipped } = await scanRoots([folder], { all: false });
  assert.deepEqual(files.map(({ path }) => path).sort(), ['folder/a.parquet', 'inside.parquet', 'real/a.parquet']);
  const reasons = new Map(skipped.map(({ path, reason }) => [path, reason]));
  for (const path of ['outside.parquet', 'outside', 'beside.parquet'])
    assert.match(reasons.get(path)!, /leaves the root/);
  assert.match(reasons.get('real/up')!, /folder that it is in/);
  assert.match(reasons.get('dangling.parquet')!, /ENOENT/);
  assert.match(reasons.get('loop.parquet')!, /ELOOP/);
});

test('odd names and odd files', async (t) => {
  const odd = [
    'a b.parquet',
    'ü/ñ.parquet',
    'line\nbreak.parquet',
    'back\\slash.parquet',
    '…parquet/…c.parquet',
    '-rf.parquet',
  ];
  const folder = makeFolder(t, Object.fromEntries(odd.map((path) => [path, BYTE])));
  writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.of(0xff, 0xfe), Buffer.from('.parquet')]), BYTE);
  execFileSync('sh', ['-c', 'mkfifo "$0"', join(folder, 'pipe.parquet')]);
  const { files, skipped } = await scanRoots([folder], { all: false });
  assert.deepEqual(files.map(({ path }) => path).sort(), [...odd].sort());
  assert.deepEqual(skipped.map(({ reason }) => reason).sort(), [
    'it is neither a file nor a folder',
    'its name is not UTF-8',
  ]);
});
