/**
 * One column chunk of the footer (parquet.thrift: ColumnChunk, ColumnMetaData, Statistics), read and checked: its
 * pages lie between the leading magic and the footer, it belongs to the column at its place in the schema, it has a
 * value for each row, and it is in this file. A chunk that fails is returned with `broken` and an empty range instead of
 * throwing. Statistics and index locations are hints from whoever wrote the file: those of impossible shape are left out.
 */
import { DecodeError } from '../errors.ts';
import type { ChunkPaths } from './chunk-paths.ts';
import type { CompactReader } from './compact.ts';
import { Wire } from './compact.ts';
import { nameOf, Physical } from './enums.ts';
import { ENCODINGS_MAX } from './limits.ts';
import type { ColumnChunk, LeafColumn, Range, Statistics } from './metadata.ts';
import type { Schema } from './schema.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** What a chunk is checked against. */
export interface FooterContext {
  readonly schema: Schema;
  /** Pages end before this offset. */
  readonly footerStart: number;
  /** Writers before parquet-mr 1.2.9 left the dictionary page's header out of the chunk's size (PARQUET-816). */
  readonly shortChunks: boolean;
}

const MAGIC_BYTES = 4;
/** The most that PARQUET-816 leaves out of a chunk's size: a dictionary page's header (Arrow C++ allows as much). */
const DICTIONARY_HEADER_BYTES_MAX = 100;

/** The raw fields of one chunk; one object serves all chunks of a thread. */
const raw = {
  filePath: false,
  meta: false,
  crypto: false,
  offsetIndexOffset: -1,
  offsetIndexLength: -1,
  columnIndexOffset: -1,
  columnIndexLength: -1,
  type: -1,
  codec: -1,
  encodings: [] as readonly number[],
  pathFits: false,
  numValues: -1,
  uncompressed: -1,
  compressed: -1,
  dataPageOffset: -1,
  dictionaryPageOffset: -1,
  statistics: undefined as Statistics | undefined,
  bloomOffset: -1,
  bloomLength: -1,
};

function clear(): void {
  raw.filePath = false;
  raw.meta = false;
  raw.crypto = false;
  raw.offsetIndexOffset = -1;
  raw.offsetIndexLength = -1;
  raw.columnIndexOffset = -1;
  raw.columnIndexLength = -1;
  raw.type = -1;
  raw.codec = -1;
  raw.encodings = [];
  raw.pathFits = false;
  raw.numValues = -1;
  raw.uncompressed = -1;
  raw.compressed = -1;
  raw.dataPageOffset = -1;
  raw.dictionaryPageOffset = -1;
  raw.statistics = undefined;
  raw.bloomOffset = -1;
  raw.bloomLength = -1;
}

/**
 * The chunk of the leaf with index `column` in a row group of `numRows` rows; the reader stands at the struct at its
 * place. When that is of another column, `elsewhere` says where the leaf's is.
 */
export function parseColumnChunk(
  r: CompactReader,
  column: number,
  numRows: number,
  context: FooterContext,
  elsewhere: ChunkPaths,
): ColumnChunk {
  const leaf = context.schema.leaves[column]!;
  clear();
  try {
    readColumnChunk(r, leaf);
    if (raw.meta && !raw.pathFits) {
      const at = elsewhere.find(leaf.path);
      if (at >= 0) {
        clear();
        r.pos = at;
        readColumnChunk(r, leaf);
      }
    }
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    clear();
    const { offset } = error.place;
    return checked(leaf, numRows, context, `${error.reason}${offset === undefined ? '' : ` at offset ${offset}`}`);
  }
  return checked(leaf, numRows, context);
}

/** Reads a ColumnChunk struct. Throws THRIFT. */
function readColumnChunk(r: CompactReader, leaf: LeafColumn): void {
  for (let last = 0; ; ) {
    const wire = r.field(last);
    if (wire === Wire.STOP) return;
    last = r.id;
    switch (last) {
      case 1:
        raw.filePath = r.binary(wire).length > 0;
        break;
      case 3:
        if (wire !== Wire.STRUCT) r.fail('column metadata is not a struct');
        parseMetaData(r, leaf.path);
        break;
      case 4:
        raw.offsetIndexOffset = r.i64(wire);
        break;
      case 5:
        raw.offsetIndexLength = r.i32(wire);
        break;
      case 6:
        raw.columnIndexOffset = r.i64(wire);
        break;
      case 7:
        raw.columnIndexLength = r.i32(wire);
        break;
      case 8:
      case 9:
        raw.crypto = true;
        r.skip(wire);
        break;
      default:
        r.skip(wire);
    }
  }
}

