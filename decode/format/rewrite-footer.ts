/**
 * The footer of a file whose column chunks lie elsewhere, or in another form, than in the file that the footer is of:
 * the same schema, rows, row groups, statistics and key-values, other places. Every field that is not about places or
 * pages is copied as it is, those we do not know too. Page indexes and Bloom filters are left out: what they say of
 * pages and offsets would not be true, and a reader that trusts them would be misled (parquet.thrift, ColumnChunk).
 */
import { CompactReader, Wire } from './compact.ts';
import { CompactWriter, type RawField, splitStruct } from './compact-writer.ts';
import { Encoding } from './enums.ts';
import type { LeafColumn } from './metadata.ts';

/** What has become of a column chunk. */
export type ChunkChange =
  /** Its bytes are the same and lie `by` bytes further on. */
  | { readonly kind: 'moved'; readonly by: number }
  /** It is `pages` PLAIN, uncompressed data pages (V1, RLE levels) at [start, start + length). */
  | { readonly kind: 'plain'; readonly start: number; readonly length: number; readonly pages: number };

const CODEC_UNCOMPRESSED = 0;
const DATA_PAGE = 0;

/** Fields of parquet.thrift's structs, by id. */
const FILE = { rowGroups: 4, encryption: 8 } as const;
const GROUP = { columns: 1, totalByteSize: 2, fileOffset: 5, totalCompressedSize: 6 } as const;
const CHUNK = { fileOffset: 2, metaData: 3, indexes: [4, 5, 6, 7] as readonly number[] } as const;
const META = {
  encodings: 2,
  path: 3,
  codec: 4,
  totalUncompressed: 6,
  totalCompressed: 7,
  dataPage: 9,
  indexPage: 10,
  dictionaryPage: 11,
  encodingStats: 13,
  bloomOffset: 14,
  bloomLength: 15,
} as const;

/** Thrown inside when the footer is none that can be rewritten. */
const UNFIT = new Error('unfit');

/**
 * The Thrift bytes of the new footer. `footer` is the one that `leaves` were parsed from; `change` is asked for every
 * chunk. Undefined when chunks are not in the order of the leaves, or the footer is signed (encryption): what it says
 * could not be changed so that a reader believes it. Throws THRIFT where a struct is not what it was taken for.
 */
export function rewriteFooter(
  footer: Uint8Array,
  leaves: readonly LeafColumn[],
  change: (group: number, column: number) => ChunkChange,
): Uint8Array | undefined {
  try {
    return rewritten(footer, leaves, change);
  } catch (error) {
    if (error === UNFIT) return undefined;
    throw error;
  }
}

function rewritten(
  footer: Uint8Array,
  leaves: readonly LeafColumn[],
  change: (group: number, column: number) => ChunkChange,
): Uint8Array {
  const r = new CompactReader(footer);
  const w = new CompactWriter();
  for (const field of splitStruct(r)) {
    if (field.id === FILE.encryption) throw UNFIT;
    if (field.id !== FILE.rowGroups) {
      w.copy(footer, field);
      continue;
    }
    r.pos = field.start;
    const groups = r.list(field.wire, Wire.STRUCT);
    w.list(field.id, Wire.STRUCT, groups);
    for (let group = 0; group < groups; group++) {
      rewriteGroup({ r, w, footer, leaves }, (column) => change(group, column));
    }
  }
  return w.end().bytes();
}

interface Rewriting {
  readonly r: CompactReader;
  readonly w: CompactWriter;
  readonly footer: Uint8Array;
  readonly leaves: readonly LeafColumn[];
}

/** Sizes of a row group's chunks after the change, and where the first lies. */
interface Totals {
  uncompressed: number;
  compressed: number;
  first: number;
}

function rewriteGroup(state: Rewriting, change: (column: number) => ChunkChange): void {
  const { r, w, footer } = state;
  // the totals are known when the columns, which have the lowest id, have been written
  const fields = splitStruct(r).sort((a, b) => a.id - b.id);
  const after = r.pos;
  const totals: Totals = { uncompressed: 0, compressed: 0, first: Number.POSITIVE_INFINITY };
  w.begin();
  for (const field of fields) {
    if (field.id === GROUP.columns) {
      r.pos = field.start;
      const columns = r.list(field.wire, Wire.STRUCT);
      w.list(field.id, Wire.STRUCT, columns);
      if (columns !== state.leaves.length) throw UNFIT;
      for (let column = 0; column < columns; column++) rewriteChunk(state, column, change(column), totals);
    } else if (field.id === GROUP.totalByteSize) w.integer(field.id, Wire.I64, totals.uncompressed);
    else if (field.id === GROUP.totalCompressedSize) w.integer(field.id, Wire.I64, totals.compressed);
    else if (field.id === GROUP.fileOffset) {
      if (totals.first !== Number.POSITIVE_INFINITY) w.integer(field.id, Wire.I64, totals.first);
    } else w.copy(footer, field);
  }
  w.end();
  r.pos = after;
}

