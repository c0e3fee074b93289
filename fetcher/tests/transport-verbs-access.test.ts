/** Who gets no RDMA, because of how it was let in; and what both ends tell of theirs. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { METRICS, SampleRecorder } from '../../metrics/index.ts';
import { Certificates, type ServeOptions, serveRegion } from '../../storage-server/index.ts';
import { makeCertificate } from '../../storage-server/tests/certificate-maker.ts';
import { ModelFabric } from '../../storage-server/tests/model-fabric.ts';
import { type OpenTransportOptions, openTransport } from '../transport/open-transport.ts';
import { makeFolder, pattern } from './transport-fixtures.ts';

const FILES = { 'a/1.parquet': pattern(600_000, 1), 'b/2.parquet': pattern(1000, 2) };

interface Rig {
  readonly fabric: ModelFabric;
  readonly server: Awaited<ReturnType<typeof serveRegion>>;
  readonly port: number;
}

async function start(t: TestContext, options: Partial<ServeOptions>): Promise<Rig> {
  const fabric = new ModelFabric();
  const rdma = { required: true, budgetBytes: 2 ** 30, open: fabric.open('server') };
  const listen = { host: '127.0.0.1', port: 0 };
  const server = await serveRegion({ roots: [makeFolder(t, FILES)], listen, rdma, ...options });
  t.after(() => server.close());
  return { fabric, server, port: server.address().port };
}

/** Reads every file that is listed; gives their names, and how it was read. */
async function readAll(t: TestContext, url: string, options: OpenTransportOptions) {
  const told: string[] = [];
  const opened = await openTransport(url, {
    onTransport: (text, how) => void told.push(`${how}: ${text}`),
    ...options,
  });
  t.after(() => opened.transport.close());
  const files = await opened.transport.list('');
  for (const file of files) {
    const bytes = new Uint8Array(new SharedArrayBuffer(1 << 20), 0, file.length);
    await opened.transport.read(file, 0, bytes);
    assert.ok(FILES[file.path as keyof typeof FILES].equals(bytes), file.path);
  }
  return { opened, paths: files.map(({ path }) => path), told: told.join('|') };
}

test('a token for all files gets RDMA, one for a part of them does not', async (t) => {
  const secrets = makeFolder(t, {});
  const file = (name: string, text: string): string => {
    writeFileSync(join(secrets, name), text, { mode: 0o600 });
    return join(secrets, name);
  };
  const [all, part] = ['all-of-them-0123456789', 'a-part-of-them-0123456789'];
  const tokensFile = file('tokens', `boss ${all} /\nteam ${part} b\n`);
  const { fabric, port } = await start(t, { tokensFile });
  const rdma = { open: fabric.open('client') };
  const boss = await readAll(t, `rdma://127.0.0.1:${port}`, { rdma, tokenFile: file('boss', all) });
  assert.deepEqual(boss.paths, Object.keys(FILES));
  assert.match(boss.told, /^rdma: /);
  const reads = fabric.reads;
  const team = await readAll(t, `rdma://127.0.0.1:${port}`, { rdma, tokenFile: file('team', part) });
  assert.deepEqual(team.paths, ['b/2.parquet']);
  assert.match(team.told, /^tcp: READs go over TCP: the server refuses: the token is for a part of the files/);
  assert.equal(fabric.reads, reads);
});

test('what is encrypted does not go over RDMA, which is not', async (t) => {
  const secrets = makeFolder(t, {});
  const file = (name: string, text: string): string => {
    writeFileSync(join(secrets, name), text, { mode: 0o600 });
    return join(secrets, name);
  };
  const authority = makeCertificate('authority', { isAuthority: true });
  const { cert, key } = makeCertificate('server', { issuer: authority, names: ['127.0.0.1'] });
  const certificates = await Certificates.load(
    { certFile: file('cert.pem', cert), keyFile: file('key.pem', key), clientCaFile: undefined },
    () => {},
  );
  const { fabric, port } = await start(t, { certificates });
  const caFile = file('ca.pem', authority.cert);
  const { told, paths } = await readAll(t, `rdmas://127.0.0.1:${port}`, { caFile, rdma: { open: fabric.open() } });
  assert.deepEqual(paths, Object.keys(FILES));
  assert.match(
    told,
    /^tcp: READs go over TCP: the server refuses: the connection is encrypted \(TLS\), and RDMA is not$/,
  );
  assert.equal(fabric.reads, 0);
});

test('both ends tell of devices, registered memory and completions', async (t) => {
  const { fabric, server, port } = await start(t, {});
  const { opened } = await readAll(t, `rdma://127.0.0.1:${port}`, { rdma: { open: fabric.open('client') } });
  const recorder = new SampleRecorder();
  recorder.addCollector(server.collectMetrics);
  const figures = new Map(
    recorder.record().flatMap((sample) => ('value' in sample ? [[sample.name, sample] as const] : [])),
  );
  assert.equal(figures.get(METRICS.rdmaInfo.name)?.labels?.device, 'server');
  assert.equal(figures.get(METRICS.rdmaRegisteredBytes.name)?.value, server.region().regionBytes);
  assert.equal(figures.get(METRICS.rdmaQueuePairs.name)?.value, 1);
  const rdma = opened.activity!.rdma();
  assert.equal(rdma?.device?.device, 'client');
  assert.equal(rdma?.device?.registeredBytes, 2 << 20);
  assert.equal(rdma?.readsOut, 0);
  assert.equal(rdma?.completions.get(0), fabric.reads);
  await opened.transport.close();
  assert.deepEqual([opened.activity!.rdma()?.device, rdma?.completions.get(0)], [undefined, fabric.reads]);
});
