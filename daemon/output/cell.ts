/**
 * Values of a column as text, for CSV, NDJSON, tables and statistics: a writer per column and segment, made once, that
 * puts a row's value into a buffer. What the text is depends on the file's type alone:
 *   integers all digits · decimals with their scale, exact · floats the shortest that reads back, NaN, Infinity ·
 *   DATE, TIME, TIMESTAMP, INT96 ISO 8601 with as many digits as the unit has, Z where the type is UTC ·
 *   text as it is · UUID with dashes · INTERVAL an ISO 8601 duration · other bytes lower-case hexadecimal
 * Not here: nulls, quotes and escapes, which belong to the format.
 */
import { type LeafColumn, Physical, type Segment } from '../../decode/index.ts';
import {
  DATE_BYTES_MAX,
  decimalText,
  floatText,
  halfText,
  INTEGER_BYTES_MAX,
  TIME_BYTES_MAX,
  writeAscii,
  writeDate,
  writeDecimal,
  writeHex,
  writeInteger,
  writeTime,
} from './digits.ts';

/** The memory that segments lie in: the pool, or a buffer of a caller's own. */
export interface CellMemory {
  readonly u8: Uint8Array;
  readonly u32: Uint32Array;
  readonly i32: Int32Array;
}

/** Writes the value of a row and returns the place behind it. */
export type CellWriter = (row: number, out: Uint8Array, at: number) => number;

export interface Cell {
  /** `number` and `boolean` may stand bare in JSON, unless a float is not finite; `text` and `json` are any UTF-8; the rest plain ASCII. */
  readonly kind: 'number' | 'float' | 'boolean' | 'ascii' | 'text' | 'json';
  /** Bytes that `write` takes at most: the same for all rows, or what the row's value says. */
  readonly bytesMax: number | ((row: number) => number);
  readonly write: CellWriter;
  /** For `text` and `json`: where a row's bytes lie, so that a format can escape while it copies. */
  readonly span?: ByteSpan;
  /** What the span's addresses are of, when not of the pool. */
  readonly memory?: Uint8Array;
}

/** Writes one field of a row with all that stands around its value, but what is between fields. */
export interface TextField {
  /** Most bytes that `write` takes, in total or by row. */
  readonly bytesMax: number | ((row: number) => number);
  readonly write: (row: number, out: Uint8Array, at: number) => number;
}

/** Address of a value and its length, by row; one object, so that a call makes none. */
export interface ByteSpan {
  readonly start: (row: number) => number;
  readonly end: (row: number) => number;
}

/** Two limbs of a 64-bit integer stay exact in a double when the high one is within this. */
const SAFE_HIGH = 2 ** 21;
const UNIT_DIGITS = { millis: 3, micros: 6, nanos: 9 } as const;
const JULIAN_EPOCH_DAY = 2_440_588;
const NANOS_PER_DAY = 86_400_000_000_000n;
const TIMESTAMP_BYTES_MAX = DATE_BYTES_MAX + TIME_BYTES_MAX + 2;

/** The cell writer of a column for one of its segments. */
export function cellOf(column: LeafColumn, segment: Segment, memory: CellMemory): Cell {
  const logical = column.logicalType;
  if (logical?.kind === 'DECIMAL') return decimalCell(column, logical.scale, segment, memory);
  switch (column.type) {
    case Physical.BOOLEAN: {
      const { u8 } = memory;
      const bit = (row: number): number => (u8[segment.values + (row >>> 3)]! >>> (row & 7)) & 1;
      return {
        kind: 'boolean',
        bytesMax: 5,
        write: (row, out, at) => writeAscii(out, at, bit(row) ? 'true' : 'false'),
      };
    }
    case Physical.INT32:
      return int32Cell(column, segment, memory);
    case Physical.INT64:
      return int64Cell(column, segment, memory);
    case Physical.INT96:
      return int96Cell(segment, memory);
    case Physical.FLOAT:
    case Physical.DOUBLE:
      return floatCell(column.type, segment, memory);
    default:
      return bytesCell(column, segment, memory);
  }
}

