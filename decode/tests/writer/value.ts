/**
 * Values as the test writer takes them, and their PLAIN form (parquet-format, Encodings.md, PLAIN = 0). Written from
 * the specification, with nothing of the decoder in it.
 */
import { Physical } from '../../format/enums.ts';

/** INT64 as bigint, INT32 / FLOAT / DOUBLE as number, byte arrays and INT96 as bytes (text becomes UTF-8). */
export type ColumnValue = null | boolean | number | bigint | string | Uint8Array;

export interface WriterColumn {
  readonly name: string;
  readonly physical: number;
  /** Bytes of a FIXED_LEN_BYTE_ARRAY value. */
  readonly typeLength?: number;
  readonly optional?: boolean;
  /** A ConvertedType, for readers that need one. */
  readonly converted?: number;
  readonly logicalType?: Record<string, unknown>;
}

/** Bytes of a stored value; 0 for BYTE_ARRAY, 1 for BOOLEAN. */
export function widthOf(column: WriterColumn): number {
  switch (column.physical) {
    case Physical.BOOLEAN:
      return 1;
    case Physical.INT32:
    case Physical.FLOAT:
      return 4;
    case Physical.INT64:
    case Physical.DOUBLE:
      return 8;
    case Physical.INT96:
      return 12;
    case Physical.FIXED_LEN_BYTE_ARRAY:
      return column.typeLength ?? 0;
    default:
      return 0;
  }
}

/** The bytes of one value: a boolean is one byte, a byte array comes without its length. */
export function valueBytes(column: WriterColumn, value: Exclude<ColumnValue, null>): Uint8Array {
  if (value instanceof Uint8Array) return value;
  if (typeof value === 'string') return Buffer.from(value);
  if (typeof value === 'boolean') return Uint8Array.of(value ? 1 : 0);
  const bytes = new Uint8Array(widthOf(column));
  const view = new DataView(bytes.buffer);
  if (typeof value === 'bigint') view.setBigInt64(0, BigInt.asIntN(64, value), true);
  else if (column.physical === Physical.FLOAT) view.setFloat32(0, value, true);
  else if (column.physical === Physical.DOUBLE) view.setFloat64(0, value, true);
  else view.setInt32(0, value, true);
  return bytes;
}

/** PLAIN encoding of values without nulls. */
export function encodePlain(column: WriterColumn, values: readonly ColumnValue[]): Uint8Array {
  if (column.physical === Physical.BOOLEAN) {
    const bits = new Uint8Array(Math.ceil(values.length / 8));
    for (const [i, value] of values.entries()) if (value === true) bits[i >>> 3]! |= 1 << (i & 7);
    return bits;
  }
  const parts: Uint8Array[] = [];
  for (const value of values) {
    const bytes = valueBytes(column, value!);
    if (column.physical === Physical.BYTE_ARRAY) parts.push(u32(bytes.length));
    parts.push(bytes);
  }
  return join(parts);
}

export function u32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}

export function join(parts: readonly Uint8Array[]): Uint8Array {
  let size = 0;
  for (const part of parts) size += part.length;
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
