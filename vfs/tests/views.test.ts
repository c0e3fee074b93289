/** Raw and decoded contents: any reads in any order give the bytes of the file, or of its materialized view. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { DuckDBInstance } from '@duckdb/node-api';
import { FetchError } from '../../fetcher/index.ts';
import { CachePusher } from '../decoded/cache-pusher.ts';
import type { FileContent } from '../fuse/content.ts';
import { materialize } from './materialize.ts';
import { measure, newSignal, readContent, ViewRig } from './view-rig.ts';

const seed = Number(process.env.QANAT_SEED ?? Date.now() % 1_000_000);
console.log(`views.test.ts: QANAT_SEED=${seed}`);
let state = seed + 1;
/** A whole number below `n`. */
function below(n: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * n);
}

describe('views', () => {
  let file: Uint8Array;
  let view: Uint8Array;

  before(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'qanat-views-'));
    const path = join(folder, 'f.parquet');
    const instance = await DuckDBInstance.create();
    const duckdb = await instance.connect();
    await duckdb.run(`COPY (SELECT i, hash(i) % 16777216 AS h, CASE WHEN i % 3 = 0 THEN NULL ELSE i * 0.5 END AS d,
      'word ' || hash(i) AS w, i % 2 = 0 AS b FROM range(120000) t(i)) TO '${path}' (FORMAT parquet, ROW_GROUP_SIZE 20480)`);
    duckdb.closeSync();
    instance.closeSync();
    file = new Uint8Array(readFileSync(path));
    view = materialize(file)!;
    rmSync(folder, { recursive: true, force: true });
  });
  after(() => {});

  async function checkReads(content: FileContent, expected: Uint8Array, count: number): Promise<void> {
    const reads = Array.from({ length: count }, async () => {
      const offset = below(expected.length);
      const length = Math.min(expected.length - offset, 1 + below(below(4) === 0 ? 1_000_000 : 5000));
      const bytes = await readContent(content, offset, length, newSignal(1 + below(3)));
      assert.equal(Buffer.compare(bytes, expected.subarray(offset, offset + length)), 0, `${offset} + ${length}`);
    });
    await Promise.all(reads);
  }

  for (const memoryBytes of [64 << 20, 8 << 20]) {
    // SEMANTICS 13
    test(`random reads of both views, ${memoryBytes >> 20} MiB`, async () => {
      const rig = new ViewRig({ memoryBytes, depth: 3 });
      rig.transport.turns = () => below(3);
      const version = rig.transport.add('f.parquet', file);
      const raw = rig.raw(version);
      const decoded = rig.decoded(version);
      assert.equal(await measure(decoded), view.length);
      for (let round = 0; round < 6; round++) {
        await Promise.all([checkReads(raw, file, 10), checkReads(decoded, view, 10)]);
      }
      raw.close();
      decoded.close();
      await settle(rig);
      assert.equal(rig.pool.usedBytes, 0, 'all memory is back');
    });
  }

  // SEMANTICS 7
  test('nothing is fetched twice while it is in memory, and the next row groups come ahead', async () => {
    const rig = new ViewRig({ depth: 2 });
    const raw = rig.raw(rig.transport.add('f.parquet', file));
    await Promise.all([
      readContent(raw, 4, 1000),
      readContent(raw, 500, 3000),
      readContent(raw, 4, 1000, newSignal(2)),
    ]);
    await settle(rig);
    const chunks = rig.transport.log.filter(({ start, end }) => start < file.length - 70_000 && end > 4);
    const sorted = chunks.map(({ start, end }) => [start, end] as const).sort((a, b) => a[0] - b[0]);
    for (let k = 1; k < sorted.length; k++) assert.ok(sorted[k]![0] >= sorted[k - 1]![1], 'requests overlap');
    assert.ok(sorted.length >= 2, 'the same column of the next row group');
    const before = rig.transport.log.length;
    await readContent(raw, 100, 2000);
    assert.equal(rig.transport.log.length, before);
    raw.close();
    await settle(rig);
    assert.equal(rig.pool.usedBytes, 0);
  });

  test('a chunk of many windows whose bytes come in one unit', async () => {
    const rig = new ViewRig({ chunkBytesMax: 64 << 20, memoryBytes: 128 << 20 });
    const instance = await DuckDBInstance.create();
    const duckdb = await instance.connect();
    const folder = mkdtempSync(join(tmpdir(), 'qanat-views-'));
    const path = join(folder, 'f.parquet');
    await duckdb.run(`COPY (SELECT i // 1000 AS g FROM range(700000) t(i)) TO '${path}'
      (FORMAT parquet, ROW_GROUP_SIZE 1000000)`);
    duckdb.closeSync();
    instance.closeSync();
    const few = new Uint8Array(readFileSync(path));
    rmSync(folder, { recursive: true, force: true });
    const expected = materialize(few)!;
    const decoded = rig.decoded(rig.transport.add('g.parquet', few));
    const far = expected.length - 1_000_000;
    assert.deepEqual(await readContent(decoded, far, 5000), Buffer.from(expected.subarray(far, far + 5000)));
    decoded.close();
    await settle(rig);
    assert.equal(rig.pool.usedBytes, 0);
  });

  test('an interrupted read is not answered, the next one is', async () => {
    const rig = new ViewRig();
    const decoded = rig.decoded(rig.transport.add('f.parquet', file));
    await measure(decoded);
    const signal = newSignal();
    let answered = 0;
    decoded.read(5000, 1000, signal, () => {
      answered++;
      return true;
    });
    signal.abort();
    assert.deepEqual(await readContent(decoded, 5000, 1000), Buffer.from(view.subarray(5000, 6000)));
    assert.equal(answered, 0);
    decoded.close();
    await settle(rig);
    assert.equal(rig.pool.usedBytes, 0);
  });

  // SEMANTICS 25
  test('a source that fails is an error of the read, and works again when the source does', async () => {
    const rig = new ViewRig();
    const version = rig.transport.add('f.parquet', file);
    for (const [content, expected] of [
      [rig.raw(version), file],
      [rig.decoded(version), view],
    ] as const) {
      await readContent(content, 4, 1); // footer and first unit
      await settle(rig);
      rig.transport.failure = new FetchError('STALE', 'replaced');
      const far = expected.length >> 1;
      await assert.rejects(readContent(content, far, 1000), /replaced/);
      rig.transport.failure = undefined;
      assert.deepEqual(await readContent(content, far, 1000), Buffer.from(expected.subarray(far, far + 1000)));
      content.close?.();
      await settle(rig);
    }
    assert.equal(rig.pool.usedBytes, 0);
  });

  // SEMANTICS 14
  test('damaged pages are an error of the reads that need them alone', async () => {
    const rig = new ViewRig();
    const damaged = file.slice();
    damaged.fill(0xff, 30, 90);
    const decoded = rig.decoded(rig.transport.add('f.parquet', damaged));
    await assert.rejects(readContent(decoded, 4096, 1000));
    const far = view.length >> 1;
    assert.deepEqual(await readContent(decoded, far, 1000), Buffer.from(view.subarray(far, far + 1000)));
    decoded.close();
    await settle(rig);
    assert.equal(rig.pool.usedBytes, 0);
  });

  // SEMANTICS 15
  test('what is pushed into the kernel cache is what the view holds there, in whole pages', async () => {
    const rig = new ViewRig();
    const cache = view.slice().fill(0xaa);
    const known = new Set<number>();
    const pusher = new CachePusher({
      u8: rig.pool.u8,
      idleMs: 5,
      pieceBytes: 64 << 10,
      push: async (path, offset, bytes) => {
        assert.equal(path, 'f.parquet');
        assert.equal(offset % 4096, 0);
        assert.ok(bytes.length % 4096 === 0 || offset + bytes.length === view.length);
        await new Promise((resolve) => setImmediate(resolve));
        cache.set(bytes, offset);
        for (let page = offset >> 12; page << 12 < offset + bytes.length; page++) known.add(page);
        return true;
      },
    });
    rig.onDecoded = (content, chunk, start) => pusher.add({ path: 'f.parquet', content, chunk, start });
    const decoded = rig.decoded(rig.transport.add('f.parquet', file));
    await checkReads(decoded, view, 20);
    await readContent(decoded, view.length - 100, 100);
    while (pusher.waiting > 0 || pusher.counts.chunks === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await settle(rig);
    assert.ok(decoded.isInCache);
    assert.ok(known.size > 100);
    for (const page of known) {
      const [start, end] = [page << 12, Math.min(view.length, (page + 1) << 12)];
      assert.equal(Buffer.compare(cache.subarray(start, end), view.subarray(start, end)), 0, `page ${page}`);
    }
    pusher.close();
    decoded.close();
    await settle(rig);
    assert.equal(rig.pool.usedBytes, 0);
  });

  // SEMANTICS 6
  test('what is no Parquet is read as it is, in both views', async () => {
    const rig = new ViewRig();
    const text = new Uint8Array(3_000_000).map((_, k) => k % 251);
    const version = rig.transport.add('notes.txt', text);
    for (const content of [rig.raw(version), rig.decoded(version)] as FileContent[]) {
      if (content.measure !== undefined) assert.equal(await measure(content), text.length);
      await checkReads(content, text, 20);
      content.close?.();
    }
    await settle(rig);
    assert.equal(rig.pool.usedBytes, 0);
  });
});

/** Until nothing is under way. */
async function settle(rig: ViewRig): Promise<void> {
  for (let quiet = 0; quiet < 20; ) {
    await new Promise((resolve) => setImmediate(resolve));
    quiet = rig.transport.open === 0 ? quiet + 1 : 0;
  }
}
