/** The file of two columns and one row group that bad input is made from. */
import { Physical } from '../format/enums.ts';
import type { Tree } from './thrift-twin.ts';
import { type ChunkPlan, type PagePlan, type WriterColumn, writeFile } from './writer/index.ts';

export const INT64: WriterColumn = { name: 'number', physical: Physical.INT64 };
export const OPTIONAL: WriterColumn = { name: 'gaps', physical: Physical.INT64, optional: true };
export const STRING: WriterColumn = { name: 'text', physical: Physical.BYTE_ARRAY };
export const BOOLEAN: WriterColumn = { name: 'flag', physical: Physical.BOOLEAN };

export const NUMBERS = Array.from({ length: 100 }, (_, i) => BigInt(i % 10));
export const GAPS = NUMBERS.map((value, i) => (i % 3 === 0 ? null : value));
export const STRINGS = NUMBERS.map((value) => `string ${value}`);
export const BITS = NUMBERS.map((value) => value % 2n === 0n);

/** A right file whose footer is then changed. */
export function footerFile(change: (footer: Tree) => void): Uint8Array {
  const rowGroup: ChunkPlan[] = [
    { column: INT64, values: NUMBERS, pages: [{}] },
    { column: STRING, values: STRINGS, pages: [{ rows: 40 }, {}] },
  ];
  return writeFile({ rowGroups: [rowGroup], footer: change }).bytes;
}

/** A file of one column, whose pages are written as told. */
export function chunkFile(
  column: WriterColumn,
  values: ChunkPlan['values'],
  pages: readonly PagePlan[],
  codec = 0,
): Uint8Array {
  return writeFile({ rowGroups: [[{ column, values, pages, codec }]] }).bytes;
}
