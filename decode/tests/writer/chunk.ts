/**
 * Column chunks written to exactly the structure that a test asks for: which pages, of which version, encoding and
 * size, in which order. Nothing is checked: hooks change what has been made at each stage, so that a test can break
 * one field of one page and leave the rest as it should be.
 */
import { crc32 } from 'node:zlib';
import { Codec, Encoding, PageType } from '../../format/enums.ts';
import { PAGE_HEADER } from '../parquet-tables.ts';
import { type Tree, writeStruct } from '../thrift-twin.ts';
import { compress } from './compress.ts';
import { bitWidth, encodeRuns, type RunStyle } from './runs.ts';
import { type ColumnValue, encodePlain, join, u32, valueBytes, type WriterColumn } from './value.ts';

type Change<T> = (made: T) => T;

export interface PagePlan {
  readonly type?: 'data' | 'dictionary' | 'index';
  /** Rows of a data page, the next ones of the chunk's. */
  readonly rows?: number;
  readonly version?: 1 | 2;
  /** PLAIN when absent. */
  readonly encoding?: number;
  readonly crc?: boolean;
  /** V2: `is_compressed` false. */
  readonly stored?: boolean;
  readonly runs?: RunStyle;
  readonly levelRuns?: RunStyle;
  /** Bits of a dictionary index, when not the fewest. */
  readonly indexWidth?: number;
  /** Encoded values, before anything else is done to them. */
  readonly values?: Change<Uint8Array>;
  /** Level runs, without the length in front of them. */
  readonly levels?: Change<Uint8Array>;
  /** What is compressed: the whole body in V1, the values in V2. */
  readonly plain?: Change<Uint8Array>;
  /** The body as it goes to the file; sizes and CRC follow from it. */
  readonly body?: Change<Uint8Array>;
  /** Fields of the header, by their names in parquet.thrift. */
  readonly header?: (header: Tree) => void;
  /** The header's bytes. */
  readonly headerBytes?: Change<Uint8Array>;
}

export interface ChunkPlan {
  readonly column: WriterColumn;
  readonly values: readonly ColumnValue[];
  readonly codec?: number;
  readonly pages: readonly PagePlan[];
  /** Entries of the dictionary; the distinct values of its pages, in order of appearance, when absent. */
  readonly dictionary?: readonly ColumnValue[];
}

/** Offsets in the chunk. */
export interface WrittenPage {
  readonly start: number;
  readonly body: number;
  readonly end: number;
}

export interface WrittenChunk {
  readonly bytes: Uint8Array;
  readonly pages: readonly WrittenPage[];
  readonly numValues: number;
  readonly encodings: readonly number[];
  /** Pages with their headers, before compression. */
  readonly uncompressedBytes: number;
  readonly dictionaryPage?: WrittenPage;
  readonly firstDataPage?: WrittenPage;
}

interface MadePage {
  readonly header: Tree;
  readonly body: Uint8Array;
  readonly plainSize: number;
}

const isDictionaryEncoded = (encoding: number | undefined): boolean =>
  encoding === Encoding.PLAIN_DICTIONARY || encoding === Encoding.RLE_DICTIONARY;

export function writeChunk(plan: ChunkPlan): WrittenChunk {
  const codec = plan.codec ?? Codec.UNCOMPRESSED;
  const dictionary = new Entries(plan);
  const parts: Uint8Array[] = [];
  const pages: WrittenPage[] = [];
  const encodings = new Set<number>();
  let at = 0;
  let row = 0;
  let uncompressedBytes = 0;
  let dictionaryPage: WrittenPage | undefined;
  let firstDataPage: WrittenPage | undefined;
  for (const page of plan.pages) {
    const type = page.type ?? 'data';
    let made: MadePage;
    if (type === 'data') {
      const rows = plan.values.slice(row, row + (page.rows ?? plan.values.length - row));
      row += rows.length;
      made = dataPage(plan.column, page, codec, rows, dictionary);
    } else if (type === 'dictionary') made = dictionaryPageOf(plan.column, page, codec, dictionary.values);
    else made = sized(PageType.INDEX_PAGE, page, Uint8Array.of(1, 2, 3, 4), codec, { index_page_header: {} });
    encodings.add(page.encoding ?? Encoding.PLAIN);
    if (page.crc === true) made.header.crc = crc32(made.body) | 0;
    page.header?.(made.header);
    let header = writeStruct(PAGE_HEADER, made.header);
    if (page.headerBytes !== undefined) header = page.headerBytes(header);
    const written = { start: at, body: at + header.length, end: at + header.length + made.body.length };
    if (type === 'dictionary') dictionaryPage ??= written;
    if (type === 'data') firstDataPage ??= written;
    pages.push(written);
    parts.push(header, made.body);
    at = written.end;
    uncompressedBytes += header.length + made.plainSize;
  }
  if (plan.column.optional) encodings.add(Encoding.RLE);
  return {
    bytes: join(parts),
    pages,
    numValues: plan.values.length,
    encodings: [...encodings],
    uncompressedBytes,
    ...(dictionaryPage === undefined ? {} : { dictionaryPage }),
    ...(firstDataPage === undefined ? {} : { firstDataPage }),
  };
}

