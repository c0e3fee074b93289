/**
 * The decoded view of a Parquet file as a list of sections, made from its metadata alone: fixed-width chunks are PLAIN
 * uncompressed pages, all others lie there byte for byte, the footer says where. Nothing is read or decoded here.
 *   file = "PAR1" { zeros chunk } footer footer-length:u32le "PAR1"
 * Decoded chunks and the footer begin on borders of the kernel's pages, so that what is known of the file can be given to
 * its cache in whole pages; readers go by the offsets of the footer and never see the zeros between.
 * A file that can't be presented (broken or encrypted chunks, chunks out of order or over each other, none to decode) has no layout: it
 * passes through as it is.
 */
import {
  type ChunkChange,
  type ColumnChunk,
  Encoding,
  type FileMetadata,
  type LeafColumn,
  Physical,
  type PlainChunk,
  packsLevelsWrong,
  planPlainChunk,
  rewriteFooter,
} from '../../decode/index.ts';

/** A range of the virtual file and what is there. Sections are in order and without gaps. */
export type Section = { readonly start: number; readonly length: number } & SectionContent;
export type SectionContent =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  /** Up to the next border; fewer than PAGE_BYTES. */
  | { readonly kind: 'zeros' }
  /** Bytes of the remote file from `from` on. */
  | { readonly kind: 'passed'; readonly from: number }
  | { readonly kind: 'decoded'; readonly group: number; readonly column: number; readonly pages: PlainChunk };

export interface DecodedLayout {
  readonly length: number;
  readonly sections: readonly Section[];
  /** Decoded chunks by row group and column. */
  readonly decoded: ReadonlyMap<number, ReadonlyMap<number, Section & { readonly kind: 'decoded' }>>;
}

export interface LayoutOptions {
  /** Decoded chunks of more bytes pass through: memory could not hold them. */
  readonly chunkBytesMax: number;
}

/** Bytes of a page of the kernel's cache. */
export const PAGE_BYTES = 4096;

const MAGIC = new TextEncoder().encode('PAR1');

/** Bits of a value of fixed width as it is stored in PLAIN pages; undefined for byte arrays and types we don't know. */
function plainBits({ type, typeLength }: LeafColumn): number | undefined {
  switch (type) {
    case Physical.BOOLEAN:
      return 1;
    case Physical.INT32:
    case Physical.FLOAT:
      return 32;
    case Physical.INT64:
    case Physical.DOUBLE:
      return 64;
    case Physical.INT96:
      return 96;
    case Physical.FIXED_LEN_BYTE_ARRAY:
      return typeLength > 0 ? typeLength * 8 : undefined;
    default:
      return undefined;
  }
}

/** Pages by what they follow from: most row groups have the same, and a file's are kept while it is mounted. */
type PlannedPages = Map<string, PlainChunk>;

function planPages(planned: PlannedPages, rows: number, bits: number, optional: boolean): PlainChunk {
  const key = `${rows} ${bits} ${optional}`;
  const pages = planned.get(key) ?? planPlainChunk(rows, bits, optional);
  planned.set(key, pages);
  return pages;
}

/** The pages of a chunk in the decoded view, or undefined when it passes through. */
function planChunk(
  leaf: LeafColumn,
  chunk: ColumnChunk,
  options: LayoutOptions,
  planned: PlannedPages,
): PlainChunk | undefined {
  const bits = plainBits(leaf);
  if (bits === undefined || leaf.maxRepetitionLevel > 0 || leaf.maxDefinitionLevel > 1) return undefined;
  if (chunk.numValues === 0 || chunk.numValues * (bits / 8) > options.chunkBytesMax) return undefined;
  const pages = planPages(planned, chunk.numValues, bits, leaf.maxDefinitionLevel === 1);
  return pages.length > options.chunkBytesMax ? undefined : pages;
}

/**
 * The layout of a file's decoded view, or undefined when the file passes through as it is. `footer` is the Thrift bytes
 * that `metadata` was parsed from.
 */
export function planDecodedFile(
  metadata: FileMetadata,
  footer: Uint8Array,
  options: LayoutOptions,
): DecodedLayout | undefined {
  const sections: Section[] = [];
  const changes: ChunkChange[][] = [];
  let at = 0;
  const add = (length: number, content: SectionContent): void => {
    if (length > 0) sections.push({ start: at, length, ...content });
    at += length;
  };
  const align = (): void => add(Math.ceil(at / PAGE_BYTES) * PAGE_BYTES - at, { kind: 'zeros' });
  add(MAGIC.length, { kind: 'bytes', bytes: MAGIC });
  const areLevelsWrong = packsLevelsWrong(metadata.createdBy);
  const decoded = new Map<number, Map<number, Section & { kind: 'decoded' }>>();
  const planned: PlannedPages = new Map();
  if (chunksOverlap(metadata)) return undefined;
  for (const group of metadata.rowGroups) {
    const changed: ChunkChange[] = [];
    for (const leaf of metadata.leaves) {
      const chunk = group.columns[leaf.index]!;
      if (chunk.broken !== undefined || chunk.encrypted === true) return undefined;
      // levels that can't be told from right ones: what they mean is for the reader to decide
      const isDoubtful = areLevelsWrong && chunk.encodings.includes(Encoding.BIT_PACKED);
      const pages = isDoubtful ? undefined : planChunk(leaf, chunk, options, planned);
      if (pages === undefined) {
        const { start, end } = chunk.bytes;
        // a chunk without values is nowhere
        changed.push({ kind: 'moved', by: end === start ? 0 : at - start });
        add(end - start, { kind: 'passed', from: start });
      } else {
        align();
        changed.push({ kind: 'plain', start: at, length: pages.length, pages: pages.count });
        add(pages.length, { kind: 'decoded', group: group.ordinal, column: leaf.index, pages });
        const ofGroup = decoded.get(group.ordinal) ?? new Map();
        decoded.set(group.ordinal, ofGroup.set(leaf.index, sections.at(-1)));
        align();
      }
    }
    changes.push(changed);
  }
  if (decoded.size === 0) return undefined;
  const rewritten = rewriteFooter(footer, metadata.leaves, (group, column) => changes[group]![column]!);
  if (rewritten === undefined) return undefined;
  const tail = new Uint8Array(rewritten.length + 8);
  tail.set(rewritten);
  new DataView(tail.buffer).setUint32(rewritten.length, rewritten.length, true);
  tail.set(MAGIC, rewritten.length + 4);
  align();
  add(tail.length, { kind: 'bytes', bytes: tail });
  return { length: at, sections, decoded };
}

/** Whether two chunks have bytes in common: a hostile footer, or one of those that leave headers out of sizes. */
function chunksOverlap({ rowGroups }: FileMetadata): boolean {
  const ranges = rowGroups.flatMap((group) => group.columns.map(({ bytes }) => bytes));
  ranges.sort((a, b) => a.start - b.start);
  return ranges.some((range, k) => k > 0 && range.start < ranges[k - 1]!.end);
}
