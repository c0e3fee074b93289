/**
 * A file's metadata in the shape and with the field names of ClickHouse's ParquetMetadata format, so that what reads
 * one reads the other. Sizes and counts are JSON numbers; statistics are texts by logical type, as in cell.ts.
 */
import {
  Codec,
  type ColumnChunk,
  Encoding,
  type FileMetadata,
  type LeafColumn,
  type LogicalType,
  nameOf,
  Physical,
  type RowGroup,
  type Segment,
} from '../../decode/index.ts';
import { cellOf } from './cell.ts';
import { chunkBounds } from './column-bounds.ts';

export interface ColumnSummary {
  readonly name: string;
  readonly path: string;
  readonly max_definition_level: number;
  readonly max_repetition_level: number;
  readonly physical_type: string;
  readonly logical_type: string;
  readonly compression: string;
  readonly total_uncompressed_size: number;
  readonly total_compressed_size: number;
  readonly space_saved: string;
  readonly encodings: readonly string[];
}

export interface ChunkSummary {
  readonly name: string;
  readonly path: string;
  readonly total_compressed_size: number;
  readonly total_uncompressed_size: number;
  readonly have_statistics: boolean;
  readonly statistics: {
    readonly num_values: number | null;
    readonly null_count: number | null;
    readonly distinct_count: number | null;
    readonly min: string | null;
    readonly max: string | null;
  };
  readonly bloom_filter_bytes: number | null;
}

export interface MetadataSummary {
  readonly num_columns: number;
  readonly num_rows: number;
  readonly num_row_groups: number;
  readonly format_version: string;
  readonly metadata_size: number;
  readonly total_uncompressed_size: number;
  readonly total_compressed_size: number;
  readonly columns: readonly ColumnSummary[];
  readonly row_groups: ReadonlyArray<{
    readonly file_offset: number;
    readonly num_columns: number;
    readonly num_rows: number;
    readonly total_uncompressed_size: number;
    readonly total_compressed_size: number;
    readonly columns: readonly ChunkSummary[];
  }>;
}

export function summarizeMetadata(metadata: FileMetadata): MetadataSummary {
  const { leaves, rowGroups } = metadata;
  const compressed = rowGroups.map((group) => sum(group.columns, (chunk) => chunk.totalCompressedSize));
  return {
    num_columns: leaves.length,
    num_rows: metadata.numRows,
    num_row_groups: rowGroups.length,
    // Arrow's name for whatever is not version 1, as ClickHouse shows it
    format_version: metadata.version === 1 ? '1.0' : '2.6',
    metadata_size: metadata.footerBytes,
    total_uncompressed_size: sum(rowGroups, (group) => group.totalByteSize),
    total_compressed_size: sum(compressed, (bytes) => bytes),
    columns: leaves.map((leaf) => summarizeColumn(leaf, rowGroups)),
    row_groups: rowGroups.map((group, k) => ({
      file_offset: fileOffset(group),
      num_columns: group.columns.length,
      num_rows: group.numRows,
      total_uncompressed_size: group.totalByteSize,
      total_compressed_size: compressed[k]!,
      columns: group.columns.map((chunk) => summarizeChunk(leaves[chunk.column]!, chunk)),
    })),
  };
}

function sum<T>(items: readonly T[], amount: (item: T) => number): number {
  return items.reduce((total, item) => total + amount(item), 0);
}

/** Where the row group's first page is; writers leave the footer's own field out or wrong. */
function fileOffset(group: RowGroup): number {
  const starts = group.columns.filter(({ bytes }) => bytes.end > bytes.start).map(({ bytes }) => bytes.start);
  return starts.reduce((least, start) => Math.min(least, start), starts[0] ?? 0);
}

function summarizeColumn(leaf: LeafColumn, rowGroups: readonly RowGroup[]): ColumnSummary {
  const chunks = rowGroups.map((group) => group.columns[leaf.index]!);
  const uncompressed = sum(chunks, (chunk) => chunk.totalUncompressedSize);
  const compressed = sum(chunks, (chunk) => chunk.totalCompressedSize);
  const codecs = new Set(chunks.map((chunk) => chunk.codec));
  const encodings = new Set(chunks.flatMap((chunk) => chunk.encodings));
  return {
    name: leaf.path.at(-1)!,
    path: leaf.name,
    max_definition_level: leaf.maxDefinitionLevel,
    max_repetition_level: leaf.maxRepetitionLevel,
    physical_type: nameOf(Physical, leaf.type),
    logical_type: logicalTypeText(leaf.logicalType),
    compression: codecs.size === 0 ? 'NONE' : [...codecs].map((codec) => nameOf(Codec, codec)).join('/'),
    total_uncompressed_size: uncompressed,
    total_compressed_size: compressed,
    space_saved: `${(uncompressed === 0 ? 0 : (1 - compressed / uncompressed) * 100).toFixed(2)}%`,
    encodings: [...encodings].map((encoding) => nameOf(Encoding, encoding)),
  };
}

