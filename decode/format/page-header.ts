/**
 * Page headers (parquet.thrift: PageHeader and the four structs in it), read from inside a chunk while it arrives.
 * Called once for every page: one object is made for a header, and none of its statistics. Sizes and counts that can't
 * be are refused here; whether they agree with the chunk is the caller's business, who knows it.
 */
import { DecodeError } from '../errors.ts';
import { CompactReader, CUT, Wire } from './compact.ts';
import { nameOf, PageType } from './enums.ts';
import { PAGE_HEADER_BYTES_MAX, PAGE_HEADER_FIELDS_MAX } from './limits.ts';

/** One shape for all kinds of pages; what a kind does not have is 0 (counts, lengths), -1 (encodings) or false. */
export interface PageHeader {
  /** A PageType. */
  readonly type: number;
  /** Bytes of the header itself: the page's data begin that far after its start. */
  readonly headerBytes: number;
  /** Bytes of the page's data in the file, and after decompression; with the levels, also in V2 pages. */
  readonly compressedSize: number;
  readonly uncompressedSize: number;
  /** CRC-32 of the page's data in the file, unsigned; undefined when the writer gave none. */
  readonly crc: number | undefined;
  /** Values with nulls (levels, for repeated columns); in a dictionary page, its entries. */
  readonly numValues: number;
  readonly encoding: number;
  readonly definitionEncoding: number;
  readonly repetitionEncoding: number;
  /** V2 only. */
  readonly numNulls: number;
  readonly numRows: number;
  readonly definitionBytes: number;
  readonly repetitionBytes: number;
  /** V2: whether the values after the levels are compressed. True for the other kinds: the chunk's codec applies. */
  readonly isCompressed: boolean;
  /** Dictionary page: the writer says that its entries are sorted. */
  readonly isSorted: boolean;
}

type Draft = { -readonly [K in keyof PageHeader]: PageHeader[K] };

const reader = new CompactReader(new Uint8Array(0));
reader.partial = true;

/**
 * The page header at `start` of `bytes`, of which [start, end) have arrived. Undefined when it is cut at `end`: more
 * bytes are needed (at the end of the chunk that is an error, and the caller's to make). Throws PAGE_HEADER or THRIFT.
 */
export function parsePageHeader(bytes: Uint8Array, start: number, end: number): PageHeader | undefined {
  reader.reset(bytes, start, Math.min(end, start + PAGE_HEADER_BYTES_MAX));
  reader.budget = PAGE_HEADER_FIELDS_MAX;
  try {
    return parse(reader, start);
  } catch (error) {
    if (error !== CUT) throw error;
    if (end - start < PAGE_HEADER_BYTES_MAX) return undefined;
    throw new DecodeError('PAGE_HEADER', 'the page header does not end', {
      expected: `at most ${PAGE_HEADER_BYTES_MAX} bytes`,
    });
  }
}

function parse(r: CompactReader, start: number): PageHeader {
  const page: Draft = {
    type: -1,
    headerBytes: 0,
    compressedSize: -1,
    uncompressedSize: -1,
    crc: undefined,
    numValues: 0,
    encoding: -1,
    definitionEncoding: -1,
    repetitionEncoding: -1,
    numNulls: 0,
    numRows: 0,
    definitionBytes: 0,
    repetitionBytes: 0,
    isCompressed: true,
    isSorted: false,
  };
  // The page type whose struct was there.
  let described = -1;
  for (let last = 0; ; ) {
    const wire = r.field(last);
    if (wire === Wire.STOP) break;
    last = r.id;
    switch (last) {
      case 1:
        page.type = r.i32(wire);
        break;
      case 2:
        page.uncompressedSize = r.i32(wire);
        break;
      case 3:
        page.compressedSize = r.i32(wire);
        break;
      case 4:
        page.crc = r.i32(wire) >>> 0;
        break;
      case 5:
        if (page.type !== PageType.DATA_PAGE) r.skip(wire);
        else {
          parseDataPage(r, wire, page);
          described = PageType.DATA_PAGE;
        }
        break;
      case 7:
        if (page.type !== PageType.DICTIONARY_PAGE) r.skip(wire);
        else {
          parseDictionaryPage(r, wire, page);
          described = PageType.DICTIONARY_PAGE;
        }
        break;
      case 8:
        if (page.type !== PageType.DATA_PAGE_V2) r.skip(wire);
        else {
          parseDataPageV2(r, wire, page);
          described = PageType.DATA_PAGE_V2;
        }
        break;
      default:
        r.skip(wire);
    }
  }
  page.headerBytes = r.pos - start;
  check(page, described);
  return page;
}

