/** parquet.thrift as tables for the Thrift twin: field ids, names and types of the structures that decode/ reads. */
import type { Table } from './thrift-twin.ts';

const EMPTY: Table = {};
const NONE = { struct: EMPTY } as const;

export const STATISTICS: Table = {
  1: ['max', 'binary'],
  2: ['min', 'binary'],
  3: ['null_count', 'i64'],
  4: ['distinct_count', 'i64'],
  5: ['max_value', 'binary'],
  6: ['min_value', 'binary'],
  7: ['is_max_value_exact', 'bool'],
  8: ['is_min_value_exact', 'bool'],
};

const TIME_UNIT: Table = { 1: ['MILLIS', NONE], 2: ['MICROS', NONE], 3: ['NANOS', NONE] };
const TIME: Table = { 1: ['isAdjustedToUTC', 'bool'], 2: ['unit', { struct: TIME_UNIT }] };

export const LOGICAL_TYPE: Table = {
  1: ['STRING', NONE],
  2: ['MAP', NONE],
  3: ['LIST', NONE],
  4: ['ENUM', NONE],
  5: ['DECIMAL', { struct: { 1: ['scale', 'i32'], 2: ['precision', 'i32'] } }],
  6: ['DATE', NONE],
  7: ['TIME', { struct: TIME }],
  8: ['TIMESTAMP', { struct: TIME }],
  10: ['INTEGER', { struct: { 1: ['bitWidth', 'i8'], 2: ['isSigned', 'bool'] } }],
  11: ['UNKNOWN', NONE],
  12: ['JSON', NONE],
  13: ['BSON', NONE],
  14: ['UUID', NONE],
  15: ['FLOAT16', NONE],
  16: ['VARIANT', { struct: { 1: ['specification_version', 'i8'] } }],
  17: ['GEOMETRY', { struct: { 1: ['crs', 'string'] } }],
  18: ['GEOGRAPHY', { struct: { 1: ['crs', 'string'], 2: ['algorithm', 'i32'] } }],
  40: ['FROM_THE_FUTURE', { struct: { 1: ['parameter', 'i32'] } }],
};

export const SCHEMA_ELEMENT: Table = {
  1: ['type', 'i32'],
  2: ['type_length', 'i32'],
  3: ['repetition_type', 'i32'],
  4: ['name', 'string'],
  5: ['num_children', 'i32'],
  6: ['converted_type', 'i32'],
  7: ['scale', 'i32'],
  8: ['precision', 'i32'],
  9: ['field_id', 'i32'],
  10: ['logicalType', { struct: LOGICAL_TYPE }],
};

const KEY_VALUE: Table = { 1: ['key', 'string'], 2: ['value', 'string'] };

const PAGE_ENCODING_STATS: Table = { 1: ['page_type', 'i32'], 2: ['encoding', 'i32'], 3: ['count', 'i32'] };

export const COLUMN_META_DATA: Table = {
  1: ['type', 'i32'],
  2: ['encodings', { list: 'i32' }],
  3: ['path_in_schema', { list: 'string' }],
  4: ['codec', 'i32'],
  5: ['num_values', 'i64'],
  6: ['total_uncompressed_size', 'i64'],
  7: ['total_compressed_size', 'i64'],
  8: ['key_value_metadata', { list: { struct: KEY_VALUE } }],
  9: ['data_page_offset', 'i64'],
  10: ['index_page_offset', 'i64'],
  11: ['dictionary_page_offset', 'i64'],
  12: ['statistics', { struct: STATISTICS }],
  13: ['encoding_stats', { list: { struct: PAGE_ENCODING_STATS } }],
  14: ['bloom_filter_offset', 'i64'],
  15: ['bloom_filter_length', 'i32'],
};

const CRYPTO_META_DATA: Table = {
  1: ['ENCRYPTION_WITH_FOOTER_KEY', NONE],
  2: [
    'ENCRYPTION_WITH_COLUMN_KEY',
    { struct: { 1: ['path_in_schema', { list: 'string' }], 2: ['key_metadata', 'binary'] } },
  ],
};

const AES_GCM: Table = {
  1: ['aad_prefix', 'binary'],
  2: ['aad_file_unique', 'binary'],
  3: ['supply_aad_prefix', 'bool'],
};

export const COLUMN_CHUNK: Table = {
  1: ['file_path', 'string'],
  2: ['file_offset', 'i64'],
  3: ['meta_data', { struct: COLUMN_META_DATA }],
  4: ['offset_index_offset', 'i64'],
  5: ['offset_index_length', 'i32'],
  6: ['column_index_offset', 'i64'],
  7: ['column_index_length', 'i32'],
  8: ['crypto_metadata', { struct: CRYPTO_META_DATA }],
  9: ['encrypted_column_metadata', 'binary'],
};

export const ROW_GROUP: Table = {
  1: ['columns', { list: { struct: COLUMN_CHUNK } }],
  2: ['total_byte_size', 'i64'],
  3: ['num_rows', 'i64'],
  5: ['file_offset', 'i64'],
  6: ['total_compressed_size', 'i64'],
  7: ['ordinal', 'i16'],
};

export const FILE_META_DATA: Table = {
  1: ['version', 'i32'],
  2: ['schema', { list: { struct: SCHEMA_ELEMENT } }],
  3: ['num_rows', 'i64'],
  4: ['row_groups', { list: { struct: ROW_GROUP } }],
  5: ['key_value_metadata', { list: { struct: KEY_VALUE } }],
  6: ['created_by', 'string'],
  8: ['encryption_algorithm', { struct: { 1: ['AES_GCM_V1', { struct: AES_GCM }] } }],
  9: ['footer_signing_key_metadata', 'binary'],
};

const DATA_PAGE_HEADER: Table = {
  1: ['num_values', 'i32'],
  2: ['encoding', 'i32'],
  3: ['definition_level_encoding', 'i32'],
  4: ['repetition_level_encoding', 'i32'],
  5: ['statistics', { struct: STATISTICS }],
};

const DICTIONARY_PAGE_HEADER: Table = { 1: ['num_values', 'i32'], 2: ['encoding', 'i32'], 3: ['is_sorted', 'bool'] };

const DATA_PAGE_HEADER_V2: Table = {
  1: ['num_values', 'i32'],
  2: ['num_nulls', 'i32'],
  3: ['num_rows', 'i32'],
  4: ['encoding', 'i32'],
  5: ['definition_levels_byte_length', 'i32'],
  6: ['repetition_levels_byte_length', 'i32'],
  7: ['is_compressed', 'bool'],
  8: ['statistics', { struct: STATISTICS }],
};

export const PAGE_HEADER: Table = {
  1: ['type', 'i32'],
  2: ['uncompressed_page_size', 'i32'],
  3: ['compressed_page_size', 'i32'],
  4: ['crc', 'i32'],
  5: ['data_page_header', { struct: DATA_PAGE_HEADER }],
  6: ['index_page_header', NONE],
  7: ['dictionary_page_header', { struct: DICTIONARY_PAGE_HEADER }],
  8: ['data_page_header_v2', { struct: DATA_PAGE_HEADER_V2 }],
};
