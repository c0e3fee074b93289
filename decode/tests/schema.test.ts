import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DecodeErrorCode } from '../errors.ts';
import { DecodeError } from '../errors.ts';
import { Converted, Physical } from '../format/enums.ts';
import type { FileMetadata, LogicalType, SchemaElement } from '../format/metadata.ts';
import { parseFooter } from '../format/parse-footer.ts';
import { assertSameAsTwin, elementTree, emptyChunk, footerBytes } from './footer-model.ts';
import type { Tree } from './thrift-twin.ts';

const { BOOLEAN, INT32, INT64, INT96, DOUBLE, BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY } = Physical;

/** What a file with this list of elements and `rowGroups` has for metadata. */
function fileOf(elements: readonly SchemaElement[], rowGroups: Tree[] = []): FileMetadata {
  const bytes = footerBytes({ version: 1, schema: elements.map(elementTree), num_rows: 0n, row_groups: rowGroups });
  return parseFooter(bytes, bytes.length + 12);
}

function refuses(elements: SchemaElement[], code: DecodeErrorCode, reason: RegExp): void {
  assert.throws(
    () => fileOf(elements),
    (error) => error instanceof DecodeError && error.code === code && reason.test(error.message),
  );
}

test('levels count the optional and repeated fields on the path', () => {
  const { root, leaves } = fileOf([
    { name: 'root', numChildren: 4 },
    { name: 'id', type: INT64, repetition: 0 },
    { name: 'tags', numChildren: 1, repetition: 1, convertedType: Converted.LIST },
    { name: 'list', numChildren: 1, repetition: 2 },
    { name: 'element', type: BYTE_ARRAY, repetition: 1, convertedType: Converted.UTF8 },
    { name: 'point', numChildren: 2, repetition: 1 },
    { name: 'x', type: DOUBLE, repetition: 0 },
    { name: 'y', type: DOUBLE, repetition: 1 },
    { name: 'flags', type: BOOLEAN, repetition: 2 },
  ]);
  assert.deepEqual(
    leaves.map((leaf) => [leaf.name, leaf.maxDefinitionLevel, leaf.maxRepetitionLevel]),
    [
      ['id', 0, 0],
      ['tags.list.element', 3, 1],
      ['point.x', 1, 0],
      ['point.y', 2, 0],
      ['flags', 1, 1],
    ],
  );
  assert.deepEqual(
    root.children.map((node) => [node.name, node.logicalType?.kind, node.leaf?.index]),
    [
      ['id', undefined, 0],
      ['tags', 'LIST', undefined],
      ['point', undefined, undefined],
      ['flags', undefined, 4],
    ],
  );
  assert.deepEqual(root.children[1]!.children[0]!.children[0]!.path, ['tags', 'list', 'element']);
});

test('lists of elements that are no tree', () => {
  const leaf: SchemaElement = { name: 'a', type: INT64, repetition: 0 };
  refuses([], 'SCHEMA', /empty/);
  refuses([{ name: 'root', numChildren: 2 }, leaf], 'SCHEMA', /says it has 2 children/);
  refuses([{ name: 'root', numChildren: -1 }, leaf], 'SCHEMA', /-1 children/);
  refuses([{ name: 'root', numChildren: 1 }, leaf, leaf], 'SCHEMA', /1 schema elements belong to no group/);
  refuses([{ name: 'root' }, leaf], 'SCHEMA', /belong to no group/);
  const group: SchemaElement = { name: 'g', numChildren: 1, repetition: 0 };
  refuses([{ name: 'root', numChildren: 2 }, group, leaf], 'SCHEMA', /ends inside a group/);
  refuses([{ name: 'root', numChildren: 1 }, ...Array(1000).fill(group), leaf], 'LIMIT', /nested too deep/);
});

test('deep and wide at once is bounded by the sum of the paths', () => {
  const name = 'n'.repeat(10_000);
  const elements: SchemaElement[] = [{ name: 'root', numChildren: 1 }];
  for (let depth = 1; depth < 200; depth++) elements.push({ name, numChildren: 1, repetition: 0 });
  elements.push({ name, numChildren: 1000, repetition: 0 });
  for (let i = 0; i < 1000; i++) elements.push({ name: `c${i}`, type: INT64, repetition: 0 });
  refuses(elements, 'LIMIT', /too many long paths/);
});

test('structs without fields are groups, and root may be alone', () => {
  assert.deepEqual(fileOf([{ name: 'root' }]).leaves, []);
  const { root, leaves } = fileOf([
    { name: 'root', numChildren: 2 },
    { name: 'empty', numChildren: 0, repetition: 1 },
    { name: 'a', type: INT64, repetition: 0, numChildren: 0 },
  ]);
  assert.equal(root.children[0]!.leaf, undefined);
  assert.equal(leaves[0]!.name, 'a');
});

function leafOf(element: Omit<SchemaElement, 'name'>): {
  logicalType: LogicalType | undefined;
  broken: string | undefined;
} {
  const { leaves, rowGroups } = fileOf(
    [
      { name: 'root', numChildren: 1 },
      { name: 'a', repetition: 0, ...element },
    ],
    [{ columns: [emptyChunk('a', element.type ?? -1)], total_byte_size: 0n, num_rows: 0n }],
  );
  return { logicalType: leaves[0]!.logicalType, broken: rowGroups[0]!.columns[0]!.broken };
}