function int32Cell(column: LeafColumn, { values }: Segment, { i32 }: CellMemory): Cell {
  const logical = column.logicalType;
  const first = values >>> 2;
  if (logical?.kind === 'DATE') {
    return { kind: 'ascii', bytesMax: DATE_BYTES_MAX, write: (row, out, at) => writeDate(out, at, i32[first + row]!) };
  }
  if (logical?.kind === 'TIME') {
    return {
      kind: 'ascii',
      bytesMax: TIME_BYTES_MAX,
      write: (row, out, at) => writeTime(out, at, i32[first + row]!, 3),
    };
  }
  const write = integer32(logical, first, i32);
  return { kind: 'number', bytesMax: INTEGER_BYTES_MAX, write };
}

/** Narrow types keep the low bits of what is stored, as in Arrow. */
function integer32(logical: LeafColumn['logicalType'], first: number, i32: Int32Array): CellWriter {
  if (logical?.kind !== 'INTEGER') return (row, out, at) => writeInteger(out, at, i32[first + row]!);
  const shift = logical.bitWidth < 32 ? 32 - logical.bitWidth : 0;
  return logical.signed
    ? (row, out, at) => writeInteger(out, at, (i32[first + row]! << shift) >> shift)
    : (row, out, at) => writeInteger(out, at, (i32[first + row]! << shift) >>> shift);
}

function int64Cell(column: LeafColumn, segment: Segment, memory: CellMemory): Cell {
  const logical = column.logicalType;
  const { i32 } = memory;
  const first = segment.values >>> 2;
  if (logical?.kind === 'TIMESTAMP') return timestampCell(logical.unit, logical.utc, first, i32);
  if (logical?.kind === 'TIME') {
    const digits = UNIT_DIGITS[logical.unit];
    const write: CellWriter = (row, out, at) => {
      const value = number64(i32, first + row * 2);
      if (Number.isSafeInteger(value)) return writeTime(out, at, value, digits);
      return writeAscii(out, at, String(big64(i32, first + row * 2, true))); // no time of day
    };
    return { kind: 'ascii', bytesMax: TIME_BYTES_MAX, write };
  }
  const signed = !(logical?.kind === 'INTEGER' && !logical.signed);
  const write: CellWriter = (row, out, at) => {
    const place = first + row * 2;
    const high = signed ? i32[place + 1]! : i32[place + 1]! >>> 0;
    if (high < SAFE_HIGH && high >= -SAFE_HIGH) return writeInteger(out, at, high * 2 ** 32 + (i32[place]! >>> 0));
    return writeAscii(out, at, String(big64(i32, place, signed)));
  };
  return { kind: 'number', bytesMax: INTEGER_BYTES_MAX, write };
}

/** The 64-bit integer at a word, rounded where a double can't hold it. */
function number64(i32: Int32Array, place: number): number {
  return i32[place + 1]! * 2 ** 32 + (i32[place]! >>> 0);
}

function big64(i32: Int32Array, place: number, signed: boolean): bigint {
  const value = (BigInt(i32[place + 1]!) << 32n) | BigInt(i32[place]! >>> 0);
  return signed ? value : BigInt.asUintN(64, value);
}

function timestampCell(unit: keyof typeof UNIT_DIGITS, utc: boolean, first: number, i32: Int32Array): Cell {
  const digits = UNIT_DIGITS[unit];
  const perDay = 86_400 * 10 ** digits;
  const bigPerDay = BigInt(perDay);
  const write: CellWriter = (row, out, at) => {
    const place = first + row * 2;
    const high = i32[place + 1]!;
    let day: number;
    let rest: number;
    if (high < SAFE_HIGH && high >= -SAFE_HIGH) {
      const value = high * 2 ** 32 + (i32[place]! >>> 0);
      rest = value % perDay;
      if (rest < 0) rest += perDay;
      day = (value - rest) / perDay;
    } else {
      const value = big64(i32, place, true);
      const left = ((value % bigPerDay) + bigPerDay) % bigPerDay;
      day = Number((value - left) / bigPerDay);
      rest = Number(left);
    }
    return writeTimestamp(out, at, day, rest, digits, utc);
  };
  return { kind: 'ascii', bytesMax: TIMESTAMP_BYTES_MAX, write };
}

