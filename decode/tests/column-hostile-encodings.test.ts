/** Delta values, split streams, BIT_PACKED levels, LZ4 frames and nested levels that break their rules. */
import { test } from 'node:test';
import type { NestedShape } from '../column/spec.ts';
import { Codec, Encoding, Physical } from '../format/enums.ts';
import { assertDecodes } from './chunk-run.ts';
import {
  DICTIONARY,
  environments,
  GAPS,
  INDEXED,
  INT64,
  NUMBERS,
  OPTIONAL,
  refuses,
  STRING,
  STRINGS,
} from './hostile-chunk.ts';
import { bigVarint, encodeDelta, encodeDeltaLengths } from './writer/delta.ts';
import { type ChunkPlan, type ColumnValue, join, type PagePlan, rleRun, varint } from './writer/index.ts';
import { packLevels } from './writer/runs.ts';

const numbers = (...pages: PagePlan[]) => ({ column: INT64, values: NUMBERS, pages });
const gaps = (...pages: PagePlan[]) => ({ column: OPTIONAL, values: GAPS, pages });
const strings = (...pages: PagePlan[]) => ({ column: STRING, values: STRINGS, pages });
const INT32_COLUMN = { name: 'the int32', physical: Physical.INT32 };
const FIXED = { name: 'the fixed', physical: Physical.FIXED_LEN_BYTE_ARRAY, typeLength: 5 };
const FIXED_VALUES = NUMBERS.map((value) => Uint8Array.of(1, 2, 3, 4, Number(value)));
const bytesOf = (values: readonly string[]) => values.map((value) => Buffer.from(value));
const cutBy = (count: number) => (bytes: Uint8Array) => bytes.subarray(0, bytes.length - count);

// ---- DELTA_BINARY_PACKED
const PACKED = { encoding: Encoding.DELTA_BINARY_PACKED };
/** A header of these numbers before the blocks of the right one. */
const header = (blockSize: number, miniblocks: number, count: number) => (bytes: Uint8Array) =>
  join([varint(blockSize), varint(miniblocks), varint(count), bytes.subarray(4)]);
for (const [what, blockSize, miniblocks] of [
  ['0 miniblocks', 128, 0],
  ['a block size of 0', 0, 4],
  ['a block size that is no multiple of 128', 129, 1],
  ['miniblocks of 16 values', 128, 8],
  ['miniblocks that do not divide the block', 128, 3],
  ['a block of 2^31 values', 2 ** 31, 4],
  ['2^31 miniblocks', 128, 2 ** 31],
] as const) {
  refuses(`delta: ${what}`, {
    plan: numbers({ rows: 60 }, { ...PACKED, values: header(blockSize, miniblocks, 40) }),
    code: 'PAGE',
    says: /delta-encoded page has a delta header that is not allowed/,
    page: 1,
  });
}
refuses('delta: more values than the page has', {
  plan: numbers({ ...PACKED, values: header(128, 4, 101) }),
  code: 'PAGE',
  says: /1 delta values more than the page's levels have|ends inside/,
});
refuses('delta: fewer values than the page has', {
  plan: numbers({ ...PACKED, values: header(128, 4, 99) }),
  code: 'PAGE',
  says: /delta values end after 99/,
});
for (const count of [2 ** 31, 2 ** 32, 2 ** 53, 2 ** 60]) {
  refuses(`delta: a count of ${count}`, {
    plan: numbers({ ...PACKED, values: header(128, 4, count) }),
    code: 'PAGE',
    says: /a delta header counts \d+ values/,
  });
}
refuses('delta: a count without an end', {
  plan: numbers({ ...PACKED, values: () => new Uint8Array(60).fill(0xff) }),
  code: 'PAGE',
  says: /over-long/,
});
refuses('delta: a header that is cut', {
  plan: numbers({ ...PACKED, values: () => Uint8Array.of(128, 1, 4) }),
  code: 'PAGE',
  says: /the page ends inside a delta header/,
});
for (const [what, column, values, width] of [
  ['65 bits in a column of 32', INT32_COLUMN, NUMBERS.map(Number), 65],
  ['65 bits in a column of 64', INT64, NUMBERS, 65],
  ['255 bits', INT64, NUMBERS, 255],
] as const) {
  refuses(`delta: ${what}`, {
    plan: {
      column,
      values,
      // header of 5 bytes (128 in two, 4, 100, 0), the minimum, then the widths
      pages: [{ ...PACKED, values: (bytes: Uint8Array) => withByte(bytes, 6, width) }],
    },
    code: 'PAGE',
    says: /bit width that its type does not allow/,
  });
}
refuses('delta: values that end too early', {
  plan: numbers({ ...PACKED, values: cutBy(20) }), // what follows the last value is 14 bytes
  code: 'PAGE',
  says: /delta-encoded page ends inside a value/,
});
test('delta: widths of miniblocks behind the last value are not looked at', () => {
  for (const environment of [environments.wasm, environments.scalar]) {
    assertDecodes(environment, numbers({ ...PACKED, delta: { blockSize: 1024, miniblocks: 8, idleWidth: 255 } }));
  }
});
test('delta: sums that wrap around are right values', () => {
  const edges = [2n ** 63n - 1n, -(2n ** 63n), 0n, -(2n ** 63n), 2n ** 63n - 1n, -1n, 1n];
  const small = edges.map((value) => Number(BigInt.asIntN(32, value >> 32n)));
  for (const environment of [environments.wasm, environments.scalar]) {
    assertDecodes(environment, { column: INT64, values: edges, pages: [PACKED] });
    assertDecodes(environment, { column: INT32_COLUMN, values: small, pages: [PACKED] });
  }
});

