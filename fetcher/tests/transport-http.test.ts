/** HTTP as a source: versions, redirects and credentials, certificates, queries, packed regions, and where it ends. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { packRegion } from '../../storage-server/index.ts';
import { FetchError, type FetchErrorCode } from '../errors.ts';
import { type OpenTransportOptions, openTransport } from '../transport/open-transport.ts';
import type { Transport } from '../transport/transport.ts';
import { makeFolder, pattern } from './transport-fixtures.ts';
import { startWebServer, type WebServerOptions } from './web-server.ts';

const BYTES = pattern(50_000, 3);
const QUICK: OpenTransportOptions = { stallMs: 500, retry: { attempts: 2, baseMs: 1, capMs: 1 } };

const hasCode =
  (code: FetchErrorCode, text = /(?:)/) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof FetchError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, text);
    return true;
  };

async function open(t: TestContext, url: string, options: OpenTransportOptions = QUICK): Promise<Transport> {
  const { transport } = await openTransport(url, options);
  t.after(() => transport.close());
  return transport;
}

async function readAll(transport: Transport, path: string): Promise<Buffer> {
  const [file] = await transport.list(path);
  const into = Buffer.alloc(file!.length);
  await transport.read(file!, 0, into);
  return into;
}

for (const [validators, conditions] of [
  ['strong', false],
  ['modified', true],
  ['modified', false],
  ['weak', true],
  ['fresh', true],
] as const) {
  const server: WebServerOptions = { validators, conditions };
  test(`validators ${validators}, conditions ${conditions}: another version is STALE`, async (t) => {
    const folder = makeFolder(t, { 'f.parquet': BYTES });
    utimesSync(join(folder, 'f.parquet'), 1e9, 1e9);
    const unpinned: string[] = [];
    const { origin, requests } = await startWebServer(t, folder, server);
    const transport = await open(t, `${origin}/`, { ...QUICK, onUnpinned: (path) => unpinned.push(path) });
    const [file] = await transport.list('f.parquet');
    await transport.list('f.parquet');
    if (validators !== 'fresh') {
      await transport.read(file!, 10, new Uint8Array(100));
      const sent = requests.at(-1)!.headers;
      assert.equal(sent[validators === 'strong' ? 'if-match' : 'if-unmodified-since'] !== undefined, true);
    }
    writeFileSync(join(folder, 'new'), pattern(50_000, 4));
    utimesSync(join(folder, 'new'), 2e9, 2e9);
    renameSync(join(folder, 'new'), join(folder, 'f.parquet'));
    if (validators !== 'fresh') await assert.rejects(transport.read(file!, 10, new Uint8Array(9)), hasCode('STALE'));
    // a Last-Modified of just now may be that of several versions
    assert.deepEqual(unpinned, validators === 'fresh' ? ['f.parquet'] : []);
  });
}

test('without any validator the length is checked, and it is told once that nothing pins the file', async (t) => {
  const folder = makeFolder(t, { 'f.parquet': BYTES });
  const { origin } = await startWebServer(t, folder, { validators: 'none' });
  const told: string[] = [];
  const options = { ...QUICK, onUnpinned: (path: string, reason: string) => told.push(`${path}: ${reason}`) };
  const transport = await open(t, `${origin}/`, options);
  const [file] = await transport.list('f.parquet');
  assert.deepEqual(await transport.list('f.parquet'), [file]);
  assert.match(told.join(), /^f\.parquet: the server gives no strong ETag/);
  assert.ok((await readAll(transport, 'f.parquet')).equals(BYTES));
  writeFileSync(join(folder, 'f.parquet'), pattern(50_001, 4));
  await assert.rejects(transport.read(file!, 0, new Uint8Array(9)), hasCode('STALE', /50001 bytes and had 50000/));
  // what nothing pins is nobody else's
  const [other] = await (await open(t, `${origin}/`)).list('f.parquet');
  assert.notEqual(other!.etag, file!.etag);
});

test('a redirect is followed, remembered, and asked for again when it has expired; the token stays at home', async (t) => {
  const folder = makeFolder(t, { 'f.parquet': BYTES, token: Buffer.from('abc.def\n') });
  let signature = 1;
  const cdn = await startWebServer(t, folder, {
    intercept(request, response) {
      if (request.url === `/f.parquet?sig=${signature}`) return false;
      response.writeHead(403).end();
      return true;
    },
  });
  const home = await startWebServer(t, folder, {
    intercept(request, response) {
      const isKnown = request.headers.authorization === 'Bearer abc.def';
      response.writeHead(isKnown ? 302 : 401, { Location: `${cdn.origin}/f.parquet?sig=${signature}` }).end();
      return true;
    },
  });
  const transport = await open(t, `${home.origin}/`, { ...QUICK, tokenFile: join(folder, 'token') });
  assert.ok((await readAll(transport, 'f.parquet')).equals(BYTES));
  assert.equal(home.requests.length, 1);
  signature = 2;
  assert.ok((await readAll(transport, 'f.parquet')).equals(BYTES));
  assert.equal(home.requests.length, 2);
  assert.ok(home.requests.every(({ headers }) => headers.authorization === 'Bearer abc.def'));
  assert.ok(cdn.requests.every(({ headers }) => headers.authorization === undefined));
});

test('redirects that lead nowhere, round, or to a folder', async (t) => {
  let location = '/f.parquet';
  const { origin, requests } = await startWebServer(t, makeFolder(t, {}), {
    intercept(_request, response) {
      response.writeHead(301, { Location: location }).end();
      return true;
    },
  });
  const transport = await open(t, `${origin}/`);
  await assert.rejects(transport.list('f.parquet'), hasCode('PROTOCOL', /more than 5 redirects/));
  assert.equal(requests.length, 6);
  location = 'file:///etc/passwd';
  await assert.rejects(transport.list('f.parquet'), hasCode('PROTOCOL', /not followed/));
  location = '/dir/';
  await assert.rejects(transport.list('dir'), hasCode('BAD_URL', /is a folder/));
});

test('names of any kind, and a query as it is', async (t) => {
  const name = 'a b+c%2f&?#ü.parquet';
  const { origin, requests } = await startWebServer(t, makeFolder(t, { [name]: BYTES, 'lake/x.parquet': BYTES }));
  const { transport, path } = await openTransport(`${origin}/${encodeURIComponent(name)}?sig=a%2Fb+c`, QUICK);
  t.after(() => transport.close());
  assert.equal(path, name);
  assert.ok((await readAll(transport, path)).equals(BYTES));
  assert.ok(requests.every(({ path: sent }) => sent.endsWith('.parquet?sig=a%2Fb+c')));
  await assert.rejects(transport.list(''), hasCode('BAD_URL', /no listings/));
  assert.deepEqual(await transport.list('lake/'), []);
  assert.deepEqual(await transport.list('none.parquet'), []);
});

test('https with an authority of our own', async (t) => {
  const folder = makeFolder(t, { 'f.parquet': BYTES });
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const form = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  execFileSync('openssl', ['req', '-x509', ...form, '-keyout', key, '-out', cert, ...subject], { stdio: 'ignore' });
  const { origin } = await startWebServer(t, folder, { tls: { key: readFileSync(key), cert: readFileSync(cert) } });
  const trusting = await open(t, `${origin}/`, { ...QUICK, caFile: cert });
  assert.ok((await readAll(trusting, 'f.parquet')).equals(BYTES));
  const strict = await open(t, `${origin}/`);
  await assert.rejects(strict.list('f.parquet'), hasCode('REFUSED', /certificate is not accepted.*--ca-file/));
  const plain = await open(t, `${origin.replace('https:', 'http:')}/`);
  await assert.rejects(plain.list('f.parquet'), FetchError);
  await assert.rejects(open(t, `${origin}/`, { caFile: join(folder, 'none.pem') }), FetchError);
});

test('a packed region by range, behind a query too', async (t) => {
  const folder = makeFolder(t, { 'in/a.parquet': BYTES, 'in/sub/b.parquet': pattern(700_000, 9) });
  await packRegion({ roots: [join(folder, 'in')], output: join(folder, 'lake.qanat') });
  const { origin, requests } = await startWebServer(t, folder);
  for (const query of ['', '?sig=x']) {
    requests.length = 0;
    const { transport, path } = await openTransport(`${origin}/lake.qanat${query}!/sub/b.parquet`, QUICK);
    t.after(() => transport.close());
    assert.equal(path, 'sub/b.parquet');
    assert.deepEqual(
      (await transport.list('')).map((file) => file.path),
      ['a.parquet', 'sub/b.parquet'],
    );
    assert.ok((await readAll(transport, path)).equals(pattern(700_000, 9)));
    // a look at it, its directory, a look, the file
    assert.equal(requests.length, 4);
    assert.ok(requests.every(({ path: sent }) => sent === `/lake.qanat${query}`));
  }
});

test('nobody there, no such host, no HTTP', async (t) => {
  const { origin, stop } = await startWebServer(t, makeFolder(t, {}));
  await stop();
  await assert.rejects((await open(t, `${origin}/`)).list('f'), hasCode('REFUSED'));
  await assert.rejects((await open(t, 'http://nowhere.invalid/')).list('f'), hasCode('HOST'));
  for (const url of ['http://', 'http:///x', 'http://user:secret@h/x', 'http://h:99999/x']) {
    await assert.rejects(openTransport(url), hasCode('BAD_URL'));
  }
});
