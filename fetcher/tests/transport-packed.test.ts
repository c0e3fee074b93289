/** The conformance suite over packed regions and pinned files, and what is true of packed regions alone. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { packRegion, serveRegion } from '../../storage-server/index.ts';
import { FetchError } from '../errors.ts';
import { openTransport } from '../transport/open-transport.ts';
import { newTransportCounters, type Transport } from '../transport/transport.ts';
import { withFaults } from '../transport/with-faults.ts';
import { withPackedRegion } from '../transport/with-packed-region.ts';
import { MemoryTransport } from './memory-transport.ts';
import { seededRandom } from './random.ts';
import { type MakeSource, testTransport } from './transport-conformance.ts';
import { makeFolder, pattern } from './transport-fixtures.ts';

/** Files in the server's memory, read again when they have changed. */
const pinned: MakeSource = async (t, folder) => {
  const listen = { host: '127.0.0.1', port: 0 };
  const server = await serveRegion({ roots: [folder], listen, pin: { budgetBytes: 2 ** 30 } });
  t.after(() => server.close());
  const update = async (): Promise<void> => {
    await server.republish();
  };
  return { ...(await openTransport(`rdma://127.0.0.1:${server.address().port}/`)), update };
};

/** A packed region, written anew when the folder has changed. */
const packed =
  (open: (t: TestContext, file: string) => ReturnType<MakeSource>): MakeSource =>
  async (t, folder) => {
    const target = mkdtempSync(join(tmpdir(), 'qanat-test-'));
    t.after(() => rmSync(target, { recursive: true, force: true }));
    const output = join(target, 'lake.qanat');
    await packRegion({ roots: [folder], output });
    const source = await open(t, output);
    const update = async (): Promise<void> => {
      await packRegion({ roots: [folder], output });
      await source.update?.();
    };
    return { ...source, update };
  };

testTransport(
  'packed file',
  packed((_t, file) => openTransport(`file://${file}!/`)),
);
testTransport(
  'packed file behind with-faults',
  packed((_t, file) => {
    const plan = { seed: seededRandom().below(2 ** 32), rate: 0.2 };
    const wrap = (source: Transport): Transport => withFaults(source, plan);
    return openTransport(`file://${file}!/`, { retry: { attempts: 50, baseMs: 0.1 }, wrap });
  }),
);
testTransport(
  'packed file, served',
  packed((t, file) => pinned(t, file)),
);
testTransport('tcp, pinned', pinned);

/** The bytes of a packed region. */
async function packedBytes(t: TestContext, files: Record<string, Uint8Array>): Promise<Buffer> {
  const output = join(makeFolder(t, {}), 'lake.qanat');
  await packRegion({ roots: [makeFolder(t, files)], output });
  return readFileSync(output);
}

const open = (source: MemoryTransport): Transport => withPackedRegion(source, 'lake.qanat', newTransportCounters());

test('one read for a small directory, two for a large one, none for another file', async (t) => {
  const few = new MemoryTransport({ 'lake.qanat': await packedBytes(t, { 'a.parquet': pattern(200_000, 1) }) });
  const one = open(few);
  const [a] = await one.list('');
  assert.equal(few.reads.length, 1);
  await one.read(a!, 5, new Uint8Array(10));
  assert.equal((await one.list('a')).length, 1);
  assert.equal(few.reads.length, 2);
  const names = Array.from({ length: 1500 }, (_, k) => [`${k}.parquet`, pattern(k, k)] as const);
  const many = new MemoryTransport({ 'lake.qanat': await packedBytes(t, Object.fromEntries(names)) });
  const other = open(many);
  const files = await other.list('');
  assert.deepEqual([files.length, many.reads.length], [1500, 2]);
  for (const file of files.slice(0, 100)) {
    const into = new Uint8Array(file.length);
    await other.read(file, 0, into);
    assert.ok(Buffer.from(into).equals(pattern(file.length, file.length)));
  }
});

test('a packed file that is replaced: unchanged files read on, others are stale, bytes are never mixed', async (t) => {
  const folder = makeFolder(t, { 'a.parquet': pattern(300_000, 1), 'b.parquet': pattern(300_000, 2) });
  const output = join(makeFolder(t, {}), 'lake.qanat');
  await packRegion({ roots: [folder], output });
  const source = new MemoryTransport({ 'lake.qanat': readFileSync(output) });
  writeFileSync(join(folder, '0.parquet'), pattern(77_777, 3));
  writeFileSync(join(folder, 'b.parquet'), pattern(300_000, 4));
  await packRegion({ roots: [folder], output });
  let replacement: Buffer | undefined = readFileSync(output);
  /** Half of the first large read comes, then what lies under the name is replaced. */
  const replaced: Transport = {
    list: (prefix) => source.list(prefix),
    close: () => source.close(),
    async read(file, start, into, options = {}) {
      if (replacement === undefined || into.byteLength < 250_000) return source.read(file, start, into, options);
      const half = into.byteLength >>> 1;
      await source.read(file, start, into.subarray(0, half), options);
      source.replace('lake.qanat', replacement, 'v2');
      replacement = undefined;
      into.fill(0xee, half);
      throw new FetchError('STALE', `${file.path} has changed`);
    },
  };
  const packed = withPackedRegion(replaced, 'lake.qanat', newTransportCounters());
  const [a, b] = await packed.list('');
  const into = new Uint8Array(250_000);
  const arrivals: number[] = [];
  await packed.read(a!, 50_000, into, { onArrived: (bytes) => arrivals.push(bytes) });
  assert.ok(Buffer.from(into).equals(pattern(300_000, 1).subarray(50_000)));
  assert.deepEqual(arrivals, [125_000, 250_000]);
  await assert.rejects(packed.read(b!, 0, into), isError('STALE', /^b\.parquet has changed in lake\.qanat/));
  assert.deepEqual(
    (await packed.list('')).map(({ path }) => path),
    ['0.parquet', 'a.parquet', 'b.parquet'],
  );
  source.replace('lake.qanat', Buffer.from('no packed region at all, by any means'), 'v3');
  await assert.rejects(packed.list(''), isError('PACKED', /^lake\.qanat: /));
  await assert.rejects(packed.read(a!, 0, into), isError('PACKED', /^lake\.qanat: /));
});

const isError =
  (code: FetchError['code'], reason: RegExp) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof FetchError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.reason, reason);
    return true;
  };
