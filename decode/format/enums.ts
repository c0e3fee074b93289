/**
 * Parquet's enumerations, with the numbers of parquet.thrift (apache/parquet-format, version 2.11).
 * Names are the specification's own.
 */
export const Physical = {
  BOOLEAN: 0,
  INT32: 1,
  INT64: 2,
  INT96: 3,
  FLOAT: 4,
  DOUBLE: 5,
  BYTE_ARRAY: 6,
  FIXED_LEN_BYTE_ARRAY: 7,
} as const;
export type Physical = (typeof Physical)[keyof typeof Physical];

export const Repetition = { REQUIRED: 0, OPTIONAL: 1, REPEATED: 2 } as const;
export type Repetition = (typeof Repetition)[keyof typeof Repetition];

export const Codec = {
  UNCOMPRESSED: 0,
  SNAPPY: 1,
  GZIP: 2,
  LZO: 3,
  BROTLI: 4,
  LZ4: 5,
  ZSTD: 6,
  LZ4_RAW: 7,
} as const;
export type Codec = (typeof Codec)[keyof typeof Codec];

export const Encoding = {
  PLAIN: 0,
  PLAIN_DICTIONARY: 2,
  RLE: 3,
  BIT_PACKED: 4,
  DELTA_BINARY_PACKED: 5,
  DELTA_LENGTH_BYTE_ARRAY: 6,
  DELTA_BYTE_ARRAY: 7,
  RLE_DICTIONARY: 8,
  BYTE_STREAM_SPLIT: 9,
} as const;
export type Encoding = (typeof Encoding)[keyof typeof Encoding];

export const PageType = { DATA_PAGE: 0, INDEX_PAGE: 1, DICTIONARY_PAGE: 2, DATA_PAGE_V2: 3 } as const;
export type PageType = (typeof PageType)[keyof typeof PageType];

export const Converted = {
  UTF8: 0,
  MAP: 1,
  MAP_KEY_VALUE: 2,
  LIST: 3,
  ENUM: 4,
  DECIMAL: 5,
  DATE: 6,
  TIME_MILLIS: 7,
  TIME_MICROS: 8,
  TIMESTAMP_MILLIS: 9,
  TIMESTAMP_MICROS: 10,
  UINT_8: 11,
  UINT_16: 12,
  UINT_32: 13,
  UINT_64: 14,
  INT_8: 15,
  INT_16: 16,
  INT_32: 17,
  INT_64: 18,
  JSON: 19,
  BSON: 20,
  INTERVAL: 21,
} as const;
export type Converted = (typeof Converted)[keyof typeof Converted];

/** The specification's name of an enumeration's number, or the number itself when it is not known. */
export function nameOf(table: Readonly<Record<string, number>>, value: number): string {
  for (const [name, number] of Object.entries(table)) if (number === value) return name;
  return String(value);
}
