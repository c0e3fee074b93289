/**
 * A process that reads through a disk cache: random ranges of four files, checks every byte and says what it saw.
 *
 *     node cache-process.ts <folder> <bytes> <seed> <reads> [offline]
 *
 * Offline, its source has no bytes: only what others kept can be read, and what can't is left out.
 */
import assert from 'node:assert/strict';
import { DiskCache } from '../disk-cache/disk-cache.ts';
import { FetchError } from '../errors.ts';
import { withDiskCache } from '../transport/with-disk-cache.ts';
import { CountedTransport } from './cache-rig.ts';
import { pattern } from './transport-fixtures.ts';

const [folder = '', bytes, seed, reads, mode] = process.argv.slice(2);

const source = new CountedTransport();
const contents = [0, 1, 2, 3].map((k) => {
  const whole = pattern(10_000_000, k);
  return { whole, file: source.put(`f${k}`, whole, `v${k}`) };
});
if (mode === 'offline') source.failure = new FetchError('LOST', 'offline');

const cache = await DiskCache.open({ folder, bytes: Number(bytes), onTrouble: (reason) => assert.fail(reason) });
const transport = withDiskCache(source, cache, 'memory://host', source.counters);
console.log('ready');

let state = Number(seed);
const below = (n: number): number => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * n);
};
let lost = 0;
for (let k = 0; k < Number(reads); k++) {
  const { whole, file } = contents[below(4)]!;
  // places that come again
  const start = below(40) * 250_000;
  const into = new Uint8Array(1 + below(Math.min(3_000_000, whole.length - start)));
  // all that is read is to be kept, however slow the disk
  if (k % 8 === 7) await cache.settled();
  try {
    await transport.read(file, start, into);
    assert.ok(whole.subarray(start, start + into.byteLength).equals(into), `${file.path} at ${start}`);
  } catch (error) {
    if (!(error instanceof FetchError)) throw error;
    lost++;
  }
}
await cache.settled();
await cache.close();
console.log(JSON.stringify({ ...cache.counters, lost, bytesCached: source.counters.bytesCached }));
