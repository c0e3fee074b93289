/** Metadata of files that were never written, for tests of the planner. */
import type { ColumnChunk, FileMetadata, LeafColumn, RowGroup, SchemaNode } from '../../decode/index.ts';
import { Codec, Physical, Repetition } from '../../decode/index.ts';

export interface ModelColumn {
  /** Dotted: groups are made from the parts before the last. */
  readonly name: string;
  readonly type?: number;
  /** Bytes of its chunk in every row group. */
  readonly bytes: number;
  readonly uncompressed?: number;
  readonly broken?: string;
}

/** Row groups of `rows` rows each, chunks one after the other from byte 4 with `gap` bytes between them. */
export function modelMetadata(columns: readonly ModelColumn[], rows: readonly number[], gap = 0): FileMetadata {
  const leaves: LeafColumn[] = columns.map(({ name, type }, index) => ({
    index,
    path: name.split('.'),
    name,
    type: type ?? Physical.INT64,
    typeLength: 0,
    maxDefinitionLevel: 0,
    maxRepetitionLevel: 0,
    repetition: Repetition.REQUIRED,
  }));
  const rowGroups: RowGroup[] = [];
  let at = 4;
  let firstRow = 0;
  for (const [ordinal, numRows] of rows.entries()) {
    const chunks = columns.map(({ type, bytes, uncompressed, broken }, column): ColumnChunk => {
      const start = at;
      at += bytes + gap;
      return {
        column,
        type: type ?? Physical.INT64,
        codec: Codec.SNAPPY,
        encodings: [0],
        numValues: numRows,
        totalCompressedSize: bytes,
        totalUncompressedSize: uncompressed ?? bytes,
        bytes: broken === undefined ? { start, end: start + bytes } : { start: 0, end: 0 },
        dataPageOffset: start,
        ...(broken === undefined ? {} : { broken }),
      };
    });
    rowGroups.push({ ordinal, numRows, firstRow, totalByteSize: 0, totalCompressedSize: 0, columns: chunks });
    firstRow += numRows;
  }
  return {
    version: 2,
    numRows: firstRow,
    schema: [],
    root: treeOf(leaves),
    leaves,
    rowGroups,
    keyValues: [],
    footerBytes: 100,
  };
}

function treeOf(leaves: readonly LeafColumn[]): SchemaNode {
  const nodeAt = (path: readonly string[], below: readonly LeafColumn[]): SchemaNode => {
    const leaf = below.length === 1 && below[0]!.path.length === path.length ? below[0]! : undefined;
    const names = leaf ? [] : [...new Set(below.map((one) => one.path[path.length]!))];
    const children = names.map((name) =>
      nodeAt(
        [...path, name],
        below.filter((one) => one.path[path.length] === name),
      ),
    );
    const leafRange = { start: below[0]?.index ?? 0, end: (below.at(-1)?.index ?? -1) + 1 };
    const node = { name: path.at(-1) ?? 'schema', path, repetition: Repetition.REQUIRED, children, leafRange };
    return leaf ? { ...node, leaf } : node;
  };
  return nodeAt([], leaves);
}
