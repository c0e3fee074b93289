/**
 * The product's own decode of column chunks that lie in the pool already, on one thread: page headers, decompression,
 * levels, values, UTF-8 checks, segments in pool memory, as a decoder stream does it, without the stream.
 */
import { readFileSync } from 'node:fs';
import { isText } from '../daemon/arrow/arrow-type.ts';
import { nestedShape } from '../daemon/scan/file-source.ts';
import {
  type BytesOutput,
  buildFields,
  ChunkDecoder,
  type ChunkSpec,
  type Codec,
  type DecodeEnvironment,
  type FileMetadata,
  freeSegment,
  type KernelKind,
  type LeafColumn,
  loadKernels,
  type Physical,
  Pool,
  parseFooter,
  parseTail,
  type Segment,
} from '../decode/index.ts';
import { BATCH_ROWS_MAX } from '../fetcher/limits.ts';

/** A Parquet file in memory. */
export interface LoadedFile {
  readonly path: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly metadata: FileMetadata;
}

export function loadFile(path: string): LoadedFile {
  const bytes = new Uint8Array(readFileSync(path));
  const { footerStart, footerLength } = parseTail(bytes, bytes.length);
  return {
    path,
    bytes,
    metadata: parseFooter(bytes.subarray(footerStart, footerStart + footerLength), bytes.length),
  };
}

export function leafNamed(file: LoadedFile, name: string): LeafColumn {
  return file.metadata.leaves.find((leaf) => leaf.name === name)!;
}

export function decodeEnvironment(memoryBytes: number, kind?: KernelKind): DecodeEnvironment {
  const pool = Pool.create(memoryBytes);
  return { pool, kernels: loadKernels(pool.memory, kind), verifyChecksums: true };
}

/** What a scan of the column asks of its decoder. */
export function chunkSpec(
  metadata: FileMetadata,
  leaf: LeafColumn,
  group: number,
  bytesOutput: BytesOutput,
): ChunkSpec {
  const { columns, numRows } = metadata.rowGroups[group]!;
  const chunk = columns[leaf.index]!;
  const nested = nestedShape(buildFields(metadata.root, [leaf]), leaf, '');
  return {
    columnName: leaf.name,
    physical: leaf.type as Physical,
    typeLength: leaf.typeLength,
    maxDefinitionLevel: leaf.maxDefinitionLevel,
    codec: chunk.codec as Codec,
    numValues: chunk.numValues,
    byteLength: chunk.bytes.end - chunk.bytes.start,
    fileOffset: chunk.bytes.start,
    uncompressedBytes: chunk.totalUncompressedSize,
    utf8: isText(leaf),
    bytesOutput,
    windowRows: BATCH_ROWS_MAX,
    ...(nested === undefined ? {} : { nested: { ...nested, rowsHint: numRows } }),
  };
}

/**
 * Decodes a column of the first `groups` row groups and returns the milliseconds that took; a chunk's bytes are put
 * into the pool before its time starts. `onSegment` is called outside the time that counts.
 */
export function decodeColumn(
  environment: DecodeEnvironment,
  { metadata, bytes }: LoadedFile,
  leaf: LeafColumn,
  { output = 'values', groups = metadata.rowGroups.length }: { output?: BytesOutput; groups?: number } = {},
  onSegment?: (segment: Segment) => void,
): number {
  const { pool } = environment;
  let milliseconds = 0;
  for (let group = 0; group < groups; group++) {
    const spec = chunkSpec(metadata, leaf, group, output);
    const slab = pool.allocate(spec.byteLength);
    pool.u8.set(bytes.subarray(spec.fileOffset, spec.fileOffset + spec.byteLength), slab);
    let began = performance.now();
    const decoder = new ChunkDecoder(environment, spec);
    decoder.input.add({ address: slab, start: 0, end: spec.byteLength });
    decoder.input.arrived = spec.byteLength;
    let dictionary: Segment['dictionary'];
    for (;;) {
      const result = decoder.step();
      if (result === 'end') break;
      if (result !== 'segment') throw new Error(`the decoder of ${leaf.name} waits for ${result}`);
      const segment = decoder.takeSegment();
      dictionary ??= segment.dictionary;
      if (onSegment !== undefined) {
        milliseconds += performance.now() - began;
        onSegment(segment);
        began = performance.now();
      }
      freeSegment(pool, segment);
    }
    decoder.close();
    if (dictionary !== undefined) pool.free(dictionary.slab, dictionary.slabBytes);
    milliseconds += performance.now() - began;
    pool.free(slab, spec.byteLength);
  }
  return milliseconds;
}
