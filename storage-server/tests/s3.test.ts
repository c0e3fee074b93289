/** The S3 API: listings against a model, objects, buckets, errors, styles, and what writes. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { type IncomingHttpHeaders, request } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ServeOptions } from '../index.ts';
import { bucketName, type ListedObject } from '../s3/buckets.ts';
import { bucketDocument } from '../s3/documents.ts';
import { listObjects } from '../s3/listing.ts';
import { makeFolder, pattern, startServer } from './lake.ts';
import { randomFrom } from './random.ts';

const object = (path: string): ListedObject => {
  return { path, entry: { path, offset: 0, length: path.length, etag: 'e', modifiedMs: 0 } };
};
const compareBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

test('pages of random listings together are what a simple model lists', () => {
  const random = randomFrom('s3 listings');
  const letters = ['a', 'b', '/', '/', '-', 'ä', '\u{1d11e}', '\uffee'];
  const text = (most: number): string =>
    Array.from({ length: random.below(most) }, () => letters[random.below(letters.length)]).join('');
  for (let round = 0; round < 500; round++) {
    const keys = [...new Set(Array.from({ length: random.below(40) }, () => text(8)))]
      .filter((key) => key !== '')
      .sort(compareBytes);
    const prefix = random.below(2) === 0 ? '' : text(4);
    const delimiter = ['', '/', 'b', 'a/'][random.below(4)]!;
    const expected: string[] = [];
    for (const key of keys.filter((one) => one.startsWith(prefix))) {
      const cut = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length);
      const name = cut < 0 ? key : key.slice(0, cut + delimiter.length);
      if (expected.at(-1) !== name) expected.push(name);
    }
    const objects = keys.map(object);
    const keysMax = 1 + random.below(5);
    const found: string[] = [];
    for (let after = '', pages = 0; ; pages++) {
      assert.ok(pages < 100);
      const { objects: some, prefixes, next } = listObjects(objects, { prefix, delimiter, after, keysMax });
      const page = [...some.map(({ path }) => path), ...prefixes].sort(compareBytes);
      assert.ok(page.length <= keysMax);
      found.push(...page);
      if (next === undefined) break;
      assert.equal(page.length, keysMax);
      after = next;
    }
    assert.deepEqual(found, expected, JSON.stringify({ keys, prefix, delimiter, keysMax }));
  }
});

test('keys with everything in them are listed as text that can be read back', () => {
  const keys = ['a b+c', 'a&<>"\'', 'line\nbreak', 'ä/\u{1d11e}', '100%25'].sort(compareBytes);
  const url = bucketDocument(
    keys.map(object),
    'b',
    new Map([
      ['list-type', '2'],
      ['encoding-type', 'url'],
    ]),
  );
  assert.deepEqual(
    [...url.matchAll(/<Key>(.*?)<\/Key>/g)].map(([, key]) => decodeURIComponent(key!)),
    keys,
  );
  const plain = bucketDocument(keys.map(object), 'b', new Map([['list-type', '2']]));
  assert.ok(plain.includes("<Key>a&amp;&lt;&gt;&quot;'</Key>") && plain.includes('line&#xa;break'));
});

test('names of buckets', () => {
  for (const [root, name] of [
    ['lake', 'lake'],
    ['My Data', 'my-data'],
    ['a', 'bucket-a'],
    ['...', 'bucket'],
    ['x..y', 'x-y'],
    ['_lake_', 'lake'],
    ['ä', 'bucket'],
  ] as const) {
    assert.equal(bucketName(root), name, root);
  }
});

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

function ask(
  port: number,
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
  body?: string,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', reject);
      response.on('end', () => {
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(parts) });
      });
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

const codeOf = ({ body }: Answer): string | undefined => /<Code>(\w+)<\/Code>/.exec(body.toString())?.[1];
const keysOf = ({ body }: Answer): string[] =>
  [...body.toString().matchAll(/<Key>(.*?)<\/Key>/g)].map(([, key]) => key!);

const FILES = {
  'y=1/a.parquet': pattern(3000, 1),
  'y=2/b c.parquet': pattern(500_000, 2),
  'top.parquet': pattern(10, 3),
};

async function start(t: TestContext, folder: string, options: Partial<ServeOptions> = {}) {
  const started = await startServer(t, folder, {
    s3: { listen: { host: '127.0.0.1', port: 0 }, bucket: 'lake' },
    ...options,
  });
  return { ...started, s3: started.server.s3!.port };
}

test('objects, listings and errors', async (t) => {
  const { s3 } = await start(t, makeFolder(t, FILES));
  assert.match((await ask(s3, '/')).body.toString(), /<Bucket><Name>lake<\/Name>/);
  assert.deepEqual(keysOf(await ask(s3, '/lake?list-type=2')), Object.keys(FILES).sort());
  assert.deepEqual(keysOf(await ask(s3, '/lake/?list-type=2&prefix=y%3D2/')), ['y=2/b c.parquet']);
  assert.deepEqual(keysOf(await ask(s3, '/lake?list-type=2&start-after=y%3D1/a.parquet')), ['y=2/b c.parquet']);
  const page = await ask(s3, '/lake?list-type=2&max-keys=1');
  const token = /<NextContinuationToken>(.*?)</.exec(page.body.toString())![1]!;
  assert.deepEqual(keysOf(await ask(s3, `/lake?list-type=2&max-keys=1&continuation-token=${token}`)), [
    'y=1/a.parquet',
  ]);
  assert.match((await ask(s3, '/lake?list-type=2&max-keys=0')).body.toString(), /<IsTruncated>false</);
  assert.match((await ask(s3, '/lake?location')).body.toString(), /LocationConstraint/);
  const whole = await ask(s3, '/lake/y%3D2/b%20c.parquet');
  assert.ok(whole.body.equals(FILES['y=2/b c.parquet']));
  const etag = whole.headers.etag!;
  const head = await ask(s3, '/lake/y=2/b%20c.parquet', { range: 'bytes=0-9' }, 'HEAD');
  assert.deepEqual([head.status, head.headers['content-length'], head.headers.etag], [206, '10', etag]);
  const part = await ask(s3, '/lake/y=2%2Fb%20c.parquet', { range: 'bytes=100-', 'if-match': etag.slice(1, -1) });
  assert.ok(part.status === 206 && part.body.equals(FILES['y=2/b c.parquet'].subarray(100)));
  const virtual = await ask(s3, '/y=1/a.parquet', { host: `lake.localhost:${s3}` });
  assert.ok(virtual.body.equals(FILES['y=1/a.parquet']));
  assert.equal(keysOf(await ask(s3, '/?list-type=2', { host: 'LAKE.localhost' })).length, 3);
  const cases: [Promise<Answer>, number, string | undefined][] = [
    [ask(s3, '/lake/none'), 404, 'NoSuchKey'],
    [ask(s3, '/lake/../lake/top.parquet'), 404, 'NoSuchKey'],
    [ask(s3, '/lake/%2e%2e/%2e%2e/etc/passwd'), 404, 'NoSuchKey'],
    [ask(s3, '/lake/top.parquet%00'), 404, 'NoSuchKey'],
    [ask(s3, '/lake//top.parquet'), 404, 'NoSuchKey'],
    [ask(s3, '/lake/y=1/'), 404, 'NoSuchKey'],
    [ask(s3, '/other'), 404, 'NoSuchBucket'],
    [ask(s3, '/other/top.parquet'), 404, 'NoSuchBucket'],
    [ask(s3, '/', { host: 'other.localhost' }), 404, 'NoSuchBucket'],
    [ask(s3, '//top.parquet'), 404, 'NoSuchBucket'],
    [ask(s3, '/lake/%zz'), 400, 'InvalidURI'],
    [ask(s3, '/lake?list-type=2&prefix=%ff'), 400, 'InvalidURI'],
    [ask(s3, '/lake?list-type=3'), 400, 'InvalidArgument'],
    [ask(s3, '/lake?max-keys=-1'), 400, 'InvalidArgument'],
    [ask(s3, '/lake?list-type=2&continuation-token=%2F%2F'), 400, 'InvalidArgument'],
    [ask(s3, '/lake?acl'), 501, 'NotImplemented'],
    [ask(s3, '/lake/top.parquet?tagging'), 501, 'NotImplemented'],
    [ask(s3, '/lake/top.parquet?versionId=x'), 404, 'NoSuchVersion'],
    [ask(s3, '/lake/top.parquet', { range: 'bytes=10-' }), 416, 'InvalidRange'],
    [ask(s3, '/lake/top.parquet', { 'if-match': '"x"' }), 412, 'PreconditionFailed'],
    [ask(s3, '/lake/y=2/b%20c.parquet', { 'if-none-match': etag }), 304, undefined],
    [ask(s3, '/lake/new', {}, 'PUT', 'x'.repeat(100_000)), 405, 'MethodNotAllowed'],
    [ask(s3, '/lake/new', { expect: '100-continue' }, 'PUT'), 405, 'MethodNotAllowed'],
    [ask(s3, '/lake?delete', {}, 'POST', '<Delete/>'), 405, 'MethodNotAllowed'],
    [ask(s3, '/lake/top.parquet', {}, 'DELETE'), 405, 'MethodNotAllowed'],
    [ask(s3, '/new', {}, 'PUT'), 405, 'MethodNotAllowed'],
    [ask(s3, '/lake', {}, 'HEAD'), 200, undefined],
    [ask(s3, '/other', {}, 'HEAD'), 404, undefined],
    [ask(s3, '/lake/none', {}, 'HEAD'), 404, undefined],
  ];
  for (const [k, [asked, status, code]] of cases.entries()) {
    const answer = await asked;
    assert.deepEqual([answer.status, codeOf(answer)], [status, code], `case ${k}`);
  }
});

test('each root is a bucket; generations change what they hold', async (t) => {
  const folder = makeFolder(t, {
    'One/x.parquet': pattern(100, 1),
    'two/y/z.parquet': pattern(200, 2),
    'single.parquet': pattern(5, 3),
  });
  mkdirSync(join(folder, 'none'));
  const { server, s3 } = await start(t, folder, {
    roots: ['One', 'two', 'none', 'single.parquet'].map((name) => join(folder, name)),
    s3: { listen: { host: '127.0.0.1', port: 0 } },
  });
  assert.deepEqual(server.s3!.buckets, ['none', 'one', 'single.parquet', 'two']);
  assert.deepEqual(keysOf(await ask(s3, '/one')), ['x.parquet']);
  assert.deepEqual(keysOf(await ask(s3, '/two')), ['y/z.parquet']);
  assert.deepEqual(keysOf(await ask(s3, '/none')), []);
  assert.ok((await ask(s3, '/single.parquet/single.parquet')).body.equals(pattern(5, 3)));
  writeFileSync(join(folder, 'none', 'new.parquet'), pattern(7, 7));
  assert.equal(await server.republish(), 'published');
  assert.deepEqual(keysOf(await ask(s3, '/none')), ['new.parquet']);
});

test('with keys, nothing is told to those who do not sign', async (t) => {
  const folder = makeFolder(t, { keys: Buffer.from('id secret\n'), 'data/a.parquet': pattern(10, 1) });
  const { server, s3 } = await start(t, join(folder, 'data'), {
    s3: { listen: { host: '127.0.0.1', port: 0 }, bucket: 'lake', keysFile: join(folder, 'keys') },
  });
  for (const path of ['/', '/lake', '/other', '/lake/a.parquet', '/lake/none', '/lake?acl']) {
    const answer = await ask(s3, path);
    assert.deepEqual([answer.status, codeOf(answer)], [403, 'AccessDenied'], path);
    assert.equal(answer.headers['x-amz-bucket-region'], undefined);
  }
  assert.equal((await ask(s3, '/lake/a.parquet', {}, 'PUT', 'x')).status, 403);
  writeFileSync(join(folder, 'keys'), 'rubbish');
  await assert.rejects(server.reloadKeys(), { code: 'KEYS' });
  assert.equal((await ask(s3, '/')).status, 403);
});
