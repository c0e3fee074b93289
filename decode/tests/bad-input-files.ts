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

/** A changed copy. */
export const bytesFrom = (file: Uint8Array, change: (bytes: Uint8Array) => void): Uint8Array => {
  const changed = Uint8Array.from(file);
  change(changed);
  return changed;
};

/** A file of nothing but these bytes in the place of a footer. */
export const withFooterBytes = (footer: readonly number[] | Uint8Array): Uint8Array => {
  const length = new Uint8Array(4);
  new DataView(length.buffer).setUint32(0, footer.length, true);
  return Buffer.concat([
    Buffer.from('PAR1'),
    new Uint8Array(400),
    Uint8Array.from(footer),
    length,
    Buffer.from('PAR1'),
  ]);
};
/** The bytes of a file's footer. */
export const footerOf = (file: Uint8Array): Uint8Array => {
  const length = new DataView(file.buffer, file.byteOffset).getUint32(file.length - 8, true);
  return file.subarray(file.length - 8 - length, file.length - 8);
};
