/**
 * Stored values to Arrow values where the layouts differ: narrow integers, decimals, INT96 timestamps. A value that
 * does not fit its Arrow type is an error, never something else.
 */
import type { Decimal } from 'apache-arrow';
import { DecodeError, type Pool } from '../../decode/index.ts';
import type { SlotRange } from '../scan/slots.ts';
import type { ArrowNode } from './arrow-type.ts';

type Values = Int8Array | Int16Array | Uint8Array | Uint16Array | Uint32Array | BigInt64Array;

/** The slice's values in the column's Arrow type. Throws VALUE. */
export function convertValues(pool: Pool, slice: SlotRange, column: ArrowNode): Values {
  const width = (column.field.type as Decimal).bitWidth;
  switch (column.conversion) {
    case 'narrow8':
    case 'narrow16':
      return narrow(pool, slice, column);
    case 'decimal-int':
      return widenDecimal(pool, slice, width);
    case 'decimal-bytes':
      return decimalFromBytes(pool, slice, column, width);
    case 'int96':
      return timestampsFromInt96(pool, slice, column);
    default:
      throw new Error(`no conversion ${column.conversion}`);
  }
}

/** The type's own bits are kept, as writers put them: unsigned types come as the low bits of the stored integer. */
function narrow(pool: Pool, slice: SlotRange, column: ArrowNode): Values {
  const { segment, start, count: rows } = slice;
  const first = (segment.values >>> 2) + start;
  const stored = pool.i32.subarray(first, first + rows);
  const TargetArray = column.field.type.ArrayType as unknown as { from(values: Int32Array): Values };
  return TargetArray.from(stored as Int32Array);
}

function widenDecimal(pool: Pool, slice: SlotRange, bitWidth: number): Uint32Array {
  const { segment, start, count: rows } = slice;
  const words = bitWidth / 32;
  const out = new Uint32Array(rows * words);
  const first = segment.values >>> 2;
  const { i32 } = pool;
  if (segment.width === 4) {
    for (let k = 0, at = 0; k < rows; k++, at += words) {
      const value = i32[first + start + k]!;
      out[at] = value;
      if (value < 0) out.fill(0xffffffff, at + 1, at + words);
    }
    return out;
  }
  for (let k = 0, at = 0, from = first + start * 2; k < rows; k++, at += words, from += 2) {
    const high = i32[from + 1]!;
    out[at] = i32[from]!;
    out[at + 1] = high;
    if (high < 0) out.fill(0xffffffff, at + 2, at + words);
  }
  return out;
}

function decimalFromBytes(pool: Pool, slice: SlotRange, column: ArrowNode, bitWidth: number): Uint32Array {
  const { segment, start, count: rows } = slice;
  const { u8, i32 } = pool;
  const size = bitWidth / 8;
  const out = new Uint8Array(rows * size);
  for (let k = 0; k < rows; k++) {
    const row = start + k;
    let from = segment.values + row * segment.width;
    let length = segment.width;
    if (segment.layout === 'bytes') {
      const at = (segment.values >>> 2) + row;
      from = segment.data + i32[at]!;
      length = i32[at + 1]! - i32[at]!;
    }
    if (length === 0) continue; // an empty decimal is 0
    const sign = u8[from]! >= 0x80 ? 0xff : 0;
    for (; length > size; from++, length--) {
      if (u8[from] !== sign) throw tooWide(column, bitWidth);
    }
    const target = k * size;
    for (let byte = 0; byte < length; byte++) out[target + byte] = u8[from + length - 1 - byte]!;
    if (length === size && (out[target + size - 1]! >= 0x80 ? 0xff : 0) !== sign) throw tooWide(column, bitWidth);
    if (sign !== 0) out.fill(0xff, target + length, target + size);
  }
  return new Uint32Array(out.buffer);
}

function tooWide(column: ArrowNode, bitWidth: number): DecodeError {
  return new DecodeError('VALUE', `a decimal does not fit in ${bitWidth} bits`, {
    column: column.source.leaves[0]!.name,
  });
}

/** Day number of 1970-01-01 in INT96's Julian calendar. */
const JULIAN_EPOCH_DAY = 2440588n;
const NANOS_PER_DAY = 86_400_000_000_000n;

function timestampsFromInt96(pool: Pool, slice: SlotRange, column: ArrowNode): BigInt64Array {
  const { segment, start, count: rows } = slice;
  const out = new BigInt64Array(rows);
  const view = new DataView(pool.u8.buffer, segment.values, (start + rows) * 12);
  for (let k = 0; k < rows; k++) {
    const row = start + k;
    if (segment.validity !== 0 && ((pool.u8[segment.validity + (row >>> 3)]! >>> (row & 7)) & 1) === 0) continue;
    const nanos = view.getBigInt64(row * 12, true);
    const day = BigInt(view.getInt32(row * 12 + 8, true));
    const value = (day - JULIAN_EPOCH_DAY) * NANOS_PER_DAY + nanos;
    if (BigInt.asIntN(64, value) !== value) {
      throw new DecodeError('VALUE', `an INT96 timestamp of Julian day ${day} is outside nanoseconds since 1970`, {
        column: column.source.leaves[0]!.name,
        expected: 'years 1677 to 2262',
      });
    }
    out[k] = value;
  }
  return out;
}
