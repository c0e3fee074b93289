/**
 * Values as canonical text, one form per value whatever reader decoded it: the text that column checksums are made
 * of, so that two readers, or two copies of a file, can be compared by a hash per column. Driven by the file's
 * schema: stored integers for decimals, dates and times, IEEE bits for floats (every NaN alike), JSON strings for
 * text, lower-case hex for other bytes, `null` for nulls, `[...]` for lists, `[[key,value],...]` for maps and
 * `{"name":value,...}` for groups. A column's checksum is the SHA-256 of its values' texts,
 * each followed by a line feed.
 */
import { type Field, type LeafColumn, Physical, type Pool, type Segment } from '../../decode/index.ts';
import { rangeOf, type SlotRange, type SlotRanges } from '../scan/slots.ts';
import { slotTexts, type TextForm } from './slot-texts.ts';

/**
 * The texts of a field's values in a batch, each followed by a line feed, in pieces of some tens of KiB: long values
 * would make one large string otherwise, and the caller can do something else in between. Throws METADATA.
 */
export function* canonicalLines(pool: Pool, field: Field, ranges: SlotRanges): Generator<string> {
  if (field.kind === 'leaf') {
    yield* leafLines(pool, field.leaf, rangeOf(field, ranges));
    return;
  }
  let lines = '';
  for (const text of slotTexts(pool, field, ranges, canonicalForm(pool))) {
    lines += text;
    lines += '\n';
    if (lines.length < PIECE_CHARACTERS) continue;
    yield lines;
    lines = '';
  }
  if (lines !== '') yield lines;
}

const PIECE_CHARACTERS = 64 << 10;

function* leafLines(pool: Pool, leaf: LeafColumn, { segment, start, count }: SlotRange): Generator<string> {
  const text = textOf(leaf, pool, segment);
  const { validity } = segment;
  let lines = '';
  for (let slot = start; slot < start + count; slot++) {
    const isNull = validity !== 0 && ((pool.u8[validity + (slot >>> 3)]! >>> (slot & 7)) & 1) === 0;
    lines += isNull ? 'null' : text(slot);
    lines += '\n';
    if (lines.length < PIECE_CHARACTERS) continue;
    yield lines;
    lines = '';
  }
  if (lines !== '') yield lines;
}

function canonicalForm(pool: Pool): TextForm {
  return {
    leaf: ({ leaf }, { segment }) => textOf(leaf, pool, segment),
    pair: (key, value) => (value === undefined ? `[${key}]` : `[${key},${value}]`),
  };
}

type Text = (slot: number) => string;

const hex = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');
// A leading U+FEFF is part of the value: the decoder must not take it for a mark.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function textOf(column: LeafColumn, pool: Pool, segment: Segment): Text {
  const kind = column.logicalType?.kind;
  const unsigned = column.logicalType?.kind === 'INTEGER' && !column.logicalType.signed;
  const view = new DataView(pool.u8.buffer);
  const word = (row: number): number => segment.values + row * segment.width;
  switch (column.type) {
    case Physical.BOOLEAN:
      return (row) => String(((pool.u8[segment.values + (row >>> 3)]! >>> (row & 7)) & 1) === 1);
    case Physical.INT32: {
      // a narrow type is the low bits of what is stored, as in Arrow
      const narrow = column.logicalType?.kind === 'INTEGER' ? 32 - Math.min(32, column.logicalType.bitWidth) : 0;
      return unsigned
        ? (row) => String((view.getUint32(word(row), true) << narrow) >>> narrow)
        : (row) => String((view.getInt32(word(row), true) << narrow) >> narrow);
    }
    case Physical.INT64:
      return unsigned
        ? (row) => String(view.getBigUint64(word(row), true))
        : (row) => String(view.getBigInt64(word(row), true));
    case Physical.INT96:
      return (row) => int96(view, word(row));
    case Physical.FLOAT:
      return (row) => float(view.getUint32(word(row), true), view.getFloat32(word(row), true));
    case Physical.DOUBLE:
      return (row) => double(view.getBigUint64(word(row), true), view.getFloat64(word(row), true));
    default: {
      const bytes = bytesOf(pool, segment);
      if (kind === 'DECIMAL') return (row) => bigEndian(bytes(row));
      if (kind === 'FLOAT16') return (row) => half(view.getUint16(word(row), true));
      if (kind === 'STRING' || kind === 'ENUM' || kind === 'JSON') {
        return (row) => JSON.stringify(utf8.decode(new Uint8Array(bytes(row))));
      }
      return (row) => `"${hex(bytes(row))}"`;
    }
  }
}

function bytesOf(pool: Pool, segment: Segment): (row: number) => Uint8Array {
  const { u8, u32 } = pool;
  if (segment.layout === 'fixed') {
    const { width } = segment;
    return (row) => u8.subarray(segment.values + row * width, segment.values + (row + 1) * width);
  }
  if (segment.layout === 'indices') {
    const { offsets, data } = segment.dictionary!;
    return (row) => {
      const entry = (offsets >>> 2) + u32[(segment.values >>> 2) + row]!;
      return u8.subarray(data + u32[entry]!, data + u32[entry + 1]!);
    };
  }
  return (row) => {
    const at = (segment.values >>> 2) + row;
    return u8.subarray(segment.data + u32[at]!, segment.data + u32[at + 1]!);
  };
}

function float(bits: number, value: number): string {
  return Number.isNaN(value) ? '"nan"' : `"${bits.toString(16).padStart(8, '0')}"`;
}

function double(bits: bigint, value: number): string {
  return Number.isNaN(value) ? '"nan"' : `"${bits.toString(16).padStart(16, '0')}"`;
}

function half(bits: number): string {
  const isNan = (bits & 0x7c00) === 0x7c00 && (bits & 0x3ff) !== 0;
  return isNan ? '"nan"' : `"${bits.toString(16).padStart(4, '0')}"`;
}

function bigEndian(bytes: Uint8Array): string {
  if (bytes.length === 0) return '0';
  return String(BigInt.asIntN(bytes.length * 8, BigInt(`0x${hex(bytes)}`)));
}

function int96(view: DataView, at: number): string {
  const nanos = view.getBigInt64(at, true);
  const day = BigInt(view.getInt32(at + 8, true));
  return String((day - 2440588n) * 86_400_000_000_000n + nanos);
}
