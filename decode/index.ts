/** What other folders may use of decode/. */
export type { DecodeErrorCode, ErrorPlace } from './errors.ts';
export { DecodeError } from './errors.ts';
export { Codec, Converted, Encoding, nameOf, PageType, Physical, Repetition } from './format/enums.ts';
export type {
  ColumnChunk,
  FileMetadata,
  LeafColumn,
  LogicalType,
  Range,
  RowGroup,
  SchemaElement,
  SchemaNode,
  Statistics,
  TimeUnit,
} from './format/metadata.ts';
export { parseFooter, parseTail, TAIL_BYTES } from './format/parse-footer.ts';
export { physicalName } from './format/schema.ts';
