/** `--cache-dir` as people use it: scan, cp and mount read again what they have read before, and say so. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { DiskCache } from '../../fetcher/index.ts';
import { METRICS, openRegistry } from '../../metrics/index.ts';
import { parseExposition } from '../../metrics/tests/exposition.ts';
import { openSource } from '../../vfs/index.ts';
import type { MountReport } from '../mount/mount-report.ts';
import { ClientMetrics } from '../scan/client-metrics.ts';
import { ScanEngine } from '../scan/engine.ts';
import type { ScanReport } from '../scan/report.ts';
import { Scan } from '../scan/scan.ts';
import { qanat, qanatServe, type Server } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';
import { MountRig, whyNoMounts } from './mount-rig.ts';

describe('--cache-dir', () => {
  let lake: Lake;
  let server: Server;
  let url: string;

  before(async () => {
    lake = await Lake.create();
    mkdirSync(lake.path('served'));
    await lake.write('served/numbers.parquet', numbersQuery(150_000), 'row_group_size 20480');
    server = await qanatServe([lake.path('served')]);
    url = `rdma://${server.ready.rdma}/numbers.parquet`;
  });
  after(async () => {
    await server.stop();
    await lake[Symbol.asyncDispose]();
  });

  test('a second scan needs the directory alone, and its sums are the same', async () => {
    const args = ['scan', url, '--format', 'checksum', '--stats', '--json', '--cache-dir', lake.path('scan')];
    const results = [await qanat(args), await qanat(args)];
    const [cold, warm] = results.map(({ code, errors }) => {
      assert.equal(code, 0, errors);
      return (JSON.parse(errors) as ScanReport).bytes;
    });
    assert.equal(results[0]!.text, results[1]!.text);
    assert.ok(cold!.cached < 65_536, 'what the read of the footer brought besides');
    assert.equal(warm!.cached + warm!.onWire, cold!.cached + cold!.onWire);
    assert.ok(warm!.onWire < 2000, `${warm!.onWire} bytes over the wire`);
    for (const bytes of [cold!, warm!]) assert.equal(bytes.accounted, bytes.onWire + bytes.cached);
    const text = await qanat([...args.slice(0, 4), '--stats', '--cache-dir', lake.path('scan')]);
    assert.match(text.errors, /from the disk cache/);
  });

  test('copies are the same bytes; --cache-size alone makes no sense; a file is no folder', async () => {
    const original = readFileSync(lake.path('served/numbers.parquet'));
    for (const name of ['one', 'two']) {
      const { code, errors } = await qanat(['cp', url, lake.path(name)], {
        env: { QANAT_CACHE_DIR: lake.path('copies'), QANAT_CACHE_SIZE: '64MiB' },
      });
      assert.equal(code, 0, errors);
      assert.ok(readFileSync(lake.path(name)).equals(original));
    }
    const alone = await qanat(['cp', url, lake.path('three'), '--cache-size', '1GiB']);
    assert.deepEqual([alone.code, /--cache-dir/.test(alone.errors)], [2, true], alone.errors);
    const small = await qanat(['cp', url, lake.path('three'), '--cache-dir', lake.path('c'), '--cache-size', '1MiB']);
    assert.equal(small.code, 2, small.errors);
    writeFileSync(lake.path('file'), '');
    const file = await qanat(['cp', url, lake.path('three'), '--cache-dir', lake.path('file')]);
    assert.equal(file.code, 0);
    assert.match(file.errors, /^disk cache .*file: it is not used: .*\n$/);
  });

  test('metrics of the cache, and the sums that are always true', async () => {
    const registry = await openRegistry('client');
    const clients = new ClientMetrics(registry);
    const engine = new ScanEngine({ memoryBytes: 64 << 20, decoders: 1 });
    clients.addEngine(engine);
    const diskCache = await DiskCache.open({ folder: lake.path('metrics'), bytes: 2 ** 30 });
    try {
      for (let round = 0; round < 2; round++) {
        const source = await openSource(url, { diskCache });
        const forget = clients.addSource(source);
        for await (const batch of await Scan.open(engine, source, {})) assert.ok(batch.numRows > 0);
        await source.close();
        forget();
        await diskCache.settled();
      }
      const samples = parseExposition(await registry.text());
      const value = ({ name }: { readonly name: string }, labels: Record<string, string> = {}): number =>
        samples
          .filter((one) => one.name === name && Object.entries(labels).every(([key, text]) => one.labels[key] === text))
          .reduce((total, one) => total + one.value, 0);
      const cached = value(METRICS.cacheReadBytes);
      assert.equal(
        value(METRICS.fetchUsedBytes) + value(METRICS.fetchWastedBytes) + value(METRICS.fetchUndecidedBytes),
        value(METRICS.fetchWireBytes) + cached,
      );
      assert.ok(cached > 1_000_000 && value(METRICS.fetchUndecidedBytes) === 0);
      assert.ok(value(METRICS.cacheWrittenBytes) <= cached, 'all that was written has been read');
      assert.ok(value(METRICS.cacheReads, { outcome: 'hit' }) > value(METRICS.cacheReads, { outcome: 'miss' }));
      assert.equal(value(METRICS.cacheBytes), diskCache.bytes);
      assert.equal(value(METRICS.cacheLimit), 2 ** 30);
      assert.equal(value(METRICS.cacheBlocks), value(METRICS.cacheWrites));
    } finally {
      await diskCache.close();
      await engine.close();
    }
  });

  test('a new mount reads what an earlier one has kept', { skip: whyNoMounts() }, async () => {
    await using rig = new MountRig();
    const cache = ['--cache-dir', lake.path('mount'), '--cache-size', '1GiB'];
    const reports: MountReport[] = [];
    for (const view of ['raw', 'raw'] as const) {
      const mount = await rig.mount(url, 'mounted', '--view', view, '--stats', '--json', ...cache);
      const compared = await rig.run('cmp', [`${mount.folder}/numbers.parquet`, lake.path('served/numbers.parquet')]);
      assert.deepEqual([compared.code, compared.text], [0, ''], compared.errors);
      const { code, errors } = await mount.end('SIGTERM');
      assert.equal(code, 0, errors);
      reports.push(JSON.parse(errors.split('\n').find((line) => line.includes('"mountedMs"'))!) as MountReport);
    }
    // the footer may be there by the time that the end of the file is read
    assert.ok(reports[0]!.bytes.cached <= 65_536);
    assert.ok(reports[1]!.bytes.cached >= readFileSync(lake.path('served/numbers.parquet')).length);
    assert.ok(reports[1]!.bytes.onWire < 2000);
    assert.equal(reports[1]!.bytes.undecided, 0);
    const inside = await rig.qanat([
      'mount',
      url,
      rig.mountPoint('mounted'),
      '--cache-dir',
      `${rig.path('mounted')}/x`,
    ]);
    assert.equal(inside.code, 2, inside.errors);
    assert.match(inside.errors, /lies in .*, which the mount would hide/);
  });
});
