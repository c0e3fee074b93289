/**
 * What all doors of a server have in common, with TLS and without: nothing outside the roots by any path, nobody by a name
 * that a page in a browser made up, and no connection for long that is slow, silent or asks for too much.
 */
import assert from 'node:assert/strict';
import { symlinkSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { connect as tlsConnect } from 'node:tls';
import { openRegistry, startMetricsEndpoint } from '../../metrics/index.ts';
import { Certificates, FILES_LIMITS } from '../index.ts';
import { makeCertificate } from './certificate-maker.ts';
import { fetchDirectory, makeFolder, startServer } from './lake.ts';
import { RawClient } from './raw-client.ts';

const OUTSIDE = 'what-nobody-may-see';
const INSIDE = 'what-is-served';

interface Rig {
  readonly queuePairs: number;
  readonly http: number;
  readonly s3: number;
  readonly text: () => Promise<string>;
  /** Sends a text to a port and gives what comes back until the connection ends. */
  exchange(port: number, sent: string): Promise<string>;
  readonly open: (port: number) => Socket;
}

async function start(t: TestContext, secure: boolean, limits: Partial<typeof FILES_LIMITS> = {}): Promise<Rig> {
  const outside = makeFolder(t, { 'secret.parquet': Buffer.from(OUTSIDE) });
  const folder = makeFolder(t, { 'lake/a/1.parquet': Buffer.from(INSIDE), 'beside.parquet': Buffer.from(OUTSIDE) });
  const root = join(folder, 'lake');
  symlinkSync(join(outside, 'secret.parquet'), join(root, 'link.parquet'));
  symlinkSync(outside, join(root, 'links'));
  symlinkSync('../../beside.parquet', join(root, 'a/up.parquet'));
  symlinkSync('1.parquet', join(root, 'a/same.parquet'));
  const { cert, key } = makeCertificate('server', { names: ['127.0.0.1'] });
  const files = { certFile: join(outside, 'cert'), keyFile: join(outside, 'key') };
  writeFileSync(files.certFile, cert);
  writeFileSync(files.keyFile, key, { mode: 0o600 });
  const certificates = secure ? await Certificates.load(files, () => {}) : undefined;
  const tls = certificates === undefined ? {} : { certificates };
  const listen = { host: '127.0.0.1', port: 0 };
  const handshakeMs = limits.requestMs ?? 5000;
  const { server, port } = await startServer(t, root, { ...tls, s3: { listen, limits }, limits: { handshakeMs } });
  const registry = await openRegistry('server');
  registry.addCollector(server.collectMetrics);
  const endpoint = await startMetricsEndpoint({
    registry,
    ...listen,
    others: server.answerHttp,
    limits: { ...FILES_LIMITS, ...limits },
    ...(certificates === undefined ? {} : { secure: certificates }),
  });
  t.after(() => endpoint.close());
  const open = (to: number): Socket => {
    const where = { host: '127.0.0.1', port: to };
    return (secure ? tlsConnect({ ...where, ca: cert }) : connect(where)).on('error', () => {});
  };
  return {
    queuePairs: port,
    http: endpoint.address().port,
    s3: server.s3!.port,
    text: () => registry.text(),
    open,
    exchange: (to, sent) =>
      new Promise((resolve) => {
        let received = '';
        const socket = open(to).on('data', (piece) => {
          received += piece.toString('latin1');
        });
        socket.on('close', () => resolve(received));
        socket.write(sent, 'latin1');
      }),
  };
}

const get = (path: string, host = 'localhost'): string =>
  `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
const bodyOf = (answer: string): string => answer.slice(answer.indexOf('\r\n\r\n') + 4);
const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 0);

/** Ways out of a folder, as they have been tried elsewhere. */
const WAYS = [
  '../beside.parquet',
  'a/../../beside.parquet',
  '%2e%2e/beside.parquet',
  '.%2e/beside.parquet',
  '..%2fbeside.parquet',
  '..%5cbeside.parquet',
  '..\\beside.parquet',
  '%252e%252e/beside.parquet',
  '..;/beside.parquet',
  '%c0%ae%c0%ae/beside.parquet',
  '%c0%ae%c0%ae%c0%afbeside.parquet',
  '%e0%80%ae%e0%80%ae/beside.parquet',
  '%uff0e%uff0e/beside.parquet',
  '\xc0\xae\xc0\xae/beside.parquet',
  '/etc/passwd',
  '//etc/passwd',
  '%2fetc%2fpasswd',
  'a%00/../../beside.parquet',
  'a/1.parquet%00.txt',
  'a/1.parquet%00',
  'file:///etc/passwd',
  'link.parquet',
  'links/secret.parquet',
  'a/up.parquet',
  'a/1.parquet/',
  'a//1.parquet',
  './a/1.parquet',
  'a/./1.parquet',
  'A/1.parquet',
  'a/1.parquet/../1.parquet',
];

for (const secure of [false, true]) {
  const how = secure ? 'under TLS' : 'plain';

  test(`nothing outside the roots by any path, ${how}`, async (t) => {
    const rig = await start(t, secure);
    assert.equal(bodyOf(await rig.exchange(rig.http, get('/files/a/1.parquet'))), INSIDE);
    assert.equal(bodyOf(await rig.exchange(rig.http, get('/files/a/same.parquet'))), INSIDE);
    assert.equal(bodyOf(await rig.exchange(rig.s3, get('/lake/a/1.parquet'))), INSIDE);
    for (const way of WAYS) {
      for (const [port, path] of [
        [rig.http, `/files/${way}`],
        [rig.http, `/${way}`],
        [rig.http, `http://localhost/files/${way}`],
        [rig.s3, `/lake/${way}`],
        [rig.s3, `/${way}`],
        [rig.s3, `/lake?list-type=2&prefix=${way}`],
      ] as const) {
        const answer = await rig.exchange(port, get(path));
        const what = `${path}\n${answer}`;
        assert.doesNotMatch(answer, new RegExp(`${OUTSIDE}|${INSIDE}|root:`), what);
        if (!path.includes('list-type')) assert.ok([400, 403, 404].includes(statusOf(answer)), what);
      }
    }
    const client = await RawClient.greeted(rig.queuePairs, {}, secure ? { tls: { rejectUnauthorized: false } } : {});
    const { entries } = await fetchDirectory(client);
    assert.deepEqual(
      entries.map(({ path }) => path),
      ['a/1.parquet', 'a/same.parquet'],
    );
    client.socket.destroy();
  });

  test(`by a name that is none of this machine nothing is told, ${how}`, async (t) => {
    const rig = await start(t, secure);
    for (const host of [
      'evil.example',
      'evil.example:80',
      '127.0.0.1.evil.example',
      'localhost.evil.example',
      '[::1',
      'x',
    ]) {
      assert.equal(statusOf(await rig.exchange(rig.http, get('/files/a/1.parquet', host))), 421, host);
      assert.equal(statusOf(await rig.exchange(rig.http, get('/metrics', host))), 421, host);
      const s3 = await rig.exchange(rig.s3, get('/lake/a/1.parquet', host));
      assert.equal(statusOf(s3), 403, host);
      assert.doesNotMatch(s3, new RegExp(INSIDE));
    }
    for (const host of ['localhost', 'LOCALHOST:1', '127.0.0.1', '[::1]:7480', 'lake.localhost', '10.0.0.1']) {
      assert.equal(statusOf(await rig.exchange(rig.http, get('/files/a/1.parquet', host))), 200, host);
    }
    assert.equal(bodyOf(await rig.exchange(rig.s3, get('/a/1.parquet', 'lake.localhost:9'))), INSIDE);
  });

  test(`who is slow, silent or asks for too much is ended, ${how}`, async (t) => {
    const rig = await start(t, secure, { requestMs: 300, keepAliveMs: 200, headerBytesMax: 2048 });
    const slow: Promise<string>[] = [];
    for (const port of [rig.http, rig.s3]) {
      slow.push(rig.exchange(port, ''));
      slow.push(rig.exchange(port, 'GET /files/a/1.parquet HTTP/1.1\r\nHost: localh'));
      slow.push(dribble(rig, port));
      // nothing that has a body is waited for
      slow.push(rig.exchange(port, 'POST /files/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nx'));
      slow.push(
        rig.exchange(port, 'PUT /lake/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nx'),
      );
      // it asked once, and then nothing more
      slow.push(rig.exchange(port, 'GET /lake/a/1.parquet HTTP/1.1\r\nHost: localhost\r\n\r\n'));
      const large = `GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(4096)}\r\n\r\n`;
      while (statusOf(await rig.exchange(port, large)) !== 431);
    }
    // all of them end, and others are served meanwhile; on a busy machine those may be slow too
    while (bodyOf(await rig.exchange(rig.http, get('/files/a/1.parquet'))) !== INSIDE);
    for (const answer of await Promise.all(slow)) assert.ok([0, 200, 404, 405, 408].includes(statusOf(answer)), answer);
  });
}