/** The dictionary's entries and the index of each value. */
class Entries {
  readonly values: ColumnValue[] = [];
  readonly #column: WriterColumn;
  readonly #index = new Map<string, number>();
  /** The same by identity: entries may be long. */
  readonly #known = new Map<ColumnValue, number>();

  constructor(plan: ChunkPlan) {
    this.#column = plan.column;
    if (plan.dictionary !== undefined) {
      for (const value of plan.dictionary) this.#add(value);
      return;
    }
    let row = 0;
    for (const page of plan.pages) {
      if ((page.type ?? 'data') !== 'data') continue;
      const end = row + (page.rows ?? plan.values.length - row);
      if (isDictionaryEncoded(page.encoding)) for (const value of plan.values.slice(row, end)) this.#add(value);
      row = end;
    }
  }

  #key(value: Exclude<ColumnValue, null>): string {
    return Buffer.from(valueBytes(this.#column, value)).toString('latin1');
  }

  #add(value: ColumnValue): void {
    if (value === null || this.#known.has(value)) return;
    const key = this.#key(value);
    let index = this.#index.get(key);
    if (index === undefined) {
      index = this.values.push(value) - 1;
      this.#index.set(key, index);
    }
    // zeros of both signs are one key of a Map
    if (typeof value === 'object') this.#known.set(value, index);
  }

  indexOf(value: ColumnValue): number {
    return this.#known.get(value) ?? this.#index.get(this.#key(value!)) ?? 0;
  }
}

function dataPage(
  column: WriterColumn,
  page: PagePlan,
  codec: number,
  rows: readonly ColumnValue[],
  dictionary: Entries,
): MadePage {
  const encoding = page.encoding ?? Encoding.PLAIN;
  const there = rows.filter((value) => value !== null);
  let values = encodeValues(column, page, encoding, there, dictionary);
  if (page.values !== undefined) values = page.values(values);
  let levels = column.optional
    ? encodeRuns(
        rows.map((value) => (value === null ? 0 : 1)),
        1,
        page.levelRuns,
      )
    : new Uint8Array(0);
  if (page.levels !== undefined) levels = page.levels(levels);
  if (page.version === 2) return dataPageV2(page, codec, rows.length, there.length, encoding, levels, values);
  const plain = column.optional ? join([u32(levels.length), levels, values]) : values;
  return sized(PageType.DATA_PAGE, page, plain, codec, {
    data_page_header: {
      num_values: rows.length,
      encoding,
      definition_level_encoding: Encoding.RLE,
      repetition_level_encoding: Encoding.RLE,
    },
  });
}

function dataPageV2(
  page: PagePlan,
  codec: number,
  rows: number,
  valid: number,
  encoding: number,
  levels: Uint8Array,
  values: Uint8Array,
): MadePage {
  const plain = page.plain === undefined ? values : page.plain(values);
  const stored = page.stored === true || codec === Codec.UNCOMPRESSED;
  let body = join([levels, stored ? plain : compress(codec, plain)]);
  if (page.body !== undefined) body = page.body(body);
  const header: Tree = {
    type: PageType.DATA_PAGE_V2,
    uncompressed_page_size: levels.length + plain.length,
    compressed_page_size: body.length,
    data_page_header_v2: {
      num_values: rows,
      num_nulls: rows - valid,
      num_rows: rows,
      encoding,
      definition_levels_byte_length: levels.length,
      repetition_levels_byte_length: 0,
      is_compressed: !stored,
    },
  };
  return { header, body, plainSize: levels.length + plain.length };
}

function dictionaryPageOf(
  column: WriterColumn,
  page: PagePlan,
  codec: number,
  entries: readonly ColumnValue[],
): MadePage {
  let plain = encodePlain(column, entries);
  if (page.values !== undefined) plain = page.values(plain);
  return sized(PageType.DICTIONARY_PAGE, page, plain, codec, {
    dictionary_page_header: { num_values: entries.length, encoding: page.encoding ?? Encoding.PLAIN, is_sorted: false },
  });
}

/** A page whose body is compressed as a whole. */
function sized(type: number, page: PagePlan, made: Uint8Array, codec: number, header: Tree): MadePage {
  const plain = page.plain === undefined ? made : page.plain(made);
  let body = compress(codec, plain);
  if (page.body !== undefined) body = page.body(body);
  const sizes = { type, uncompressed_page_size: plain.length, compressed_page_size: body.length };
  return { header: { ...sizes, ...header }, body, plainSize: plain.length };
}

function encodeValues(
  column: WriterColumn,
  page: PagePlan,
  encoding: number,
  values: readonly ColumnValue[],
  dictionary: Entries,
): Uint8Array {
  if (isDictionaryEncoded(encoding)) {
    const width = page.indexWidth ?? bitWidth(dictionary.values.length);
    const indices = values.map((value) => dictionary.indexOf(value));
    return join([Uint8Array.of(width), encodeRuns(indices, width, page.runs)]);
  }
  if (encoding === Encoding.RLE) {
    const bits = values.map((value) => (value === true ? 1 : 0));
    const runs = encodeRuns(bits, 1, page.runs);
    return join([u32(runs.length), runs]);
  }
  return encodePlain(column, values);
}
