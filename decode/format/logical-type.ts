/**
 * Logical types: what a column's values mean. One table for the three forms that files hold: the LogicalType union
 * (parquet.thrift), the older ConvertedType numbers, and which physical type each may annotate (LogicalTypes.md).
 */
import type { CompactReader } from './compact.ts';
import { Wire } from './compact.ts';
import { Converted, nameOf, Physical } from './enums.ts';
import type { LogicalType, TimeUnit } from './metadata.ts';

const { BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY, INT32, INT64 } = Physical;

/** LogicalType union: field ids of members without parameters that we use. */
const PLAIN_MEMBERS: Readonly<Record<number, LogicalType>> = {
  1: { kind: 'STRING' },
  2: { kind: 'MAP' },
  3: { kind: 'LIST' },
  4: { kind: 'ENUM' },
  6: { kind: 'DATE' },
  11: { kind: 'NULL' },
  12: { kind: 'JSON' },
  13: { kind: 'BSON' },
  14: { kind: 'UUID' },
  15: { kind: 'FLOAT16' },
  16: { kind: 'VARIANT' },
  17: { kind: 'GEOMETRY' },
  18: { kind: 'GEOGRAPHY' },
};

/** ConvertedType: the logical type that each number stands for. Times and timestamps were always UTC. */
const CONVERTED: Readonly<Record<number, LogicalType>> = {
  [Converted.UTF8]: { kind: 'STRING' },
  [Converted.MAP]: { kind: 'MAP' },
  [Converted.MAP_KEY_VALUE]: { kind: 'MAP_KEY_VALUE' },
  [Converted.LIST]: { kind: 'LIST' },
  [Converted.ENUM]: { kind: 'ENUM' },
  [Converted.DATE]: { kind: 'DATE' },
  [Converted.TIME_MILLIS]: { kind: 'TIME', unit: 'millis', utc: true },
  [Converted.TIME_MICROS]: { kind: 'TIME', unit: 'micros', utc: true },
  [Converted.TIMESTAMP_MILLIS]: { kind: 'TIMESTAMP', unit: 'millis', utc: true },
  [Converted.TIMESTAMP_MICROS]: { kind: 'TIMESTAMP', unit: 'micros', utc: true },
  [Converted.UINT_8]: { kind: 'INTEGER', bitWidth: 8, signed: false },
  [Converted.UINT_16]: { kind: 'INTEGER', bitWidth: 16, signed: false },
  [Converted.UINT_32]: { kind: 'INTEGER', bitWidth: 32, signed: false },
  [Converted.UINT_64]: { kind: 'INTEGER', bitWidth: 64, signed: false },
  [Converted.INT_8]: { kind: 'INTEGER', bitWidth: 8, signed: true },
  [Converted.INT_16]: { kind: 'INTEGER', bitWidth: 16, signed: true },
  [Converted.INT_32]: { kind: 'INTEGER', bitWidth: 32, signed: true },
  [Converted.INT_64]: { kind: 'INTEGER', bitWidth: 64, signed: true },
  [Converted.JSON]: { kind: 'JSON' },
  [Converted.BSON]: { kind: 'BSON' },
  [Converted.INTERVAL]: { kind: 'INTERVAL' },
};

const UNITS: Readonly<Record<number, TimeUnit>> = { 1: 'millis', 2: 'micros', 3: 'nanos' };

/** Reads a LogicalType union. A member or a unit we do not know gives kind UNKNOWN: the physical value still reads. */
export function parseLogicalType(r: CompactReader): LogicalType | undefined {
  let result: LogicalType | undefined;
  for (let last = 0; ; ) {
    const wire = r.field(last);
    if (wire === Wire.STOP) return result;
    last = r.id;
    if (wire !== Wire.STRUCT) {
      result ??= { kind: 'UNKNOWN', fieldId: last };
      r.skip(wire);
      continue;
    }
    switch (last) {
      case 5:
        result = parseDecimal(r);
        break;
      case 7:
        result = parseTime(r, 'TIME', last);
        break;
      case 8:
        result = parseTime(r, 'TIMESTAMP', last);
        break;
      case 10:
        result = parseInteger(r);
        break;
      default:
        r.skip(wire);
        result = PLAIN_MEMBERS[last] ?? { kind: 'UNKNOWN', fieldId: last };
    }
  }
}

