import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Physical } from '../../decode/index.ts';
import { FetchError } from '../errors.ts';
import type { ScanPlan, ScanRequest } from '../plan.ts';
import { planScan } from '../plan.ts';
import { modelMetadata } from './metadata-model.ts';
import { seededRandom } from './random.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const REQUEST: ScanRequest = {
  memoryBytes: 256 * MIB,
  policy: { gapBytesMax: 64 * KIB, requestBytesMax: 16 * MIB, amplificationMax: 4 },
};

test('a plan is plain data', () => {
  const metadata = modelMetadata(
    [
      { name: 'a', bytes: 1000 },
      { name: 'b', bytes: 2000, type: Physical.INT32 },
      { name: 'c', bytes: 500, uncompressed: 4000 },
    ],
    [100, 50],
  );
  const plan = planScan(metadata, { ...REQUEST, columns: ['c', 'a'], limit: 120 });
  const expected: ScanPlan = {
    columns: [metadata.leaves[2]!, metadata.leaves[0]!],
    batchRows: 131072,
    limit: 120,
    rowGroups: [
      {
        ordinal: 0,
        numRows: 100,
        firstRow: 0,
        chunks: [
          {
            column: 2,
            numValues: 100,
            bytes: { start: 3004, end: 3504 },
            compressed: 500,
            uncompressed: 4000,
            segmentBytes: 500,
          },
          {
            column: 0,
            numValues: 100,
            bytes: { start: 4, end: 1004 },
            compressed: 1000,
            uncompressed: 1000,
            segmentBytes: 1000,
          },
        ],
        fetches: [
          {
            start: 4,
            end: 3504,
            gapBytes: 2000,
            parts: [
              { column: 0, chunkStart: 0, start: 4, end: 1004 },
              { column: 2, chunkStart: 0, start: 3004, end: 3504 },
            ],
          },
        ],
      },
      {
        ordinal: 1,
        numRows: 50,
        firstRow: 100,
        chunks: [
          {
            column: 2,
            numValues: 50,
            bytes: { start: 6504, end: 7004 },
            compressed: 500,
            uncompressed: 4000,
            segmentBytes: 500,
          },
          {
            column: 0,
            numValues: 50,
            bytes: { start: 3504, end: 4504 },
            compressed: 1000,
            uncompressed: 1000,
            segmentBytes: 1000,
          },
        ],
        fetches: [
          {
            start: 3504,
            end: 7004,
            gapBytes: 2000,
            parts: [
              { column: 0, chunkStart: 0, start: 3504, end: 4504 },
              { column: 2, chunkStart: 0, start: 6504, end: 7004 },
            ],
          },
        ],
      },
    ],
    totals: { requests: 2, bytesNeeded: 3000, bytesGap: 4000 },
  };
  assert.deepEqual(plan, expected);
  assert.deepEqual(JSON.parse(JSON.stringify(plan)), expected);
});

test('large chunks are split, and all columns advance together', () => {
  const metadata = modelMetadata(
    [
      { name: 'large', bytes: 3 * MIB },
      { name: 'small', bytes: 100 * KIB },
      { name: 'medium', bytes: 2 * MIB - 10 },
      { name: 'tiny', bytes: 10 },
    ],
    [1000],
  );
  // 16 MiB over 4 columns: segments of at most 1 MiB.
  const { rowGroups, totals } = planScan(metadata, { ...REQUEST, memoryBytes: 16 * MIB });
  const [group] = rowGroups;
  assert.deepEqual(
    group!.fetches.map(({ parts }) => parts.map((part) => `${metadata.leaves[part.column]!.name}+${part.chunkStart}`)),
    [['large+0'], ['small+0'], ['medium+0'], ['tiny+0'], ['large+1048576'], ['medium+1048576'], ['large+2097152']],
  );
  assert.deepEqual(
    group!.chunks.map((chunk) => chunk.segmentBytes),
    [MIB, 100 * KIB, MIB, 10],
  );
  assert.deepEqual(totals, { requests: 7, bytesNeeded: 5 * MIB + 100 * KIB, bytesGap: 0 });
});

test('limit leaves out row groups that are not needed', () => {
  const metadata = modelMetadata([{ name: 'a', bytes: 100 }], [10, 0, 10, 10]);
  const ordinals = (limit?: number) =>
    planScan(metadata, limit === undefined ? REQUEST : { ...REQUEST, limit }).rowGroups.map((group) => group.ordinal);
  assert.deepEqual(ordinals(), [0, 2, 3]);
  assert.deepEqual(ordinals(0), []);
  assert.deepEqual(ordinals(10), [0]);
  assert.deepEqual(ordinals(11), [0, 2]);
  assert.deepEqual(ordinals(1e9), [0, 2, 3]);
});

