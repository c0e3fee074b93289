/** Files and the region over HTTP: right bytes for every range, conditions, versions, and what hostile peers get. */
import assert from 'node:assert/strict';
import { readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openRegistry } from '../../metrics/index.ts';
import { packRegion, type RunningServer, type ServeOptions } from '../index.ts';
import { makeFolder, pattern, startServer } from './lake.ts';
import { randomFrom } from './random.ts';

const FILES = {
  'a.parquet': pattern(3_000_000, 1),
  'b/empty.parquet': new Uint8Array(0),
  'b/x y+%.parquet': pattern(1000, 3),
  'b/ä/𝄞.parquet': pattern(10, 5),
  'z.parquet': pattern(70_001, 4),
};

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** One request on a connection of its own; rejects when the body ends early. */
function ask(port: number, path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
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
    sent.end();
  });
}

async function start(t: TestContext, folder: string, options: Partial<ServeOptions> = {}) {
  const started = await startServer(t, folder, options);
  const http = createServer((request, response) => {
    if (!started.server.answerHttp(request, response)) response.writeHead(418).end();
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    http.close();
    http.closeAllConnections();
  });
  return { ...started, http: (http.address() as AddressInfo).port };
}

const urlOf = (path: string): string => `/files/${path.split('/').map(encodeURIComponent).join('/')}`;

async function metrics(server: RunningServer): Promise<string> {
  const registry = await openRegistry('server');
  registry.addCollector(server.collectMetrics);
  return registry.text();
}

for (const pin of [false, true]) {
  test(`every range of every file is right, ${pin ? 'pinned' : 'from storage'}`, async (t) => {
    const pinning = pin ? { pin: { budgetBytes: 1 << 24 } } : {};
    const { http, server } = await start(t, makeFolder(t, FILES), pinning);
    const random = randomFrom('http ranges');
    for (const [path, bytes] of Object.entries(FILES)) {
      const whole = await ask(http, urlOf(path));
      assert.equal(whole.status, 200);
      assert.ok(whole.body.equals(bytes), path);
      assert.equal(whole.headers['accept-ranges'], 'bytes');
      assert.equal(whole.headers['content-encoding'], undefined);
      const { etag } = whole.headers;
      assert.match(etag!, /^"[^"]+"$/);
      const head = await ask(http, urlOf(path), {}, 'HEAD');
      assert.deepEqual([head.status, head.headers.etag, head.body.length], [200, etag, 0]);
      assert.equal(head.headers['content-length'], String(bytes.byteLength));
      if (bytes.byteLength === 0) continue;
      for (let n = 0; n < 8; n++) {
        const from = random.below(bytes.byteLength);
        const to = from + random.below(bytes.byteLength - from);
        const suffix = 1 + random.below(bytes.byteLength);
        const asked: [string, number, number][] = [
          [`bytes=${from}-${to}`, from, to + 1],
          [`bytes=${from}-`, from, bytes.byteLength],
          [`bytes=-${suffix}`, bytes.byteLength - suffix, bytes.byteLength],
          [`bytes=${from}-99999999999999999999`, from, bytes.byteLength],
          [`bytes=-99999999999`, 0, bytes.byteLength],
        ];
        const [range, begin, end] = asked[random.below(asked.length)]!;
        const part = await ask(http, urlOf(path), { range, 'if-match': etag! });
        assert.equal(part.status, 206, range);
        assert.equal(part.headers['content-range'], `bytes ${begin}-${end - 1}/${bytes.byteLength}`);
        assert.equal(part.headers.etag, etag);
        assert.ok(part.body.equals(bytes.subarray(begin, end)), `${range} of ${path}`);
      }
    }
    const text = await metrics(server);
    assert.match(text, /qanat_serve_http_requests_total\{kind="files",code="2xx"\} [1-9]/);
    assert.match(text, /qanat_serve_http_bytes_total\{kind="files"\} [1-9]/);
    assert.match(text, /qanat_serve_http_answers 0/);
  });
}

test('the region is what qanat pack writes, but for its generation', async (t) => {
  const folder = makeFolder(t, FILES);
  const { http, server } = await start(t, folder);
  const output = join(makeFolder(t, {}), 'lake.qanat');
  await packRegion({ roots: [folder], output });
  const packed = readFileSync(output);
  const whole = await ask(http, '/region');
  assert.equal(whole.headers.etag, `"${server.region().generation}"`);
  assert.equal(whole.body.byteLength, packed.byteLength);
  const size = Number(packed.readBigUInt64LE(0)) + 8;
  assert.ok(whole.body.subarray(0, 8).equals(packed.subarray(0, 8)));
  assert.ok(whole.body.subarray(size).equals(packed.subarray(size)));
  const part = await ask(http, '/region', { range: 'bytes=5-2999999' });
  assert.ok(part.body.equals(whole.body.subarray(5, 3_000_000)));
});