function rewriteChunk(state: Rewriting, column: number, change: ChunkChange, totals: Totals): void {
  const { r, w, footer } = state;
  const fields = splitStruct(r);
  const after = r.pos;
  w.begin();
  for (const field of fields) {
    if (field.id === CHUNK.metaData && field.wire === Wire.STRUCT) {
      w.field(field.id, Wire.STRUCT);
      r.pos = field.start;
      rewriteMetaData(state, column, change, totals);
    } else if (field.id === CHUNK.fileOffset && field.wire === Wire.I64) {
      // deprecated; writers put the chunk's start there, or its end, or zero
      const old = integer(r, field);
      w.integer(field.id, Wire.I64, change.kind === 'plain' ? change.start : old === 0 ? 0 : old + change.by);
    } else if (!CHUNK.indexes.includes(field.id)) w.copy(footer, field);
  }
  w.end();
  r.pos = after;
}

function rewriteMetaData(state: Rewriting, column: number, change: ChunkChange, totals: Totals): void {
  const { r, w, footer } = state;
  const old = new Map<number, number>();
  const fields = splitStruct(r);
  const after = r.pos;
  for (const field of fields) {
    if (field.wire === Wire.I64) old.set(field.id, integer(r, field));
    if (field.id === META.path) checkPath(r, field, state.leaves[column]!.path);
  }
  const plain = change.kind === 'plain' ? change : undefined;
  const by = change.kind === 'moved' ? change.by : 0;
  const moved = (id: number): number => {
    const offset = old.get(id) ?? 0;
    return offset === 0 ? 0 : offset + by;
  };
  const dictionary = moved(META.dictionaryPage);
  const data = plain?.start ?? moved(META.dataPage);
  // sums of what a footer claims: the largest that can be written is as good as any other then
  const sum = (total: number, id: number): number =>
    Math.min(total + (plain?.length ?? old.get(id) ?? 0), Number.MAX_SAFE_INTEGER);
  totals.uncompressed = sum(totals.uncompressed, META.totalUncompressed);
  totals.compressed = sum(totals.compressed, META.totalCompressed);
  totals.first = Math.min(totals.first, plain === undefined && dictionary > 0 ? Math.min(dictionary, data) : data);
  w.begin();
  for (const field of fields) {
    switch (field.id) {
      case META.bloomOffset:
      case META.bloomLength:
        break;
      case META.dataPage:
        w.integer(field.id, Wire.I64, data);
        break;
      case META.dictionaryPage:
      case META.indexPage:
        if (plain === undefined) w.integer(field.id, Wire.I64, moved(field.id));
        break;
      default:
        if (plain === undefined) w.copy(footer, field);
        else rewritePlain(w, footer, field, plain);
    }
  }
  w.end();
  r.pos = after;
}

function rewritePlain(
  w: CompactWriter,
  footer: Uint8Array,
  field: RawField,
  { length, pages }: { length: number; pages: number },
): void {
  switch (field.id) {
    case META.encodings:
      w.list(field.id, Wire.I32, 2).element(Encoding.PLAIN).element(Encoding.RLE);
      break;
    case META.codec:
      w.integer(field.id, Wire.I32, CODEC_UNCOMPRESSED);
      break;
    case META.totalUncompressed:
    case META.totalCompressed:
      w.integer(field.id, Wire.I64, length);
      break;
    case META.encodingStats:
      w.list(field.id, Wire.STRUCT, 1).begin();
      w.integer(1, Wire.I32, DATA_PAGE).integer(2, Wire.I32, Encoding.PLAIN).integer(3, Wire.I32, pages).end();
      break;
    default:
      w.copy(footer, field);
  }
}

function checkPath(r: CompactReader, field: RawField, path: readonly string[]): void {
  r.pos = field.start;
  if (r.list(field.wire, Wire.BINARY) !== path.length) throw UNFIT;
  for (const segment of path) if (!r.equalsText(segment)) throw UNFIT;
}

function integer(r: CompactReader, field: RawField): number {
  r.pos = field.start;
  return r.i64(field.wire);
}
