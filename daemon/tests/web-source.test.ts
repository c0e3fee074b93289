/** Files of web servers as the commands see them: ls, inspect, scan, cp, packed regions and the daemon, from nginx. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { qanat } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';
import { Nginx, whyNoNginx } from './web-process.ts';

describe('files of nginx', { skip: whyNoNginx() }, () => {
  let lake: Lake;
  let nginx: Nginx;

  before(async () => {
    lake = await Lake.create();
    await lake.write('numbers %.parquet', numbersQuery(30_000));
    await writeFile(lake.path('empty.parquet'), '');
    nginx = await Nginx.start(lake.folder);
  });
  after(async () => {
    await nginx?.[Symbol.asyncDispose]();
    await lake?.[Symbol.asyncDispose]();
  });

  const scanned = async (url: string, ...more: string[]): Promise<string> => {
    const { code, text, errors } = await qanat(['scan', url, '--format', 'checksum', ...more]);
    assert.deepEqual([code, errors], [0, '']);
    return text;
  };

  test('ls, inspect, scan and cp', async () => {
    const url = `${nginx.origin}/numbers%20%25.parquet`;
    const listed = await qanat(['ls', url, '--json']);
    assert.deepEqual([listed.code, listed.errors], [0, '']);
    const [file] = JSON.parse(listed.text) as { location: string; bytes: number }[];
    const bytes = await readFile(lake.path('numbers %.parquet'));
    assert.equal(file!.bytes, bytes.length);
    const again = await qanat(['ls', file!.location, '--json']);
    assert.equal(again.text, listed.text);
    const inspected = await qanat(['inspect', url, '--json']);
    assert.deepEqual([inspected.code, inspected.errors], [0, '']);
    assert.equal((JSON.parse(inspected.text) as { num_rows: number }).num_rows, 30_000);
    assert.equal(await scanned(url), await scanned(lake.path('numbers %.parquet')));
    const copied = await qanat(['cp', url, '-']);
    assert.equal(copied.code, 0, copied.errors);
    assert.ok(copied.stdout.equals(bytes));
  });

  test('a packed region, its globs, and a disk cache before it', async () => {
    const packed = await qanat(['pack', lake.folder, '-o', lake.path('lake.qanat')]);
    assert.equal(packed.code, 0, packed.errors);
    const url = `${nginx.origin}/lake.qanat!`;
    const listed = await qanat(['ls', `${url}/*`]);
    assert.match(listed.text, /empty\.parquet/);
    assert.match(listed.text, /numbers %\.parquet/);
    const local = await scanned(lake.path('numbers %.parquet'));
    const cache = ['--cache-dir', lake.path('cache')];
    assert.equal(await scanned(`${url}/num*.parquet`, ...cache), local);
    assert.equal(await scanned(`${url}/num*.parquet`, ...cache), local);
    const all = await qanat(['scan', `${url}/empty.parquet`, '--format', 'count']);
    assert.equal(all.code, 1);
  });

  test('what is not there, and what HTTP has not', async () => {
    const missing = await qanat(['scan', `${nginx.origin}/none.parquet?sig=hunter2`]);
    assert.equal(missing.code, 1);
    assert.match(missing.errors, /fetch NOT_FOUND: .*none\.parquet\?\*\*\*": the server has no such file/);
    assert.doesNotMatch(missing.errors, /hunter2/);
    const folder = await qanat(['ls', nginx.origin]);
    assert.match(folder.errors, /names a folder, and plain HTTP has no listings: name a file, or a packed region/);
    const token = await qanat(['ls', `${nginx.origin}/empty.parquet`, '--token-file', lake.path('nothing')]);
    assert.match(token.errors, /nothing: it does not exist/);
  });
});
