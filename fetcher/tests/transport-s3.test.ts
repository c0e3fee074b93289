/** S3 as a source: what refusals mean, credentials that expire, regions, versions, rights that lack, and keys of any kind. */
import assert from 'node:assert/strict';
import { chmodSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, type TestContext, test } from 'node:test';
import { packRegion } from '../../storage-server/index.ts';
import { FetchError, type FetchErrorCode } from '../errors.ts';
import { type OpenedTransport, type OpenTransportOptions, openTransport } from '../transport/open-transport.ts';
import { isolateSdk, type Refusal, type S3Store, type S3StoreOptions, startS3Store } from './s3-store.ts';
import { makeFolder, pattern } from './transport-fixtures.ts';

const BYTES = pattern(50_000, 3);
const QUICK: OpenTransportOptions = { stallMs: 500, retry: { attempts: 3, baseMs: 1, capMs: 1 } };
const KEYS = { AWS_ACCESS_KEY_ID: 'AKIATEST', AWS_SECRET_ACCESS_KEY: 'hunter2' };

beforeEach(() => isolateSdk(KEYS));

const hasCode =
  (code: FetchErrorCode, text = /(?:)/) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof FetchError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, text);
    assert.doesNotMatch(error.message, /hunter2|token\d/);
    return true;
  };

interface Opened extends OpenedTransport {
  readonly store: S3Store;
  readonly folder: string;
}

async function open(
  t: TestContext,
  store: S3StoreOptions = {},
  options: OpenTransportOptions = QUICK,
  files: Record<string, Buffer> = { 'f.parquet': BYTES },
): Promise<Opened> {
  const folder = makeFolder(t, files);
  const started = await startS3Store(t, folder, store);
  const s3 = { endpoint: started.origin, ...options.s3 };
  const opened = await openTransport(`s3://${started.bucket}/`, { ...options, s3 });
  t.after(() => opened.transport.close());
  return { ...opened, store: started, folder };
}

async function readAll({ transport }: OpenedTransport, path: string): Promise<Buffer> {
  const file = await transport.find!(path);
  assert.ok(file !== undefined, `${path} is not there`);
  const into = Buffer.alloc(file.length);
  await transport.read(file, 0, into);
  return into;
}

/** What a refusal of a read becomes, and whether it is tried again. */
const REFUSALS: readonly (readonly [status: number, code: string, outcome: FetchErrorCode, isTriedAgain: boolean])[] = [
  [503, 'SlowDown', 'SERVER', true],
  [500, 'InternalError', 'SERVER', true],
  [400, 'RequestTimeout', 'SERVER', true],
  [429, 'TooManyRequests', 'SERVER', true],
  [503, '', 'SERVER', true],
  [403, 'AccessDenied', 'DENIED', false],
  [403, 'SignatureDoesNotMatch', 'DENIED', false],
  [403, 'InvalidAccessKeyId', 'DENIED', false],
  [403, 'RequestTimeTooSkewed', 'DENIED', false],
  [403, 'InvalidObjectState', 'DENIED', false],
  [404, 'NoSuchKey', 'STALE', false],
  [404, 'NoSuchBucket', 'NOT_FOUND', false],
  [405, 'MethodNotAllowed', 'STALE', false],
  [412, 'PreconditionFailed', 'STALE', false],
  [416, 'InvalidRange', 'STALE', false],
  [501, 'NotImplemented', 'SERVER', false],
  [400, 'InvalidRequest', 'PROTOCOL', false],
];

for (const [status, code, outcome, isTriedAgain] of REFUSALS) {
  test(`${status} ${code}: ${outcome}${isTriedAgain ? ', tried again' : ''}`, async (t) => {
    let refusal: Refusal | undefined;
    let refused = 0;
    const opened = await open(t, {
      refuse: () => {
        if (refusal !== undefined) refused++;
        return refusal;
      },
    });
    const file = await opened.transport.find!('f.parquet');
    refusal = { status, code };
    await assert.rejects(opened.transport.read(file!, 1, new Uint8Array(9)), hasCode(outcome, new RegExp(code)));
    if (isTriedAgain) assert.ok(refused >= 3, `${refused} attempts`);
    else assert.equal(refused, 1);
  });
}

test('a storm of SlowDown ends, and the read has its bytes', async (t) => {
  let storm = 0;
  const patient = { retry: { baseMs: 1, capMs: 2 } };
  const opened = await open(
    t,
    { refuse: () => (storm-- > 0 ? { status: 503, code: 'SlowDown' } : undefined) },
    patient,
  );
  storm = 10;
  assert.ok((await readAll(opened, 'f.parquet')).equals(BYTES));
  storm = 10;
  assert.equal((await opened.transport.list('')).length, 1);
});

