/**
 * A table of very many columns in several small row groups: a file that is mostly footer. Written by hyparquet-writer,
 * with statistics, in four types; kept in the system's temporary folder and made once.
 */
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { tableFolder } from './table-folder.ts';

export interface WideOptions {
  readonly columns: number;
  readonly rowGroups: number;
  /** Rows of a row group. */
  readonly groupRows: number;
}

/** Part of the file's name: to be raised when what is written changes. */
const VERSION = 1;

const TYPES = ['INT32', 'INT64', 'DOUBLE', 'STRING'] as const;

export const wideColumn = (column: number): string => `feature_${column}`;

/** Path of the file, made if it is not there yet. */
export function wideFile({ columns, rowGroups, groupRows }: WideOptions): string {
  const file = join(tableFolder(), `wide-v${VERSION}-${columns}x${rowGroups}x${groupRows}.parquet`);
  if (existsSync(file)) return file;
  const columnData = Array.from({ length: columns }, (_, column) => {
    const type = TYPES[column % TYPES.length]!;
    const data = Array.from({ length: rowGroups * groupRows }, (_, row) => cellOf(type, column, row));
    return { name: wideColumn(column), data, type };
  });
  const unfinished = `${file}.${process.pid}`;
  writeFileSync(unfinished, new Uint8Array(parquetWriteBuffer({ columnData, rowGroupSize: groupRows })));
  renameSync(unfinished, file);
  return file;
}

function cellOf(type: (typeof TYPES)[number], column: number, row: number): number | bigint | string {
  const n = (row * 7919 + column * 104_729) % 1_000_003;
  if (type === 'INT64') return BigInt(n) << 20n;
  if (type === 'DOUBLE') return n / 8;
  return type === 'STRING' ? `value ${n % 100}` : n;
}