test('conditions, ranges that make no sense, and methods', async (t) => {
  const { http } = await start(t, makeFolder(t, FILES));
  const path = '/files/z.parquet';
  const { headers } = await ask(http, path, {}, 'HEAD');
  const etag = headers.etag!;
  const date = headers['last-modified']!;
  const later = new Date(Date.parse(date) + 5000).toUTCString();
  const sooner = new Date(Date.parse(date) - 5000).toUTCString();
  const cases: [Record<string, string>, number][] = [
    [{ 'if-match': etag }, 200],
    [{ 'if-match': '*' }, 200],
    [{ 'if-match': `"x", W/"y", ${etag}` }, 200],
    [{ 'if-match': `W/${etag}` }, 412],
    [{ 'if-match': '"other"' }, 412],
    [{ 'if-match': 'rubbish' }, 412],
    [{ 'if-match': etag.slice(1, -1) }, 412],
    [{ 'if-match': '"other"', 'if-none-match': etag }, 412],
    [{ 'if-none-match': etag }, 304],
    [{ 'if-none-match': `W/${etag}` }, 304],
    [{ 'if-none-match': '*' }, 304],
    [{ 'if-none-match': '"other"' }, 200],
    [{ 'if-none-match': '"other"', 'if-modified-since': later }, 200],
    [{ 'if-modified-since': date }, 304],
    [{ 'if-modified-since': later }, 304],
    [{ 'if-modified-since': sooner }, 200],
    [{ 'if-modified-since': 'yesterday' }, 200],
    [{ 'if-unmodified-since': sooner }, 412],
    [{ 'if-unmodified-since': date }, 200],
    [{ 'if-match': etag, 'if-unmodified-since': sooner }, 200],
    [{ range: 'bytes=0-9', 'if-range': etag }, 206],
    [{ range: 'bytes=0-9', 'if-range': '"other"' }, 200],
    [{ range: 'bytes=0-9', 'if-range': `W/${etag}` }, 200],
    [{ range: 'bytes=0-9', 'if-range': date }, 200],
    [{ range: 'bytes=0-9', 'if-none-match': etag }, 304],
    [{ range: 'bytes=70001-' }, 416],
    [{ range: 'bytes=99999999999999999999-' }, 416],
    [{ range: 'bytes=-0' }, 416],
    [{ range: 'bytes=70000-' }, 206],
    [{ range: 'bytes=0-0,5-6' }, 200],
    [{ range: 'bytes=9-5' }, 200],
    [{ range: 'bytes=-' }, 200],
    [{ range: 'bytes=a-b' }, 200],
    [{ range: 'items=0-5' }, 200],
    [{ range: 'bytes=0x0-5' }, 200],
  ];
  for (const [given, status] of cases) {
    const { status: got, headers, body } = await ask(http, path, given);
    const named = JSON.stringify(given);
    assert.equal(got, status, named);
    assert.equal(headers.etag, etag, named);
    if (status === 200) assert.ok(body.equals(FILES['z.parquet']), named);
    if (status === 304) assert.deepEqual([body.length, headers['content-length']], [0, undefined], named);
    if (status === 416) assert.equal(headers['content-range'], 'bytes */70001', named);
  }
  const empty = await ask(http, urlOf('b/empty.parquet'), { range: 'bytes=0-' });
  assert.deepEqual([empty.status, empty.headers['content-range']], [416, 'bytes */0']);
  assert.equal((await ask(http, urlOf('b/empty.parquet'), { range: 'bytes=-5' })).status, 200);
  assert.equal((await ask(http, path, { range: 'bytes=0-9' }, 'HEAD')).status, 200);
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
    const answer = await ask(http, path, {}, method);
    assert.deepEqual([answer.status, answer.headers.allow], [405, 'GET, HEAD'], method);
  }
});

test('nothing but the files of the region is ever found', async (t) => {
  const folder = makeFolder(t, { ...FILES, 'secret.txt': Buffer.from('s') });
  const { http } = await start(t, folder);
  const hostile = [
    '/files/secret.txt',
    '/files/../secret.txt',
    '/files/b/../a.parquet',
    '/files/b%2Fempty.parquet',
    '/files/b/..%2fa.parquet',
    '/files/%2e%2e/etc/passwd',
    '/files//a.parquet',
    '/files/./a.parquet',
    '/files//etc/passwd',
    '/files/a.parquet/',
    '/files/a.parquet%00',
    '/files/a.parquet%00.txt',
    '/files/b',
    '/files/b/',
    '/files/',
    '/files/%c0%ae%c0%ae/a.parquet',
    '/files/%',
    '/files/%zz',
    `/files/${'a/'.repeat(4000)}`,
    '/files/A.PARQUET',
  ];
  for (const path of hostile) {
    const { status, body } = await ask(http, path);
    assert.ok(status === 404 || status === 400, `${path}: ${status}`);
    assert.ok(body.length < 100);
    assert.ok(!body.includes(folder));
  }
  for (const path of ['/', '/files', '/region/', '/regions', '/FILES/a.parquet']) {
    assert.equal((await ask(http, path)).status, 418, path);
  }
  assert.equal((await ask(http, `http://somewhere:80${urlOf('b/ä/𝄞.parquet')}?x=1`)).status, 200);
});