test('the rows of a batch follow the memory and the width of a row', () => {
  const batchRows = (bytes: number, memoryBytes: number) =>
    planScan(modelMetadata([{ name: 'a', bytes, type: Physical.BYTE_ARRAY }], [1000]), { ...REQUEST, memoryBytes })
      .batchRows;
  assert.equal(batchRows(1000, 256 * MIB), 131072); // 16 bytes at least, 16 MiB for a batch
  assert.equal(batchRows(1000 * 1000, 256 * MIB), 16384); // 1,000 bytes a row
  assert.equal(batchRows(1000 * 1000, 16 * MIB), 1024);
  assert.equal(batchRows(1000 * 100_000, 16 * MIB), 1024); // never less
  assert.equal(planScan(modelMetadata([{ name: 'a', bytes: 8 }], []), REQUEST).batchRows, 131072);
  assert.equal(planScan(modelMetadata([{ name: 'a', bytes: 8 }], [1]), { ...REQUEST, batchRows: 7 }).batchRows, 7);
});

test('requests fit the memory even when the policy allows more', () => {
  const columns = Array.from({ length: 64 }, (_, i) => ({ name: `c${i}`, bytes: 200 * KIB }));
  const { rowGroups } = planScan(modelMetadata(columns, [1000]), { ...REQUEST, memoryBytes: 8 * MIB });
  const largest = Math.max(...rowGroups[0]!.fetches.map((fetch) => fetch.end - fetch.start));
  assert.equal(largest, 2000 * KIB);
});

test('a broken chunk is in the plan, and nothing of it is fetched', () => {
  const metadata = modelMetadata(
    [
      { name: 'a', bytes: 100 },
      { name: 'b', bytes: 100, broken: 'why' },
    ],
    [10, 0],
  );
  const plan = planScan(metadata, REQUEST);
  assert.deepEqual(
    plan.rowGroups.map((group) => group.chunks[1]!.broken),
    ['why', 'why'],
  );
  assert.deepEqual(plan.totals, { requests: 2, bytesNeeded: 200, bytesGap: 0 });
});

test('chunks that claim to be endless are refused before a plan is made', () => {
  const metadata = modelMetadata([{ name: 'a', bytes: 2 ** 52 }], [10]);
  assert.throws(
    () => planScan(metadata, REQUEST),
    (error) => error instanceof FetchError && error.code === 'MEMORY',
  );
});

test('by random: every byte of every chunk once, in order within its column, sizes and totals as said', () => {
  const random = seededRandom();
  for (let round = 0; round < 200; round++) {
    const columns = Array.from({ length: 1 + random.below(8) }, (_, i) => ({
      name: `c${i}`,
      bytes: random.below(random.below(2) === 0 ? 100 * KIB : 20 * MIB),
    }));
    const metadata = modelMetadata(columns, [10, 20], random.below(100 * KIB));
    const memoryBytes = (4 + random.below(100)) * MIB;
    const policy = {
      gapBytesMax: random.below(MIB),
      requestBytesMax: (1 + random.below(16)) * MIB,
      amplificationMax: 2,
    };
    const plan = planScan(metadata, { memoryBytes, policy });
    let needed = 0;
    let gap = 0;
    for (const group of plan.rowGroups) {
      const next = new Map(group.chunks.map((chunk) => [chunk.column, chunk.bytes.start]));
      for (const fetch of group.fetches) {
        assert.ok(fetch.end - fetch.start <= policy.requestBytesMax);
        assert.ok(fetch.parts.length === 1 || fetch.parts.every((part) => part.chunkStart === 0));
        gap += fetch.gapBytes;
        for (const part of fetch.parts) {
          const chunk = group.chunks.find((one) => one.column === part.column)!;
          assert.equal(part.start, next.get(part.column));
          assert.equal(part.chunkStart, part.start - chunk.bytes.start);
          const last = part.end === chunk.bytes.end;
          assert.ok(last ? part.end - part.start <= chunk.segmentBytes : part.end - part.start === chunk.segmentBytes);
          next.set(part.column, part.end);
          needed += part.end - part.start;
        }
      }
      for (const chunk of group.chunks) {
        assert.equal(chunk.bytes.end === chunk.bytes.start ? chunk.bytes.end : next.get(chunk.column), chunk.bytes.end);
      }
    }
    const requests = plan.rowGroups.reduce((sum, group) => sum + group.fetches.length, 0);
    assert.deepEqual(plan.totals, { requests, bytesNeeded: needed, bytesGap: gap });
  }
});
