import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { BLOCK_BYTES, LARGE_SLAB_SHARE, LINE_BYTES, MEMORY_BYTES_MAX, MEMORY_BYTES_MIN } from '../limits.ts';
import { Pool } from '../pool/pool.ts';
import { seededRandom } from './random.ts';

test('slabs are aligned, disjoint, inside the memory, and counted', () => {
  const pool = Pool.create(MEMORY_BYTES_MIN);
  assert.equal(pool.capacityBytes, MEMORY_BYTES_MIN);
  assert.equal(pool.usedBytes, 0);
  const a = pool.allocate(1);
  const b = pool.allocate(BLOCK_BYTES);
  const c = pool.allocate(BLOCK_BYTES + 1);
  for (const address of [a, b, c]) assert.equal(address % LINE_BYTES, 0);
  assert.equal(b, a + BLOCK_BYTES);
  assert.equal(c, b + BLOCK_BYTES);
  assert.equal(pool.usedBytes, 4 * BLOCK_BYTES);
  assert.equal(Pool.footprint(1), BLOCK_BYTES);
  assert.equal(Pool.footprint(BLOCK_BYTES + 1), 2 * BLOCK_BYTES);
  assert.equal(Pool.footprint(0), 0);
  pool.free(b, BLOCK_BYTES);
  assert.equal(pool.allocate(100), b, 'first fit from the lowest address');
  pool.free(a, 1);
  pool.free(b, 100);
  pool.free(c, BLOCK_BYTES + 1);
  assert.equal(pool.usedBytes, 0);
  assert.equal(pool.peakBytes, 4 * BLOCK_BYTES);
});

test('what does not fit is answered with 0 and remembered', () => {
  const pool = Pool.create(MEMORY_BYTES_MIN);
  assert.equal(pool.allocate(MEMORY_BYTES_MIN + 1), 0);
  assert.equal(pool.refusedBytes, MEMORY_BYTES_MIN + 1);
  const all = pool.allocate(MEMORY_BYTES_MIN);
  assert.ok(all > 0);
  assert.equal(pool.refusedBytes, MEMORY_BYTES_MIN + 1);
  assert.equal(pool.allocate(1), 0);
  assert.equal(pool.refusedBytes, 1);
  assert.equal(pool.allocate(0), 0);
  assert.equal(pool.allocate(2 ** 53 - 1), 0);
  // a hole in the middle is found, a longer run is not there
  pool.free(all + 10 * BLOCK_BYTES, 3 * BLOCK_BYTES);
  assert.equal(pool.allocate(4 * BLOCK_BYTES), 0);
  assert.equal(pool.allocate(3 * BLOCK_BYTES), all + 10 * BLOCK_BYTES);
});

test('a slab is shrunk to whole blocks, one at least', () => {
  const pool = Pool.create(MEMORY_BYTES_MIN);
  const slab = pool.allocate(10 * BLOCK_BYTES);
  assert.equal(pool.shrink(slab, 10 * BLOCK_BYTES, 9 * BLOCK_BYTES + 1), 10 * BLOCK_BYTES);
  assert.equal(pool.usedBytes, 10 * BLOCK_BYTES);
  assert.equal(pool.shrink(slab, 10 * BLOCK_BYTES, 2 * BLOCK_BYTES + 1), 3 * BLOCK_BYTES);
  assert.equal(pool.usedBytes, 3 * BLOCK_BYTES);
  assert.equal(pool.shrink(slab, 3 * BLOCK_BYTES, 0), BLOCK_BYTES);
  pool.free(slab, BLOCK_BYTES);
  assert.equal(pool.usedBytes, 0);
});

test('misuse is a broken invariant and throws', () => {
  const pool = Pool.create(MEMORY_BYTES_MIN);
  const slab = pool.allocate(BLOCK_BYTES);
  pool.free(slab, BLOCK_BYTES);
  assert.throws(() => pool.free(slab, BLOCK_BYTES), /freed twice/);
  assert.throws(() => pool.free(slab + 1, BLOCK_BYTES), /not a slab/);
  assert.throws(() => pool.free(0, BLOCK_BYTES), /not a slab/);
  assert.throws(() => pool.free(slab, MEMORY_BYTES_MIN + 1), /not a slab/);
  assert.equal(pool.usedBytes, 0);
  // the lock is not left behind
  assert.equal(pool.allocate(1), slab);
});

test('a refused free changes nothing', () => {
  const pool = Pool.create(MEMORY_BYTES_MIN);
  const slab = pool.allocate(100 * BLOCK_BYTES);
  pool.free(slab + 99 * BLOCK_BYTES, BLOCK_BYTES);
  assert.throws(() => pool.free(slab, 100 * BLOCK_BYTES), /freed twice/);
  assert.equal(pool.usedBytes, 99 * BLOCK_BYTES);
  pool.free(slab, 99 * BLOCK_BYTES);
  assert.equal(pool.usedBytes, 0);
  assert.ok(pool.allocate(MEMORY_BYTES_MIN) > 0);
});

