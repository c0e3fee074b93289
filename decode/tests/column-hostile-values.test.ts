/** Levels, dictionaries, indices and values that break their encoding's rules: each a typed error with its place. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Codec, Encoding, Physical } from '../format/enums.ts';
import { assertDecodes } from './chunk-run.ts';
import {
  BITS,
  BOOLEAN,
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
import type { Tree } from './thrift-twin.ts';
import { join, type PagePlan, packedRun, rleRun, u32, varint } from './writer/index.ts';

const numbers = (...pages: PagePlan[]) => ({ column: INT64, values: NUMBERS, pages, codec: Codec.SNAPPY });
const gaps = (...pages: PagePlan[]) => ({ column: OPTIONAL, values: GAPS, pages, codec: Codec.SNAPPY });
const strings = (...pages: PagePlan[]) => ({ column: STRING, values: STRINGS, pages });
const bits = (...pages: PagePlan[]) => ({ column: BOOLEAN, values: BITS, pages });
const entries = (count: number) => ({
  header: (header: Tree) => {
    (header.dictionary_page_header as Tree).num_values = count;
  },
});
const cutBy = (count: number) => (bytes: Uint8Array) => bytes.subarray(0, bytes.length - count);
const NEVER = new Uint8Array(0);

// ---- definition levels
for (const version of [1, 2] as const) {
  refuses(`V${version}: an RLE run of definition level 2`, {
    plan: gaps({ rows: 30, version }, { version, levels: () => rleRun(2, 70, 1) }),
    code: 'LEVELS',
    says: /definition levels has a level or boolean over its maximum/,
    page: 1,
  });
  refuses(`V${version}: definition levels that end too early`, {
    plan: gaps({ version, levels: () => rleRun(1, 99, 1) }),
    code: 'LEVELS',
    says: /definition levels ends inside a value/,
  });
  refuses(`V${version}: a packed run of levels that passes the end of the levels`, {
    plan: gaps({ version, levels: () => join([varint(13 * 2 + 1), new Uint8Array(12)]) }),
    code: 'LEVELS',
    says: /definition levels ends inside a value/,
  });
  refuses(`V${version}: no levels at all`, {
    plan: gaps({ version, levels: () => NEVER }),
    code: 'LEVELS',
    says: /definition levels ends inside a value/,
  });
  refuses(`V${version}: an over-long run header`, {
    plan: gaps({ version, levels: () => Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1) }),
    code: 'LEVELS',
    says: /over-long variable-length integer/,
  });
  refuses(`V${version}: fewer values than levels say there are`, {
    plan: gaps({ version, levels: () => rleRun(1, 100, 1) }),
    code: 'PAGE',
    says: /PLAIN values end before the page has all of its values/,
  });
}
refuses('a length of V1 levels past the end of the page', {
  plan: gaps({ plain: (body) => join([u32(body.length - 3), body.subarray(4)]) }),
  code: 'LEVELS',
  says: /levels of 543 bytes in a page of 546/,
});
refuses('a length of V1 levels of 4 GiB', {
  plan: gaps({ plain: (body) => join([u32(2 ** 32 - 1), body.subarray(4)]) }),
  code: 'LEVELS',
  says: /levels of 4294967295 bytes/,
});
refuses('a V1 page that ends before the length of its levels', {
  plan: gaps({ plain: () => new Uint8Array(3) }),
  code: 'LEVELS',
  says: /the page ends before its levels/,
});
test('a run of levels longer than the page needs is no error', () => {
  const plan = { column: OPTIONAL, values: NUMBERS, pages: [{ levels: () => rleRun(1, 2 ** 30, 1) }] };
  assertDecodes(environments.wasm, plan);
  assertDecodes(environments.scalar, plan);
});

// ---- dictionary pages
refuses('a dictionary-encoded page without a dictionary page', {
  plan: numbers({ ...INDEXED }),
  code: 'DICTIONARY',
  says: /comes before any dictionary page/,
});
refuses('a dictionary page after the page that needs it', {
  plan: numbers({ ...INDEXED, rows: 50 }, DICTIONARY, INDEXED),
  code: 'DICTIONARY',
  says: /comes before any dictionary page/,
});
test('a dictionary page between plain pages and the pages that need it is in time', () => {
  assertDecodes(environments.wasm, numbers({ rows: 40 }, DICTIONARY, INDEXED));
});
refuses('a second dictionary page', {
  plan: numbers(DICTIONARY, { ...INDEXED, rows: 50 }, DICTIONARY, INDEXED),
  code: 'DICTIONARY',
  says: /the chunk has a second dictionary page/,
  page: 2,
});
refuses('a dictionary page of more entries than its bytes can hold', {
  plan: numbers({ ...DICTIONARY, ...entries(11) }, INDEXED),
  code: 'DICTIONARY',
  says: /11 entries do not fit in a dictionary page of 80 bytes/,
});
refuses('a dictionary page of 2^31 - 1 strings', {
  plan: strings({ ...DICTIONARY, ...entries(2 ** 31 - 1) }, INDEXED),
  code: 'DICTIONARY',
  says: /2147483647 entries do not fit/,
});
refuses('a dictionary page of -1 entries', {
  plan: numbers({ ...DICTIONARY, ...entries(-1) }, INDEXED),
  code: 'PAGE_HEADER',
  says: /the page says it has -1 values/,
});
refuses('a dictionary page of fewer entries than indices need', {
  plan: numbers({ ...DICTIONARY, ...entries(9) }, INDEXED),
  code: 'DICTIONARY',
  says: /dictionary-encoded page has an index outside its dictionary/,
  page: 1,
});
refuses('an empty dictionary page', {
  plan: strings({ ...DICTIONARY, ...entries(0), values: () => NEVER }, INDEXED),
  code: 'DICTIONARY',
  says: /index outside its dictionary/,
  page: 1,
});
refuses('an empty dictionary page and indices of no bits', {
  plan: numbers({ ...DICTIONARY, ...entries(0), values: () => NEVER }, { ...INDEXED, indexWidth: 0 }),
  code: 'DICTIONARY',
  says: /index outside its dictionary/,
  page: 1,
});
test('an empty dictionary page where every value is null', () => {
  const plan = { column: OPTIONAL, values: NUMBERS.map(() => null), pages: [DICTIONARY, INDEXED] };
  assertDecodes(environments.wasm, plan);
  for (const bytesOutput of ['values', 'dictionary'] as const) {
    assertDecodes(environments.wasm, { ...plan, column: { ...STRING, optional: true } }, { bytesOutput });
  }
});
for (const encoding of [Encoding.RLE_DICTIONARY, Encoding.DELTA_BINARY_PACKED]) {
  refuses(`a dictionary page in encoding ${encoding}`, {
    plan: numbers({ ...DICTIONARY, encoding }, INDEXED),
    code: 'DICTIONARY',
    says: /dictionary page with encoding \w+ \(expected PLAIN or PLAIN_DICTIONARY\)/,
  });
}
refuses('a dictionary page of booleans', {
  plan: bits(DICTIONARY, {}),
  code: 'DICTIONARY',
  says: /booleans can not have a dictionary/,
});
refuses('a dictionary string whose length passes the end of the page', {
  plan: strings({ ...DICTIONARY, values: (bytes) => join([u32(bytes.length), bytes.subarray(4)]) }, INDEXED),
  code: 'DICTIONARY',
  says: /dictionary page ends inside a value/,
});
refuses('dictionary strings that end too early', {
  plan: strings({ ...DICTIONARY, values: cutBy(1) }, INDEXED),
  code: 'DICTIONARY',
  says: /dictionary page ends inside a value/,
});
refuses('a dictionary string that is not UTF-8', {
  plan: { ...strings(DICTIONARY, INDEXED), values: NUMBERS.map((value) => Uint8Array.of(97, 0xc0 + Number(value))) },
  spec: { utf8: true },
  code: 'VALUE',
  says: /string column has a value that is not UTF-8/,
});

// ---- indices
const indices = (make: () => Uint8Array) => numbers(DICTIONARY, { rows: 50, ...INDEXED }, { ...INDEXED, values: make });
refuses('an RLE index outside the dictionary', {
  plan: indices(() => join([Uint8Array.of(4), rleRun(9, 49, 4), rleRun(10, 1, 4)])),
  code: 'DICTIONARY',
  says: /index outside its dictionary/,
  page: 2,
});
refuses('a packed index outside the dictionary', {
  plan: indices(() => join([Uint8Array.of(4), packedRun([...new Uint8Array(49), 15], 0, 50, 4)])),
  code: 'DICTIONARY',
  says: /index outside its dictionary/,
  page: 2,
});
refuses('an index of 32 bits', {
  plan: indices(() => join([Uint8Array.of(32), rleRun(2 ** 32 - 1, 50, 32)])),
  code: 'DICTIONARY',
  says: /index outside its dictionary/,
  page: 2,
});
for (const width of [33, 64, 255]) {
  refuses(`indices of ${width} bits`, {
    plan: indices(() => join([Uint8Array.of(width), new Uint8Array(500)])),
    code: 'DICTIONARY',
    says: /bit width that its type does not allow/,
    page: 2,
  });
}
refuses('a page of indices without a bit width', {
  plan: indices(() => NEVER),
  code: 'PAGE',
  says: /dictionary indices have no bit width/,
  page: 2,
});
refuses('runs of indices that end too early', {
  plan: indices(() => join([Uint8Array.of(4), rleRun(1, 49, 4)])),
  code: 'DICTIONARY',
  says: /dictionary-encoded page ends inside a value/,
  page: 2,
});
refuses('a packed run of indices that passes the end of the page', {
  plan: indices(() => join([Uint8Array.of(4), varint(1001), new Uint8Array(20)])),
  code: 'DICTIONARY',
  says: /dictionary-encoded page ends inside a value/,
  page: 2,
});
refuses('an RLE run of indices whose value is cut', {
  plan: indices(() => Uint8Array.of(17, 100, 0, 0)),
  code: 'DICTIONARY',
  says: /dictionary-encoded page ends inside a value/,
  page: 2,
});
refuses('an index outside the dictionary for values without a gathering kernel', {
  plan: {
    column: { name: 'wide', physical: Physical.FIXED_LEN_BYTE_ARRAY, typeLength: 5 },
    values: NUMBERS.map((value) => Uint8Array.of(1, 2, 3, 4, Number(value))),
    pages: [DICTIONARY, { ...INDEXED, values: () => join([Uint8Array.of(4), rleRun(12, 100, 4)]) }],
  },
  code: 'DICTIONARY',
  says: /index outside its dictionary/,
  page: 1,
});

// ---- PLAIN values
for (const [what, length] of [
  ['past the end of the page', 20],
  ['of 2 GiB', 2 ** 31],
  ['of 4 GiB', 2 ** 32 - 1],
] as const) {
  refuses(`a string with a length ${what}`, {
    plan: strings({ rows: 99 }, { values: (bytes) => join([u32(length), bytes.subarray(4)]) }),
    code: 'PAGE',
    says: /PLAIN byte arrays ends inside a value/,
    page: 1,
  });
}
for (const by of [1, 8, 9, 11]) {
  refuses(`strings that end ${by} bytes too early`, {
    plan: { ...strings({ values: cutBy(by) }), codec: Codec.ZSTD },
    code: 'PAGE',
    says: /PLAIN byte arrays ends inside a value/,
  });
}
refuses('numbers that end too early', {
  plan: numbers({ values: cutBy(1) }),
  code: 'PAGE',
  says: /PLAIN values end before the page has all of its values/,
});
refuses('booleans that end too early', {
  plan: bits({ values: cutBy(1) }),
  code: 'PAGE',
  says: /PLAIN booleans end before the page has all of its values/,
});

// ---- RLE booleans
const runs = (values: () => Uint8Array) => bits({ encoding: Encoding.RLE, values });
refuses('RLE booleans without a length', {
  plan: runs(() => new Uint8Array(3)),
  code: 'PAGE',
  says: /RLE booleans have no length/,
});
refuses('RLE booleans longer than their page', {
  plan: runs(() => join([u32(5), rleRun(1, 100, 1)])),
  code: 'PAGE',
  says: /RLE booleans are longer than their page/,
});
refuses('RLE booleans that end too early', {
  plan: runs(() => join([u32(2), rleRun(1, 50, 1), rleRun(0, 50, 1)])),
  code: 'PAGE',
  says: /RLE booleans ends inside a value/,
});
refuses('an RLE boolean of 2', {
  plan: runs(() => join([u32(3), rleRun(2, 100, 1)])),
  code: 'PAGE',
  says: /RLE booleans has a level or boolean over its maximum/,
});

// ---- UTF-8
const utf8 = (...last: Uint8Array[]) => ({
  column: STRING,
  values: [...STRINGS.slice(0, 70), ...last, 'the end'],
  pages: [{ rows: 60 }, {}],
});
for (const [what, ...last] of [
  ['a byte that is none', Uint8Array.of(0xff)],
  ['a lone continuation', Uint8Array.of(97, 0x80)],
  ['an over-long form', Uint8Array.of(0xc1, 0x81)],
  ['a surrogate', Uint8Array.of(0xed, 0xa0, 0x80)],
  ['beyond U+10FFFF', Uint8Array.of(0xf4, 0x90, 0x80, 0x80)],
  ['a value cut inside a character whose rest is the next value', Uint8Array.of(97, 0xc3), Uint8Array.of(0xa9, 98)],
  ['a four-byte character over two values', Uint8Array.of(0xf0, 0x9f), Uint8Array.of(0x98, 0x80)],
] as const) {
  refuses(`not UTF-8: ${what}`, {
    plan: utf8(...last),
    spec: { utf8: true },
    code: 'VALUE',
    says: /string column has a value that is not UTF-8/,
    page: 1,
  });
  refuses(`not UTF-8 in a dictionary: ${what}`, {
    plan: { ...utf8(...last), pages: [DICTIONARY, INDEXED] },
    spec: { utf8: true },
    code: 'VALUE',
    says: /string column has a value that is not UTF-8/,
  });
}
test('bytes that are not UTF-8 are right values of a binary column', () => {
  const { segments } = assertDecodes(environments.wasm, utf8(Uint8Array.of(0xff), Uint8Array.of(0xc3)));
  assert.equal(segments.length, 1);
});