const UNIT_NAMES = { millis: 'milliseconds', micros: 'microseconds', nanos: 'nanoseconds' } as const;

const TYPE_NAMES: Partial<Record<LogicalType['kind'], string>> = {
  STRING: 'String',
  MAP: 'Map',
  MAP_KEY_VALUE: 'Map',
  LIST: 'List',
  ENUM: 'Enum',
  DATE: 'Date',
  NULL: 'Null',
  INTERVAL: 'Interval',
  FLOAT16: 'Float16',
  VARIANT: 'Variant',
  GEOMETRY: 'Geometry',
  GEOGRAPHY: 'Geography',
  UNKNOWN: 'Unknown',
};

/** As Arrow prints logical types. */
export function logicalTypeText(type: LogicalType | undefined): string {
  if (type === undefined) return 'None';
  switch (type.kind) {
    case 'DECIMAL':
      return `Decimal(precision=${type.precision}, scale=${type.scale})`;
    case 'INTEGER':
      return `Int(bitWidth=${type.bitWidth}, isSigned=${type.signed})`;
    case 'TIME':
      return `Time(isAdjustedToUTC=${type.utc}, timeUnit=${UNIT_NAMES[type.unit]})`;
    case 'TIMESTAMP':
      return `Timestamp(isAdjustedToUTC=${type.utc}, timeUnit=${UNIT_NAMES[type.unit]})`;
    default:
      return TYPE_NAMES[type.kind] ?? type.kind;
  }
}

/** The same in fewer words, for people; '' for a column without one. */
export function shortTypeText(type: LogicalType | undefined): string {
  if (type === undefined) return '';
  return logicalTypeText(type)
    .replace('isAdjustedToUTC=true', 'UTC')
    .replace('isAdjustedToUTC=false, ', '')
    .replace(/(timeUnit|precision|scale|bitWidth)=/g, '')
    .replace('isSigned=true', 'signed')
    .replace('isSigned=false', 'unsigned');
}

function summarizeChunk(leaf: LeafColumn, chunk: ColumnChunk): ChunkSummary {
  const { statistics } = chunk;
  const nulls = statistics?.nullCount;
  const { min, max } = chunkBounds(leaf, chunk);
  return {
    name: leaf.path.at(-1)!,
    path: leaf.name,
    total_compressed_size: chunk.totalCompressedSize,
    total_uncompressed_size: chunk.totalUncompressedSize,
    have_statistics: statistics !== undefined,
    statistics: {
      num_values: statistics === undefined ? null : Math.max(0, chunk.numValues - (nulls ?? 0)),
      null_count: nulls ?? null,
      distinct_count: statistics?.distinctCount ?? null,
      min: statisticText(leaf, min),
      max: statisticText(leaf, max),
    },
    bloom_filter_bytes: chunk.bloomFilter?.length ?? null,
  };
}

const WIDTHS: Readonly<Record<number, number>> = {
  [Physical.BOOLEAN]: 1,
  [Physical.INT32]: 4,
  [Physical.INT64]: 8,
  [Physical.INT96]: 12,
  [Physical.FLOAT]: 4,
  [Physical.DOUBLE]: 8,
};

/** A bound as text; null when there is none, or when its bytes can't be a value of the type. */
export function statisticText(leaf: LeafColumn, bytes: Uint8Array | undefined): string | null {
  if (bytes === undefined) return null;
  const variable = leaf.type === Physical.BYTE_ARRAY;
  const width = leaf.type === Physical.FIXED_LEN_BYTE_ARRAY ? leaf.typeLength : WIDTHS[leaf.type];
  if (!variable && bytes.length !== width) return null;
  // One value as a segment of its own: offsets 0 and its length, then, at VALUE, its bytes.
  const buffer = new ArrayBuffer(VALUE + Math.ceil(bytes.length / 8) * 8);
  const memory = { u8: new Uint8Array(buffer), u32: new Uint32Array(buffer), i32: new Int32Array(buffer) };
  memory.u32[1] = bytes.length;
  memory.u8.set(bytes, VALUE);
  const segment: Segment = {
    rows: 1,
    nullCount: 0,
    layout: variable ? 'bytes' : leaf.type === Physical.BOOLEAN ? 'bits' : 'fixed',
    width: width ?? 4,
    slab: 0,
    slabBytes: 0,
    validity: 0,
    values: variable ? 0 : VALUE,
    data: VALUE,
    dataBytes: bytes.length,
  };
  const cell = cellOf(leaf, segment, memory);
  const out = Buffer.alloc(typeof cell.bytesMax === 'number' ? cell.bytesMax : cell.bytesMax(0));
  return out.toString('utf8', 0, cell.write(0, out, 0));
}

const VALUE = 16;
