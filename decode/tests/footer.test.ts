import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parquetWriteBuffer } from 'hyparquet-writer';
import type { DecodeErrorCode } from '../errors.ts';
import { DecodeError } from '../errors.ts';
import type { FileMetadata } from '../format/metadata.ts';
import { parseFooter, parseTail } from '../format/parse-footer.ts';
import { assertSameAsTwin, fileAround, footerBytes, plainFooter } from './footer-model.ts';
import { seededRandom } from './random.ts';
import type { Tree } from './thrift-twin.ts';

/** The metadata of a file of 1,000 bytes of data and this footer, checked against the twin. */
function parse(footer: Tree): FileMetadata {
  const bytes = footerBytes(footer);
  const metadata = parseFooter(bytes, 4 + 1000 + bytes.length + 8);
  assertSameAsTwin(metadata, bytes);
  return metadata;
}

function refuses(act: () => unknown, code: DecodeErrorCode, reason: RegExp): void {
  assert.throws(act, (error) => error instanceof DecodeError && error.code === code && reason.test(error.message));
}

/** A footer of one column whose chunk is changed. */
function withChunk(meta: Tree, chunk: Tree = {}): Tree {
  const footer = plainFooter(1, 1);
  const group = (footer.row_groups as Tree[])[0]!;
  const plain = (group.columns as Tree[])[0]!;
  group.columns = [{ ...plain, ...chunk, meta_data: { ...(plain.meta_data as Tree), ...meta } }];
  return footer;
}

test('the tail says where the footer is', () => {
  const file = fileAround(footerBytes(plainFooter(2, 1)), 1000);
  const footerLength = file.length - 1012;
  assert.deepEqual(parseTail(file, file.length), { footerStart: 1004, footerLength });
  assert.deepEqual(parseTail(file.subarray(-8), file.length), { footerStart: 1004, footerLength });
  assert.deepEqual(parseTail(file.subarray(-100), file.length), { footerStart: 1004, footerLength });
});

