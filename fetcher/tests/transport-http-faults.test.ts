/**
 * What servers do wrong, and what becomes of a read then: each fault for ever, and once. A read ends with the bytes of the
 * version that was opened, or with an error that says what is wrong.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { FetchError, type FetchErrorCode } from '../errors.ts';
import { type OpenedTransport, type OpenTransportOptions, openTransport } from '../transport/open-transport.ts';
import type { FileVersion } from '../transport/transport.ts';
import { isolateSdk, startS3Store } from './s3-store.ts';
import { makeFolder, pattern } from './transport-fixtures.ts';
import { type Fault, startWebServer, type WebServer, type WebServerOptions } from './web-server.ts';

isolateSdk({ AWS_ACCESS_KEY_ID: 'AKIATEST', AWS_SECRET_ACCESS_KEY: 'secret' });

const BYTES = pattern(300_000, 7);
const QUICK: OpenTransportOptions = { stallMs: 300, retry: { attempts: 3, baseMs: 1, capMs: 1 } };

interface Opened {
  readonly opened: OpenedTransport;
  readonly server: WebServer;
  readonly file: FileVersion;
}

type Kind = 'http' | 's3';

async function openFile(t: TestContext, server: WebServerOptions = {}, kind: Kind = 'http'): Promise<Opened> {
  const folder = makeFolder(t, { 'f.parquet': BYTES });
  const web = kind === 'http' ? await startWebServer(t, folder, server) : await startS3Store(t, folder, server);
  const url = 'bucket' in web ? `s3://${web.bucket}/` : `${web.origin}/`;
  const opened = await openTransport(url, { ...QUICK, s3: { endpoint: web.origin } });
  t.after(() => opened.transport.close());
  const [file] = await opened.transport.list('f.parquet');
  return { opened, server: web, file: file! };
}

/** The bytes, or the error's code. Books are kept in either case. */
async function readOf({ opened, file }: Opened, start: number, length: number): Promise<Buffer | FetchErrorCode> {
  const into = Buffer.alloc(length);
  let arrived = 0;
  const onArrived = (bytes: number): void => {
    assert.ok(into.subarray(arrived, bytes).equals(BYTES.subarray(start + arrived, start + bytes)), 'wrong bytes told');
    arrived = bytes;
  };
  try {
    await opened.transport.read(file, start, into, { onArrived });
    assert.equal(arrived, length);
    return into;
  } catch (error) {
    assert.ok(error instanceof FetchError, String(error));
    return error.code;
  } finally {
    const { bytesOnWire, bytesDirectory, bytesDiscarded } = opened.counters;
    assert.equal(bytesOnWire, bytesDirectory + bytesDiscarded + arrived);
  }
}

/** What a fault that never passes makes of a read; none where the bytes come all the same. */
const FOR_EVER: Readonly<Record<Fault, FetchErrorCode | undefined>> = {
  reset: 'LOST',
  // each attempt brings half of the rest, down to its last byte
  truncate: 'LOST',
  'truncate-chunked': 'LOST',
  stall: 'STALLED',
  'stall-headers': 'STALLED',
  busy: 'SERVER',
  'wrong-range': 'PROTOCOL',
  short: undefined,
  long: 'PROTOCOL',
  whole: undefined,
  'part-as-200': undefined,
  'whole-chunked': undefined,
  'other-etag': 'STALE',
  'no-range-header': 'PROTOCOL',
  gzip: 'PROTOCOL',
  'not-modified': 'PROTOCOL',
  parts: 'PROTOCOL',
  garbage: 'PROTOCOL',
};

/** Faults that are no passing trouble: another attempt would be no use. */
const FINAL: readonly Fault[] = ['other-etag', 'gzip', 'not-modified'];

const START = 1000;
const LENGTH = 12;

const CELLS = (['http', 's3'] as const).flatMap((kind) =>
  (Object.entries(FOR_EVER) as [Fault, FetchErrorCode | undefined][]).map(([fault, outcome]) => ({
    kind,
    fault,
    outcome,
  })),
);

for (const { kind, fault, outcome } of CELLS) {
  test(`${kind}, ${fault}, for ever: ${outcome ?? 'the bytes'}`, async (t) => {
    const opened = await openFile(t, { conditions: fault !== 'other-etag' }, kind);
    opened.server.fault = () => fault;
    const read = await readOf(opened, START, LENGTH);
    assert.deepEqual(read, outcome ?? BYTES.subarray(START, START + LENGTH));
  });

  test(`${kind}, ${fault}, once: ${FINAL.includes(fault) ? outcome : 'the bytes'}`, async (t) => {
    const opened = await openFile(t, {}, kind);
    let left = 1;
    opened.server.fault = () => (left-- > 0 ? fault : undefined);
    const read = await readOf(opened, START, 100_000);
    assert.deepEqual(read, FINAL.includes(fault) ? outcome : BYTES.subarray(START, START + 100_000));
  });
}

