/** A small Parquet writer for tests: flat columns, written to exactly the structure asked for. */
export type { ChunkPlan, PagePlan, WrittenChunk, WrittenPage } from './chunk.ts';
export { writeChunk } from './chunk.ts';
export { CODECS, compress } from './compress.ts';
export type { FilePlan, WrittenFile } from './file.ts';
export { writeFile } from './file.ts';
export type { RunStyle } from './runs.ts';
export { encodeRuns, packedRun, rleRun, varint } from './runs.ts';
export type { ColumnValue, WriterColumn } from './value.ts';
export { join, u32, valueBytes } from './value.ts';