function writeTimestamp(out: Uint8Array, at: number, day: number, rest: number, digits: number, utc: boolean): number {
  let place = writeDate(out, at, day);
  out[place++] = 84; // T
  place = writeTime(out, place, rest, digits);
  if (utc) out[place++] = 90; // Z
  return place;
}

function int96Cell({ values }: Segment, { i32 }: CellMemory): Cell {
  const first = values >>> 2;
  const write: CellWriter = (row, out, at) => {
    const place = first + row * 3;
    const nanos = big64(i32, place, true);
    const rest = ((nanos % NANOS_PER_DAY) + NANOS_PER_DAY) % NANOS_PER_DAY;
    const day = i32[place + 2]! - JULIAN_EPOCH_DAY + Number((nanos - rest) / NANOS_PER_DAY);
    return writeTimestamp(out, at, day, Number(rest), 9, false);
  };
  return { kind: 'ascii', bytesMax: TIMESTAMP_BYTES_MAX, write };
}

function floatCell(type: number, { values }: Segment, { u8 }: CellMemory): Cell {
  const view = new DataView(u8.buffer, u8.byteOffset);
  const single = type === Physical.FLOAT;
  const write: CellWriter = (row, out, at) => {
    const value = single ? view.getFloat32(values + row * 4, true) : view.getFloat64(values + row * 8, true);
    if (Number.isInteger(value) && Math.abs(value) < 1e15 && !Object.is(value, -0)) return writeInteger(out, at, value);
    if (value === 0) return writeAscii(out, at, '-0');
    return writeAscii(out, at, single ? floatText(value) : String(value));
  };
  return { kind: 'float', bytesMax: 32, write };
}

function decimalCell(column: LeafColumn, scale: number, segment: Segment, memory: CellMemory): Cell {
  const { i32 } = memory;
  const first = segment.values >>> 2;
  const textMax = INTEGER_BYTES_MAX + Math.abs(scale) + 3;
  if (column.type === Physical.INT32) {
    const write: CellWriter = (row, out, at) => writeDecimal(out, at, i32[first + row]!, scale);
    return { kind: 'number', bytesMax: textMax, write };
  }
  if (column.type === Physical.INT64) {
    const write: CellWriter = (row, out, at) => {
      const place = first + row * 2;
      const high = i32[place + 1]!;
      if (high < SAFE_HIGH && high >= -SAFE_HIGH) return writeDecimal(out, at, number64(i32, place), scale);
      return writeAscii(out, at, decimalText(big64(i32, place, true), scale));
    };
    return { kind: 'number', bytesMax: textMax, write };
  }
  const { start, end } = spanOf(segment, memory);
  const { u8 } = memory;
  const write: CellWriter = (row, out, at) => {
    const from = start(row);
    const to = end(row);
    const small = smallBigEndian(u8, from, to);
    if (small !== undefined) return writeDecimal(out, at, small, scale);
    return writeAscii(out, at, decimalText(bigEndian(u8, from, to), scale));
  };
  // A byte takes less than 2.5 decimal digits.
  return { kind: 'number', bytesMax: (row) => textMax + Math.ceil((end(row) - start(row)) * 2.5), write };
}

/** Big-endian two's complement when it fits in 48 bits, which money does. */
function smallBigEndian(u8: Uint8Array, from: number, to: number): number | undefined {
  if (from === to) return 0;
  const negative = u8[from]! >= 0x80;
  const fill = negative ? 0xff : 0;
  let place = from;
  while (place < to - 6) if (u8[place++] !== fill) return undefined;
  if (place > from && u8[place]! >= 0x80 !== negative) return undefined;
  let value = negative ? -1 : 0;
  for (; place < to; place++) value = value * 256 + u8[place]!;
  return value;
}

