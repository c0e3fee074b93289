/** The Parquet writers that npm has, with what their files are there to meet. */
import type { SeededRandom } from '../../../decode/tests/random.ts';
import { writeDuckdbFiles } from './duckdb-files.ts';
import { writeHyparquetFiles } from './hyparquet-files.ts';
import { writeParquetWasmFiles } from './parquet-wasm-files.ts';
import type { WrittenFile } from './written.ts';

export interface JavascriptWriter {
  readonly name: string;
  readonly write: (folder: string, random: SeededRandom) => AsyncGenerator<WrittenFile>;
  /** Encodings and codecs that at least one of its files has. */
  readonly meets: readonly string[];
}

const CODECS = ['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'BROTLI', 'ZSTD', 'LZ4_RAW'];
const ENCODINGS = [
  'PLAIN',
  'RLE',
  'RLE_DICTIONARY',
  'DELTA_BINARY_PACKED',
  'DELTA_LENGTH_BYTE_ARRAY',
  'DELTA_BYTE_ARRAY',
  'BYTE_STREAM_SPLIT',
];

/** DuckDB has no DELTA_BYTE_ARRAY, and does not say which encoding its levels have. */
const DUCKDB_ENCODINGS = ENCODINGS.filter((one) => one !== 'DELTA_BYTE_ARRAY' && one !== 'RLE');

export const JAVASCRIPT_WRITERS: readonly JavascriptWriter[] = [
  { name: 'DuckDB', write: writeDuckdbFiles, meets: [...CODECS, ...DUCKDB_ENCODINGS] },
  { name: 'hyparquet-writer', write: writeHyparquetFiles, meets: [...CODECS, ...ENCODINGS] },
  { name: 'parquet-wasm', write: writeParquetWasmFiles, meets: [...CODECS, 'LZ4', ...ENCODINGS] },
];