function parseDataPage(r: CompactReader, wire: number, page: Draft): void {
  if (wire !== Wire.STRUCT) r.fail('the data page header is not a struct');
  page.numValues = -1;
  for (let last = 0; ; ) {
    const field = r.field(last);
    if (field === Wire.STOP) return;
    last = r.id;
    switch (last) {
      case 1:
        page.numValues = r.i32(field);
        break;
      case 2:
        page.encoding = r.i32(field);
        break;
      case 3:
        page.definitionEncoding = r.i32(field);
        break;
      case 4:
        page.repetitionEncoding = r.i32(field);
        break;
      default:
        r.skip(field);
    }
  }
}

function parseDictionaryPage(r: CompactReader, wire: number, page: Draft): void {
  if (wire !== Wire.STRUCT) r.fail('the dictionary page header is not a struct');
  page.numValues = -1;
  for (let last = 0; ; ) {
    const field = r.field(last);
    if (field === Wire.STOP) return;
    last = r.id;
    switch (last) {
      case 1:
        page.numValues = r.i32(field);
        break;
      case 2:
        page.encoding = r.i32(field);
        break;
      case 3:
        page.isSorted = r.bool(field);
        break;
      default:
        r.skip(field);
    }
  }
}

function parseDataPageV2(r: CompactReader, wire: number, page: Draft): void {
  if (wire !== Wire.STRUCT) r.fail('the data page header is not a struct');
  page.numValues = -1;
  page.numNulls = -1;
  page.numRows = -1;
  page.definitionBytes = -1;
  page.repetitionBytes = -1;
  for (let last = 0; ; ) {
    const field = r.field(last);
    if (field === Wire.STOP) return;
    last = r.id;
    switch (last) {
      case 1:
        page.numValues = r.i32(field);
        break;
      case 2:
        page.numNulls = r.i32(field);
        break;
      case 3:
        page.numRows = r.i32(field);
        break;
      case 4:
        page.encoding = r.i32(field);
        break;
      case 5:
        page.definitionBytes = r.i32(field);
        break;
      case 6:
        page.repetitionBytes = r.i32(field);
        break;
      case 7:
        page.isCompressed = r.bool(field);
        break;
      default:
        r.skip(field);
    }
  }
}

function check(page: Draft, described: number): void {
  if (page.type < PageType.DATA_PAGE || page.type > PageType.DATA_PAGE_V2)
    refuse(`page type ${page.type} does not exist`);
  if (page.uncompressedSize < 0 || page.compressedSize < 0) {
    refuse(`the page's sizes are ${page.compressedSize} compressed, ${page.uncompressedSize} uncompressed`);
  }
  if (page.type === PageType.INDEX_PAGE) return;
  if (described !== page.type) refuse(`a ${nameOf(PageType, page.type)} without its header struct`);
  if (page.numValues < 0) refuse(`the page says it has ${page.numValues} values`);
  if (page.type !== PageType.DATA_PAGE_V2) return;
  if (page.numNulls < 0 || page.numNulls > page.numValues || page.numRows < 0 || page.numRows > page.numValues) {
    refuse(`the page says it has ${page.numValues} values, ${page.numNulls} nulls and ${page.numRows} rows`);
  }
  const levels = page.definitionBytes + page.repetitionBytes;
  if (
    page.definitionBytes < 0 ||
    page.repetitionBytes < 0 ||
    levels > page.compressedSize ||
    levels > page.uncompressedSize
  ) {
    refuse(
      `the page's levels take ${page.repetitionBytes} and ${page.definitionBytes} bytes ` +
        `of ${page.compressedSize} compressed, ${page.uncompressedSize} uncompressed`,
    );
  }
}

function refuse(reason: string): never {
  throw new DecodeError('PAGE_HEADER', reason);
}
