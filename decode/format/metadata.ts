/**
 * A Parquet file's metadata: what `parseFooter` returns and every later stage reads. It reads as plain data; in wide
 * tables the lists of nodes, leaves and chunks make an item when it is first read (lazy-list.ts). Numbers are
 * checked when they are made: counts, sizes and offsets are safe non-negative integers, and every byte range lies
 * inside the file. Enumerations that only describe (encodings, logical types) may hold numbers we do not know;
 * physical type, repetition and codec of a known column may too, and reading such a column then fails, not the file.
 */
import type { Repetition } from './enums.ts';

/** Half-open byte or row range: [start, end). */
export interface Range {
  readonly start: number;
  readonly end: number;
}

export type TimeUnit = 'millis' | 'micros' | 'nanos';

/** A logical type with its parameters; derived from the converted type when only that is present. */
export type LogicalType =
  | { readonly kind: 'STRING' | 'MAP' | 'LIST' | 'ENUM' | 'DATE' | 'NULL' | 'JSON' | 'BSON' | 'UUID' | 'FLOAT16' }
  | { readonly kind: 'INTERVAL' | 'MAP_KEY_VALUE' } // converted types without a LogicalType of their own
  | { readonly kind: 'DECIMAL'; readonly precision: number; readonly scale: number }
  | { readonly kind: 'TIME' | 'TIMESTAMP'; readonly unit: TimeUnit; readonly utc: boolean }
  | { readonly kind: 'INTEGER'; readonly bitWidth: number; readonly signed: boolean }
  | { readonly kind: 'VARIANT' | 'GEOMETRY' | 'GEOGRAPHY' }
  | { readonly kind: 'UNKNOWN'; readonly fieldId: number }; // an annotation newer than this reader

export interface SchemaElement {
  readonly name: string;
  /** Physical type; absent for groups. */
  readonly type?: number;
  readonly typeLength?: number;
  readonly repetition?: Repetition;
  readonly numChildren?: number;
  readonly convertedType?: number;
  readonly scale?: number;
  readonly precision?: number;
  readonly fieldId?: number;
  readonly logicalType?: LogicalType;
}

/** A node of the schema tree. Leaves carry the column's index among the leaves, in file order. */
export interface SchemaNode {
  readonly name: string;
  readonly path: readonly string[];
  readonly repetition: Repetition;
  readonly logicalType?: LogicalType;
  readonly children: readonly SchemaNode[];
  readonly leaf?: LeafColumn;
  /** The indexes of the leaves at and below it. */
  readonly leafRange: Range;
  /** Where there are many children: those of this name, found without making the others. */
  readonly named?: (name: string) => readonly SchemaNode[];
}

export interface LeafColumn {
  /** Index among the file's leaf columns, the index of its chunk in every row group. */
  readonly index: number;
  /** Path from the root's child to the leaf. */
  readonly path: readonly string[];
  /** Path joined with dots, for messages and `--columns`. */
  readonly name: string;
  readonly type: number;
  /** Bytes of a FIXED_LEN_BYTE_ARRAY value; 0 for the other types. */
  readonly typeLength: number;
  readonly maxDefinitionLevel: number;
  readonly maxRepetitionLevel: number;
  readonly repetition: Repetition;
  readonly logicalType?: LogicalType;
  /** Why an annotation counts for nothing: it is not known, or is not for this physical type, whose values these are. */
  readonly note?: string;
}

export interface Statistics {
  readonly min?: Uint8Array;
  readonly max?: Uint8Array;
  /** Deprecated fields, with undefined order for unsigned types. */
  readonly deprecatedMin?: Uint8Array;
  readonly deprecatedMax?: Uint8Array;
  readonly nullCount?: number;
  readonly distinctCount?: number;
}

export interface ColumnChunk {
  readonly column: number;
  readonly type: number;
  readonly codec: number;
  readonly encodings: readonly number[];
  readonly numValues: number;
  readonly totalCompressedSize: number;
  readonly totalUncompressedSize: number;
  /** The bytes of all its pages, the dictionary page included. */
  readonly bytes: Range;
  readonly dataPageOffset: number;
  readonly dictionaryPageOffset?: number;
  readonly statistics?: Statistics;
  readonly offsetIndex?: Range;
  readonly columnIndex?: Range;
  readonly bloomFilter?: { readonly offset: number; readonly length?: number };
  /** Set when the chunk is encrypted (modular encryption): it can't be read, the others can. */
  readonly encrypted?: true;
  /** Set when this chunk alone is not valid; reading it fails with this reason, the other columns still scan. */
  readonly broken?: string;
}

export interface RowGroup {
  readonly ordinal: number;
  readonly numRows: number;
  /** First row's index in the file. */
  readonly firstRow: number;
  readonly totalByteSize: number;
  readonly totalCompressedSize: number;
  readonly columns: readonly ColumnChunk[];
}

export interface FileMetadata {
  readonly version: number;
  readonly createdBy?: string;
  readonly numRows: number;
  readonly schema: readonly SchemaElement[];
  readonly root: SchemaNode;
  readonly leaves: readonly LeafColumn[];
  readonly rowGroups: readonly RowGroup[];
  readonly keyValues: ReadonlyArray<readonly [key: string, value: string | undefined]>;
  /** Bytes of the Thrift footer, without the 8 bytes of length and magic. */
  readonly footerBytes: number;
}
