/** Queue pairs under TLS, and with tokens: that they read, and that what is wrong is told in words that say what to do. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { Certificates, type ServeOptions, serveRegion } from '../../storage-server/index.ts';
import { type MadeCertificate, makeCertificate } from '../../storage-server/tests/certificate-maker.ts';
import { FetchError, type OpenTransportOptions, openTransport } from '../index.ts';
import { makeFolder, pattern } from './transport-fixtures.ts';

const FILES = { 'a/1.parquet': pattern(3_000_000, 1), 'b/2.parquet': pattern(1000, 2) };
const TOKEN = 'the-token-0123456789abcdef';
const NAMES = ['localhost', '127.0.0.1'];
const AUTHORITY = makeCertificate('authority', { isAuthority: true });

interface Rig {
  readonly port: number;
  readonly folder: string;
  /** A file of this name and content, and its path. */
  file(name: string, text: string): string;
  readonly caFile: string;
  readonly server: Awaited<ReturnType<typeof serveRegion>>;
  readonly certificates: Certificates;
  readonly events: string[];
}

interface RigOptions {
  readonly server?: MadeCertificate;
  readonly clientCa?: MadeCertificate;
  readonly serve?: (file: Rig['file']) => Partial<ServeOptions>;
}

async function start(t: TestContext, options: RigOptions = {}): Promise<Rig> {
  const folder = makeFolder(t, FILES);
  const secrets = makeFolder(t, {});
  const file = (name: string, text: string): string => {
    writeFileSync(join(secrets, name), text, { mode: 0o600 });
    return join(secrets, name);
  };
  const { cert, key } = options.server ?? makeCertificate('server', { issuer: AUTHORITY, names: NAMES });
  const events: string[] = [];
  const log = (event: string, _peer: string, detail: string): void => void events.push(`${event}: ${detail}`);
  const certificates = await Certificates.load(
    {
      certFile: file('cert.pem', cert),
      keyFile: file('key.pem', key),
      clientCaFile: options.clientCa === undefined ? undefined : file('client-ca.pem', options.clientCa.cert),
    },
    (event, detail) => log(event, '', detail),
  );
  const listen = { host: '127.0.0.1', port: 0 };
  const server = await serveRegion({ roots: [folder], listen, certificates, log, ...options.serve?.(file) });
  t.after(() => server.close());
  const { port } = server.address();
  return { port, folder, file, caFile: file('ca.pem', AUTHORITY.cert), server, certificates, events };
}

/** Reads all files of a source, or fails as it does. */
async function readAll(t: TestContext, url: string, options: OpenTransportOptions): Promise<string[]> {
  const { transport } = await openTransport(url, { retry: { attempts: 1 }, ...options });
  t.after(() => transport.close());
  const files = await transport.list('');
  for (const file of files) {
    const bytes = Buffer.alloc(file.length);
    await transport.read(file, 0, bytes);
    assert.ok(bytes.equals(FILES[file.path as keyof typeof FILES]), file.path);
  }
  return files.map(({ path }) => path);
}

async function failure(t: TestContext, url: string, options: OpenTransportOptions): Promise<FetchError> {
  const error = await readAll(t, url, options).then(
    () => assert.fail('it was let in'),
    (error: unknown) => error,
  );
  assert.ok(error instanceof FetchError, String(error));
  assert.ok(!error.message.includes(TOKEN));
  return error;
}

async function refused(t: TestContext, url: string, options: OpenTransportOptions, words: RegExp): Promise<void> {
  const { code, reason, retryable } = await failure(t, url, options);
  assert.match(reason, words);
  assert.deepEqual([code, retryable], ['REFUSED', false], reason);
}

test('files over TLS, by name and by address, with several connections', async (t) => {
  const { port, caFile } = await start(t);
  for (const host of NAMES) {
    const paths = await readAll(t, `rdmas://${host}:${port}/`, { caFile, connections: 3, checksum: true });
    assert.deepEqual(paths, Object.keys(FILES));
  }
});

test('a certificate that is not accepted is told with its reason', async (t) => {
  const good = await start(t);
  const url = ({ port }: Rig, host = '127.0.0.1'): string => `rdmas://${host}:${port}/`;
  await refused(t, url(good), {}, /authority is not known here: --ca-file/);
  const stranger = makeCertificate('another', { isAuthority: true });
  const otherCa = good.file('other-ca.pem', stranger.cert);
  await refused(t, url(good), { caFile: otherCa }, /authority is not known here/);
  const alone = await start(t, { server: makeCertificate('alone', { names: NAMES }) });
  await refused(t, url(alone), {}, /signed by itself: --ca-file/);
  await readAll(t, url(alone), { caFile: join(alone.file('x', ''), '../cert.pem') });
  const names = ['elsewhere.example'];
  const elsewhere = await start(t, { server: makeCertificate('x', { issuer: AUTHORITY, names }) });
  const { caFile } = elsewhere;
  await refused(
    t,
    url(elsewhere),
    { caFile },
    /other names than this one.*elsewhere\.example|other names than this one.*holds/,
  );
  await refused(t, url(elsewhere, 'localhost'), { caFile }, /other names than this one.*DNS:elsewhere\.example/);
});