test('bounds of the memory', () => {
  for (const bytes of [0, -1, MEMORY_BYTES_MIN - 1, MEMORY_BYTES_MAX + 1, 2 ** 40, Number.NaN, 10e6 + 0.5]) {
    assert.throws(() => Pool.create(bytes), RangeError, String(bytes));
  }
  const odd = Pool.create(MEMORY_BYTES_MIN + 5000);
  assert.equal(odd.capacityBytes, MEMORY_BYTES_MIN + BLOCK_BYTES);
  assert.ok(odd.allocate(odd.capacityBytes) > 0);
});

test('the largest pool ends before 2^32, and its last slab can be written', () => {
  const pool = Pool.create(MEMORY_BYTES_MAX);
  const all = pool.allocate(pool.capacityBytes);
  const end = all + pool.capacityBytes;
  assert.ok(all > 0 && end <= 2 ** 32 - 64);
  assert.ok(end <= pool.u8.length);
  pool.u8[end - 1] = 7;
  pool.u32[(end - 8) >>> 2] = 8;
  assert.equal(pool.u8[end - 8], 8);
  pool.free(all, pool.capacityBytes);
  assert.equal(pool.usedBytes, 0);
});

test('random allocations against a model', () => {
  const random = seededRandom();
  const pool = Pool.create(MEMORY_BYTES_MIN);
  const blocks = MEMORY_BYTES_MIN / BLOCK_BYTES;
  const first = pool.allocate(1);
  pool.free(first, 1);
  const taken = new Uint8Array(blocks);
  const slabs: { at: number; bytes: number }[] = [];
  const range = (at: number, bytes: number): [number, number] => {
    const from = (at - first) / BLOCK_BYTES;
    return [from, from + Math.ceil(bytes / BLOCK_BYTES)];
  };
  /** First fit: from below for small slabs, from above for large ones. */
  const runOf = (want: number): number => {
    const isLarge = want > Math.floor(blocks / LARGE_SLAB_SHARE);
    for (let k = 0, run = 0; k < blocks; k++) {
      const at = isLarge ? blocks - 1 - k : k;
      run = taken[at] === 1 ? 0 : run + 1;
      if (run === want) return isLarge ? at : at - want + 1;
    }
    return -1;
  };
  for (let turn = 0; turn < 20_000; turn++) {
    const what = random.below(5);
    if (what < 2 || slabs.length === 0) {
      const bytes = 1 + random.below(random.below(10) === 0 ? MEMORY_BYTES_MIN / 3 : 20 * BLOCK_BYTES);
      const at = pool.allocate(bytes);
      const want = Math.ceil(bytes / BLOCK_BYTES);
      const model = runOf(want);
      assert.equal(at, model < 0 ? 0 : first + model * BLOCK_BYTES);
      if (at === 0) continue;
      taken.fill(1, model, model + want);
      slabs.push({ at, bytes });
    } else {
      const index = random.below(slabs.length);
      const { at, bytes } = slabs[index]!;
      slabs[index] = slabs.at(-1)!;
      slabs.pop();
      const keep = what === 4 ? pool.shrink(at, bytes, random.below(bytes + 1)) : 0;
      if (keep > 0) slabs.push({ at, bytes: keep });
      else pool.free(at, bytes);
      taken.fill(0, ...range(at, bytes));
      if (keep > 0) taken.fill(1, ...range(at, keep));
    }
    if (turn % 64 === 0) assert.equal(pool.usedBytes, taken.reduce((sum, one) => sum + one, 0) * BLOCK_BYTES);
  }
  for (const { at, bytes } of slabs) pool.free(at, bytes);
  assert.equal(pool.usedBytes, 0);
});

test('threads allocate from one pool without losing or sharing a block', async () => {
  const pool = Pool.create(MEMORY_BYTES_MIN);
  const run = `
    import { workerData, parentPort } from 'node:worker_threads';
    const { Pool } = await import(workerData.module);
    const pool = Pool.attach(workerData.memory);
    const held = [];
    let refused = 0;
    for (let turn = 0; turn < 4000; turn++) {
      const bytes = 1 + ((turn * 7919 + workerData.id * 104729) % 60000);
      const at = pool.allocate(bytes);
      if (at === 0) refused++;
      else {
        pool.u8.fill(workerData.id, at, at + bytes);
        held.push([at, bytes]);
      }
      while (held.length > (at === 0 ? 5 : 40)) {
        const [from, size] = held.splice((turn * 31) % held.length, 1)[0];
        for (let k = from; k < from + size; k += 512) {
          if (pool.u8[k] !== workerData.id) throw new Error('block shared with thread ' + pool.u8[k]);
        }
        pool.free(from, size);
      }
    }
    for (const [from, size] of held) pool.free(from, size);
    parentPort.postMessage(refused);
  `;
  const url = new URL(`data:text/javascript,${encodeURIComponent(run)}`);
  const module = new URL('../pool/pool.ts', import.meta.url).href;
  await Promise.all(
    [1, 2, 3].map(
      (id) =>
        new Promise<void>((resolve, reject) => {
          const worker = new Worker(url, { workerData: { memory: pool.memory, id, module } });
          worker.on('error', reject);
          worker.on('exit', () => resolve());
        }),
    ),
  );
  assert.equal(pool.usedBytes, 0);
  assert.ok(pool.peakBytes > MEMORY_BYTES_MIN / 10 && pool.peakBytes <= MEMORY_BYTES_MIN);
  assert.ok(pool.allocate(pool.capacityBytes) > 0);
});