test('a version is served whole or not at all', async (t) => {
  const big = pattern(24_000_000, 7);
  const folder = makeFolder(t, { 'big.parquet': big, 'same.parquet': pattern(24_000_000, 8) });
  const { http, server, events } = await start(t, folder);
  const { headers } = await ask(http, '/files/big.parquet', {}, 'HEAD');
  /** Begins to read, does something, reads on; resolves with the bytes, or undefined if they ended early. */
  const interrupted = (path: string, act: () => Promise<unknown>): Promise<Buffer | undefined> =>
    new Promise((resolve, reject) => {
      request({ host: '127.0.0.1', port: http, path, agent: false }, (response) => {
        const parts: Buffer[] = [];
        response.once('data', (part: Buffer) => {
          parts.push(part);
          response.pause();
          act().then(() => {
            response.on('data', (more: Buffer) => parts.push(more));
            response.resume();
          }, reject);
        });
        response.on('error', () => resolve(undefined));
        response.on('end', () => resolve(Buffer.concat(parts)));
      })
        .on('error', reject)
        .end();
    });
  const publish = async (): Promise<void> => {
    writeFileSync(join(folder, 'new'), pattern(24_000_000, 9));
    renameSync(join(folder, 'new'), join(folder, 'big.parquet'));
    assert.equal(await server.republish(), 'published');
  };
  const [replaced, kept] = await Promise.all([
    interrupted('/files/big.parquet', publish),
    interrupted('/files/same.parquet', () => sleep(300)),
  ]);
  assert.equal(replaced, undefined, 'a body of two versions');
  assert.ok(kept?.equals(pattern(24_000_000, 8)), 'a file that is the same in the new generation');
  assert.equal((await ask(http, '/files/big.parquet', { 'if-match': headers.etag! })).status, 412);
  assert.ok((await ask(http, '/files/big.parquet')).body.equals(pattern(24_000_000, 9)));
  assert.equal(await interrupted('/region', publish), undefined, 'a region of two generations');
  // Not published yet: no byte of it.
  utimesSync(join(folder, 'big.parquet'), 1, 1);
  const changed = await ask(http, '/files/big.parquet');
  assert.deepEqual([changed.status, changed.headers['retry-after']], [503, '1']);
  rmSync(join(folder, 'big.parquet'));
  assert.equal((await ask(http, '/files/big.parquet')).status, 503);
  await server.republish();
  assert.equal((await ask(http, '/files/big.parquet')).status, 404);
  assert.match(await metrics(server), /qanat_serve_http_cuts_total\{reason="changed"\} 2/);
  assert.equal(events.filter((event) => event.startsWith('dropped')).length, 2);
});

test('pipelined requests are answered in order and one at a time; a peer that takes nothing is dropped', async (t) => {
  const folder = makeFolder(t, { ...FILES, 'big.parquet': pattern(60_000_000, 7) });
  const { http, server } = await start(t, folder, { limits: { stallMs: 300 } });
  const socket = connect(http, '127.0.0.1');
  const parts: Buffer[] = [];
  socket.on('data', (part: Buffer) => parts.push(part));
  const one = 'GET /files/z.parquet HTTP/1.1\r\nHost: x\r\n\r\n';
  socket.write(one.repeat(50) + one.replace('Host', 'Connection: close\r\nHost'));
  await new Promise((resolve) => socket.on('end', resolve));
  const text = Buffer.concat(parts).toString('latin1');
  assert.equal(text.split('HTTP/1.1 200 OK').length, 52);
  const slow = connect(http, '127.0.0.1');
  slow.on('error', () => {});
  slow.write('GET /files/big.parquet HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(100));
  slow.pause();
  for (let waited = 0; waited < 1200; waited++) {
    // those that waited behind the one that was cut end with the connection, a moment later
    const told = await metrics(server);
    if (/cuts_total\{reason="stalled"\} 1/.test(told) && /qanat_serve_http_answers 0/.test(told)) break;
    await sleep(50);
  }
  assert.match(await metrics(server), /qanat_serve_http_cuts_total\{reason="stalled"\} 1/);
  assert.match(await metrics(server), /qanat_serve_http_answers 0/);
  slow.destroy();
});

test('closing lets answers under way end, and begins no others', async (t) => {
  const bytes = pattern(30_000_000, 7);
  const { http, server } = await start(t, makeFolder(t, { 'big.parquet': bytes }));
  const answer = await new Promise<Buffer>((resolve, reject) => {
    request({ host: '127.0.0.1', port: http, path: '/files/big.parquet', agent: false }, (response) => {
      const parts: Buffer[] = [];
      response.pause();
      const closed = server.close();
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', reject);
      response.on('end', () => closed.then(() => resolve(Buffer.concat(parts)), reject));
      response.resume();
    })
      .on('error', reject)
      .end();
  });
  assert.ok(answer.equals(bytes));
  assert.equal((await ask(http, '/files/big.parquet')).status, 503);
});
