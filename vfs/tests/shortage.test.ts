/**
 * More readers than memory: every read of both views is answered with its bytes, none with an error and none never, as
 * long as what one of them needs fits.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { DuckDBInstance } from '@duckdb/node-api';
import type { FileContent } from '../fuse/content.ts';
import { materialize } from './materialize.ts';
import { newRandom } from './seeded-random.ts';
import { measure, newSignal, readContent, ViewRig } from './view-rig.ts';

const MIB = 1 << 20;
const MEMORY_BYTES = 8 * MIB;
const READERS = 48;
const READS = 6;
/** Milliseconds without an answer after which reads count as hanging. */
const HANGS_MS = 20_000;
const random = newRandom('shortage');

/** Many readers at once, each reading here and there. */
async function readAll(content: FileContent, expected: Uint8Array): Promise<void> {
  let answered = 0;
  const readers = Array.from({ length: READERS }, async (_, k) => {
    for (let n = 0; n < READS; n++) {
      const offset = random.below(expected.length - MIB);
      const bytes = await readContent(content, offset, MIB, newSignal(k + 1));
      assert.equal(Buffer.compare(bytes, expected.subarray(offset, offset + MIB)), 0);
      answered++;
    }
  });
  const over = new AbortController();
  const hangs = async (): Promise<void> => {
    for (let before = -1; before !== answered; await sleep(HANGS_MS, undefined, { signal: over.signal })) {
      before = answered;
    }
    throw new Error(`${answered} of ${READERS * READS} reads were answered, the others are not`);
  };
  const watch = hangs();
  watch.catch(() => {});
  await Promise.race([Promise.all(readers), watch]).finally(() => over.abort());
}

async function settle(rig: ViewRig): Promise<void> {
  for (let quiet = 0; quiet < 20; ) {
    await new Promise((resolve) => setImmediate(resolve));
    quiet = rig.transport.open === 0 ? quiet + 1 : 0;
  }
}

describe('shortage', () => {
  let fixed: Uint8Array;
  let view: Uint8Array;

  before(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'qanat-shortage-'));
    const path = join(folder, 'f.parquet');
    const instance = await DuckDBInstance.create();
    const duckdb = await instance.connect();
    await duckdb.run(`COPY (SELECT i, hash(i) AS h, CASE WHEN i % 3 = 0 THEN NULL ELSE i * 0.5 END AS d,
      hash(i) % 1000 AS few FROM range(900000) t(i)) TO '${path}' (FORMAT parquet, ROW_GROUP_SIZE 122880)`);
    duckdb.closeSync();
    instance.closeSync();
    fixed = new Uint8Array(readFileSync(path));
    view = materialize(fixed, { chunkBytesMax: MIB })!;
    rmSync(folder, { recursive: true, force: true });
  });

  // SEMANTICS 33, 34
  test('more readers of the raw view than memory', async () => {
    const rig = new ViewRig({ memoryBytes: MEMORY_BYTES, depth: 3 });
    rig.transport.turns = () => random.below(4);
    const bytes = random.bytes(24 * MIB);
    const content = rig.raw(rig.transport.add('f.bin', bytes));
    await readAll(content, bytes);
    content.close();
    await settle(rig);
    assert.equal(rig.pool.usedBytes, 0);
  });

  // SEMANTICS 33, 34
  test('more readers of the decoded view than memory', async () => {
    const rig = new ViewRig({ memoryBytes: MEMORY_BYTES, depth: 3, chunkBytesMax: MIB });
    rig.transport.turns = () => random.below(4);
    const content = rig.decoded(rig.transport.add('f.parquet', fixed));
    assert.equal(await measure(content), view.length);
    await readAll(content, view);
    content.close();
    await settle(rig);
    assert.equal(rig.pool.usedBytes, 0);
  });
});