test('tails that are not those of a Parquet file', () => {
  const file = fileAround(footerBytes(plainFooter(2, 1)), 1000);
  const changed = (at: number, ...bytes: number[]) => {
    const copy = Uint8Array.from(file);
    copy.set(bytes, at < 0 ? copy.length + at : at);
    return copy;
  };
  const tail = (bytes: Uint8Array) => () => parseTail(bytes, bytes.length);
  refuses(tail(new Uint8Array(0)), 'MAGIC', /0 bytes/);
  refuses(tail(Buffer.from('PAR1PAR1')), 'MAGIC', /8 bytes \(expected at least 12/);
  refuses(tail(changed(-1, 0x32)), 'MAGIC', /ends with "PAR2"/);
  refuses(tail(changed(-1, 0x45)), 'ENCRYPTED', /encrypted/);
  refuses(tail(changed(0, 0x51)), 'MAGIC', /offset 0: the file begins with "QAR1"/);
  refuses(tail(changed(-8, 0, 0, 0, 0)), 'FOOTER', /length is 0 /);
  refuses(tail(changed(-8, 0xff, 0xff, 0xff, 0xff)), 'FOOTER', /length is 4294967295/);
  refuses(tail(changed(-8, 0x00, 0x00, 0x00, 0x80)), 'FOOTER', /length is 2147483648/);
  refuses(() => parseTail(changed(-8, 0, 0, 0, 0x7f).subarray(-8), 2 ** 40), 'LIMIT', /footer has 2130706432 bytes/);
});

test('a footer is plain data', () => {
  const footer = plainFooter(2, 2, 5);
  footer.key_value_metadata = [{ key: 'a', value: 'b' }, { key: 'only a key' }];
  const metadata = parse(footer);
  assert.equal(metadata.numRows, 10);
  assert.deepEqual(metadata.keyValues, [
    ['a', 'b'],
    ['only a key', undefined],
  ]);
  assert.deepEqual(metadata.rowGroups[1], {
    ordinal: 1,
    numRows: 5,
    firstRow: 5,
    totalByteSize: 80,
    totalCompressedSize: 40,
    columns: [
      {
        column: 0,
        type: 2,
        codec: 1,
        encodings: [0, 3],
        numValues: 5,
        totalCompressedSize: 20,
        totalUncompressedSize: 80,
        bytes: { start: 44, end: 64 },
        dataPageOffset: 44,
      },
      {
        column: 1,
        type: 2,
        codec: 1,
        encodings: [0, 3],
        numValues: 5,
        totalCompressedSize: 20,
        totalUncompressedSize: 80,
        bytes: { start: 64, end: 84 },
        dataPageOffset: 64,
      },
    ],
  });
  assert.deepEqual(metadata, structuredClone(metadata));
});

test('chunks that are not valid are marked, the others read', () => {
  const broken = (meta: Tree, chunk: Tree, reason: RegExp) => {
    const footer = plainFooter(2, 1);
    const columns = (footer.row_groups as Tree[])[0]!.columns as Tree[];
    columns[1] = { ...columns[1]!, ...chunk, meta_data: { ...(columns[1]!.meta_data as Tree), ...meta } };
    const [good, bad] = parse(footer).rowGroups[0]!.columns;
    assert.equal(good!.broken, undefined);
    assert.match(bad!.broken ?? 'not broken', reason);
    assert.deepEqual(bad!.bytes, { start: 0, end: 0 });
  };
  broken({ data_page_offset: 0n }, {}, /not between the leading magic and the footer at 1004/);
  broken({ data_page_offset: -4n }, {}, /bytes -4 to 16/);
  broken({ data_page_offset: 985n }, {}, /bytes 985 to 1005/);
  broken({ data_page_offset: 2n ** 62n }, {}, /not between/);
  broken({ total_compressed_size: 2n ** 63n - 1n }, {}, /says it has \d+ bytes/);
  broken({ total_compressed_size: -1n }, {}, /says it has -1 bytes/);
  broken({ total_uncompressed_size: -1n }, {}, /-1 bytes uncompressed/);
  broken({ num_values: -1n }, {}, /-1 values/);
  broken({ num_values: 11n }, {}, /11 values for 10 rows/);
  broken({ num_values: 0n }, {}, /0 values for 10 rows/);
  broken({ path_in_schema: ['c0'] }, {}, /another column/);
  broken({ path_in_schema: ['c1', 'c'] }, {}, /another column/);
  broken({ path_in_schema: [] }, {}, /another column/);
  broken({ type: 1 }, {}, /type is INT32, the schema's INT64/);
  broken({}, { file_path: 'other.parquet' }, /another file/);
  broken({}, { crypto_metadata: {} }, /encrypted/);
});

test('where a chunk begins', () => {
  const bytes = (meta: Tree) => parse(withChunk(meta)).rowGroups[0]!.columns[0]!;
  assert.deepEqual(bytes({ data_page_offset: 40n, dictionary_page_offset: 10n }).bytes, { start: 10, end: 30 });
  // Missing, zero and impossible dictionary offsets: what is there begins at the data page offset.
  for (const dictionary of [0n, -1n, 3n, 40n, 41n, 2n ** 60n]) {
    const chunk = bytes({ data_page_offset: 40n, dictionary_page_offset: dictionary });
    assert.deepEqual(chunk.bytes, { start: 40, end: 60 });
    assert.equal(chunk.dictionaryPageOffset, undefined);
  }
});

test('old parquet-mr left the dictionary header out of the size', () => {
  const end = (createdBy: string, size = 20n) => {
    const footer = withChunk({ data_page_offset: 40n, dictionary_page_offset: 10n, total_compressed_size: size });
    return parse({ ...footer, created_by: createdBy }).rowGroups[0]!.columns[0]!.bytes.end;
  };
  assert.equal(end('parquet-mr version 1.2.8 (build 1)'), 130);
  assert.equal(end('parquet-mr'), 130);
  assert.equal(end('parquet-mr version 1.2.8', 950n), 1004);
  assert.equal(end('parquet-mr version 1.2.9'), 30);
  assert.equal(end('parquet-mr version 1.10.0'), 30);
  assert.equal(end('parquet-cpp version 1.0.0'), 30);
});

test('hints of impossible shape are left out', () => {
  const chunk = parse(
    withChunk(
      { bloom_filter_offset: 2000n, statistics: { null_count: -1n, min_value: new Uint8Array([1]) } },
      { offset_index_offset: 990n, offset_index_length: 20, column_index_offset: 10n, column_index_length: -1 },
    ),
  ).rowGroups[0]!.columns[0]!;
  assert.equal(chunk.broken, undefined);
  assert.deepEqual(chunk.statistics, { min: new Uint8Array([1]) });
  assert.equal(chunk.offsetIndex, undefined);
  assert.equal(chunk.columnIndex, undefined);
  assert.equal(chunk.bloomFilter, undefined);
  const good = parse(
    withChunk(
      { bloom_filter_offset: 200n, bloom_filter_length: 32 },
      { offset_index_offset: 990n, offset_index_length: 14, column_index_offset: 10n, column_index_length: 5 },
    ),
  ).rowGroups[0]!.columns[0]!;
  assert.deepEqual(good.offsetIndex, { start: 990, end: 1004 });
  assert.deepEqual(good.columnIndex, { start: 10, end: 15 });
  assert.deepEqual(good.bloomFilter, { offset: 200, length: 32 });
});

test('footers that contradict themselves are refused', () => {
  const group = (change: Tree) => {
    const footer = plainFooter(2, 1);
    footer.row_groups = [{ ...(footer.row_groups as Tree[])[0]!, ...change }];
    return () => parse(footer);
  };
  refuses(group({ columns: [] }), 'METADATA', /row group 0: the row group lists 0 column chunks \(expected 2/);
  refuses(group({ num_rows: -1n }), 'METADATA', /-1 rows/);
  refuses(group({ num_rows: 2n ** 60n }), 'METADATA', /rows/);
  const footer = plainFooter(1, 1);
  refuses(() => parse({ ...footer, num_rows: -1n }), 'METADATA', /-1 rows/);
  const { schema: _, ...noSchema } = footer;
  refuses(() => parse(noSchema), 'FOOTER', /no schema/);
  refuses(() => parse({ ...footer, schema: [] }), 'SCHEMA', /empty/);
});

test('lists that would take far more memory than bytes are refused by their length', () => {
  const many = (count: number): Tree[] => new Array<Tree>(count).fill({});
  const footer = plainFooter(1, 0);
  refuses(() => parse({ ...plainFooter(100, 0), row_groups: many(21_000) }), 'LIMIT', /2100000 column chunks/);
  refuses(() => parse({ ...footer, row_groups: many(200_000) }), 'LIMIT', /200000 row groups/);
  refuses(() => parse({ ...footer, key_value_metadata: many(70_000) }), 'LIMIT', /70000 key-value pairs/);
  const encodings = footerBytes(withChunk({ encodings: new Array<number>(2000).fill(0) }));
  const chunk = parseFooter(encodings, 4 + 1000 + encodings.length + 8).rowGroups[0]!.columns[0]!;
  assert.match(chunk.broken!, /2000 encodings at offset \d+$/);
});

test('a footer of another writer reads as the twin reads it', () => {
  const file = new Uint8Array(
    parquetWriteBuffer({
      columnData: [
        { name: 'int', data: [1, 2, 3, null, 5, 6], type: 'INT32' },
        { name: 'text', data: ['a', 'b', null, 'd', 'a', 'ü'], type: 'STRING' },
        { name: 'double', data: [0.5, -1, 2, 3, 4, 5], type: 'DOUBLE' },
        { name: 'time', data: Array.from({ length: 6 }, (_, i) => new Date(i * 1e9)), type: 'TIMESTAMP' },
      ],
      rowGroupSize: 4,
      kvMetadata: [{ key: 'k', value: 'v' }],
    }),
  );
  const { footerStart, footerLength } = parseTail(file, file.length);
  const footer = file.subarray(footerStart, footerStart + footerLength);
  const metadata = parseFooter(footer, file.length);
  assertSameAsTwin(metadata, footer);
  assert.equal(metadata.numRows, 6);
  assert.deepEqual(
    metadata.rowGroups.map((group) => group.columns.map((chunk) => chunk.broken)),
    [new Array(4).fill(undefined), new Array(4).fill(undefined)],
  );
});

test('the row groups have the last word on the number of rows', () => {
  assert.equal(parse({ ...plainFooter(1, 3, 7), num_rows: 0n }).numRows, 21);
  assert.equal(parse(plainFooter(1, 0)).numRows, 0);
  refuses(() => parse({ ...plainFooter(1, 0), num_rows: 5n }), 'METADATA', /5 rows and has no row group/);
});

test('a footer without its required fields is damaged, not empty', () => {
  for (const [field, what] of [
    ['num_rows', /has no number of rows/],
    ['row_groups', /has no list of row groups/],
    ['schema', /has no schema/],
  ] as const) {
    for (const groups of [0, 2]) {
      const footer = plainFooter(1, groups);
      delete footer[field];
      refuses(() => parse(footer), 'FOOTER', what);
    }
  }
  refuses(() => parse({}), 'FOOTER', /has no schema/);
  // an empty list is a list
  const empty = parse(plainFooter(2, 0));
  assert.deepEqual([empty.numRows, empty.rowGroups.length, empty.leaves.length], [0, 0, 2]);
  refuses(() => parse({ ...plainFooter(1, 1), num_rows: -1n }), 'METADATA', /says it has -1 rows/);
});

test('every way to cut or flip a footer gives metadata or a typed error', () => {
  const random = seededRandom();
  const footer = plainFooter(3, 2);
  footer.key_value_metadata = [{ key: 'k', value: 'v'.repeat(30) }];
  const bytes = footerBytes(footer);
  const survives = (changed: Uint8Array) => {
    try {
      parseFooter(changed, 4 + 1000 + changed.length + 8);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
    }
  };
  for (let length = 0; length < bytes.length; length++) {
    const cut = bytes.subarray(0, length);
    refuses(() => parseFooter(cut, 4 + 1000 + length + 8), 'THRIFT', /offset/);
  }
  for (let round = 0; round < 5000; round++) {
    const changed = Uint8Array.from(bytes);
    for (let flips = 1 + random.below(4); flips > 0; flips--) changed[random.below(changed.length)] = random.below(256);
    survives(changed);
  }
  for (let round = 0; round < 1000; round++)
    survives(Uint8Array.from({ length: random.below(200) }, () => random.below(256)));
});