test('every request is signed and has the version as its condition', async (t) => {
  const opened = await open(t, {}, { ...QUICK, s3: { requesterPays: true } });
  assert.ok((await readAll(opened, 'f.parquet')).equals(BYTES));
  await opened.transport.list('');
  const [probe, read, list] = opened.store.seen;
  assert.equal(probe!.headers.range, 'bytes=0-0');
  assert.match(String(read!.headers['if-match']), /^"/);
  assert.equal(list!.query.get('list-type'), '2');
  for (const { accessKey, method, headers } of opened.store.seen) {
    assert.equal(accessKey, 'AKIATEST');
    assert.equal(method, 'GET');
    assert.equal(headers['x-amz-request-payer'], 'requester');
  }
  const anonymous = await open(t, {}, { ...QUICK, s3: { anonymous: true } });
  assert.ok((await readAll(anonymous, 'f.parquet')).equals(BYTES));
  await anonymous.transport.list('');
  assert.ok(anonymous.store.seen.every(({ headers }) => headers.authorization === undefined));
});

test('the end of an object comes with the look at it, where somebody wants it', async (t) => {
  const opened = await open(t, {}, QUICK, {
    'f.parquet': BYTES,
    'small.parquet': BYTES.subarray(0, 9),
    'none.parquet': Buffer.alloc(0),
  });
  const tails: Uint8Array[] = [];
  const look = (path: string) => opened.transport.find!(path, { tailBytes: 64, onTail: (tail) => tails.push(tail) });
  assert.equal((await look('f.parquet'))!.length, BYTES.length);
  assert.equal((await look('small.parquet'))!.length, 9);
  assert.equal((await look('none.parquet'))!.length, 0);
  assert.equal(await look('nothing.parquet'), undefined);
  assert.deepEqual(
    tails.map((tail) => Buffer.from(tail)),
    [BYTES.subarray(-64), BYTES.subarray(0, 9)],
  );
  assert.equal(opened.store.seen[0]!.headers.range, 'bytes=-64');
  const { bytesOnWire, bytesDirectory, bytesDiscarded } = opened.counters;
  assert.equal(bytesDirectory, 64 + 9, 'it took them to know the files');
  assert.equal(bytesOnWire, bytesDirectory + bytesDiscarded);
});

test('without credentials it says what to give', async (t) => {
  isolateSdk();
  const opened = await open(t);
  await assert.rejects(opened.transport.list(''), hasCode('DENIED', /no credentials .*--anonymous/));
  await assert.rejects(opened.transport.find!('f.parquet'), hasCode('DENIED', /no credentials/));
  assert.equal(opened.store.requests.length, 0);
});

test('credentials that expire in the middle are renewed once for all reads, wherever they come from', async (t) => {
  const folder = makeFolder(t, {});
  // a program hands out credentials, a new pair each time
  writeFileSync(
    join(folder, 'credentials.sh'),
    `#!/bin/sh\necho x >> ${folder}/count\nn=$(wc -l < ${folder}/count | tr -d ' ')\n` +
      `printf '{"Version":1,"AccessKeyId":"KEY%s","SecretAccessKey":"hunter2","SessionToken":"token%s"}' $n $n\n`,
  );
  chmodSync(join(folder, 'credentials.sh'), 0o755);
  writeFileSync(join(folder, 'config'), `[default]\ncredential_process = ${folder}/credentials.sh\n`);
  isolateSdk({ AWS_CONFIG_FILE: join(folder, 'config') });
  let least = 1;
  const status = { expired: 400 };
  const opened = await open(t, {
    refuse: ({ token }) => {
      const number = Number(token?.slice('token'.length));
      return number >= least ? undefined : { status: status.expired, code: 'ExpiredToken' };
    },
  });
  const [file] = await opened.transport.list('');
  const handedOut = (): number => readFileSync(join(folder, 'count'), 'utf8').length / 2;
  assert.equal(handedOut(), 1);
  least = 2;
  const reads = Array.from({ length: 20 }, async (_, i) => {
    const into = Buffer.alloc(1000);
    await opened.transport.read(file!, i * 1000, into);
    assert.ok(into.equals(BYTES.subarray(i * 1000, i * 1000 + 1000)));
  });
  await Promise.all(reads);
  assert.equal(handedOut(), 2);
  least = 3;
  status.expired = 403;
  assert.equal((await opened.transport.list('')).length, 1);
  assert.equal(handedOut(), 3);
  // new ones that are no better are no reason to go on
  least = 100;
  await assert.rejects(opened.transport.read(file!, 0, new Uint8Array(1)), hasCode('DENIED', /have expired/));
  assert.equal(handedOut(), 4);
});

test("a bucket of another region is asked for there, in the region's own signatures", async (t) => {
  const regions: string[] = [];
  const opened = await open(t, {
    refuse: ({ headers }) => {
      const region = /Credential=[^/]+\/\d+\/([^/]+)\//.exec(headers.authorization ?? '')?.[1] ?? '';
      regions.push(region);
      const where = { 'x-amz-bucket-region': 'eu-central-1' };
      if (region === 'eu-central-1') return undefined;
      return { status: 400, code: 'AuthorizationHeaderMalformed', headers: where };
    },
  });
  assert.ok((await readAll(opened, 'f.parquet')).equals(BYTES));
  assert.equal((await opened.transport.list('')).length, 1);
  assert.deepEqual(regions, ['us-east-1', 'eu-central-1', 'eu-central-1', 'eu-central-1']);
});

test('in a bucket with versions a read goes on in the version that was opened, or is STALE without the right to', async (t) => {
  let mayNameVersions = true;
  const store: S3StoreOptions = {
    versions: true,
    refuse: ({ query }) =>
      query.has('versionId') && !mayNameVersions ? { status: 403, code: 'AccessDenied' } : undefined,
  };
  for (const may of [true, false]) {
    mayNameVersions = may;
    const opened = await open(t, store);
    const file = await opened.transport.find!('f.parquet');
    await opened.transport.read(file!, 0, new Uint8Array(10));
    await opened.transport.read(file!, 0, new Uint8Array(10));
    assert.equal(opened.store.seen.at(-1)!.query.has('versionId'), may);
    writeFileSync(join(opened.folder, 'new'), pattern(50_000, 4));
    renameSync(join(opened.folder, 'new'), join(opened.folder, 'f.parquet'));
    const into = Buffer.alloc(100);
    const read = opened.transport.read(file!, 7, into);
    if (!may) await assert.rejects(read, hasCode('STALE'));
    else {
      await read;
      assert.ok(into.equals(BYTES.subarray(7, 107)));
    }
    assert.ok((await readAll(opened, 'f.parquet')).equals(pattern(50_000, 4)));
  }
});

test('who may read but not list finds files by their names; who may do neither is told so', async (t) => {
  const noLists: S3StoreOptions = {
    refuse: ({ key }) => (key === '' || key === 'none' ? { status: 403, code: 'AccessDenied' } : undefined),
  };
  const opened = await open(t, noLists);
  assert.ok((await readAll(opened, 'f.parquet')).equals(BYTES));
  await assert.rejects(opened.transport.list(''), hasCode('DENIED', /AccessDenied/));
  assert.equal(await opened.transport.find!('none'), undefined);
  const nowhere = await openTransport('s3://no-such-bucket/', { ...QUICK, s3: { endpoint: opened.store.origin } });
  t.after(() => nowhere.transport.close());
  await assert.rejects(nowhere.transport.list(''), hasCode('NOT_FOUND', /no such bucket/));
  await assert.rejects(nowhere.transport.find!('f'), hasCode('NOT_FOUND', /no such bucket/));
});

test('keys of any kind, in pages, below a prefix, and a packed region', async (t) => {
  const names = ["a b+c%2f&?#ü'()*!.parquet", 'a/1.parquet', 'a/2.parquet', 'a0.parquet', '€/~.parquet'];
  const files = Object.fromEntries(names.map((name, i) => [name, pattern(1000, i)]));
  const opened = await open(t, { pageKeys: 2 }, QUICK, files);
  const paths = async (prefix: string) => (await opened.transport.list(prefix)).map(({ path }) => path);
  assert.deepEqual(await paths(''), names);
  assert.deepEqual(await paths('a/'), ['a/1.parquet', 'a/2.parquet']);
  assert.deepEqual(await paths('none'), []);
  for (const [i, name] of names.entries()) assert.ok((await readAll(opened, name)).equals(pattern(1000, i)), name);
  assert.equal(await opened.transport.find!('a'), undefined);
  await packRegion({ roots: [join(opened.folder, 'a')], output: join(opened.folder, 'lake.qanat') });
  const url = `s3://${opened.store.bucket}/lake.qanat!/2.parquet`;
  const packed = await openTransport(url, { ...QUICK, s3: { endpoint: opened.store.origin } });
  t.after(() => packed.transport.close());
  const [file] = await packed.transport.list('2.parquet');
  const into = Buffer.alloc(file!.length);
  await packed.transport.read(file!, 0, into);
  assert.ok(into.equals(pattern(1000, 2)));
});

test('what is no location of a bucket', async () => {
  for (const url of ['s3://', 's3://a', 's3:///key', 's3://b@d/key', `s3://${'b'.repeat(64)}/k`]) {
    await assert.rejects(openTransport(url), hasCode('BAD_URL'));
  }
  for (const endpoint of ['host:1', 'ftp://h', 'https://', 'http://me:hunter2@h']) {
    await assert.rejects(openTransport('s3://bucket/', { s3: { endpoint } }), hasCode('OPTION'));
  }
});
