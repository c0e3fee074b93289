/** Parquet readers of the JavaScript world on the same bytes, each through its columnar interface, the cheapest it has. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type Table, tableFromIPC } from 'apache-arrow';
import { parquetMetadata, parquetRead } from 'hyparquet';
import { readParquet } from 'parquet-wasm';
import type { LoadedFile } from './decode-ours.ts';

/** Rows: the batch size that suits parquet-wasm best on this table; its default of 1,024 is a fifth slower. */
const WASM_BATCH_ROWS = 65_536;

setFlagsFromString('--expose-gc');
/** So that the garbage of a reader is not collected in the time of the next one. */
export const collectGarbage = runInNewContext('gc') as () => void;

export interface ParquetWasmTimes {
  /** Milliseconds to Arrow arrays inside its own memory, with the copy of the file into it that its interface asks for. */
  readonly inside: number;
  /** Milliseconds to Arrow vectors that JavaScript can read, in the way it documents: an IPC stream and its reader. */
  readonly readable: number;
}

/**
 * parquet-wasm (arrow-rs as WebAssembly), all columns: this version reads them all whatever its `columns` option says.
 */
export function readWithParquetWasm({ bytes }: LoadedFile): ParquetWasmTimes & { table: Table } {
  const began = performance.now();
  const inside = readParquet(bytes, { batchSize: WASM_BATCH_ROWS });
  const decoded = performance.now();
  const table = tableFromIPC(inside.intoIPCStream());
  return { inside: decoded - began, readable: performance.now() - began, table };
}

/** hyparquet: milliseconds to arrays of values of the first `rowEnd` rows, rows not assembled, footer parsed before. */
export async function readWithHyparquet(
  { bytes }: LoadedFile,
  columns: readonly string[],
  rowEnd: number,
  onColumn: (name: string, values: ArrayLike<unknown>) => void = () => {},
): Promise<number> {
  const metadata = parquetMetadata(bytes.buffer);
  const began = performance.now();
  await parquetRead({
    file: bytes.buffer,
    metadata,
    columns: [...columns],
    rowStart: 0,
    rowEnd,
    onChunk: ({ columnName, columnData }) => onColumn(columnName, columnData),
  });
  return performance.now() - began;
}
