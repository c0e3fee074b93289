/**
 * How a column chunk of fixed-width values looks as PLAIN, uncompressed V1 data pages whose sizes follow from the
 * number of rows alone:
 *   page   = PageHeader:thrift [levels] values
 *   levels = length:u32le varint(groups << 1 | 1) bits:groups bytes      one bit-packed run, of an optional column
 *          | length:u32le varint(rows << 1) 1 unused bytes               the same length, where no value is null
 *   values = those that are not null, then zeros up to `rows` values (booleans: one bit a value)
 * Readers take exactly the values that the levels announce, so the zeros after them are never looked at. Every page but
 * the last has the same rows and bytes. Source: parquet-format, Encodings.md (PLAIN, RLE) and parquet.thrift.
 */
import { Wire } from './compact.ts';
import { CompactWriter } from './compact-writer.ts';
import { Encoding } from './enums.ts';

/** Bytes of values in a page at most: what a reader copies out of a page stays in its cache. */
const PAGE_BYTES_MAX = 1 << 20;
/** Rows of a page at most. */
const PAGE_ROWS_MAX = 1 << 20;
const DATA_PAGE = 0;

/** One page's parts, as offsets from the page's start. */
export interface PlainPage {
  readonly rows: number;
  readonly header: Uint8Array;
  /** Length and run header of the levels; empty for a required column. */
  readonly levelsHead: Uint8Array;
  /** What takes the place of the run header and the bits when no value is null: `rows` times the level 1. */
  readonly repeated: Uint8Array;
  /** Offset of the bits: one a row, one is a value. */
  readonly bits: number;
  /** Offset of the values. */
  readonly values: number;
  /** Bytes of the whole page. */
  readonly length: number;
}

/** The pages of a chunk: `count` of them, all like `full` but the last. */
export interface PlainChunk {
  readonly rows: number;
  readonly optional: boolean;
  /** Bits of a value: 1 for booleans. */
  readonly bitsPerValue: number;
  readonly count: number;
  readonly full: PlainPage;
  readonly last: PlainPage;
  /** Bytes of all pages. */
  readonly length: number;
}

/** The pages of `rows` values of a fixed width; `rows` > 0. */
export function planPlainChunk(rows: number, bitsPerValue: number, optional: boolean): PlainChunk {
  const fitting = Math.floor((PAGE_BYTES_MAX * 8) / bitsPerValue / 8) * 8;
  const pageRows = Math.min(PAGE_ROWS_MAX, Math.max(8, fitting));
  const count = Math.ceil(rows / pageRows);
  const full = planPage(Math.min(rows, pageRows), bitsPerValue, optional);
  const last = count === 1 ? full : planPage(rows - (count - 1) * pageRows, bitsPerValue, optional);
  return { rows, optional, bitsPerValue, count, full, last, length: (count - 1) * full.length + last.length };
}

function planPage(rows: number, bitsPerValue: number, optional: boolean): PlainPage {
  const groups = optional ? Math.ceil(rows / 8) : 0;
  const levelsHead = optional ? levelsHeader(groups) : new Uint8Array();
  const body = levelsHead.length + groups + Math.ceil((rows * bitsPerValue) / 8);
  const header = new CompactWriter()
    .integer(1, Wire.I32, DATA_PAGE)
    .integer(2, Wire.I32, body)
    .integer(3, Wire.I32, body)
    .field(5, Wire.STRUCT)
    .begin()
    .integer(1, Wire.I32, rows)
    .integer(2, Wire.I32, Encoding.PLAIN)
    .integer(3, Wire.I32, Encoding.RLE)
    .integer(4, Wire.I32, Encoding.RLE)
    .end()
    .end()
    .bytes();
  const bits = header.length + levelsHead.length;
  const repeated = Uint8Array.from(optional ? [...varint(rows * 2), 1] : []);
  return { rows, header, levelsHead, repeated, bits, values: bits + groups, length: header.length + body };
}

function levelsHeader(groups: number): Uint8Array {
  const run = varint(groups * 2 + 1);
  const length = run.length + groups;
  return Uint8Array.from([length & 0xff, (length >>> 8) & 0xff, (length >>> 16) & 0xff, length >>> 24, ...run]);
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80);
  return [...bytes, rest];
}
