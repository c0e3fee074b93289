/** A small Parquet writer for tests: columns of any nesting, written to exactly the structure asked for. */
export type { ChunkPlan, NestedLevels, PagePlan, WrittenChunk, WrittenPage } from './chunk.ts';
export { writeChunk } from './chunk.ts';
export type { Framing } from './compress.ts';
export { CODECS, compress } from './compress.ts';
export type { DeltaShape } from './delta.ts';
export { DELTA_SHAPES } from './delta.ts';
export type { FilePlan, WrittenFile } from './file.ts';
export { writeFile } from './file.ts';
export type { FieldPlan, LeafPlan, ListPlan, MapPlan, NestedValue, StructPlan } from './nested.ts';
export { chunkPlan, type LeafColumn, schemaElements, shred } from './nested.ts';
export type { RunStyle } from './runs.ts';
export { encodeRuns, packedRun, rleRun, varint } from './runs.ts';
export type { ColumnValue, WriterColumn } from './value.ts';
export { join, u32, valueBytes } from './value.ts';
