import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DecodeError } from '../errors.ts';
import { PageType } from '../format/enums.ts';
import { parsePageHeader } from '../format/page-header.ts';
import { PAGE_HEADER } from './parquet-tables.ts';
import type { Tree } from './thrift-twin.ts';
import { writeStruct } from './thrift-twin.ts';

const V1 = {
  type: PageType.DATA_PAGE,
  uncompressed_page_size: 1000,
  compressed_page_size: 500,
  crc: -2,
  data_page_header: { num_values: 77, encoding: 8, definition_level_encoding: 3, repetition_level_encoding: 4 },
};
const V2 = {
  type: PageType.DATA_PAGE_V2,
  uncompressed_page_size: 1000,
  compressed_page_size: 500,
  data_page_header_v2: {
    num_values: 77,
    num_nulls: 7,
    num_rows: 70,
    encoding: 5,
    definition_levels_byte_length: 10,
    repetition_levels_byte_length: 20,
    is_compressed: false,
  },
};
const DICTIONARY = {
  type: PageType.DICTIONARY_PAGE,
  uncompressed_page_size: 90,
  compressed_page_size: 80,
  dictionary_page_header: { num_values: 9, encoding: 2, is_sorted: true },
};
const ABSENT = {
  crc: undefined,
  definitionEncoding: -1,
  repetitionEncoding: -1,
  numNulls: 0,
  numRows: 0,
  definitionBytes: 0,
  repetitionBytes: 0,
  isCompressed: true,
  isSorted: false,
};

/** The header parsed from the middle of a buffer, as in the pool. */
function parse(tree: Tree, cutBytes = 0): ReturnType<typeof parsePageHeader> {
  const header = writeStruct(PAGE_HEADER, tree);
  const bytes = new Uint8Array(header.length + 200).fill(0xff);
  bytes.set(header, 100);
  return parsePageHeader(bytes, 100, cutBytes === 0 ? bytes.length : 100 + header.length - cutBytes);
}

test('the four kinds of pages', () => {
  const bytes = (tree: Tree) => writeStruct(PAGE_HEADER, tree).length;
  assert.deepEqual(parse(V1), {
    ...ABSENT,
    type: 0,
    headerBytes: bytes(V1),
    compressedSize: 500,
    uncompressedSize: 1000,
    crc: 0xffff_fffe,
    numValues: 77,
    encoding: 8,
    definitionEncoding: 3,
    repetitionEncoding: 4,
  });
  assert.deepEqual(parse(V2), {
    ...ABSENT,
    type: 3,
    headerBytes: bytes(V2),
    compressedSize: 500,
    uncompressedSize: 1000,
    numValues: 77,
    encoding: 5,
    numNulls: 7,
    numRows: 70,
    definitionBytes: 10,
    repetitionBytes: 20,
    isCompressed: false,
  });
  assert.deepEqual(parse(DICTIONARY), {
    ...ABSENT,
    type: 2,
    headerBytes: bytes(DICTIONARY),
    compressedSize: 80,
    uncompressedSize: 90,
    numValues: 9,
    encoding: 2,
    isSorted: true,
  });
  const index = {
    type: PageType.INDEX_PAGE,
    uncompressed_page_size: 1,
    compressed_page_size: 1,
    index_page_header: {},
  };
  assert.deepEqual(parse(index), {
    ...ABSENT,
    type: 1,
    headerBytes: bytes(index),
    compressedSize: 1,
    uncompressedSize: 1,
    numValues: 0,
    encoding: -1,
  });
});

test('is_compressed is true when a V2 page does not say', () => {
  const { is_compressed: _, ...rest } = V2.data_page_header_v2;
  assert.equal(parse({ ...V2, data_page_header_v2: rest })?.isCompressed, true);
});

test('statistics are read past', () => {
  const statistics = { max: new Uint8Array(5000), min: new Uint8Array(3), null_count: 3n, is_max_value_exact: false };
  const page = parse({ ...V1, data_page_header: { ...V1.data_page_header, statistics } });
  assert.equal(page?.numValues, 77);
  assert.ok(page.headerBytes > 5000);
});

test('a header cut anywhere is undefined, never an error', () => {
  const statistics = { max: new Uint8Array(50).fill(0x19), null_count: 3n };
  for (const tree of [V1, V2, DICTIONARY, { ...V1, data_page_header: { ...V1.data_page_header, statistics } }]) {
    const length = writeStruct(PAGE_HEADER, tree).length;
    for (let cut = 1; cut <= length; cut++) assert.equal(parse(tree, cut), undefined, `cut by ${cut}`);
    assert.notEqual(parse(tree), undefined);
  }
});

function refuses(tree: Tree, reason: RegExp): void {
  assert.throws(
    () => parse(tree),
    (error) => error instanceof DecodeError && error.code === 'PAGE_HEADER' && reason.test(error.message),
  );
}

test('nonsense is refused', () => {
  refuses({ ...V1, type: 25 }, /page type 25 does not exist/);
  refuses({ ...V1, compressed_page_size: -1 }, /sizes are -1 compressed/);
  refuses({ ...V1, uncompressed_page_size: -1 }, /-1 uncompressed/);
  refuses({ ...V1, data_page_header: { num_values: -1 } }, /-1 values/);
  refuses({ ...V1, data_page_header: {} }, /-1 values/);
  refuses({ type: 0, uncompressed_page_size: 1, compressed_page_size: 1 }, /DATA_PAGE without its header/);
  refuses({ ...V1, type: 2 }, /DICTIONARY_PAGE without its header/);
  refuses({ ...DICTIONARY, dictionary_page_header: { num_values: -5, encoding: 0 } }, /-5 values/);
  const v2 = (change: Tree) => ({ ...V2, data_page_header_v2: { ...V2.data_page_header_v2, ...change } });
  refuses(v2({ num_nulls: 78 }), /78 nulls/);
  refuses(v2({ num_nulls: -1 }), /-1 nulls/);
  refuses(v2({ num_rows: 78 }), /78 rows/);
  refuses(v2({ definition_levels_byte_length: -1 }), /levels take 20 and -1/);
  refuses(v2({ definition_levels_byte_length: 481 }), /levels take 20 and 481/);
  refuses(v2({ repetition_levels_byte_length: 2147483647 }), /levels take 2147483647/);
});

test('an endless header is refused, not asked more of for ever', () => {
  // Unknown boolean fields, a byte each: more fields than a header may have.
  const fields = new Uint8Array(10_000).fill(0x91);
  assert.throws(() => parsePageHeader(fields, 0, fields.length), /too many fields/);
  // Unknown binary fields of 8,000 bytes each: more bytes than a header may have.
  const bytes = new Uint8Array(17 * 1024 * 1024);
  for (let at = 0; at + 8003 < bytes.length; at += 8003) bytes.set([0x98, 0xc0, 0x3e], at);
  assert.throws(() => parsePageHeader(bytes, 0, bytes.length), /PAGE_HEADER: the page header does not end/);
  assert.equal(parsePageHeader(bytes, 0, 1_000_000), undefined);
});
