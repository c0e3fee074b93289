/** Plain values as Arrow data, laid out by hand: the builders of the package take dates and decimals in forms of their own. */
import {
  Binary,
  Bool,
  type Data,
  type DataType,
  DateDay,
  Decimal,
  Field,
  FixedSizeBinary,
  Float16,
  Float32,
  Float64,
  Int8,
  Int16,
  Int32,
  Int64,
  List,
  Map_,
  makeData,
  Struct,
  TimeMicrosecond,
  TimeMillisecond,
  TimeNanosecond,
  TimestampMicrosecond,
  TimestampMillisecond,
  TimestampNanosecond,
  Uint8,
  Uint16,
  Uint32,
  Uint64,
  Utf8,
} from 'apache-arrow';
import type { Kind, LeafName, Value } from './kinds.ts';

const TYPES: Readonly<Partial<Record<LeafName, DataType>>> = {
  bool: new Bool(),
  int8: new Int8(),
  int16: new Int16(),
  int32: new Int32(),
  int64: new Int64(),
  uint8: new Uint8(),
  uint16: new Uint16(),
  uint32: new Uint32(),
  uint64: new Uint64(),
  half: new Float16(),
  float: new Float32(),
  double: new Float64(),
  date: new DateDay(),
  time_millis: new TimeMillisecond(),
  time_micros: new TimeMicrosecond(),
  time_nanos: new TimeNanosecond(),
  timestamp_millis: new TimestampMillisecond(),
  timestamp_micros: new TimestampMicrosecond(),
  timestamp_nanos: new TimestampNanosecond(),
  timestamp_millis_utc: new TimestampMillisecond('UTC'),
  timestamp_micros_utc: new TimestampMicrosecond('UTC'),
  timestamp_nanos_utc: new TimestampNanosecond('UTC'),
  decimal_4_1: new Decimal(1, 4, 128),
  decimal_9_2: new Decimal(2, 9, 128),
  decimal_18_4: new Decimal(4, 18, 128),
  decimal_38_10: new Decimal(10, 38, 128),
  decimal_76_5: new Decimal(5, 76, 256),
  string: new Utf8(),
  binary: new Binary(),
  fixed_5: new FixedSizeBinary(5),
};

export const isArrowLeaf = (name: LeafName): boolean => TYPES[name] !== undefined;

export function arrowType(kind: Kind, nullable: boolean): DataType {
  switch (kind.kind) {
    case 'leaf':
      return TYPES[kind.name]!;
    case 'list':
      return new List(new Field('element', arrowType(kind.element, nullable), nullable));
    case 'struct':
      return new Struct(
        Object.entries(kind.fields).map(([name, field]) => new Field(name, arrowType(field, nullable), nullable)),
      );
    case 'map': {
      const pair = new Struct<{ key: DataType; value: DataType }>([
        new Field('key', arrowType(kind.key, false), false) as never,
        new Field('value', arrowType(kind.value, nullable), nullable) as never,
      ]);
      return new Map_(new Field('key_value', pair, false));
    }
  }
}

export function arrowData(kind: Kind, nullable: boolean, values: readonly Value[]): Data {
  const type = arrowType(kind, nullable);
  const length = values.length;
  const nullCount = values.filter((value) => value === null).length;
  const nullBitmap = bitmap(values.map((value) => value !== null));
  const rows = { type, length, nullCount, ...(nullCount === 0 ? {} : { nullBitmap }) };
  switch (kind.kind) {
    case 'leaf':
      return makeData({ ...rows, ...leafBuffers(type, kind.name, values) } as never);
    case 'list': {
      const lists = values.map((value) => (value ?? []) as readonly Value[]);
      const child = arrowData(kind.element, nullable, lists.flat());
      return makeData({ ...rows, valueOffsets: offsets(lists.map((one) => one.length)), child } as never);
    }
    case 'struct': {
      const field = (name: string): Value[] =>
        values.map((value) => (value === null ? null : (value as Record<string, Value>)[name]!));
      const children = Object.entries(kind.fields).map(([name, inner]) => arrowData(inner, nullable, field(name)));
      return makeData({ ...rows, children } as never);
    }
    case 'map': {
      const maps = values.map((value) => (value ?? new Map()) as ReadonlyMap<Value, Value>);
      const pairs = maps.flatMap((one) => [...one]);
      const keys = arrowData(kind.key, false, pairs.map(([key]) => key)); // biome-ignore format: one line
      const items = arrowData(kind.value, nullable, pairs.map(([, item]) => item)); // biome-ignore format: one line
      const entries = type.children[0]!.type;
      const child = makeData({ type: entries, length: pairs.length, nullCount: 0, children: [keys, items] } as never);
      return makeData({ ...rows, valueOffsets: offsets(maps.map((one) => one.size)), child } as never);
    }
  }
}

function bitmap(bits: readonly boolean[]): Uint8Array {
  const bytes = new Uint8Array(Math.ceil(bits.length / 8));
  for (const [k, bit] of bits.entries()) if (bit) bytes[k >>> 3]! |= 1 << (k & 7);
  return bytes;
}

function offsets(lengths: readonly number[]): Int32Array {
  const ends = new Int32Array(lengths.length + 1);
  for (const [k, length] of lengths.entries()) ends[k + 1] = ends[k]! + length;
  return ends;
}

function leafBuffers(type: DataType, name: LeafName, values: readonly Value[]): Record<string, unknown> {
  if (name === 'bool') return { data: bitmap(values.map((value) => value === true)) };
  if (name === 'string' || name === 'binary') {
    const bytes = values.map((value) => Buffer.from((value ?? '') as string));
    return { valueOffsets: offsets(bytes.map((one) => one.length)), data: Buffer.concat(bytes) };
  }
  if (type instanceof FixedSizeBinary) {
    return { data: Buffer.concat(values.map((value) => (value ?? new Uint8Array(type.byteWidth)) as Uint8Array)) };
  }
  if (type instanceof Decimal) return { data: decimalWords(type.bitWidth / 32, values as (bigint | null)[]) };
  if (type instanceof Float16) {
    const view = new DataView(new ArrayBuffer(2 * values.length));
    for (const [k, value] of values.entries()) view.setFloat16(2 * k, (value ?? 0) as number, true);
    return { data: new Uint16Array(view.buffer) };
  }
  const ValueArray = type.ArrayType as unknown as { from(values: readonly unknown[]): unknown };
  const zero = ValueArray === (BigInt64Array as unknown) || ValueArray === (BigUint64Array as unknown) ? 0n : 0;
  return { data: ValueArray.from(values.map((value) => value ?? zero)) };
}

/** Little-endian two's complement. */
function decimalWords(words: number, values: readonly (bigint | null)[]): Uint32Array {
  const out = new Uint32Array(values.length * words);
  for (const [k, value] of values.entries()) {
    let rest = BigInt.asUintN(32 * words, value ?? 0n);
    for (let word = 0; word < words; word++, rest >>= 32n) out[k * words + word] = Number(rest & 0xffffffffn);
  }
  return out;
}
