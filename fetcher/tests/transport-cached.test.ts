/** The conformance suite over sources behind a disk cache. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { serveRegion } from '../../storage-server/index.ts';
import { DiskCache } from '../disk-cache/disk-cache.ts';
import { type OpenTransportOptions, openTransport } from '../transport/open-transport.ts';
import type { Transport } from '../transport/transport.ts';
import { withFaults } from '../transport/with-faults.ts';
import { seededRandom } from './random.ts';
import { type MakeSource, testTransport } from './transport-conformance.ts';

async function openCache(t: TestContext): Promise<DiskCache> {
  const folder = mkdtempSync(join(tmpdir(), 'qanat-test-'));
  const cache = await DiskCache.open({ folder, bytes: 2 ** 28 });
  t.after(async () => {
    await cache.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return cache;
}

/** Served, behind a disk cache that has every other 300,000 bytes of the files already. */
const halfCached =
  (options: OpenTransportOptions = {}): MakeSource =>
  async (t, folder) => {
    const server = await serveRegion({ roots: [folder], listen: { host: '127.0.0.1', port: 0 } });
    t.after(() => server.close());
    const url = `rdma://127.0.0.1:${server.address().port}/`;
    const diskCache = await openCache(t);
    const before = await openTransport(url, { diskCache });
    for (const version of await before.transport.list('')) {
      for (let start = 0; start < version.length; start += 600_000) {
        await before.transport.read(version, start, new Uint8Array(Math.min(300_000, version.length - start)));
      }
    }
    await before.transport.close();
    await diskCache.settled();
    return { ...(await openTransport(url, { ...options, diskCache })), keepsVersions: true };
  };

testTransport('file behind a disk cache', async (t, folder) => {
  const opened = await openTransport(`file://${folder}`, { diskCache: await openCache(t) });
  return { ...opened, keepsVersions: true };
});
testTransport('tcp behind a disk cache that is half filled', halfCached());
testTransport('tcp behind with-faults and a disk cache that is half filled', async (t, folder) => {
  const plan = { seed: seededRandom().below(2 ** 32), rate: 0.2 };
  const wrap = (source: Transport): Transport => withFaults(source, plan);
  return halfCached({ retry: { attempts: 50, baseMs: 0.1 }, wrap })(t, folder);
});