function parseDecimal(r: CompactReader): LogicalType {
  let scale = 0;
  let precision = 0;
  for (let last = 0; ; ) {
    const wire = r.field(last);
    if (wire === Wire.STOP) return { kind: 'DECIMAL', precision, scale };
    last = r.id;
    if (last === 1) scale = r.i32(wire);
    else if (last === 2) precision = r.i32(wire);
    else r.skip(wire);
  }
}

function parseTime(r: CompactReader, kind: 'TIME' | 'TIMESTAMP', fieldId: number): LogicalType {
  let utc = false;
  let unit: TimeUnit | undefined;
  for (let last = 0; ; ) {
    const wire = r.field(last);
    if (wire === Wire.STOP) return unit === undefined ? { kind: 'UNKNOWN', fieldId } : { kind, unit, utc };
    last = r.id;
    if (last === 1) utc = r.bool(wire);
    else if (last === 2 && wire === Wire.STRUCT) unit = parseUnit(r);
    else r.skip(wire);
  }
}

function parseUnit(r: CompactReader): TimeUnit | undefined {
  let unit: TimeUnit | undefined;
  for (let last = 0; ; ) {
    const wire = r.field(last);
    if (wire === Wire.STOP) return unit;
    last = r.id;
    r.skip(wire);
    unit = UNITS[last];
  }
}

function parseInteger(r: CompactReader): LogicalType {
  let bitWidth = 0;
  let signed = false;
  for (let last = 0; ; ) {
    const wire = r.field(last);
    if (wire === Wire.STOP) return { kind: 'INTEGER', bitWidth, signed };
    last = r.id;
    if (last === 1) bitWidth = r.i8(wire);
    else if (last === 2) signed = r.bool(wire);
    else r.skip(wire);
  }
}

/** The logical type of a converted type's number, if there is one. An absent scale is 0. */
export function fromConverted(converted: number, precision = 0, scale = 0): LogicalType | undefined {
  if (converted === Converted.DECIMAL) return { kind: 'DECIMAL', precision, scale };
  return CONVERTED[converted];
}

/** What a logical type may not annotate: the reason in words, or undefined when it fits the physical type. */
export function misfit(logical: LogicalType, type: number, typeLength: number): string | undefined {
  return allows(logical, type, typeLength)
    ? undefined
    : `${logical.kind} does not fit ${nameOf(Physical, type)}${type === FIXED_LEN_BYTE_ARRAY ? `(${typeLength})` : ''}`;
}

function allows(logical: LogicalType, type: number, typeLength: number): boolean {
  switch (logical.kind) {
    case 'STRING':
    case 'ENUM':
    case 'JSON':
    case 'BSON':
    case 'GEOMETRY':
    case 'GEOGRAPHY':
      return type === BYTE_ARRAY;
    case 'DATE':
      return type === INT32;
    case 'TIME':
      return type === (logical.unit === 'millis' ? INT32 : INT64);
    case 'TIMESTAMP':
      return type === INT64;
    case 'INTEGER':
      if (logical.bitWidth === 64) return type === INT64;
      return type === INT32 && (logical.bitWidth === 8 || logical.bitWidth === 16 || logical.bitWidth === 32);
    case 'DECIMAL':
      if (logical.precision < 1 || logical.scale < 0 || logical.scale > logical.precision) return false;
      return type === INT32 || type === INT64 || type === BYTE_ARRAY || type === FIXED_LEN_BYTE_ARRAY;
    case 'UUID':
      return type === FIXED_LEN_BYTE_ARRAY && typeLength === 16;
    case 'FLOAT16':
      return type === FIXED_LEN_BYTE_ARRAY && typeLength === 2;
    case 'INTERVAL':
      return type === FIXED_LEN_BYTE_ARRAY && typeLength === 12;
    case 'NULL':
    case 'UNKNOWN':
      return true;
    case 'MAP':
    case 'MAP_KEY_VALUE':
    case 'LIST':
    case 'VARIANT':
      return false; // groups only
  }
}
