/**
 * Decodes chunks of nested columns in a test and puts rows together again from the segments: what a leaf and the
 * groups and lists above it say. Every segment is checked to be well-formed Arrow inside its slabs.
 */
import assert from 'node:assert/strict';
import type { DecodeEnvironment } from '../column/environment.ts';
import type { ChunkSpec, NestedShape, Segment } from '../column/spec.ts';
import { Physical } from '../format/enums.ts';
import { buildFields, pathsOf } from '../format/field-tree.ts';
import type { FileMetadata } from '../format/metadata.ts';
import { parseFooter, parseTail } from '../format/parse-footer.ts';
import type { Pool } from '../pool/pool.ts';
import { driveChunk, type RunOptions } from './chunk-run.ts';
import { type ColumnValue, type FieldPlan, type NestedValue, valueBytes } from './writer/index.ts';

/** What a leaf tells of a row: null, the value's bytes as Latin-1, or an array: of elements, or of one for a struct. */
export type Projected = null | string | readonly Projected[];

/** For each leaf below a field, in order, what it tells of the field's values. */
export function projections(field: FieldPlan): ((value: NestedValue) => Projected)[] {
  const orNull =
    (project: (value: never) => Projected) =>
    (value: NestedValue): Projected =>
      value === null ? null : project(value as never);
  switch (field.kind) {
    case 'leaf':
      return [orNull((value: Exclude<ColumnValue, null>) => latin1(valueBytes({ ...field.column, name: '' }, value)))];
    case 'struct':
      return field.fields.flatMap((child) =>
        projections(child).map((project) =>
          orNull((value: Record<string, NestedValue>) => [project(value[child.name]!)]),
        ),
      );
    case 'list':
      return projections(field.element).map((project) => orNull((value: NestedValue[]) => value.map(project)));
    case 'map':
      return [field.key, ...(field.value === undefined ? [] : [field.value])].flatMap((side, k) =>
        projections(side).map((project) =>
          orNull((pairs: NestedValue[][]) => pairs.map((pair) => [project(pair[k] ?? null)])),
        ),
      );
  }
}

export const latin1 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');

export function metadataOf(file: Uint8Array): FileMetadata {
  const { footerStart, footerLength } = parseTail(file, file.length);
  return parseFooter(file.subarray(footerStart, footerStart + footerLength), file.length);
}

/** Specs of every chunk, by row group and leaf, as a scan makes them; flat columns too are read as nested ones. */
export function specsOf(file: Uint8Array, change: Partial<ChunkSpec> = {}): ChunkSpec[][] {
  const metadata = metadataOf(file);
  const paths = pathsOf(buildFields(metadata.root, metadata.leaves));
  return metadata.rowGroups.map(({ columns, numRows }) =>
    columns.map((chunk, k) => {
      const leaf = metadata.leaves[k]!;
      const { above, slot } = paths.get(k)!;
      assert.equal(chunk.broken, undefined);
      const nested: NestedShape = {
        maxRepetitionLevel: leaf.maxRepetitionLevel,
        nodes: above,
        leafSlot: slot,
        rowsHint: numRows,
      };
      return {
        columnName: leaf.name,
        physical: leaf.type as Physical,
        typeLength: leaf.typeLength,
        maxDefinitionLevel: leaf.maxDefinitionLevel,
        nested,
        codec: chunk.codec as ChunkSpec['codec'],
        numValues: chunk.numValues,
        byteLength: chunk.bytes.end - chunk.bytes.start,
        fileOffset: chunk.bytes.start,
        uncompressedBytes: chunk.totalUncompressedSize,
        utf8: leaf.logicalType?.kind === 'STRING',
        bytesOutput: 'values',
        windowRows: 4096,
        ...change,
      };
    }),
  );
}

export interface NestedResult {
  readonly rows: Projected[];
  /** Rows of each segment. */
  readonly segments: number[];
}

/** Decodes; throws what the decoder throws. */
export function runNested(
  environment: DecodeEnvironment,
  spec: ChunkSpec,
  bytes: Uint8Array,
  options: RunOptions = {},
  result: NestedResult = { rows: [], segments: [] },
): NestedResult {
  driveChunk(environment, spec, bytes, options, (segment) => {
    for (const row of segmentRows(environment.pool, spec, segment)) result.rows.push(row);
    result.segments.push(segment.rows);
    return result.rows.length;
  });
  return result;
}

function isSet(pool: Pool, bitmap: number, bit: number): boolean {
  return ((pool.u8[bitmap + (bit >>> 3)]! >>> (bit & 7)) & 1) === 1;
}

