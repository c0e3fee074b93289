/** A directory from outside: every rule of PROTOCOL.md, each broken once; then random damage. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import {
  checkPath,
  isParquetPath,
  ProtocolError,
  type ProtocolErrorCode,
  parseDirectory,
  parseDirectorySize,
  planDirectory,
  regionAddress,
  sortedByPath,
  viewOf,
} from '../protocol/index.ts';
import { randomFrom } from './random.ts';

const GENERATION = new Uint8Array(16).fill(7);
const file = (path: string, length = 10) => ({ path, length, etag: 'e', modifiedMs: 0 });

function throwsCode(code: ProtocolErrorCode, run: () => unknown): void {
  assert.throws(run, (error) => error instanceof ProtocolError && error.code === code);
}

/** A directory's bytes with something replaced, and the checksum made right again. */
function tampered(change: (structure: Buffer) => Buffer): Uint8Array {
  const { prefix } = planDirectory(GENERATION, 64, [file('aa'), file('bb', 100), file('cc')]);
  const structure = change(Buffer.from(prefix.subarray(8, -4)));
  const bytes = new Uint8Array(structure.byteLength + 4);
  bytes.set(structure);
  viewOf(bytes).setUint32(structure.byteLength, crc32(structure), true);
  return bytes;
}

const REGION_LENGTH = 1 << 20;

test('paths that may not stand in a directory', () => {
  for (const path of ['', '/a', 'a//b', 'a/', '../a', 'a/../b', 'a/./b', '.', 'a\0b', '\ud800', 'x'.repeat(4097)]) {
    throwsCode('NAME', () => checkPath(path));
  }
  for (const path of ['a', 'a/b', '..a', 'a..', 'ünï/cödé', 'a b', 'a\nb', 'a\\b', '…', '%2e%2e/a', 'x'.repeat(4096)]) {
    checkPath(path);
  }
});

test('names that clash', () => {
  throwsCode('NAME', () => planDirectory(GENERATION, 64, [file('a'), file('a')]));
  throwsCode('NAME', () => planDirectory(GENERATION, 64, [file('a/b'), file('a.b'), file('a')]));
  throwsCode('NAME', () => planDirectory(GENERATION, 64, [file('a/b'), file('a/b/c/d')]));
  planDirectory(GENERATION, 64, [file('a/b'), file('a/bc'), file('ab/b')]);
});

test('names taken for Parquet', () => {
  assert.deepEqual(
    [
      'a.parquet',
      'x/A.PARQUET',
      'b.parq',
      'c.pq',
      'n\nl.parquet',
      '.parquet',
      'x/.tmp.parquet',
      'a.parquet.crc',
      '_SUCCESS',
    ].map(isParquetPath),
    [true, true, true, true, true, false, false, false, false],
  );
});

test('the order is that of UTF-8 bytes, surrogates or not', () => {
  const random = randomFrom('order');
  const letters = ['a', 'b', '/', 'é', '\ud7ff', '\ue000', '\uffee', '\u{10000}', '\u{1f600}'];
  for (let round = 0; round < 50; round++) {
    const some = letters.slice(0, 4 + random.below(letters.length - 3));
    const paths = Array.from({ length: 40 }, () =>
      Array.from({ length: random.below(6) }, () => some[random.below(some.length)]).join(''),
    );
    const expected = [...paths].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    assert.deepEqual(
      sortedByPath(paths.map((path) => ({ path }))).map(({ path }) => path),
      expected,
    );
  }
});

test('alignment', () => {
  for (const align of [0, 1, 32, 65, 96, 1 << 22, -64, 64.5, Number.NaN]) {
    throwsCode('DIRECTORY', () => planDirectory(GENERATION, align, []));
  }
  assert.equal(planDirectory(GENERATION, 4096, [file('a'), file('b')]).directory.entries[1]?.offset, 4096);
});

test('sizes', () => {
  const eight = (low: number, high: number): Uint8Array => {
    const bytes = new Uint8Array(8);
    viewOf(bytes).setUint32(0, low, true);
    viewOf(bytes).setUint32(4, high, true);
    return bytes;
  };
  throwsCode('NUMBER', () => parseDirectorySize(eight(0, 0xffff_ffff), REGION_LENGTH));
  throwsCode('LENGTH', () => parseDirectorySize(eight(4, 0), REGION_LENGTH));
  throwsCode('LENGTH', () => parseDirectorySize(eight(0, 1), 2 ** 50));
  throwsCode('LENGTH', () => parseDirectorySize(eight(REGION_LENGTH, 0), REGION_LENGTH));
  throwsCode('LENGTH', () => parseDirectorySize(new Uint8Array(7), REGION_LENGTH));
});