function withByte(bytes: Uint8Array, at: number, byte: number): Uint8Array {
  const changed = Uint8Array.from(bytes);
  changed[at] = byte;
  return changed;
}

// ---- DELTA_LENGTH_BYTE_ARRAY
const LENGTHS = { encoding: Encoding.DELTA_LENGTH_BYTE_ARRAY };
const lengths = (change: (made: bigint[]) => bigint[], count = STRINGS.length) => ({
  ...LENGTHS,
  values: () =>
    join([encodeDelta(change(STRINGS.map((value) => BigInt(value.length))).slice(0, count), 32), ...bytesOf(STRINGS)]),
});
for (const [what, first, second] of [
  ['a negative length', -1n, 8n],
  ['a negative length and one that makes up for it', -8n, 24n],
  ['a length past the end of the page', 900n, 8n],
  ['lengths whose sum passes 2^32', 2n ** 31n - 1n, 2n ** 31n - 1n],
] as const) {
  refuses(`delta lengths: ${what}`, {
    plan: strings(
      { rows: 0 },
      lengths((made) => [first, second, ...made.slice(2)]),
    ),
    code: 'PAGE',
    says: /delta-length byte arrays has a length that disagrees/,
    page: 1,
  });
}
refuses('delta lengths: fewer than values', {
  plan: strings(lengths((made) => made, 99)),
  code: 'PAGE',
  says: /lengths end after 99 values/,
});
refuses('delta lengths: more than values', {
  plan: strings(lengths((made) => [...made, 0n], 101)),
  code: 'PAGE',
  says: /1 lengths more than the page's levels have/,
});
refuses('delta lengths: bytes that end too early', {
  plan: strings({ ...LENGTHS, values: cutBy(1) }),
  code: 'PAGE',
  says: /delta-length byte arrays has a length that disagrees/,
});

