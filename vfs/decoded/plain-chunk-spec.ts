/** What the decoder of a chunk has to know to decode it for the decoded view: a flat column, values dense. */
import { type ChunkSpec, type Codec, type FileMetadata, type Physical, packsLevelsWrong } from '../../decode/index.ts';

export function plainChunkSpec(metadata: FileMetadata, group: number, column: number, windowRows: number): ChunkSpec {
  const leaf = metadata.leaves[column]!;
  const chunk = metadata.rowGroups[group]!.columns[column]!;
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
    utf8: false,
    bytesOutput: 'values',
    dense: true,
    wrongBitPacking: packsLevelsWrong(metadata.createdBy),
    windowRows,
  };
}
