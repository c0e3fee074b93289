/**
 * Column chunks written to exactly the structure that a test asks for: which pages, of which version, encoding and
 * size, in which order. Nothing is checked: hooks change what has been made at each stage, so that a test can break
 * one field of one page and leave the rest as it should be.
 */
import { crc32 } from 'node:zlib';
import { Codec, Encoding, PageType, Physical } from '../../format/enums.ts';
import { PAGE_HEADER } from '../parquet-tables.ts';
import { type Tree, writeStruct } from '../thrift-twin.ts';
import { compress, type Framing } from './compress.ts';
import { type DeltaShape, encodeDelta, encodeDeltaBytes, encodeDeltaLengths, splitStreams } from './delta.ts';
import { bitWidth, encodeRuns, packLevels, type RunStyle } from './runs.ts';
import { type ColumnValue, encodePlain, join, u32, valueBytes, type WriterColumn, widthOf } from './value.ts';

type Change<T> = (made: T) => T;

export interface PagePlan {
  readonly type?: 'data' | 'dictionary' | 'index';
  /** Rows of a data page, the next ones of the chunk's; entries of a nested one. */
  readonly rows?: number;
  readonly version?: 1 | 2;
  /** PLAIN when absent. */
  readonly encoding?: number;
  readonly crc?: boolean;
  /** V2: `is_compressed` false. */
  readonly stored?: boolean;
  readonly framing?: Framing;
  readonly runs?: RunStyle;
  readonly levelRuns?: RunStyle;
  /** V1: levels in the deprecated BIT_PACKED encoding. */
  readonly bitPackedLevels?: boolean;
  readonly delta?: DeltaShape;
  /** Bits of a dictionary index, when not the fewest. */
  readonly indexWidth?: number;
  /** Encoded values, before anything else is done to them. */
  readonly values?: Change<Uint8Array>;
  /** Definition level runs, without the length in front of them. */
  readonly levels?: Change<Uint8Array>;
  /** The same of repetition levels. */
  readonly repetition?: Change<Uint8Array>;
  /** What is compressed: the whole body in V1, the values in V2. */
  readonly plain?: Change<Uint8Array>;
  /** The body as it goes to the file; sizes and CRC follow from it. */
  readonly body?: Change<Uint8Array>;
  /** Fields of the header, by their names in parquet.thrift. */
  readonly header?: (header: Tree) => void;
  /** The header's bytes. */
  readonly headerBytes?: Change<Uint8Array>;
}

/** The levels of a nested column, one pair for each entry; `values` then holds a null where an entry has no value. */
export interface NestedLevels {
  readonly path: readonly string[];
  readonly maxRepetition: number;
  readonly maxDefinition: number;
  readonly repetition: readonly number[];
  readonly definition: readonly number[];
}

export interface ChunkPlan {
  readonly column: WriterColumn;
  readonly values: readonly ColumnValue[];
  readonly nested?: NestedLevels;
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
      const end = Math.min(plan.values.length, row + (page.rows ?? plan.values.length - row));
      made = dataPage(plan, page, codec, row, end, dictionary);
      row = end;
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
  if (plan.column.optional || plan.nested !== undefined) encodings.add(Encoding.RLE);
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
  plan: ChunkPlan,
  page: PagePlan,
  codec: number,
  from: number,
  to: number,
  dictionary: Entries,
): MadePage {
  const { column } = plan;
  const encoding = page.encoding ?? Encoding.PLAIN;
  const entries = plan.values.slice(from, to);
  const there = entries.filter((value) => value !== null);
  let values = encodeValues(column, page, encoding, there, dictionary);
  if (page.values !== undefined) values = page.values(values);
  const levels = levelsOf(plan, from, entries);
  const repetition = encodeLevels(page, levels.repetition, levels.maxRepetition, page.repetition);
  const definition = encodeLevels(page, levels.definition, levels.maxDefinition, page.levels);
  if (page.version === 2) {
    const rows = plan.nested === undefined ? entries.length : levels.repetition.filter((level) => level === 0).length;
    return dataPageV2(
      page,
      codec,
      { entries: entries.length, rows, nulls: entries.length - there.length },
      encoding,
      { repetition, definition },
      values,
    );
  }
  const plain = join([
    ...withLength(page, repetition, levels.maxRepetition),
    ...withLength(page, definition, levels.maxDefinition),
    values,
  ]);
  const levelEncoding = page.bitPackedLevels === true ? Encoding.BIT_PACKED : Encoding.RLE;
  return sized(PageType.DATA_PAGE, page, plain, codec, {
    data_page_header: {
      num_values: entries.length,
      encoding,
      definition_level_encoding: levelEncoding,
      repetition_level_encoding: levelEncoding,
    },
  });
}

