/**
 * Rows of Arrow record batches as plain JavaScript, read from the buffers and not through the library's getters, with
 * everything checked that Arrow promises of them: lengths, null counts, rising offsets.
 */
import assert from 'node:assert/strict';
import { type Data, type RecordBatch, Type } from 'apache-arrow';
import { type FieldPlan, type NestedValue, valueBytes } from '../../decode/tests/writer/index.ts';

/** A leaf's value is its bytes as Latin-1 (a boolean is one byte), a struct an object, a list an array, a map pairs. */
export type Row = null | string | readonly Row[] | { readonly [field: string]: Row };

const latin1 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');

/** The written value in the form in which rows come back. */
export function expectedRow(field: FieldPlan, value: NestedValue): Row {
  if (value === null) return null;
  switch (field.kind) {
    case 'leaf':
      return latin1(valueBytes({ ...field.column, name: '' }, value as string));
    case 'struct': {
      const struct = value as Record<string, NestedValue>;
      return Object.fromEntries(field.fields.map((child) => [child.name, expectedRow(child, struct[child.name]!)]));
    }
    case 'list':
      return (value as NestedValue[]).map((element) => expectedRow(field.element, element));
    case 'map': {
      const { key, value: mapped } = field;
      const pairs = value as NestedValue[][];
      if (mapped === undefined) return pairs.map((pair) => expectedRow(key, pair[0]!));
      return pairs.map((pair) => [expectedRow(key, pair[0]!), expectedRow(mapped, pair[1]!)]);
    }
  }
}

/** The rows of a batch's column. */
export function columnRows(batch: RecordBatch, place: number): Row[] {
  const data = batch.data.children[place]!;
  assert.equal(data.length, batch.numRows);
  const read = reader(data);
  return Array.from({ length: batch.numRows }, (_, row) => read(row));
}

function reader(data: Data): (slot: number) => Row {
  const { nullBitmap, length } = data;
  assert.equal(data.offset, 0);
  if (data.type.typeId === Type.Null) return () => null;
  const isNull = (slot: number): boolean =>
    nullBitmap.length > 0 && ((nullBitmap[slot >>> 3]! >>> (slot & 7)) & 1) === 0;
  if (nullBitmap.length > 0) assert.ok(nullBitmap.length >= Math.ceil(length / 8), 'the bitmap is long enough');
  let nulls = 0;
  for (let slot = 0; slot < length; slot++) if (isNull(slot)) nulls++;
  assert.equal(data.nullCount, nulls, 'nulls as counted');
  const value = valueReader(data, isNull);
  return (slot) => (isNull(slot) ? null : value(slot));
}

function valueReader(data: Data, isNull: (slot: number) => boolean): (slot: number) => Row {
  const { type, length } = data;
  switch (type.typeId) {
    case Type.Struct: {
      const children = data.children.map((child) => {
        assert.equal(child.length, length, 'a child of a struct has its length');
        return reader(child);
      });
      const names = type.children.map(({ name }: { name: string }) => name);
      return (slot) => Object.fromEntries(names.map((name: string, k: number) => [name, children[k]!(slot)]));
    }
    case Type.List:
    case Type.Map: {
      const child = data.children[0]!;
      const offsets = checkedOffsets(data, child.length, isNull);
      const element = reader(child);
      const isMap = type.typeId === Type.Map;
      return (slot) => {
        const elements: Row[] = [];
        for (let k = offsets[slot]!; k < offsets[slot + 1]!; k++) {
          const made = element(k);
          elements.push(isMap ? Object.values(made as object) : made);
        }
        return elements;
      };
    }
    case Type.Dictionary: {
      const entries = data.dictionary!.data[0]!;
      const indices = data.values as Int32Array;
      const entry = reader(entries);
      return (slot) => {
        const index = indices[slot]!;
        assert.ok(index >= 0 && index < entries.length, `index ${index} of ${entries.length} entries`);
        return entry(index);
      };
    }
    case Type.Utf8:
    case Type.Binary: {
      const bytes = data.values as Uint8Array;
      const offsets = checkedOffsets(data, bytes.length, isNull);
      return (slot) => latin1(bytes.subarray(offsets[slot], offsets[slot + 1]));
    }
    case Type.Bool: {
      const bits = data.values as Uint8Array;
      assert.ok(bits.length >= Math.ceil(length / 8));
      return (slot) => String.fromCharCode((bits[slot >>> 3]! >>> (slot & 7)) & 1);
    }
    default: {
      const values = data.values as Uint8Array;
      const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
      if (length === 0) return () => null;
      const width = bytes.length / length;
      assert.ok(Number.isInteger(width), `${bytes.length} bytes of ${length} values`);
      return (slot) => latin1(bytes.slice(slot * width, (slot + 1) * width));
    }
  }
}

function checkedOffsets(data: Data, end: number, isNull: (slot: number) => boolean): Int32Array {
  const offsets = data.valueOffsets as Int32Array;
  assert.equal(offsets.length, data.length + 1, 'an offset more than slots');
  assert.equal(offsets[0], 0, 'offsets begin at 0');
  for (let slot = 0; slot < data.length; slot++) {
    const length = offsets[slot + 1]! - offsets[slot]!;
    assert.ok(length >= 0, 'offsets do not fall');
    if (isNull(slot)) assert.equal(length, 0, 'a null is empty');
  }
  assert.equal(offsets[data.length], end, 'offsets end where the child does');
  return offsets;
}
