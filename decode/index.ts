/** What other folders may use of decode/. */

export { ChunkDecoder } from './column/chunk-decoder.ts';
export type { DecodeEnvironment } from './column/environment.ts';
export { freeSegment } from './column/free-segment.ts';
export { codecCounts, encodingCounts, PAGE_TALLY_LENGTH, PageTally } from './column/page-tally.ts';
export { dictionaryBytes, segmentBytes } from './column/segment-bytes.ts';
export type {
  BytesOutput,
  ChunkSpec,
  DictionaryValues,
  InputPiece,
  NestedNode,
  NestedShape,
  NestedStructure,
  Segment,
  SegmentLayout,
  StepResult,
  WindowPlaces,
} from './column/spec.ts';
export type { DecodeErrorCode, ErrorPlace } from './errors.ts';
export { DecodeError } from './errors.ts';
export { Codec, Encoding, nameOf, Physical, Repetition } from './format/enums.ts';
export type { Field, LeafField, ListField, MapField, StructField } from './format/field-tree.ts';
export { buildFields, pathsOf } from './format/field-tree.ts';
export { packsLevelsWrong } from './format/known-writers.ts';
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
export { parseFooter, parseTail } from './format/parse-footer.ts';
export { type PlainChunk, type PlainPage, planPlainChunk } from './format/plain-pages.ts';
export { type ChunkChange, rewriteFooter } from './format/rewrite-footer.ts';
export { physicalName } from './format/schema.ts';
export type { Kernels } from './kernels/kernels.ts';
export { type KernelKind, loadKernels } from './kernels/load.ts';
export {
  BLOCK_BYTES,
  LEVEL_MAX,
  LINE_BYTES,
  MEMORY_BYTES_MAX,
  MEMORY_BYTES_MIN,
  WINDOW_SLACK_BYTES,
} from './limits.ts';
export { Pool } from './pool/pool.ts';