/** The rows of a segment, after checking what Arrow promises of its buffers. */
export function segmentRows(pool: Pool, spec: ChunkSpec, segment: Segment): Projected[] {
  checkSegment(pool, spec, segment);
  const { nodes } = spec.nested!;
  const { u32 } = pool;
  const leafValue = leafReader(pool, segment);
  const at = (depth: number, slot: number): Projected => {
    const node = nodes[depth];
    if (node === undefined) return leafValue(slot);
    const made = segment.nested!.nodes[depth]!;
    if (made.validity !== 0 && !isSet(pool, made.validity, slot)) return null;
    if (node.kind === 'struct') return [at(depth + 1, slot)];
    const offset = (made.offsets >>> 2) + slot;
    const elements: Projected[] = [];
    for (let k = u32[offset]!; k < u32[offset + 1]!; k++) elements.push(at(depth + 1, k));
    return elements;
  };
  return Array.from({ length: segment.rows }, (_, row) => at(0, row));
}

function checkSegment(pool: Pool, spec: ChunkSpec, segment: Segment): void {
  const { nested } = segment;
  assert.ok(nested, 'a nested segment');
  const { u32 } = pool;
  const slabs = [{ address: segment.slab, bytes: segment.slabBytes }, ...nested.slabs];
  const inside = (at: number, bytes: number, what: string): void => {
    const fits = slabs.some(({ address, bytes: size }) => at >= address && at + bytes <= address + size);
    assert.ok(bytes === 0 || fits, `${what}: ${bytes} bytes at ${at} in no slab`);
    assert.equal(at % 8, 0, `${what} is aligned`);
  };
  const countNulls = (bitmap: number, slots: number, what: string): number => {
    if (bitmap === 0) return 0;
    inside(bitmap, Math.ceil(slots / 8), `validity of ${what}`);
    let nulls = 0;
    for (let k = 0; k < slots; k++) if (!isSet(pool, bitmap, k)) nulls++;
    assert.ok(nulls > 0, `${what} has a bitmap and no null`);
    for (let k = slots; k < Math.ceil(slots / 64) * 64; k++) assert.ok(!isSet(pool, bitmap, k), 'padding is 0');
    return nulls;
  };
  let slots = segment.rows;
  assert.equal(nested.nodes.length, spec.nested!.nodes.length);
  for (const [depth, made] of nested.nodes.entries()) {
    const node = spec.nested!.nodes[depth]!;
    assert.equal(made.slots, slots, `slots at depth ${depth}`);
    assert.equal(countNulls(made.validity, slots, `depth ${depth}`), made.nullCount);
    if (node.valid === node.slot) assert.equal(made.nullCount, 0, 'what can not be null');
    if (node.kind === 'struct') {
      assert.equal(made.offsets, 0);
      continue;
    }
    inside(made.offsets, (slots + 1) * 4, 'offsets');
    const first = made.offsets >>> 2;
    assert.equal(u32[first], 0, 'offsets begin at 0');
    for (let k = 0; k < slots; k++) {
      const length = u32[first + k + 1]! - u32[first + k]!;
      assert.ok(length >= 0, 'offsets do not fall');
      if (made.validity !== 0 && !isSet(pool, made.validity, k)) assert.equal(length, 0, 'a null list is empty');
    }
    slots = u32[first + slots]!;
  }
  assert.equal(nested.slots, slots, 'slots of the leaf');
  assert.equal(countNulls(segment.validity, slots, 'the leaf'), segment.nullCount);
  const { layout, width } = segment;
  const bytes = layout === 'bits' ? Math.ceil(slots / 8) : layout === 'bytes' ? slots * 4 + 4 : slots * width;
  inside(segment.values, bytes, 'values');
  assert.notEqual(layout, 'indices');
  assert.equal(layout === 'bits', spec.physical === Physical.BOOLEAN);
  if (layout !== 'bytes') return;
  inside(segment.data, segment.dataBytes, 'data');
  const first = segment.values >>> 2;
  assert.equal(u32[first], 0);
  assert.equal(u32[first + slots], segment.dataBytes);
  for (let k = 0; k < slots; k++) assert.ok(u32[first + k]! <= u32[first + k + 1]!, 'offsets do not fall');
}

function leafReader(pool: Pool, segment: Segment): (slot: number) => Projected {
  const { layout, values, width, validity } = segment;
  const { u8, u32 } = pool;
  return (slot) => {
    const isNull = validity !== 0 && !isSet(pool, validity, slot);
    let bytes: Uint8Array;
    if (layout === 'bits') bytes = Uint8Array.of(isSet(pool, values, slot) ? 1 : 0);
    else if (layout === 'bytes') {
      const at = (values >>> 2) + slot;
      bytes = u8.slice(segment.data + u32[at]!, segment.data + u32[at + 1]!);
      if (isNull) assert.equal(bytes.length, 0);
    } else bytes = u8.slice(values + slot * width, values + (slot + 1) * width);
    if (!isNull) return latin1(bytes);
    assert.ok(
      bytes.every((byte) => byte === 0),
      'the slot of a null is 0',
    );
    return null;
  };
}

export function assertSameRows(actual: readonly Projected[], expected: readonly Projected[]): void {
  for (let row = 0; row < Math.max(actual.length, expected.length); row++) {
    const [a, b] = [JSON.stringify(actual[row]), JSON.stringify(expected[row])];
    if (a !== b) assert.fail(`row ${row} is ${a?.slice(0, 300)} instead of ${b?.slice(0, 300)}`);
  }
}