test('entries that lie', () => {
  parseDirectory(
    tampered((structure) => structure),
    REGION_LENGTH,
  );
  const entry = (path: string) => Buffer.from(`\x18\x02${path}\x16`, 'latin1');
  const setOffset = (path: string, ...varint: number[]) =>
    tampered((structure) => {
      const at = structure.indexOf(entry(path)) + 5;
      const end = structure.indexOf(0x16, at);
      return Buffer.concat([structure.subarray(0, at), Buffer.from(varint), structure.subarray(end)]);
    });
  throwsCode('DIRECTORY', () => parseDirectory(setOffset('cc', 0x80, 0x01), REGION_LENGTH)); // 64: inside bb
  throwsCode('DIRECTORY', () => parseDirectory(setOffset('cc', 0x82, 0x01), REGION_LENGTH)); // 65: not aligned
  throwsCode('DIRECTORY', () => parseDirectory(setOffset('cc', 0x7f), REGION_LENGTH)); // -64
  throwsCode('DIRECTORY', () => parseDirectory(setOffset('cc', 0x80, 0x80, 0x80, 0x80, 0x01), REGION_LENGTH)); // 128 MiB
  throwsCode('NUMBER', () =>
    parseDirectory(setOffset('cc', 0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x1f), REGION_LENGTH),
  );
  throwsCode('NAME', () =>
    parseDirectory(
      tampered((structure) => Buffer.from(structure.toString('latin1').replace('cc', '..'), 'latin1')),
      REGION_LENGTH,
    ),
  );
  throwsCode('DIRECTORY', () =>
    parseDirectory(
      tampered((structure) => Buffer.concat([structure, Buffer.of(0)])),
      REGION_LENGTH,
    ),
  );
  throwsCode('THRIFT', () =>
    parseDirectory(
      tampered((structure) => structure.subarray(0, -1)),
      REGION_LENGTH,
    ),
  );
  throwsCode('VERSION', () =>
    parseDirectory(
      tampered((structure) => {
        structure[1] = 4;
        return structure;
      }),
      REGION_LENGTH,
    ),
  );
});

test('a flipped bit does not pass the checksum', () => {
  const { prefix, directory } = planDirectory(GENERATION, 64, [file('a')]);
  for (let at = 8; at < prefix.byteLength; at++) {
    const damaged = prefix.slice(8);
    damaged[at - 8]! ^= 1 << (at % 8);
    throwsCode('CHECKSUM', () => parseDirectory(damaged, directory.regionLength));
  }
});

test('translation', () => {
  const { directory } = planDirectory(GENERATION, 64, [file('a', 100), file('b', 50)]);
  const b = directory.entries[1]!;
  assert.equal(regionAddress(directory, b, 7, 43), directory.dataStart + 128 + 7);
  assert.equal(regionAddress(directory, b, 50, 0), directory.dataStart + 128 + 50);
  for (const [start, length] of [
    [0, 51],
    [51, 0],
    [-1, 2],
    [1, 2 ** 53],
    [0.5, 1],
    [Number.NaN, 1],
  ] as const) {
    throwsCode('RANGE', () => regionAddress(directory, b, start, length));
  }
});

test('random damage gives a directory that keeps the rules, or a ProtocolError', () => {
  const random = randomFrom('directory damage');
  for (let round = 0; round < 3000; round++) {
    const bytes = tampered((structure) => {
      const damaged = Buffer.from(structure);
      for (let flips = random.below(4); flips >= 0; flips--)
        damaged[random.below(damaged.byteLength)] = random.below(256);
      return random.below(4) === 0 ? damaged.subarray(0, random.below(damaged.byteLength)) : damaged;
    });
    try {
      const directory = parseDirectory(bytes, REGION_LENGTH);
      for (const entry of directory.entries) {
        assert.ok(regionAddress(directory, entry, 0, entry.length) + entry.length <= REGION_LENGTH);
      }
    } catch (error) {
      assert.ok(error instanceof ProtocolError, String(error));
    }
  }
});
