/**
 * A Parquet file taken apart so that one thing in it can be changed and the rest kept right: its footer as a tree, and
 * its pages with their headers. Changed parts are put back with every offset and size behind them corrected.
 */
import { brotliDecompressSync, crc32, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { uncompressSync as lz4UncompressSync } from 'lz4-napi';
import { uncompressSync as snappyUncompressSync } from 'snappy';
import { Codec, PageType } from '../decode/format/enums.ts';
import type { LeafColumn } from '../decode/format/metadata.ts';
import { parsePageHeader } from '../decode/format/page-header.ts';
import { parseFooter } from '../decode/format/parse-footer.ts';
import { FILE_META_DATA, PAGE_HEADER } from '../decode/tests/parquet-tables.ts';
import { readStruct, type Tree, type Value, writeStruct } from '../decode/tests/thrift-twin.ts';
import { compress, join, u32 } from '../decode/tests/writer/index.ts';

export interface Page {
  readonly group: number;
  readonly column: number;
  /** File offsets of header, body and end. */
  readonly start: number;
  readonly body: number;
  readonly end: number;
  readonly header: Tree;
  readonly codec: number;
  /** Of its column: whether its pages have such levels. */
  readonly repeats: boolean;
  readonly isDefined: boolean;
}

export interface Dissected {
  readonly bytes: Uint8Array;
  readonly footerStart: number;
  readonly footer: Tree;
  readonly pages: readonly Page[];
}

/** Pages of a file that are looked for at most. */
const PAGES_MAX = 500;
const MAGIC = Buffer.from('PAR1');
/** Footer fields that are offsets in the file. */
const OFFSETS = ['data_page_offset', 'dictionary_page_offset', 'index_page_offset', 'bloom_filter_offset'];
const INDEX_OFFSETS = ['file_offset', 'offset_index_offset', 'column_index_offset'];

/** Undefined for a file that is already so broken that it does not come apart. */
export function dissect(bytes: Uint8Array): Dissected | undefined {
  try {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const footerStart = bytes.length - 8 - view.getUint32(bytes.length - 8, true);
    if (footerStart < 4) return undefined;
    const footer = readStruct(FILE_META_DATA, bytes.subarray(footerStart, bytes.length - 8));
    const { leaves } = parseFooter(bytes.subarray(footerStart, bytes.length - 8), bytes.length);
    return { bytes, footerStart, footer, pages: findPages(bytes, footer, footerStart, leaves) };
  } catch {
    return undefined;
  }
}

function chunksOf(footer: Tree): { group: number; column: number; chunk: Tree; meta: Tree }[] {
  const groups = (footer.row_groups ?? []) as Tree[];
  return groups.flatMap((rowGroup, group) =>
    ((rowGroup.columns ?? []) as Tree[]).flatMap((chunk, column) => {
      const meta = chunk.meta_data as Tree | undefined;
      return meta === undefined ? [] : [{ group, column, chunk, meta }];
    }),
  );
}

function findPages(bytes: Uint8Array, footer: Tree, footerStart: number, leaves: readonly LeafColumn[]): Page[] {
  const pages: Page[] = [];
  for (const { group, column, meta } of chunksOf(footer)) {
    const data = Number(meta.data_page_offset ?? 0);
    const dictionary = Number(meta.dictionary_page_offset ?? 0);
    let at = dictionary >= 4 && dictionary < data ? dictionary : data;
    const end = Math.min(at + Number(meta.total_compressed_size ?? 0), footerStart);
    while (at >= 4 && at < end && pages.length < PAGES_MAX) {
      let header: ReturnType<typeof parsePageHeader>;
      try {
        header = parsePageHeader(bytes, at, end);
      } catch {
        break;
      }
      if (header === undefined) break;
      const body = at + header.headerBytes;
      const pageEnd = body + header.compressedSize;
      if (pageEnd > end) break;
      const tree = readStruct(PAGE_HEADER, bytes.subarray(at, body));
      const { maxRepetitionLevel = 0, maxDefinitionLevel = 0 } = leaves[column] ?? {};
      pages.push({
        group,
        column,
        start: at,
        body,
        end: pageEnd,
        header: tree,
        codec: Number(meta.codec ?? 0),
        repeats: maxRepetitionLevel > 0,
        isDefined: maxDefinitionLevel > 0,
      });
      at = pageEnd;
    }
  }
  return pages;
}

/** A deep copy that may be changed. */
export function cloneTree<T extends Value>(value: T): T {
  if (value instanceof Uint8Array) return Uint8Array.from(value) as T;
  if (Array.isArray(value)) return value.map(cloneTree) as T;
  if (typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, cloneTree(inner)])) as T;
}

/** The file with another footer; `length` is what the tail says of it when that is not the truth. */
export function withFooter(file: Dissected, footer: Uint8Array, length = footer.length): Uint8Array {
  return join([file.bytes.subarray(0, file.footerStart), footer, u32(length >>> 0), MAGIC]);
}

export function footerBytes(tree: Tree): Uint8Array {
  return writeStruct(FILE_META_DATA, tree);
}