// ---- DELTA_BYTE_ARRAY
const SUFFIXES = { encoding: Encoding.DELTA_BYTE_ARRAY };
const incremental = (prefixes: readonly number[], suffixes: readonly string[]) => ({
  ...SUFFIXES,
  values: () => join([encodeDelta(prefixes.map(BigInt), 32), encodeDeltaLengths(bytesOf(suffixes))]),
});
const three = (...pages: PagePlan[]): ChunkPlan => ({ column: STRING, values: ['abc', 'abd', 'x'], pages });
for (const [what, prefixes] of [
  ['a prefix of the first value', [1, 2, 0]],
  ['a prefix longer than the value before', [0, 4, 0]],
  ['a negative prefix', [0, -1, 0]],
  ['a prefix of 2 GiB', [0, 2 ** 31 - 1, 0]],
] as const) {
  refuses(`incremental: ${what}`, {
    plan: three(incremental(prefixes, ['abc', 'd', 'x'])),
    code: 'PAGE',
    says: /incremental (byte arrays has|value of)/,
  });
}
refuses('incremental: other counts of prefixes and suffixes', {
  plan: three(incremental([0, 2, 0], ['abc', 'd'])),
  code: 'PAGE',
  says: /2 suffix lengths \(expected 3, as prefixes\)/,
});
refuses('incremental: fewer values than the page has', {
  plan: three(incremental([0, 2], ['abc', 'd'])),
  code: 'PAGE',
  says: /lengths end after 2 values/,
});
refuses('incremental: suffixes that end too early', {
  plan: three({ ...SUFFIXES, values: cutBy(1) }),
  code: 'PAGE',
  says: /incremental/,
});
for (const [what, suffixes] of [
  ['shorter', ['abcde', 'fg', 'x']],
  ['longer', ['abcde', 'fghijk', 'x']],
] as const) {
  refuses(`incremental: a fixed-width value that comes out ${what}`, {
    plan: {
      column: FIXED,
      values: FIXED_VALUES.slice(0, 3),
      pages: [incremental([0, 2, 4], suffixes)],
    },
    code: 'PAGE',
    says: /incremental/,
  });
}

// ---- BYTE_STREAM_SPLIT
const SPLIT = { encoding: Encoding.BYTE_STREAM_SPLIT };
for (const by of [1, 7]) {
  refuses(`split: ${by} bytes fewer than whole values`, {
    plan: numbers({ ...SPLIT, values: cutBy(by) }),
    code: 'PAGE',
    says: /bytes of split streams \(expected a multiple of 8\)/,
  });
}
refuses('split: a value fewer than the page has', {
  plan: { column: FIXED, values: FIXED_VALUES, pages: [{ ...SPLIT, values: cutBy(5) }] },
  code: 'PAGE',
  says: /split streams end after 99 values/,
});
refuses('split: a value more than the page has', {
  plan: numbers({ ...SPLIT, values: (bytes) => join([bytes, new Uint8Array(8)]) }),
  code: 'PAGE',
  says: /1 split values more than the page's levels have/,
});

// ---- BIT_PACKED levels
const BIT_PACKED = { bitPackedLevels: true };
refuses('BIT_PACKED levels longer than the page', {
  plan: gaps({ ...BIT_PACKED, plain: () => new Uint8Array(12) }),
  code: 'LEVELS',
  says: /100 bit-packed levels in a page of 12 bytes/,
});
refuses('BIT_PACKED levels with something in their padding', {
  plan: gaps({ ...BIT_PACKED, levels: (bytes) => withByte(bytes, 12, bytes[12]! | 1) }),
  code: 'LEVELS',
  says: /padding that is not 0/,
});
refuses('BIT_PACKED levels of a writer that packed them from the other end', {
  plan: gaps(BIT_PACKED),
  spec: { wrongBitPacking: true },
  code: 'LEVELS',
  says: /packed them from the wrong end/,
});

// ---- LZ4
const lz4 = (change: (bytes: Uint8Array) => Uint8Array): ChunkPlan => ({
  ...numbers({ body: change }),
  codec: Codec.LZ4,
});
for (const [what, change] of [
  ['a frame that is longer than the page', (bytes: Uint8Array) => withByte(bytes, 6, 0xff)],
  ['a frame that declares more than it holds', (bytes: Uint8Array) => withByte(bytes, 3, bytes[3]! + 1)],
  ['a frame that declares 4 GiB', (bytes: Uint8Array) => withByte(bytes, 0, 0xff)],
  ['a frame without an end', cutBy(3)],
  ['frames of nothing', () => new Uint8Array(64)],
] as const) {
  refuses(`LZ4: ${what}`, { plan: lz4(change), code: 'CODEC', says: /LZ4 page/ });
}

