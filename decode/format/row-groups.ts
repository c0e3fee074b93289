/**
 * The footer's row groups (parquet.thrift, RowGroup) in two steps: one pass that finds where each column chunk's struct
 * is, and the chunks themselves, made when they are asked for. The pass reads past chunks without looking inside: a
 * chunk that turns out not to be valid is marked then, as any that breaks a rule.
 */
import { DecodeError } from '../errors.ts';
import { ChunkPaths } from './chunk-paths.ts';
import type { FooterContext } from './column-chunk.ts';
import { parseColumnChunk } from './column-chunk.ts';
import type { CompactReader } from './compact.ts';
import { Wire } from './compact.ts';
import { lazyList } from './lazy-list.ts';
import { CHUNKS_MAX, ROW_GROUPS_MAX } from './limits.ts';
import type { RowGroup } from './metadata.ts';

export interface RowGroupIndex {
  readonly numRows: number;
  readonly firstRow: number;
  readonly totalByteSize: number;
  /** -1 when the footer does not say. */
  readonly totalCompressedSize: number;
  /** Position of each chunk's struct in the footer. */
  readonly chunksAt: Uint32Array;
}

/** Finds what is in the list of RowGroup structs; the reader stands at its header. Throws THRIFT, METADATA, LIMIT. */
export function indexRowGroups(r: CompactReader, wire: number, leaves: number): RowGroupIndex[] {
  const size = r.list(wire, Wire.STRUCT);
  checkLimit(size, ROW_GROUPS_MAX, 'row groups');
  checkLimit(size * leaves, CHUNKS_MAX, 'column chunks');
  const groups: RowGroupIndex[] = [];
  let firstRow = 0;
  for (let ordinal = 0; ordinal < size; ordinal++) {
    const group = indexRowGroup(r, ordinal, firstRow, leaves);
    groups.push(group);
    firstRow += group.numRows;
    if (!Number.isSafeInteger(firstRow)) {
      throw new DecodeError('METADATA', 'the row groups have more rows than can be counted', { rowGroup: ordinal });
    }
  }
  return groups;
}

/** Before anything is made of it: in a hostile footer an element takes a byte. */
function checkLimit(count: number, max: number, what: string): void {
  if (count > max) throw new DecodeError('LIMIT', `the footer lists ${count} ${what}`, { expected: `at most ${max}` });
}

function indexRowGroup(r: CompactReader, ordinal: number, firstRow: number, leaves: number): RowGroupIndex {
  let chunksAt: Uint32Array | undefined;
  let numRows = -1;
  let totalByteSize = 0;
  let totalCompressedSize = -1;
  for (let last = 0; ; ) {
    const wire = r.field(last);
    if (wire === Wire.STOP) break;
    last = r.id;
    switch (last) {
      case 1: {
        const size = r.list(wire, Wire.STRUCT);
        if (size !== leaves || chunksAt !== undefined) {
          throw new DecodeError('METADATA', `the row group lists ${size} column chunks`, {
            rowGroup: ordinal,
            expected: `${leaves}, one for each leaf of the schema`,
          });
        }
        chunksAt = new Uint32Array(size);
        for (let i = 0; i < size; i++) {
          chunksAt[i] = r.pos;
          r.skip(Wire.STRUCT);
        }
        break;
      }
      case 2:
        totalByteSize = r.i64(wire);
        break;
      case 3:
        numRows = r.i64(wire);
        break;
      case 6:
        totalCompressedSize = r.i64(wire);
        break;
      default:
        r.skip(wire);
    }
  }
  if (chunksAt === undefined && leaves > 0) {
    throw new DecodeError('METADATA', 'the row group lists no column chunks', { rowGroup: ordinal });
  }
  if (!Number.isSafeInteger(numRows) || numRows < 0) {
    throw new DecodeError('METADATA', `the row group says it has ${numRows} rows`, {
      rowGroup: ordinal,
      expected: 'zero or more',
    });
  }
  return {
    numRows,
    firstRow,
    // Sums that only describe: writers get them wrong, and some leave the second one out.
    totalByteSize: isCount(totalByteSize) ? totalByteSize : 0,
    totalCompressedSize: isCount(totalCompressedSize) ? totalCompressedSize : -1,
    chunksAt: chunksAt ?? new Uint32Array(0),
  };
}

/** The row groups; `r` is a reader of the footer of their own. */
export function rowGroupsOf(index: readonly RowGroupIndex[], r: CompactReader, context: FooterContext): RowGroup[] {
  return index.map(({ numRows, firstRow, totalByteSize, totalCompressedSize, chunksAt }, ordinal) => {
    const paths = new ChunkPaths(r, chunksAt);
    const columns = lazyList(chunksAt.length, (column) => {
      r.pos = chunksAt[column]!;
      return parseColumnChunk(r, column, numRows, context, paths);
    });
    const common = { ordinal, numRows, firstRow, totalByteSize };
    if (totalCompressedSize >= 0) return { ...common, totalCompressedSize, columns };
    return {
      ...common,
      get totalCompressedSize() {
        return columns.reduce((sum, chunk) => sum + chunk.totalCompressedSize, 0);
      },
      columns,
    };
  });
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