/** The file with bytes [start, end) of the chunk (group, column) replaced, offsets and sizes behind them corrected. */
export function splice(
  file: Dissected,
  { group, column }: Pick<Page, 'group' | 'column'>,
  [start, end]: readonly [number, number],
  replacement: Uint8Array,
): Uint8Array {
  const by = BigInt(replacement.length - (end - start));
  const footer = cloneTree(file.footer);
  for (const one of chunksOf(footer)) {
    shift(one.meta, OFFSETS, start, by);
    shift(one.chunk, INDEX_OFFSETS, start, by);
    if (one.group === group && one.column === column) {
      const size = BigInt(one.meta.total_compressed_size as bigint);
      one.meta.total_compressed_size = BigInt.asIntN(64, size + by);
    }
  }
  const { bytes, footerStart } = file;
  const made = footerBytes(footer);
  return join([bytes.subarray(0, start), replacement, bytes.subarray(end, footerStart), made, u32(made.length), MAGIC]);
}

function shift(tree: Tree, names: readonly string[], start: number, by: bigint): void {
  for (const name of names) {
    const offset = tree[name];
    if (typeof offset === 'bigint' && offset > BigInt(start)) tree[name] = BigInt.asIntN(64, offset + by);
  }
}

export function headerBytes(header: Tree): Uint8Array {
  return writeStruct(PAGE_HEADER, header);
}

/** Half-open. */
export type Span = readonly [start: number, end: number];

export interface PageSpans {
  /** Runs of levels, without their lengths, in the uncompressed levels of V2 pages or at the start of the plain bytes. */
  readonly levels: readonly Span[];
  /** In the plain bytes. */
  readonly values: Span;
}

/** Where in a page's parts levels and values lie, as far as their lengths are right. */
export function spansOf(page: Page, { levels, plain }: PageParts): PageSpans {
  const v2 = page.header.data_page_header_v2 as Tree | undefined;
  if (v2 !== undefined) {
    const middle = Number(v2.repetition_levels_byte_length ?? 0);
    return {
      levels: [[0, middle] as const, [middle, levels.length] as const].filter(isSome),
      values: [0, plain.length],
    };
  }
  const found: Span[] = [];
  let at = 0;
  const isData = page.header.type === PageType.DATA_PAGE;
  for (const has of [page.repeats, page.isDefined]) {
    if (!isData || !has || at + 4 > plain.length) continue;
    const end = at + 4 + new DataView(plain.buffer, plain.byteOffset).getUint32(at, true);
    if (end > plain.length) break;
    found.push([at + 4, end]);
    at = end;
  }
  return { levels: found.filter(isSome), values: [at, plain.length] };
}

const isSome = ([start, end]: Span): boolean => end > start;

export interface PageParts {
  /** V2: levels, which are not compressed. */
  readonly levels: Uint8Array;
  readonly plain: Uint8Array;
  readonly isCompressed: boolean;
}

/** A page's bytes before compression; undefined when they do not decompress here. */
export function openPage(file: Dissected, page: Page): PageParts | undefined {
  const body = file.bytes.subarray(page.body, page.end);
  const v2 = page.header.data_page_header_v2 as Tree | undefined;
  const isV2 = page.header.type === PageType.DATA_PAGE_V2 && v2 !== undefined;
  const levelBytes = isV2
    ? Number(v2.definition_levels_byte_length ?? 0) + Number(v2.repetition_levels_byte_length ?? 0)
    : 0;
  const isCompressed = page.codec !== Codec.UNCOMPRESSED && !(isV2 && v2.is_compressed === false);
  const levels = body.subarray(0, levelBytes);
  const values = body.subarray(levelBytes);
  const size = Number(page.header.uncompressed_page_size) - levelBytes;
  try {
    const plain = isCompressed ? decompress(page.codec, values, size) : values;
    // the library's zstd ends with the first frame
    return plain.length === size ? { levels, isCompressed, plain } : undefined;
  } catch {
    return undefined;
  }
}

function decompress(codec: number, bytes: Uint8Array, size: number): Uint8Array {
  const options = { maxOutputLength: 1 << 24 };
  switch (codec) {
    case Codec.SNAPPY:
      return Uint8Array.from(snappyUncompressSync(Buffer.from(bytes)) as Buffer);
    case Codec.GZIP:
      return gunzipSync(bytes, options);
    case Codec.BROTLI:
      return brotliDecompressSync(bytes, options);
    case Codec.ZSTD:
      return zstdDecompressSync(bytes, options);
    case Codec.LZ4_RAW:
      return lz4UncompressSync(Buffer.concat([u32(size), bytes]));
    default:
      throw new Error(`no decompressor for ${codec}`);
  }
}

/** Header and body of a page of other content; sizes follow it, and the CRC when `crc` says so and there was one. */
export function closePage(page: Page, { levels, plain, isCompressed }: PageParts, crc: boolean): Uint8Array {
  const body = join([levels, isCompressed ? compress(page.codec, plain) : plain]);
  const header = cloneTree(page.header);
  header.uncompressed_page_size = levels.length + plain.length;
  header.compressed_page_size = body.length;
  if (crc && header.crc !== undefined) header.crc = crc32(body) | 0;
  return join([headerBytes(header), body]);
}