// ---- nested levels: optional group (LIST) { repeated group { optional int64 } }
const LIST: NestedShape = {
  maxRepetitionLevel: 1,
  nodes: [{ kind: 'list', repetition: 0, slot: 0, valid: 1, element: 2 }],
  leafSlot: 2,
  rowsHint: 3,
};
const LIST_SPEC = { nested: LIST, maxDefinitionLevel: 3 };
const entries: readonly (readonly [repetition: number, definition: number, value: ColumnValue])[] = [
  [0, 3, 1n],
  [1, 3, 2n],
  [0, 0, null],
  [0, 1, null],
  [0, 2, null],
  [1, 3, 3n],
];
const listOf = (made: typeof entries, ...pages: PagePlan[]): ChunkPlan => ({
  column: INT64,
  values: made.map(([, , value]) => value),
  nested: {
    path: ['the int64'],
    maxRepetition: 1,
    maxDefinition: 3,
    repetition: made.map(([repetition]) => repetition),
    definition: made.map(([, definition]) => definition),
  },
  pages,
});
const changed = (at: number, entry: (typeof entries)[number]) => entries.map((one, k) => (k === at ? entry : one));

for (const version of [1, 2] as const) {
  refuses(`V${version}: a chunk that begins in the middle of a list`, {
    plan: listOf(changed(0, [1, 3, 1n]), { version }),
    spec: LIST_SPEC,
    code: 'LEVELS',
    says: /a row begins in the middle of a list/,
  });
  refuses(`V${version}: an element of a null list`, {
    plan: listOf(changed(0, [0, 0, null]), { version }),
    spec: LIST_SPEC,
    code: 'LEVELS',
    says: /levels 1 and 3 goes on with a list that is not there/,
  });
  refuses(`V${version}: a null list that goes on`, {
    plan: listOf(changed(5, [1, 1, null]), { version }),
    spec: LIST_SPEC,
    code: 'LEVELS',
    says: /levels 1 and 1 goes on with a list that is not there/,
  });
  refuses(`V${version}: a repetition level over the maximum`, {
    plan: listOf(entries, { version, repetition: () => rleRun(2, 6, 1) }),
    spec: LIST_SPEC,
    code: 'LEVELS',
    says: /repetition levels has a level over its maximum \(expected at most 1\)/,
  });
  refuses(`V${version}: repetition levels that end too early`, {
    plan: listOf(entries, { version, repetition: () => rleRun(0, 5, 1) }),
    spec: LIST_SPEC,
    code: 'LEVELS',
    says: /repetition levels ends inside a value/,
  });
  refuses(`V${version}: definition levels that end too early`, {
    plan: listOf(entries, { version, levels: () => rleRun(3, 5, 2) }),
    spec: LIST_SPEC,
    code: 'LEVELS',
    says: /definition levels ends inside a value/,
  });
  refuses(`V${version}: fewer values than levels`, {
    plan: listOf(entries, { version, levels: () => rleRun(3, 6, 2) }),
    spec: LIST_SPEC,
    code: 'PAGE',
    says: /PLAIN values end/,
  });
}
refuses('BIT_PACKED repetition levels longer than the page', {
  plan: listOf(entries, { ...BIT_PACKED, plain: () => new Uint8Array(0) }),
  spec: LIST_SPEC,
  code: 'LEVELS',
  says: /bit-packed levels in a page of 0 bytes/,
});
refuses('BIT_PACKED repetition levels of a page that has no room for definition levels', {
  plan: listOf(entries, { ...BIT_PACKED, plain: () => packLevels([0, 1, 0, 0, 0, 1], 1) }),
  spec: LIST_SPEC,
  code: 'LEVELS',
  says: /bit-packed levels in a page of 1 bytes|the page ends inside its levels/,
});
refuses('indices of a nested column outside its dictionary', {
  plan: listOf(entries, DICTIONARY, { ...INDEXED, values: () => join([Uint8Array.of(4), rleRun(3, 3, 4)]) }),
  spec: LIST_SPEC,
  code: 'DICTIONARY',
  says: /index outside its dictionary/,
  page: 1,
});
test('varints of the test writer agree', () => {
  for (const value of [0, 1, 127, 128, 300, 2 ** 31]) {
    if (!Buffer.from(varint(value)).equals(bigVarint(BigInt(value)))) throw new Error(`${value}`);
  }
});