function parseMetaData(r: CompactReader, path: readonly string[]): void {
  raw.meta = true;
  for (let last = 0; ; ) {
    const wire = r.field(last);
    if (wire === Wire.STOP) return;
    last = r.id;
    switch (last) {
      case 1:
        raw.type = r.i32(wire);
        break;
      case 2:
        raw.encodings = parseEncodings(r, wire);
        break;
      case 3:
        raw.pathFits = samePath(r, wire, path);
        break;
      case 4:
        raw.codec = r.i32(wire);
        break;
      case 5:
        raw.numValues = r.i64(wire);
        break;
      case 6:
        raw.uncompressed = r.i64(wire);
        break;
      case 7:
        raw.compressed = r.i64(wire);
        break;
      case 9:
        raw.dataPageOffset = r.i64(wire);
        break;
      case 11:
        raw.dictionaryPageOffset = r.i64(wire);
        break;
      case 12:
        if (wire !== Wire.STRUCT) r.fail('statistics are not a struct');
        raw.statistics = parseStatistics(r);
        break;
      case 14:
        if (wire === Wire.I64) raw.bloomOffset = r.i64(wire);
        else r.skip(wire);
        break;
      case 15:
        // Writers of drafts put other things under the newer ids.
        if (wire === Wire.I32) raw.bloomLength = r.i32(wire);
        else r.skip(wire);
        break;
      default:
        r.skip(wire);
    }
  }
}

function samePath(r: CompactReader, wire: number, path: readonly string[]): boolean {
  const size = r.list(wire, Wire.BINARY);
  let same = size === path.length;
  for (let i = 0; i < size; i++) {
    const segment = path[i];
    if (segment === undefined) r.skip(Wire.BINARY);
    else if (!r.equalsText(segment)) same = false;
  }
  return same;
}

/** Lists of encodings repeat from chunk to chunk: one array for each that occurs, found by its values in base 32. */
const knownEncodings = new Map<number, readonly number[]>();
/** Lists kept: files in the field have a handful; a hostile footer must not grow the map. */
const KNOWN_ENCODINGS_MAX = 4096;

function parseEncodings(r: CompactReader, wire: number): readonly number[] {
  const size = r.list(wire, Wire.I32);
  if (size > ENCODINGS_MAX) r.fail(`a list of ${size} encodings`);
  const start = r.pos;
  let key = 0;
  if (size <= 10) {
    for (let i = 0; i < size; i++) {
      const encoding = r.i32(Wire.I32);
      if (encoding < 0 || encoding > 30) {
        key = -1;
        break;
      }
      key = key * 32 + encoding + 1;
    }
    const known = key < 0 ? undefined : knownEncodings.get(key);
    if (known !== undefined) return known;
    r.pos = start;
  } else key = -1;
  const encodings: number[] = [];
  for (let i = 0; i < size; i++) encodings.push(r.i32(Wire.I32));
  if (key >= 0 && knownEncodings.size < KNOWN_ENCODINGS_MAX) knownEncodings.set(key, encodings);
  return encodings;
}

function parseStatistics(r: CompactReader): Statistics {
  const statistics: Mutable<Statistics> = {};
  for (let last = 0; ; ) {
    const wire = r.field(last);
    if (wire === Wire.STOP) return statistics;
    last = r.id;
    switch (last) {
      case 1:
        statistics.deprecatedMax = r.binary(wire);
        break;
      case 2:
        statistics.deprecatedMin = r.binary(wire);
        break;
      case 3: {
        const count = r.i64(wire);
        if (isCount(count)) statistics.nullCount = count;
        break;
      }
      case 4: {
        const count = r.i64(wire);
        if (isCount(count)) statistics.distinctCount = count;
        break;
      }
      case 5:
        statistics.max = r.binary(wire);
        break;
      case 6:
        statistics.min = r.binary(wire);
        break;
      default:
        r.skip(wire);
    }
  }
}