test('converted types give logical types', () => {
  const kind = (type: number, convertedType: number, more = {}) => leafOf({ type, convertedType, ...more }).logicalType;
  assert.deepEqual(kind(BYTE_ARRAY, Converted.UTF8), { kind: 'STRING' });
  assert.deepEqual(kind(INT32, Converted.DATE), { kind: 'DATE' });
  assert.deepEqual(kind(INT32, Converted.UINT_8), { kind: 'INTEGER', bitWidth: 8, signed: false });
  assert.deepEqual(kind(INT64, Converted.INT_64), { kind: 'INTEGER', bitWidth: 64, signed: true });
  assert.deepEqual(kind(INT64, Converted.TIMESTAMP_MICROS), { kind: 'TIMESTAMP', unit: 'micros', utc: true });
  assert.deepEqual(kind(INT32, Converted.TIME_MILLIS), { kind: 'TIME', unit: 'millis', utc: true });
  assert.deepEqual(kind(INT64, Converted.DECIMAL, { precision: 9, scale: 2 }), {
    kind: 'DECIMAL',
    precision: 9,
    scale: 2,
  });
  assert.deepEqual(kind(INT64, Converted.DECIMAL, { precision: 9 }), { kind: 'DECIMAL', precision: 9, scale: 0 });
  assert.deepEqual(kind(FIXED_LEN_BYTE_ARRAY, Converted.INTERVAL, { typeLength: 12 }), { kind: 'INTERVAL' });
  assert.equal(kind(INT32, 24), undefined);
});

test('annotations that do not fit', () => {
  // Numbers would come out wrong: the column fails.
  assert.match(leafOf({ type: INT64, convertedType: Converted.DATE }).broken!, /DATE does not fit INT64/);
  assert.match(
    leafOf({ type: INT32, convertedType: Converted.TIMESTAMP_MILLIS }).broken!,
    /TIMESTAMP does not fit INT32/,
  );
  assert.match(leafOf({ type: INT64, convertedType: Converted.UINT_32 }).broken!, /INTEGER does not fit INT64/);
  assert.match(
    leafOf({ type: DOUBLE, convertedType: Converted.DECIMAL, precision: 5 }).broken!,
    /DECIMAL does not fit/,
  );
  assert.match(leafOf({ type: INT32, convertedType: Converted.DECIMAL, precision: 0 }).broken!, /DECIMAL does not fit/);
  // Labels on bytes: the physical value is what it is.
  const uuid: LogicalType = { kind: 'UUID' };
  assert.deepEqual(leafOf({ type: FIXED_LEN_BYTE_ARRAY, typeLength: 15, logicalType: uuid }), {
    logicalType: undefined,
    broken: undefined,
  });
  assert.deepEqual(leafOf({ type: INT96, convertedType: Converted.UTF8 }), {
    logicalType: undefined,
    broken: undefined,
  });
  // A logical type newer than this reader: the converted type, else the physical value.
  const future: LogicalType = { kind: 'UNKNOWN', fieldId: 40 };
  assert.deepEqual(leafOf({ type: INT32, logicalType: future }).logicalType, future);
  assert.deepEqual(leafOf({ type: INT32, logicalType: future, convertedType: Converted.DATE }).logicalType, {
    kind: 'DATE',
  });
  // Types that can't be read at all.
  assert.match(leafOf({ type: -7 }).broken!, /type -7 does not exist/);
  assert.match(leafOf({ type: FIXED_LEN_BYTE_ARRAY }).broken!, /length unknown/);
  assert.match(leafOf({ type: FIXED_LEN_BYTE_ARRAY, typeLength: -1 }).broken!, /length -1/);
});

test('every logical type reads as the twin reads it', () => {
  const unit = { MICROS: {} };
  const logicals: Tree[] = [
    ...['STRING', 'MAP', 'LIST', 'ENUM', 'DATE', 'UNKNOWN', 'JSON', 'BSON', 'UUID', 'FLOAT16'].map((kind) => ({
      [kind]: {},
    })),
    { DECIMAL: { scale: 2, precision: 12 } },
    { TIME: { isAdjustedToUTC: true, unit: { NANOS: {} } } },
    { TIMESTAMP: { isAdjustedToUTC: false, unit } },
    { INTEGER: { bitWidth: 16, isSigned: false } },
    { VARIANT: { specification_version: 1 } },
    { GEOMETRY: { crs: 'OGC:CRS84' } },
    { GEOGRAPHY: { crs: 'OGC:CRS84', algorithm: 1 } },
    { FROM_THE_FUTURE: { parameter: 7 } },
  ];
  const schema: Tree[] = [{ name: 'root', num_children: logicals.length }];
  for (const [i, logicalType] of logicals.entries()) {
    schema.push({ type: BYTE_ARRAY, repetition_type: 1, name: `c${i}`, field_id: i, logicalType });
  }
  const bytes = footerBytes({ version: 2, schema, num_rows: 0n, row_groups: [] });
  const metadata = parseFooter(bytes, bytes.length + 12);
  assertSameAsTwin(metadata, bytes);
  assert.deepEqual(metadata.schema.at(-1)!.logicalType, { kind: 'UNKNOWN', fieldId: 40 });
  assert.deepEqual(metadata.leaves.at(-1)!.logicalType, { kind: 'UNKNOWN', fieldId: 40 });
});