test('TLS handshakes that are not finished are ended at every door, and counted', async (t) => {
  const rig = await start(t, true, { requestMs: 300 });
  const ends = [rig.queuePairs, rig.http, rig.s3].flatMap((port) =>
    // nothing; the beginning of a handshake; something else
    ['', '16030100f0010000', Buffer.from('QNAT or GET / HTTP/1.1\r\n\r\n').toString('hex')].map(
      (hex) =>
        new Promise<void>((resolve) => {
          const socket = connect({ host: '127.0.0.1', port }).on('error', () => {});
          socket.on('close', () => resolve());
          socket.resume();
          socket.write(Buffer.from(hex, 'hex'));
        }),
    ),
  );
  await Promise.all(ends);
  for (const door of ['queue_pair', 'http', 's3']) {
    const line = new RegExp(`^qanat_serve_tls_failures_total\\{door="${door}"\\} 3$`, 'm');
    while (!line.test(await rig.text())) await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.match(await rig.text(), /^qanat_serve_certificate_expiry_timestamp_seconds \d+/m);
});

/** A header a moment, for as long as it is taken. */
function dribble({ open }: Rig, port: number): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    const socket = open(port).on('data', (piece) => {
      received += piece.toString('latin1');
    });
    socket.write('GET /lake/a/1.parquet HTTP/1.1\r\nHost: localhost\r\n');
    const timer = setInterval(() => socket.write('X: y\r\n'), 20);
    socket.on('close', () => {
      clearInterval(timer);
      resolve(received);
    });
  });
}
