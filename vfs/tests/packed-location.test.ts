/** Which locations lead into a packed file, and how its files are called. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { FetchError } from '../../fetcher/index.ts';
import { packRegion } from '../../storage-server/index.ts';
import { formatLocation } from '../location.ts';
import { locate } from '../packed-location.ts';
import { openSource } from '../source.ts';

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'qanat-test-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('local locations: a packed file alone, and what is in it', async (t) => {
  const folder = makeFolder(t);
  const root = folder.slice(1);
  writeFileSync(join(folder, 'lake.qanat'), '');
  writeFileSync(join(folder, 'LAKE.QANAT'), '');
  writeFileSync(join(folder, 'b%41[x].qanat'), '');
  mkdirSync(join(folder, 'folder.qanat'));
  mkdirSync(join(folder, 'odd.qanat!'));
  const packs: [text: string, pack: string | undefined, inside: string][] = [
    [`${folder}/lake.qanat`, `${root}/lake.qanat`, ''],
    ['lake.qanat', `${root}/lake.qanat`, ''],
    ['./lake.qanat!', `${root}/lake.qanat`, ''],
    ['lake.qanat!/', `${root}/lake.qanat`, ''],
    ['lake.qanat!/a/b.parquet', `${root}/lake.qanat`, 'a/b.parquet'],
    ['lake.qanat!//a/./b*', `${root}/lake.qanat`, 'a/b*'],
    ['lake.qanat!/x.qanat!/y', `${root}/lake.qanat`, 'x.qanat!/y'],
    ['LAKE.QANAT!/a', `${root}/LAKE.QANAT`, 'a'],
    ['b%41[x].qanat!/a', `${root}/b%41[x].qanat`, 'a'],
    [`file://${folder}/lake.qanat!/a%20b`, `${root}/lake.qanat`, 'a b'],
    [`file://${folder}/lake.qanat`, `${root}/lake.qanat`, ''],
    [`file://localhost${folder}/l%61ke.qanat!/a`, `${root}/lake.qanat`, 'a'],
    ['folder.qanat', undefined, `${root}/folder.qanat`],
    ['folder.qanat/a.parquet', undefined, `${root}/folder.qanat/a.parquet`],
    ['odd.qanat!/a.parquet', undefined, `${root}/odd.qanat!/a.parquet`],
    ['none.qanat', undefined, `${root}/none.qanat`],
    ['a!/b.parquet', undefined, `${root}/a!/b.parquet`],
    ['.qanat', undefined, `${root}/.qanat`],
    ['lake.qanat!a', undefined, `${root}/lake.qanat!a`],
  ];
  for (const [text, pack, inside] of packs) {
    const location = await locate(text, folder);
    assert.deepEqual([location.pack, location.glob.pattern.replaceAll('\\', '')], [pack, inside], text);
  }
  const refuses = (text: string, code: string, reason: RegExp) =>
    assert.rejects(locate(text, folder), (error) => {
      assert.ok(error instanceof FetchError && error.code === code, String(error));
      assert.match(error.reason, reason);
      return true;
    });
  await refuses('none.qanat!/a', 'NOT_FOUND', /^there is no packed file none\.qanat$/);
  await refuses('*.qanat!/a', 'BAD_URL', /has no wildcards/);
  await refuses('lake.qanat!/../a', 'BAD_URL', /"\.\."/);
  await refuses('rdma://host/*.qanat!/a', 'BAD_URL', /has no wildcards/);
});

test('packed files behind a server', async () => {
  const inside = await locate('rdma://host/x/lake.qanat!/a%5B/*.parquet');
  assert.deepEqual([inside.scheme, inside.authority, inside.pack], ['rdma', 'host:7400', 'x/lake.qanat']);
  assert.equal(formatLocation(inside, 'a[/b.parquet'), 'rdma://host:7400/x/lake.qanat!/a%5B/b.parquet');
  assert.equal((await locate('rdma://host/x/lake.qanat')).pack, undefined, 'a file like others');
});

test('the files of a packed file, by names with characters that mean something elsewhere', async (t) => {
  const folder = makeFolder(t);
  const names = [
    'a b.parquet',
    'a%20b.parquet',
    'a!/x.parquet',
    'br[1].parquet',
    'd/qanat!.parquet',
    'e.qanat!/f.parquet',
  ];
  mkdirSync(join(folder, 'in'));
  for (const [k, name] of names.entries()) {
    mkdirSync(join(folder, 'in', name, '..'), { recursive: true });
    writeFileSync(join(folder, 'in', name), `file ${k}`);
  }
  const output = join(folder, 'my lake!.qanat');
  await packRegion({ roots: [join(folder, 'in')], output });
  const read = async (text: string): Promise<string> => {
    const source = await openSource(text, { workingFolder: folder });
    try {
      const [file, ...more] = await source.list();
      assert.equal(more.length, 0, text);
      const opened = await source.open(file!);
      return Buffer.from(await opened.read({ start: 0, end: file!.length })).toString();
    } finally {
      await source.close();
    }
  };
  for (const [k, name] of names.entries()) {
    assert.equal(await read(`my lake!.qanat!/${name}`), `file ${k}`);
    assert.equal(await read(`${output}!/${name}`), `file ${k}`);
    const encoded = name.split('/').map(encodeURIComponent).join('/');
    // a file named as it is written comes before what that means
    const meant = names.includes(encoded) ? names.indexOf(encoded) : k;
    assert.equal(await read(`file://${encodeURI(output)}!/${encoded}`), `file ${meant}`);
    const source = await openSource(`my lake!.qanat!/${name}`, { workingFolder: folder });
    const [file] = await source.list();
    assert.equal(source.shown(file!.path), `my lake!.qanat!/${name}`);
    assert.equal(source.locationOf(file!.path), `${output}!/${name}`);
    assert.equal(source.storedAt(file!.path), output);
    assert.equal(await read(source.locationOf(file!.path)), `file ${k}`);
    await source.close();
  }
});
