/**
 * What a footer's metadata must be by the twin's reading of the same bytes, and footers made by random for tests.
 */
import assert from 'node:assert/strict';
import type { FileMetadata, LogicalType, SchemaElement, Statistics } from '../format/metadata.ts';
import { FILE_META_DATA } from './parquet-tables.ts';
import type { Tree, Value } from './thrift-twin.ts';
import { readStruct, writeStruct } from './thrift-twin.ts';

/** Fails unless `metadata` says what the twin reads in the footer's bytes. */
export function assertSameAsTwin(metadata: FileMetadata, footer: Uint8Array): void {
  const twin = readStruct(FILE_META_DATA, footer);
  assert.equal(metadata.version, twin.version ?? 0);
  assert.equal(metadata.createdBy, twin.created_by);
  assert.deepEqual(
    metadata.keyValues.map(([key, value]) => ({ key, value })),
    trees(twin.key_value_metadata).map(({ key, value }) => ({ key, value })),
  );
  assert.deepEqual(metadata.schema.map(plainElement), trees(twin.schema).map(twinElement));
  const groups = trees(twin.row_groups);
  assert.equal(metadata.rowGroups.length, groups.length);
  for (const [i, group] of metadata.rowGroups.entries()) {
    const other = groups[i]!;
    assert.equal(BigInt(group.numRows), other.num_rows);
    const chunks = trees(other.columns);
    assert.equal(group.columns.length, chunks.length);
    for (const [j, chunk] of group.columns.entries()) {
      const file = chunks[j]!;
      const meta = tree(file.meta_data ?? {});
      const what = `row group ${i}, column ${j}`;
      assert.equal(chunk.column, j);
      assert.equal(chunk.type, meta.type ?? -1, what);
      assert.equal(chunk.codec, meta.codec ?? -1, what);
      assert.deepEqual(chunk.encodings, meta.encodings ?? [], what);
      assert.equal(BigInt(chunk.numValues), count(meta.num_values), what);
      assert.equal(BigInt(chunk.totalCompressedSize), count(meta.total_compressed_size), what);
      assert.equal(BigInt(chunk.totalUncompressedSize), count(meta.total_uncompressed_size), what);
      assert.equal(BigInt(chunk.dataPageOffset), count(meta.data_page_offset), what);
      const statistics = meta.statistics;
      assert.equal(chunk.statistics === undefined, statistics === undefined, what);
      if (chunk.statistics && statistics) assertStatistics(chunk.statistics, tree(statistics), what);
      if (chunk.offsetIndex) {
        assert.equal(BigInt(chunk.offsetIndex.start), file.offset_index_offset, what);
        assert.equal(chunk.offsetIndex.end - chunk.offsetIndex.start, file.offset_index_length, what);
      }
      if (chunk.columnIndex) {
        assert.equal(BigInt(chunk.columnIndex.start), file.column_index_offset, what);
        assert.equal(chunk.columnIndex.end - chunk.columnIndex.start, file.column_index_length, what);
      }
      if (chunk.bloomFilter) {
        assert.equal(BigInt(chunk.bloomFilter.offset), meta.bloom_filter_offset, what);
        assert.equal(chunk.bloomFilter.length, meta.bloom_filter_length, what);
      }
      if (chunk.broken === undefined && chunk.numValues > 0) {
        const dictionary = count(meta.dictionary_page_offset);
        const data = count(meta.data_page_offset);
        assert.equal(BigInt(chunk.bytes.start), dictionary >= 4n && dictionary < data ? dictionary : data, what);
      }
    }
  }
}