test('an expired certificate is told as one', async (t) => {
  // a server of ours would not start with it
  const server = makeCertificate('old', { issuer: AUTHORITY, names: NAMES, toMs: Date.now() - 60_000 });
  const listener = createTlsServer({ cert: server.cert, key: server.key, minVersion: 'TLSv1.3' });
  listener.on('tlsClientError', () => {});
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  t.after(() => listener.close());
  const { file, caFile } = await start(t);
  const { port } = listener.address() as AddressInfo;
  await refused(t, `rdmas://localhost:${port}/`, { caFile }, /it has expired/);
  const log = (): void => {};
  const load = (made: MadeCertificate, key = made.key): Promise<Certificates> =>
    Certificates.load({ certFile: file('c', made.cert), keyFile: file('k', key) }, log);
  await assert.rejects(load(server), /serve TLS: .*ended/);
  const early = makeCertificate('x', { fromMs: Date.now() + 3_600_000 });
  await assert.rejects(load(early), /begins .*clock/);
  await assert.rejects(load(makeCertificate('x'), makeCertificate('y').key), /is not that of the certificate/);
  await assert.rejects(load({ ...early, cert: 'nothing' }), /PEM is expected/);
});

test('plain where TLS is spoken, TLS where it is not, and where nothing of ours is', async (t) => {
  const secure = await start(t);
  const { caFile } = secure;
  const plain = await failure(t, `rdma://127.0.0.1:${secure.port}/`, {});
  assert.match(plain.reason, /One with --tls-cert is reached with rdmas:\/\//);
  const server = await serveRegion({ roots: [secure.folder], listen: { host: '127.0.0.1', port: 0 } });
  t.after(() => server.close());
  const tls = await failure(t, `rdmas://127.0.0.1:${server.address().port}/`, { caFile });
  assert.match(tls.reason, /a server without --tls-cert is reached with rdma:\/\//);
  const http = createServer((socket) => socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')));
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  t.after(() => http.close());
  const { port } = http.address() as AddressInfo;
  await refused(t, `rdmas://127.0.0.1:${port}/`, { caFile }, /is not TLS .*rdma:\/\//);
  const { cert, key } = makeCertificate('https', { issuer: AUTHORITY, names: NAMES });
  const https = createTlsServer({ cert, key, ALPNProtocols: ['http/1.1'] }).on('tlsClientError', () => {});
  await new Promise<void>((resolve) => https.listen(0, '127.0.0.1', resolve));
  t.after(() => https.close());
  await refused(
    t,
    `rdmas://127.0.0.1:${(https.address() as AddressInfo).port}/`,
    { caFile },
    /something else: is this the right port/,
  );
});

test('nothing before TLS 1.3', async (t) => {
  const { port, events } = await start(t);
  const socket = connect({ host: '127.0.0.1', port });
  const { connect: secure } = await import('node:tls');
  const error = await new Promise<NodeJS.ErrnoException>((resolve, reject) => {
    secure({ socket, maxVersion: 'TLSv1.2', rejectUnauthorized: false }, () =>
      reject(new Error('TLS 1.2 was spoken')),
    ).on('error', resolve);
  });
  assert.match(error.code ?? '', /PROTOCOL_VERSION/);
  while (!events.some((event) => /dropped: the TLS handshake failed/.test(event))) await turn();
});

test('client certificates: asked for, checked, and told when they are missing or wrong', async (t) => {
  const clients = makeCertificate('clients', { isAuthority: true });
  const rig = await start(t, { clientCa: clients });
  const { port, caFile, file } = rig;
  const url = `rdmas://127.0.0.1:${port}/`;
  const own = (made: MadeCertificate) => ({
    caFile,
    clientCertFile: file('own.pem', made.cert),
    clientKeyFile: file('own-key.pem', made.key),
  });
  await readAll(t, url, own(makeCertificate('me', { issuer: clients })));
  assert.match((await failure(t, url, { caFile })).reason, /client certificate/);
  const stranger = await failure(t, url, own(makeCertificate('stranger', { issuer: AUTHORITY })));
  assert.match(stranger.reason, /client certificate/);
  const mixed = {
    ...own(makeCertificate('me', { issuer: clients })),
    clientKeyFile: file('k', makeCertificate('x').key),
  };
  assert.match((await failure(t, url, mixed)).reason, /is not the key of the certificate/);
  assert.match((await failure(t, url, { caFile, clientCertFile: 'x' })).reason, /--client-cert and --client-key/);
});

test('client certificates and tokens over https', async (t) => {
  const clients = makeCertificate('clients', { isAuthority: true });
  const rig = await start(t, {
    clientCa: clients,
    serve: (file) => ({ tokensFile: file('tokens', `team ${TOKEN} a\n`) }),
  });
  const { caFile, file, server, certificates } = rig;
  const http = certificates.createHttpServer({}, 5000);
  http.on('request', (request, response) => void server.answerHttp(request, response));
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    http.close();
    http.closeAllConnections();
  });
  const read = async (path: string, options: OpenTransportOptions): Promise<boolean> => {
    const url = `https://localhost:${(http.address() as AddressInfo).port}/${path}`;
    const opened = await openTransport(url, { caFile, retry: { attempts: 1 }, ...options });
    t.after(() => opened.transport.close());
    const [found] = await opened.transport.list(opened.path);
    if (found === undefined) return false;
    const bytes = Buffer.alloc(found.length);
    await opened.transport.read(found, 0, bytes);
    return bytes.equals(FILES['a/1.parquet']);
  };
  const me = makeCertificate('me', { issuer: clients });
  const own = { clientCertFile: file('own.pem', me.cert), clientKeyFile: file('own-key.pem', me.key) };
  assert.equal(await read('files/a/1.parquet', { ...own, token: TOKEN }), true);
  assert.equal(await read('files/b/2.parquet', { ...own, token: TOKEN }), false);
  await assert.rejects(read('files/a/1.parquet', own), /DENIED/);
  await assert.rejects(read('files/a/1.parquet', { token: TOKEN }), /client certificate/);
});

test('tokens: from a file, which is read again, or as they are', async (t) => {
  const rig = await start(t, { serve: (file) => ({ tokensFile: file('tokens', `team ${TOKEN} b\n`) }) });
  const { port, caFile, file, server } = rig;
  const url = `rdmas://127.0.0.1:${port}/`;
  const tokenFile = file('token', `${TOKEN}\n`);
  assert.deepEqual(await readAll(t, url, { caFile, tokenFile }), ['b/2.parquet']);
  assert.deepEqual(await readAll(t, url, { caFile, token: TOKEN }), ['b/2.parquet']);
  for (const options of [{}, { token: `${TOKEN}x` }]) {
    await refused(t, url, { caFile, ...options }, /BAD_AUTHENTICATION/);
  }
  assert.match((await failure(t, url, { caFile, token: 'two words' })).reason, /expected a token in one line/);
  const { transport } = await openTransport(url, { caFile, tokenFile });
  t.after(() => transport.close());
  assert.equal((await transport.list('')).length, 1);
  // both ends take another token; who was connected comes again with it
  const next = 'the-next-one-0123456789abcdef';
  file('tokens', `team ${next} /\n`);
  file('token', next);
  await server.reloadTokens();
  while ((await transport.list('').catch(() => [])).length !== 2) await turn();
});

test('certificates are read again, and bad ones are not taken over', async (t) => {
  const { port, caFile, file, certificates, events } = await start(t);
  const url = `rdmas://127.0.0.1:${port}/`;
  const open = await openTransport(url, { caFile });
  t.after(() => open.transport.close());
  const [first] = await open.transport.list('');
  file('cert.pem', 'broken');
  await certificates.reload();
  assert.match(events.at(-1)!, /certificate not taken over: .*the one from before is still used/);
  const next = makeCertificate('next', { issuer: AUTHORITY, names: ['localhost'] });
  file('cert.pem', next.cert);
  await certificates.reload();
  assert.match(events.at(-1)!, /is not that of the certificate/);
  await readAll(t, url, { caFile });
  file('key.pem', next.key);
  certificates.watch(5);
  t.after(() => certificates.close());
  while (!events.at(-1)!.startsWith('certificate: new connections')) await turn();
  await readAll(t, `rdmas://localhost:${port}/`, { caFile });
  assert.match((await failure(t, url, { caFile })).reason, /other names/);
  // a connection that was open stays
  await open.transport.read(first!, 0, Buffer.alloc(first!.length));
});

test('TLS handshakes that never end take nothing from others, and end', async (t) => {
  const limits = { handshakeMs: 1000, connectionsMax: 4 };
  const { port, caFile, events, server } = await start(t, { serve: () => ({ limits }) });
  const idle: Socket[] = [];
  let closed = 0;
  for (let n = 0; n < 300; n++) {
    const socket = connect({ host: '127.0.0.1', port }).on('error', () => {});
    socket.once('close', () => closed++);
    // some begin, and stop
    if (n % 2 === 0) socket.write(Buffer.from('16030100f0010000', 'hex'));
    socket.resume();
    idle.push(socket);
  }
  t.after(() => {
    for (const socket of idle) socket.destroy();
  });
  // on a busy machine one of ours may be late too
  await readAll(t, `rdmas://127.0.0.1:${port}/`, { caFile, retry: { attempts: 50 } });
  while (closed < idle.length) await turn();
  assert.ok(
    events.some((event) => event === 'dropped: no complete TLS handshake in time') || server.counters().garbage > 0,
  );
});

function turn(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 5));
}
