/**
 * What a Parquet leaf column is in Arrow: the type that record batches carry, and how stored values become it.
 * Mapping as in the Parquet specification's LogicalTypes.md; where Arrow has no such type (BSON, INTERVAL, ...) the
 * storage is kept and the annotation goes to the field's metadata.
 */
import {
  Field as ArrowField,
  Binary,
  Bool,
  type DataType,
  DateDay,
  Decimal,
  Dictionary,
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
import { DecodeError, type Field, type LeafColumn, type LogicalType, nameOf, Physical } from '../../decode/index.ts';

/** How stored values become Arrow values. */
export type Conversion =
  | 'none' // same layout
  | 'narrow8' // int32 to 8 bits
  | 'narrow16' // int32 to 16 bits
  | 'decimal-int' // int32 or int64 to a wider decimal
  | 'decimal-bytes' // big-endian two's complement to decimal
  | 'int96'; // day and nanoseconds to timestamp

/** A field of the schema as Arrow has it; leaves say how their values are made. */
export interface ArrowNode {
  readonly source: Field;
  readonly field: ArrowField;
  readonly children: readonly ArrowNode[];
  readonly conversion: Conversion;
}

export interface ArrowOptions {
  /** Byte arrays outside of groups and lists come as dictionaries where the file has them. */
  readonly dictionary: boolean;
  /** Every field may hold nulls, also one that this file requires. */
  readonly nullable: boolean;
}

/** Arrow's form of a field. Throws UNSUPPORTED for what this version does not know. */
export function arrowNode(source: Field, options: ArrowOptions): ArrowNode {
  const nullable = options.nullable || source.nullable;
  if (source.kind === 'leaf') return arrowLeaf(source.leaf, source.name, nullable, options);
  // nothing inside of groups and lists is dictionary-encoded: a row may begin in a page with a dictionary only
  const inner = { ...options, dictionary: false };
  const make = (children: readonly ArrowNode[], type: DataType, metadata = new Map<string, string>()): ArrowNode => {
    return { source, field: new ArrowField(source.name, type, nullable, metadata), children, conversion: 'none' };
  };
  if (source.kind === 'struct') {
    const children = source.children.map((child) => arrowNode(child, inner));
    return make(children, new Struct(children.map((child) => child.field)), annotation(source.logicalType?.kind));
  }
  if (source.kind === 'list') {
    const element = arrowNode(source.element, inner);
    return make([element], new List(element.field));
  }
  const key = arrowNode(source.key, { ...inner, nullable: false });
  if (source.value === undefined) return make([key], new List(key.field));
  const children = [key, arrowNode(source.value, inner)];
  const entries = new Struct<{ key: DataType; value: DataType }>(children.map((child) => child.field) as never);
  return make(children, new Map_(new ArrowField('entries', entries, false)));
}

function arrowLeaf(leaf: LeafColumn, name: string, nullable: boolean, options: ArrowOptions): ArrowNode {
  const { type, conversion } = arrowType(leaf);
  const isFlat = leaf.path.length === 1 && leaf.maxRepetitionLevel === 0;
  const encoded = options.dictionary && isFlat && leaf.type === Physical.BYTE_ARRAY && conversion === 'none';
  const outer: DataType = encoded ? new Dictionary(type as Utf8 | Binary, new Int32(), leaf.index) : type;
  const source: Field = { kind: 'leaf', name, nullable, leaves: [leaf], leaf, slot: 0 };
  return {
    source,
    field: new ArrowField(name, outer, nullable, fieldMetadata(leaf, encoded)),
    children: [],
    conversion,
  };
}

interface Mapped {
  readonly type: DataType;
  readonly conversion: Conversion;
}

function arrowType(leaf: LeafColumn): Mapped {
  const logical = leaf.logicalType;
  if (logical?.kind === 'DECIMAL') return decimal(leaf, logical.precision, logical.scale);
  switch (leaf.type) {
    case Physical.BOOLEAN:
      return plain(new Bool());
    case Physical.INT32:
      return int32(logical);
    case Physical.INT64:
      return plain(int64(logical));
    case Physical.INT96:
      return { type: new TimestampNanosecond(), conversion: 'int96' };
    case Physical.FLOAT:
      return plain(new Float32());
    case Physical.DOUBLE:
      return plain(new Float64());
    case Physical.BYTE_ARRAY:
      return plain(isText(leaf) ? new Utf8() : new Binary());
    case Physical.FIXED_LEN_BYTE_ARRAY:
      return plain(logical?.kind === 'FLOAT16' ? new Float16() : new FixedSizeBinary(leaf.typeLength));
    default:
      throw new DecodeError('UNSUPPORTED', `physical type ${nameOf(Physical, leaf.type)}`, { column: leaf.name });
  }
}

const plain = (type: DataType): Mapped => ({ type, conversion: 'none' });

function int32(logical: LogicalType | undefined): Mapped {
  if (logical?.kind === 'DATE') return plain(new DateDay());
  if (logical?.kind === 'TIME') return plain(new TimeMillisecond());
  if (logical?.kind !== 'INTEGER') return plain(new Int32());
  const { bitWidth, signed } = logical;
  if (bitWidth === 8) return { type: signed ? new Int8() : new Uint8(), conversion: 'narrow8' };
  if (bitWidth === 16) return { type: signed ? new Int16() : new Uint16(), conversion: 'narrow16' };
  return plain(signed ? new Int32() : new Uint32());
}

function int64(logical: LogicalType | undefined): DataType {
  if (logical?.kind === 'TIMESTAMP') {
    const zone = logical.utc ? 'UTC' : null;
    if (logical.unit === 'millis') return new TimestampMillisecond(zone);
    return logical.unit === 'micros' ? new TimestampMicrosecond(zone) : new TimestampNanosecond(zone);
  }
  if (logical?.kind === 'TIME') return logical.unit === 'nanos' ? new TimeNanosecond() : new TimeMicrosecond();
  return logical?.kind === 'INTEGER' && !logical.signed ? new Uint64() : new Int64();
}

/** Digits that fit in 128 and in 256 bits. */
const DECIMAL128_DIGITS = 38;
const DECIMAL256_DIGITS = 76;

function decimal(leaf: LeafColumn, precision: number, scale: number): Mapped {
  if (precision > DECIMAL256_DIGITS) {
    throw new DecodeError('UNSUPPORTED', `decimal of ${precision} digits`, {
      column: leaf.name,
      expected: `at most ${DECIMAL256_DIGITS}`,
    });
  }
  const type = new Decimal(scale, precision, precision > DECIMAL128_DIGITS ? 256 : 128);
  const bytes = leaf.type === Physical.BYTE_ARRAY || leaf.type === Physical.FIXED_LEN_BYTE_ARRAY;
  return { type, conversion: bytes ? 'decimal-bytes' : 'decimal-int' };
}

/** True for byte arrays whose values are UTF-8 text: they are validated and come out as Utf8. */
export function isText(leaf: LeafColumn): boolean {
  const kind = leaf.type === Physical.BYTE_ARRAY ? leaf.logicalType?.kind : undefined;
  return kind === 'STRING' || kind === 'ENUM' || kind === 'JSON';
}

/** Arrow's canonical extension names where there is one, else Parquet's annotation. */
function fieldMetadata(leaf: LeafColumn, encoded: boolean): Map<string, string> {
  const kind = leaf.logicalType?.kind;
  if (kind === 'UUID') return new Map([['ARROW:extension:name', 'arrow.uuid']]);
  // arrow.json may be stored as strings only: readers refuse a whole stream with a dictionary of it
  if (kind === 'JSON' && !encoded) return new Map([['ARROW:extension:name', 'arrow.json']]);
  return annotation(kind);
}

function annotation(kind: string | undefined): Map<string, string> {
  const kept = ['JSON', 'BSON', 'INTERVAL', 'ENUM', 'VARIANT', 'GEOMETRY', 'GEOGRAPHY', 'UNKNOWN'];
  return kind !== undefined && kept.includes(kind) ? new Map([['PARQUET:logical_type', kind]]) : new Map();
}
