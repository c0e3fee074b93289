/** The cells of a batch's fields: a leaf's are its segment's, a group's or list's are JSON texts made for the batch. */
import type { Field, Pool } from '../../decode/index.ts';
import type { Batch } from '../scan/segments.ts';
import { batchRanges, rangeOf, type SlotRange, type SlotRanges, validityOf } from '../scan/slots.ts';
import { type Cell, cellOf, copyBytes } from './cell.ts';
import { jsonField } from './json-field.ts';
import { slotTexts, type TextForm } from './slot-texts.ts';

export interface FieldCell {
  readonly cell: Cell;
  /** What the cell calls the batch's first row. */
  readonly first: number;
  /** Address of the validity bitmap, by the same rows; 0 when none is null. */
  readonly validity: number;
}

export function fieldCells(pool: Pool, fields: readonly Field[], batch: Batch): FieldCell[] {
  const ranges = batchRanges(batch);
  return fields.map((field): FieldCell => {
    const { segment, start } = rangeOf(field, ranges);
    if (field.kind === 'leaf') {
      return { cell: cellOf(field.leaf, segment, pool), first: start, validity: segment.validity };
    }
    return { cell: jsonCell(pool, field, ranges, start), first: start, validity: validityOf(field, ranges) };
  });
}

function jsonCell(pool: Pool, field: Field, ranges: SlotRanges, first: number): Cell {
  const texts = slotTexts(pool, field, ranges, jsonForm(pool));
  const memory = Buffer.from(texts.join(''));
  const offsets = new Uint32Array(texts.length + 1);
  for (const [k, text] of texts.entries()) offsets[k + 1] = offsets[k]! + Buffer.byteLength(text);
  const start = (row: number): number => offsets[row - first]!;
  const end = (row: number): number => offsets[row - first + 1]!;
  return {
    kind: 'json',
    memory,
    span: { start, end },
    bytesMax: (row) => end(row) - start(row),
    write: (row, out, at) => copyBytes(memory, start(row), end(row), out, at),
  };
}

function jsonForm(pool: Pool): TextForm {
  let out = Buffer.alloc(256);
  return {
    leaf: (field, { segment }: SlotRange) => {
      const { bytesMax, write } = jsonField(cellOf(field.leaf, segment, pool), pool.u8);
      return (slot) => {
        const most = typeof bytesMax === 'number' ? bytesMax : bytesMax(slot);
        if (most > out.length) out = Buffer.alloc(most * 2);
        return out.toString('utf8', 0, write(slot, out, 0));
      };
    },
    pair: (key, value) => (value === undefined ? key : `{"key":${key},"value":${value}}`),
  };
}