function levelsOf(plan: ChunkPlan, from: number, entries: readonly ColumnValue[]): Omit<NestedLevels, 'path'> {
  const { nested, column } = plan;
  if (nested === undefined) {
    const definition = entries.map((value) => (value === null ? 0 : 1));
    return { maxRepetition: 0, maxDefinition: column.optional ? 1 : 0, repetition: [], definition };
  }
  const slice = (levels: readonly number[]): readonly number[] => levels.slice(from, from + entries.length);
  return { ...nested, repetition: slice(nested.repetition), definition: slice(nested.definition) };
}

function encodeLevels(
  page: PagePlan,
  levels: readonly number[],
  max: number,
  change: Change<Uint8Array> = (made) => made,
): Uint8Array {
  if (max === 0) return change(new Uint8Array(0));
  const width = bitWidth(max + 1);
  const packed = page.bitPackedLevels === true && page.version !== 2;
  return change(packed ? packLevels(levels, width) : encodeRuns(levels, width, page.levelRuns));
}

/** As V1 pages have levels: after their length, unless that follows from the header. */
function withLength(page: PagePlan, levels: Uint8Array, max: number): Uint8Array[] {
  if (max === 0) return [levels];
  return page.bitPackedLevels === true ? [levels] : [u32(levels.length), levels];
}

function dataPageV2(
  page: PagePlan,
  codec: number,
  counts: { readonly entries: number; readonly rows: number; readonly nulls: number },
  encoding: number,
  { repetition, definition }: { readonly repetition: Uint8Array; readonly definition: Uint8Array },
  values: Uint8Array,
): MadePage {
  const plain = page.plain === undefined ? values : page.plain(values);
  const stored = page.stored === true || codec === Codec.UNCOMPRESSED;
  let body = join([repetition, definition, stored ? plain : compress(codec, plain, page.framing)]);
  if (page.body !== undefined) body = page.body(body);
  const plainSize = repetition.length + definition.length + plain.length;
  const header: Tree = {
    type: PageType.DATA_PAGE_V2,
    uncompressed_page_size: plainSize,
    compressed_page_size: body.length,
    data_page_header_v2: {
      num_values: counts.entries,
      num_nulls: counts.nulls,
      num_rows: counts.rows,
      encoding,
      definition_levels_byte_length: definition.length,
      repetition_levels_byte_length: repetition.length,
      is_compressed: !stored,
    },
  };
  return { header, body, plainSize };
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
  let body = compress(codec, plain, page.framing);
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
  const bytesOf = (): Uint8Array[] => values.map((value) => valueBytes(column, value!));
  switch (encoding) {
    case Encoding.DELTA_BINARY_PACKED: {
      const bits = column.physical === Physical.INT64 ? 64 : 32;
      return encodeDelta(
        values.map((value) => (typeof value === 'number' || typeof value === 'bigint' ? BigInt(value) : 0n)),
        bits,
        page.delta,
      );
    }
    case Encoding.DELTA_LENGTH_BYTE_ARRAY:
      return encodeDeltaLengths(bytesOf(), page.delta);
    case Encoding.DELTA_BYTE_ARRAY:
      return encodeDeltaBytes(bytesOf(), page.delta);
    case Encoding.BYTE_STREAM_SPLIT:
      return splitStreams(encodePlain(column, values), widthOf(column));
    default:
      return encodePlain(column, values);
  }
}
