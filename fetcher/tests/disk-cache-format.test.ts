/** Blocks' names, headers and the index: what is accepted, what is not, and the index against a model of bytes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatName, isHeaderOf, parseName, versionKey, versionName, writeHeader } from '../disk-cache/block-format.ts';
import { BlockIndex } from '../disk-cache/block-index.ts';
import { BLOCK_BYTES_MAX, HEADER_BYTES } from '../disk-cache/limits.ts';
import { seededRandom } from './random.ts';

const key = versionKey('rdma://host:7400/a.parquet', 'v1', 1000);

test('names of blocks', () => {
  const version = versionName(key);
  for (const [start, length] of [
    [0, 1],
    [35, 36],
    [2 ** 52, BLOCK_BYTES_MAX],
  ] as const) {
    assert.deepEqual(parseName(formatName({ version, start, length })), { version, start, length });
  }
  const hostile = [
    '',
    'x',
    `${version}-0-0`,
    `${version}-01-1`,
    `${version}--1`,
    `${version}-0-1.tmp`,
    `x${version}-0-1`,
  ];
  hostile.push(`${version}-zzzzzzzzzzz-1`, `${version}-0-${(BLOCK_BYTES_MAX + 1).toString(36)}`, `${version}-0-zzzzz`);
  hostile.push(`${version.toUpperCase()}-0-1`, `${version}-0-1\n`, `../${version}-0-1`);
  for (const name of hostile) assert.equal(parseName(name), undefined, JSON.stringify(name));
});

test('keys tell sources, paths, versions and lengths apart', () => {
  const keys = [
    key,
    versionKey('rdma://host:7401/a.parquet', 'v1', 1000),
    versionKey('rdma://host:7400/b.parquet', 'v1', 1000),
    versionKey('rdma://host:7400/a.parquet', 'v2', 1000),
    versionKey('rdma://host:7400/a.parquet', 'v1', 1001),
  ];
  assert.equal(new Set(keys.map(versionName)).size, keys.length);
});

test('a header is that of one block, and every bit of it counts', () => {
  const file = Buffer.alloc(HEADER_BYTES + 150_000, 7);
  writeHeader(file, key, 4096);
  const name = { version: versionName(key), start: 4096, length: 150_000 };
  assert.equal(file.toString('latin1', 0, 8), 'QANATBLK');
  assert.ok(isHeaderOf(file, key, name));
  assert.ok(!isHeaderOf(file, key, { ...name, start: 4097 }));
  assert.ok(!isHeaderOf(file, key, { ...name, length: 149_999 }));
  assert.ok(!isHeaderOf(file, versionKey('elsewhere', 'v1', 1000), name));
  // three pieces have checksums; nothing stands behind them
  for (let bit = 0; bit < (64 + 3 * 4) * 8; bit++) {
    file[bit >> 3]! ^= 1 << (bit & 7);
    assert.ok(!isHeaderOf(file, key, name), `bit ${bit}`);
    file[bit >> 3]! ^= 1 << (bit & 7);
  }
});

test('the index against a model of bytes', () => {
  const random = seededRandom();
  const index = new BlockIndex();
  const model: { version: string; start: number; length: number }[] = [];
  const versions = ['a', 'b'];
  const size = 500;
  for (let step = 0; step < 4000; step++) {
    const version = versions[random.below(2)]!;
    const start = random.below(size);
    const length = 1 + random.below(Math.min(60, size - start));
    const action = random.below(5);
    if (action < 2 && model.length < 40) {
      if (index.get({ version, start, length }) === undefined) {
        index.add({ version, start, length }, 0, 0);
        model.push({ version, start, length });
      }
    } else if (action === 2 && model.length > 0) {
      const [gone] = model.splice(random.below(model.length), 1);
      index.remove(index.get(gone!)!);
    } else {
      const end = start + length;
      const segments = index.segments(version, start, end);
      assert.equal(segments[0]!.start, start);
      assert.equal(segments.at(-1)!.end, end);
      for (const [k, segment] of segments.entries()) {
        if (k > 0) assert.equal(segment.start, segments[k - 1]!.end);
        if (k > 0)
          assert.ok(segment.block !== undefined || segments[k - 1]!.block !== undefined, 'neighbours are joined');
        const has = (at: number): boolean =>
          model.some((one) => one.version === version && one.start <= at && at < one.start + one.length);
        for (let at = segment.start; at < segment.end; at++) assert.equal(segment.block !== undefined, has(at));
        const { block } = segment;
        if (block === undefined) continue;
        assert.equal(block.version, version);
        assert.ok(block.start <= segment.start && segment.end <= block.start + block.length);
      }
      const within = model.filter(
        (one) => one.version === version && one.start >= start && one.start + one.length <= end,
      );
      assert.equal(index.within(version, start, end).length, within.length);
    }
    assert.equal(index.count, model.length);
    assert.equal(index.bytes, model.length * 4096);
  }
});

test('the order of use, and blocks found that come between', () => {
  const index = new BlockIndex();
  const [a, b, c] = [10, 20, 30].map((ms, k) => index.add({ version: 'v', start: k, length: 1 }, ms, 0));
  index.touch(a!);
  a!.touchedMs = 40;
  const found = [25, 50, 5].map((ms, k) => index.add({ version: 'v', start: 10 + k, length: 1 }, ms, 1));
  index.sortIn(new Set(found));
  assert.deepEqual([...index.all()], [found[2], b, found[0], c, a, found[1]]);
  assert.equal(index.oldest(), found[2]);
});