function bigEndian(u8: Uint8Array, from: number, to: number): bigint {
  const hex = Buffer.from(u8.subarray(from, to)).toString('hex');
  return BigInt.asIntN((to - from) * 8, BigInt(`0x${hex}`));
}

function spanOf(segment: Segment, { u32 }: CellMemory): ByteSpan {
  const { values, data, width } = segment;
  if (segment.layout === 'fixed') {
    return { start: (row) => values + row * width, end: (row) => values + (row + 1) * width };
  }
  const first = values >>> 2;
  if (segment.layout === 'indices') {
    const dictionary = segment.dictionary!;
    const offsets = dictionary.offsets >>> 2;
    return {
      start: (row) => dictionary.data + u32[offsets + u32[first + row]!]!,
      end: (row) => dictionary.data + u32[offsets + u32[first + row]! + 1]!,
    };
  }
  return { start: (row) => data + u32[first + row]!, end: (row) => data + u32[first + row + 1]! };
}

function bytesCell(column: LeafColumn, segment: Segment, memory: CellMemory): Cell {
  const { u8 } = memory;
  const span = spanOf(segment, memory);
  const { start, end } = span;
  const size = (row: number): number => end(row) - start(row);
  switch (column.logicalType?.kind) {
    case 'STRING':
    case 'ENUM':
    case 'JSON': {
      const write: CellWriter = (row, out, at) => copyBytes(u8, start(row), end(row), out, at);
      return { kind: 'text', bytesMax: size, write, span };
    }
    case 'FLOAT16': {
      const view = new DataView(u8.buffer, u8.byteOffset);
      const write: CellWriter = (row, out, at) => {
        const value = view.getFloat16(start(row), true);
        return writeAscii(out, at, Object.is(value, -0) ? '-0' : halfText(value));
      };
      return { kind: 'float', bytesMax: 32, write };
    }
    case 'UUID':
      return { kind: 'ascii', bytesMax: 36, write: (row, out, at) => writeUuid(out, at, u8, start(row)) };
    case 'INTERVAL': {
      const view = new DataView(u8.buffer, u8.byteOffset);
      return { kind: 'ascii', bytesMax: 48, write: (row, out, at) => writeInterval(out, at, view, start(row)) };
    }
    default: {
      const write: CellWriter = (row, out, at) => writeHex(out, at, u8, start(row), end(row));
      return { kind: 'ascii', bytesMax: (row) => 2 * size(row), write };
    }
  }
}

/** Copies bytes [from, to). */
export function copyBytes(u8: Uint8Array, from: number, to: number, out: Uint8Array, at: number): number {
  // A view costs more than a few dozen bytes.
  if (to - from > 64) out.set(u8.subarray(from, to), at);
  else for (let k = from, place = at; k < to; ) out[place++] = u8[k++]!;
  return at + to - from;
}

function writeUuid(out: Uint8Array, at: number, u8: Uint8Array, from: number): number {
  let place = at;
  for (const [start, end] of UUID_PARTS) {
    if (start > 0) out[place++] = 45;
    place = writeHex(out, place, u8, from + start, from + end);
  }
  return place;
}

const UUID_PARTS = [
  [0, 4],
  [4, 6],
  [6, 8],
  [8, 10],
  [10, 16],
] as const;

/** Months, days and milliseconds, each an unsigned 32-bit integer. */
function writeInterval(out: Uint8Array, at: number, view: DataView, from: number): number {
  const months = view.getUint32(from, true);
  const days = view.getUint32(from + 4, true);
  const millis = view.getUint32(from + 8, true);
  const seconds = `${Math.floor(millis / 1000)}.${String(millis % 1000).padStart(3, '0')}`;
  return writeAscii(out, at, `P${months}M${days}DT${seconds}S`);
}
