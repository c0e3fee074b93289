/** Reads a whole file as a scan does, from its tail to its last value, and throws what a scan throws. */
import type { DecodeEnvironment } from '../column/environment.ts';
import type { ChunkSpec } from '../column/spec.ts';
import { DecodeError } from '../errors.ts';
import type { Physical } from '../format/enums.ts';
import { buildFields, pathsOf } from '../format/field-tree.ts';
import { runChunk } from './chunk-run.ts';
import { metadataOf, runNested } from './nested-run.ts';

/** Reads every chunk. Throws what reading it throws. */
export function readWhole(environment: DecodeEnvironment, bytes: Uint8Array): void {
  const metadata = metadataOf(bytes);
  const paths = pathsOf(buildFields(metadata.root, metadata.leaves));
  for (const group of metadata.rowGroups) {
    for (const [k, chunk] of [...group.columns].entries()) {
      const leaf = metadata.leaves[k]!;
      if (chunk.encrypted) throw new DecodeError('ENCRYPTED', 'the column is encrypted');
      if (chunk.broken !== undefined) throw new DecodeError('METADATA', chunk.broken);
      const { above, slot } = paths.get(k)!;
      const spec: ChunkSpec = {
        columnName: leaf.name,
        physical: leaf.type as Physical,
        typeLength: leaf.typeLength,
        maxDefinitionLevel: leaf.maxDefinitionLevel,
        codec: chunk.codec as ChunkSpec['codec'],
        numValues: chunk.numValues,
        byteLength: chunk.bytes.end - chunk.bytes.start,
        fileOffset: chunk.bytes.start,
        uncompressedBytes: chunk.totalUncompressedSize,
        utf8: leaf.logicalType?.kind === 'STRING',
        bytesOutput: 'values',
        windowRows: 4096,
      };
      const nested = {
        maxRepetitionLevel: leaf.maxRepetitionLevel,
        nodes: above,
        leafSlot: slot,
        rowsHint: group.numRows,
      };
      const body = bytes.subarray(chunk.bytes.start, chunk.bytes.end);
      if (above.length === 0) runChunk(environment, spec, body);
      else runNested(environment, { ...spec, nested }, body);
    }
  }
}