/** An element as parquet.thrift writes it. */
export function elementTree(element: SchemaElement): Tree {
  const { typeLength, repetition, numChildren, convertedType, fieldId, logicalType, ...same } = element;
  const renamed = {
    type_length: typeLength,
    repetition_type: repetition,
    num_children: numChildren,
    converted_type: convertedType,
    field_id: fieldId,
    logicalType: logicalType === undefined ? undefined : logicalTree(logicalType),
  };
  const given = Object.entries({ ...same, ...renamed }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as Tree;
}

function logicalTree(logical: LogicalType): Tree {
  switch (logical.kind) {
    case 'UNKNOWN':
      return { FROM_THE_FUTURE: {} };
    case 'NULL':
      return { UNKNOWN: {} };
    case 'TIME':
    case 'TIMESTAMP':
      return { [logical.kind]: { isAdjustedToUTC: logical.utc, unit: { [logical.unit.toUpperCase()]: {} } } };
    case 'INTEGER':
      return { INTEGER: { bitWidth: logical.bitWidth, isSigned: logical.signed } };
    case 'DECIMAL':
      return { DECIMAL: { precision: logical.precision, scale: logical.scale } };
    default:
      return { [logical.kind]: {} };
  }
}

/** The chunk of a column in a row group without rows. */
export function emptyChunk(name: string, type: number): Tree {
  const sizes = { num_values: 0n, total_uncompressed_size: 0n, total_compressed_size: 0n, data_page_offset: 4n };
  return { file_offset: 0n, meta_data: { type, encodings: [0], path_in_schema: [name], codec: 0, ...sizes } };
}

function plainElement(element: SchemaElement): Tree {
  const plain: Tree = { name: element.name };
  for (const key of ['type', 'typeLength', 'repetition', 'numChildren', 'convertedType', 'scale'] as const) {
    const value = element[key];
    if (value !== undefined) plain[key] = value;
  }
  if (element.precision !== undefined) plain.precision = element.precision;
  if (element.fieldId !== undefined) plain.fieldId = element.fieldId;
  const logical = element.logicalType;
  if (logical !== undefined && logical.kind !== 'UNKNOWN') {
    const { kind, ...parameters } = logical;
    plain.logical = { kind, ...parameters } as Tree;
  }
  return plain;
}

function twinElement(element: Tree): Tree {
  const plain: Tree = {};
  const names = {
    name: 'name',
    type: 'type',
    type_length: 'typeLength',
    repetition_type: 'repetition',
    num_children: 'numChildren',
    converted_type: 'convertedType',
    scale: 'scale',
    precision: 'precision',
    field_id: 'fieldId',
  };
  for (const [from, to] of Object.entries(names)) {
    const value = element[from];
    if (value !== undefined) plain[to] = value;
  }
  const logical = element.logicalType === undefined ? [] : Object.entries(tree(element.logicalType));
  const [kind, value] = logical.at(-1) ?? [];
  if (kind !== undefined && kind !== 'FROM_THE_FUTURE') plain.logical = twinLogical(kind, tree(value!));
  return plain;
}

function twinLogical(kind: string, value: Tree): Tree {
  if (kind === 'UNKNOWN') return { kind: 'NULL' };
  if (kind === 'DECIMAL') return { kind, precision: value.precision ?? 0, scale: value.scale ?? 0 };
  if (kind === 'INTEGER') return { kind, bitWidth: value.bitWidth ?? 0, signed: value.isSigned ?? false };
  if (kind !== 'TIME' && kind !== 'TIMESTAMP') return { kind };
  return { kind, unit: Object.keys(tree(value.unit!))[0]!.toLowerCase(), utc: value.isAdjustedToUTC ?? false };
}

function assertStatistics(statistics: Statistics, twin: Tree, what: string): void {
  assert.deepEqual(statistics.min && Uint8Array.from(statistics.min), twin.min_value, what);
  assert.deepEqual(statistics.max && Uint8Array.from(statistics.max), twin.max_value, what);
  assert.deepEqual(statistics.deprecatedMin && Uint8Array.from(statistics.deprecatedMin), twin.min, what);
  assert.deepEqual(statistics.deprecatedMax && Uint8Array.from(statistics.deprecatedMax), twin.max, what);
  if (statistics.nullCount !== undefined) assert.equal(BigInt(statistics.nullCount), twin.null_count, what);
  else assert.ok(twin.null_count === undefined || count(twin.null_count) === 0n, what);
}

/** The number, or 0 for what can't be a count or an offset. */
function count(value: Value | undefined): bigint {
  if (typeof value !== 'bigint' || value < 0n || value > BigInt(Number.MAX_SAFE_INTEGER)) return 0n;
  return value;
}

function tree(value: Value): Tree {
  return value as Tree;
}

function trees(value: Value | undefined): Tree[] {
  return (value ?? []) as Tree[];
}

/** A whole file around a footer: leading magic, `dataBytes` zeros, footer, tail. */
export function fileAround(footer: Uint8Array, dataBytes: number, magic = 'PAR1'): Uint8Array {
  const file = Buffer.alloc(4 + dataBytes + footer.length + 8);
  file.write('PAR1', 0, 'latin1');
  file.set(footer, 4 + dataBytes);
  file.writeUInt32LE(footer.length, file.length - 8);
  file.write(magic, file.length - 4, 'latin1');
  return Uint8Array.from(file);
}

/** A footer of `columns` INT64 columns of one kind, for tests to change; its chunks lie in 1,000 bytes of data. */
export function plainFooter(columns: number, rowGroups: number, rows = 10): Tree {
  const schema: Tree[] = [{ name: 'schema', num_children: columns }];
  for (let i = 0; i < columns; i++) schema.push({ type: 2, repetition_type: 0, name: `c${i}` });
  const groups: Tree[] = [];
  for (let g = 0; g < rowGroups; g++) {
    const chunks: Tree[] = [];
    for (let i = 0; i < columns; i++) {
      chunks.push({
        file_offset: 0n,
        meta_data: {
          type: 2,
          encodings: [0, 3],
          path_in_schema: [`c${i}`],
          codec: 1,
          num_values: BigInt(rows),
          total_uncompressed_size: 80n,
          total_compressed_size: 20n,
          data_page_offset: BigInt(4 + ((g * columns + i) % 40) * 20),
        },
      });
    }
    groups.push({ columns: chunks, total_byte_size: 80n, num_rows: BigInt(rows) });
  }
  return { version: 1, schema, num_rows: BigInt(rows * rowGroups), row_groups: groups, created_by: 'test' };
}

export function footerBytes(footer: Tree): Uint8Array {
  return writeStruct(FILE_META_DATA, footer);
}