function checked(leaf: LeafColumn, numRows: number, context: FooterContext, invalid?: string): ColumnChunk {
  const dictionary = raw.dictionaryPageOffset;
  const data = raw.dataPageOffset;
  // Zero, missing, or after the data pages is no place for a dictionary page; it then comes first in the chunk anyway.
  const hasDictionary = dictionary >= MAGIC_BYTES && dictionary < data;
  const start = hasDictionary ? dictionary : data;
  let end = start + raw.compressed;
  let broken =
    invalid ??
    context.schema.brokenReason(leaf) ??
    whyBroken(leaf.type, start, end, context) ??
    whyNotRows(leaf, numRows);
  if (broken === undefined && context.shortChunks) {
    end = Math.min(end + DICTIONARY_HEADER_BYTES_MAX, context.footerStart);
  }
  const encrypted = raw.crypto;
  if (encrypted) broken = 'the column is encrypted, and there is no way to give keys';
  const chunk: Mutable<ColumnChunk> = {
    column: leaf.index,
    type: raw.type,
    codec: raw.codec,
    encodings: raw.encodings,
    numValues: count(raw.numValues),
    totalCompressedSize: count(raw.compressed),
    totalUncompressedSize: count(raw.uncompressed),
    bytes: broken === undefined && raw.numValues > 0 ? { start, end } : { start: 0, end: 0 },
    dataPageOffset: count(data),
  };
  if (hasDictionary) chunk.dictionaryPageOffset = dictionary;
  if (raw.statistics !== undefined) chunk.statistics = raw.statistics;
  // a view of the footer, which must not outlive its file's metadata
  raw.statistics = undefined;
  const offsetIndex = range(raw.offsetIndexOffset, raw.offsetIndexLength, context.footerStart);
  if (offsetIndex !== undefined) chunk.offsetIndex = offsetIndex;
  const columnIndex = range(raw.columnIndexOffset, raw.columnIndexLength, context.footerStart);
  if (columnIndex !== undefined) chunk.columnIndex = columnIndex;
  if (raw.bloomOffset >= MAGIC_BYTES && raw.bloomOffset < context.footerStart) {
    const fits = raw.bloomLength > 0 && raw.bloomOffset + raw.bloomLength <= context.footerStart;
    chunk.bloomFilter = fits ? { offset: raw.bloomOffset, length: raw.bloomLength } : { offset: raw.bloomOffset };
  }
  if (encrypted) chunk.encrypted = true;
  if (broken !== undefined) chunk.broken = broken;
  return chunk;
}

function whyBroken(type: number, start: number, end: number, context: FooterContext): string | undefined {
  if (raw.filePath) return 'the chunk is in another file (file_path is set)';
  if (!raw.meta) return 'the chunk has no metadata';
  if (raw.type !== type)
    return `the chunk's type is ${nameOf(Physical, raw.type)}, the schema's ${nameOf(Physical, type)}`;
  if (!raw.pathFits) return "the chunk's path_in_schema is that of another column";
  if (!isCount(raw.numValues)) return `the chunk says it has ${raw.numValues} values`;
  if (!isCount(raw.compressed)) return `the chunk says it has ${raw.compressed} bytes`;
  if (!isCount(raw.uncompressed)) return `the chunk says it has ${raw.uncompressed} bytes uncompressed`;
  // A chunk without values needs no pages, and writers put any offset there.
  if (raw.numValues === 0) return undefined;
  if (!Number.isSafeInteger(start) || start < MAGIC_BYTES || !(end <= context.footerStart)) {
    return `the chunk's bytes ${start} to ${end} are not between the leading magic and the footer at ${context.footerStart}`;
  }
  return undefined;
}

/** Every row has a value or a null in every column, and exactly one where nothing repeats. */
function whyNotRows({ maxRepetitionLevel }: LeafColumn, numRows: number): string | undefined {
  if (raw.numValues === numRows || (raw.numValues > numRows && maxRepetitionLevel > 0)) return undefined;
  return `the chunk has ${raw.numValues} values for ${numRows} rows`;
}

function range(offset: number, length: number, footerStart: number): Range | undefined {
  if (!isCount(offset) || offset < MAGIC_BYTES || length <= 0 || offset + length > footerStart) return undefined;
  return { start: offset, end: offset + length };
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function count(value: number): number {
  return isCount(value) ? value : 0;
}
