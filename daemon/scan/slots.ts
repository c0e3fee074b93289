/**
 * Where a field's values lie in a batch: for each leaf below it the slots [start, start + count) of a segment. A
 * group keeps its slots for its children; a list hands on those of its elements. Each leaf has a structure of its
 * own; they must agree where leaves share a list, or the file contradicts itself.
 */
import { DecodeError, type Field, type ListField, type MapField, type Pool, type Segment } from '../../decode/index.ts';
import type { Batch } from './segments.ts';

export interface SlotRange {
  readonly segment: Segment;
  readonly start: number;
  readonly count: number;
}

/** By the index of the leaf. */
export type SlotRanges = ReadonlyMap<number, SlotRange>;

export function batchRanges(batch: Batch): SlotRanges {
  return new Map(
    batch.columns.map(({ column, segment, start, rows }) => [column.index, { segment, start, count: rows }] as const),
  );
}

/** The slots of a field, as its first leaf has them. */
export function rangeOf(field: Field, ranges: SlotRanges): SlotRange {
  return ranges.get(field.leaves[0]!.index)!;
}

/** Address of the validity of a group's or list's slots; 0 when none of the segment's is null. */
export function validityOf(field: Exclude<Field, { kind: 'leaf' }>, ranges: SlotRanges): number {
  return rangeOf(field, ranges).segment.nested?.nodes[field.depth]?.validity ?? 0;
}

export interface Elements {
  /** count + 1 offsets, the first of them 0. */
  readonly offsets: Int32Array;
  readonly ranges: SlotRanges;
}

/** The elements of a list's or map's slots. Throws METADATA when its leaves do not agree on them. */
export function elementsOf(pool: Pool, field: ListField | MapField, ranges: SlotRanges): Elements {
  let offsets: Int32Array | undefined;
  const inner = new Map<number, SlotRange>();
  for (const leaf of field.leaves) {
    const { segment, start, count } = ranges.get(leaf.index)!;
    const first = (segment.nested!.nodes[field.depth]!.offsets >>> 2) + start;
    const own = pool.i32.subarray(first, first + count + 1);
    const base = own[0]!;
    if (offsets === undefined) offsets = Int32Array.from(own, (offset) => offset - base);
    else checkEqual(field, leaf.name, offsets, own);
    inner.set(leaf.index, { segment, start: base, count: own[count]! - base });
  }
  return { offsets: offsets!, ranges: inner };
}

function checkEqual(field: Field, column: string, offsets: Int32Array, own: Int32Array): void {
  const base = own[0]!;
  for (let k = 0; k < offsets.length; k++) {
    if (own[k]! - base === offsets[k]) continue;
    throw new DecodeError('METADATA', 'a list has another length than in its other columns', {
      column,
      expected: `the lengths of ${JSON.stringify(field.leaves[0]!.name)}`,
    });
  }
}