test('a read resumes behind what has come, under the same condition', async (t) => {
  const opened = await openFile(t);
  let left = 1;
  opened.server.fault = () => (left-- > 0 ? 'truncate' : undefined);
  await readOf(opened, 1000, 200_000);
  const [, first, second] = opened.server.requests;
  assert.equal(first!.headers.range, 'bytes=1000-200999');
  assert.equal(second!.headers.range, 'bytes=101000-200999');
  for (const { headers, method } of opened.server.requests.slice(1)) {
    assert.equal(headers['if-match'], opened.file.etag);
    assert.equal(headers['accept-encoding'], 'identity');
    assert.equal(method, 'GET');
  }
});

test('a file that is looked at costs one request for one byte, and connections are used again', async (t) => {
  const { opened, server } = await openFile(t);
  for (let i = 0; i < 10; i++) await opened.transport.list('f.parquet');
  assert.equal(server.requests.length, 11);
  assert.ok(server.requests.every(({ method, headers }) => method === 'GET' && headers.range === 'bytes=0-0'));
  assert.ok(server.connections() <= 2, `${server.connections()} connections`);
  assert.deepEqual([opened.counters.bytesOnWire, opened.counters.bytesDirectory], [11, 11]);
});

test('a server without ranges is read through, up to a bound', async (t) => {
  const opened = await openFile(t, { ranges: false });
  assert.deepEqual(await readOf(opened, 100_000, 1000), BYTES.subarray(100_000, 101_000));
  const far: FileVersion = { ...opened.file, length: 2 ** 40 };
  const server = await startWebServer(t, makeFolder(t, {}), {
    intercept: (_request, response) => {
      response.writeHead(200, { ETag: far.etag, 'Transfer-Encoding': 'chunked' });
      response.write('x');
      return true;
    },
  });
  const { transport } = await openTransport(`${server.origin}/`, QUICK);
  t.after(() => transport.close());
  const read = transport.read(far, 2 ** 39, new Uint8Array(1));
  await assert.rejects(read, /fetch PROTOCOL: .*has no ranges/);
  assert.equal(server.requests.length, 1);
});

test('a server that is busy says when to come again', async (t) => {
  const server = await startWebServer(t, makeFolder(t, { 'f.parquet': BYTES }));
  const waits: (number | undefined)[] = [];
  const onRetry = (error: FetchError): void => void waits.push(error.busyMs);
  const { transport } = await openTransport(`${server.origin}/`, { retry: { onRetry, baseMs: 1, capMs: 20 } });
  t.after(() => transport.close());
  let storm = 20;
  server.fault = () => (storm-- > 0 ? 'busy' : undefined);
  // more attempts than there are: patience is what counts
  const [file] = await transport.list('f.parquet');
  assert.equal(file!.length, BYTES.length);
  assert.deepEqual(waits, Array(20).fill(0));
});

test('refusals of who may not read are final, and name the file', async (t) => {
  for (const status of [401, 403, 407]) {
    const server = await startWebServer(t, makeFolder(t, {}), {
      intercept: (_request, response) => {
        response.writeHead(status, { 'WWW-Authenticate': 'Bearer realm="x"' }).end('secret words');
        return true;
      },
    });
    const { transport } = await openTransport(`${server.origin}/`, QUICK);
    t.after(() => transport.close());
    await assert.rejects(transport.list('a/f.parquet'), (error: FetchError) => {
      assert.equal(error.code, 'DENIED');
      assert.match(error.message, /a\/f\.parquet.*asks for Bearer/);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
    assert.equal(server.requests.length, 1);
  }
});

test('an answer without a length, and an empty file', async (t) => {
  const server = await startWebServer(t, makeFolder(t, { 'empty.parquet': Buffer.alloc(0), 'f.parquet': BYTES }));
  const { transport } = await openTransport(`${server.origin}/`, QUICK);
  t.after(() => transport.close());
  assert.equal((await transport.list('empty.parquet'))[0]!.length, 0);
  server.fault = () => 'whole-chunked';
  await assert.rejects(transport.list('f.parquet'), /fetch PROTOCOL: .*does not say how long it is/);
  server.fault = () => 'gzip';
  await assert.rejects(transport.list('f.parquet'), /fetch PROTOCOL: .*compressed \(gzip\)/);
});
