/**
 * What a Parquet leaf column is in Arrow: the type that record batches carry, and how stored values become it.
 * Mapping as in the Parquet specification's LogicalTypes.md; where Arrow has no such type (BSON, INTERVAL, ...) the
 * storage is kept and the annotation goes to the field's metadata. The Arrow schema that a file's writer left in it
 * (schema-hint.ts) refines types, but never changes the layout: time zones, durations, dates in milliseconds.
 */
import {
  Field as ArrowField,
  Binary,
  Bool,
  type DataType,
  DateDay,
  DateMillisecond,
  Decimal,
  Dictionary,
  DurationMicrosecond,
  DurationMillisecond,
  DurationNanosecond,
  DurationSecond,
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
  Null,
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
import {
  DecodeError,
  type Field,
  type FileMetadata,
  type LeafColumn,
  type LogicalType,
  nameOf,
  Physical,
  Repetition,
} from '../../decode/index.ts';
import { KEY_VALUE_CHARACTERS_MAX, KEY_VALUES_KEPT_MAX } from './limits.ts';
import { HintField, type TypeHint } from './schema-hint.ts';

/** How stored values become Arrow values. */
export type Conversion =
  | 'none' // same layout
  | 'narrow8' // int32 to 8 bits
  | 'narrow16' // int32 to 16 bits
  | 'decimal-int' // int32 or int64 to a wider decimal
  | 'decimal-bytes' // big-endian two's complement to decimal
  | 'null' // nothing but nulls
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
  /** What the file's Arrow schema, if it has one, says of the group that the field is in. */
  readonly hints?: HintField | undefined;
  /** Whether a hint may say what an integer counts: not where other files, with other hints, are read as the first. */
  readonly countHints?: boolean;
}

/** Arrow's form of a field. Throws UNSUPPORTED for what this version does not know. */
export function arrowNode(source: Field, options: ArrowOptions): ArrowNode {
  return nodeOf(source, options, options.hints?.child(source.name, source.leaves[0]!.index));
}

function nodeOf(source: Field, options: ArrowOptions, hint: HintField | undefined): ArrowNode {
  const nullable = options.nullable || source.nullable;
  if (source.kind === 'leaf') return arrowLeaf(source.leaf, source.name, nullable, options, hint);
  // nothing inside of groups and lists is dictionary-encoded: a row may begin in a page with a dictionary only
  const inner = { ...options, dictionary: false, hints: hint };
  const make = (children: readonly ArrowNode[], type: DataType, metadata = new Map<string, string>()): ArrowNode => {
    return { source, field: new ArrowField(source.name, type, nullable, metadata), children, conversion: 'none' };
  };
  if (source.kind === 'struct') {
    const children = source.children.map((child) => arrowNode(child, inner));
    return make(children, new Struct(children.map((child) => child.field)), annotation(source.logicalType?.kind));
  }
  if (source.kind === 'list') {
    const element = nodeOf(source.element, inner, hint?.childAt(0));
    return make([element], new List(element.field));
  }
  const pairs = hint?.childAt(0);
  const key = nodeOf(source.key, { ...inner, nullable: false }, pairs?.childAt(0));
  if (source.value === undefined) return make([key], new List(key.field));
  const children = [key, nodeOf(source.value, inner, pairs?.childAt(1))];
  const entries = new Struct<{ key: DataType; value: DataType }>(children.map((child) => child.field) as never);
  return make(children, new Map_(new ArrowField('entries', entries, false)));
}

function arrowLeaf(
  leaf: LeafColumn,
  name: string,
  nullable: boolean,
  options: ArrowOptions,
  hint: HintField | undefined,
): ArrowNode {
  const plainly = arrowType(leaf);
  const refined = mayRefine(leaf) ? refine(plainly.type, hint?.type(), options.countHints ?? false) : undefined;
  const { type, conversion } = { ...plainly, type: refined ?? plainly.type };
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

type KeyValues = FileMetadata['keyValues'];

interface Mapped {
  readonly type: DataType;
  readonly conversion: Conversion;
}

function arrowType(leaf: LeafColumn): Mapped {
  const logical = leaf.logicalType;
  if (logical?.kind === 'DECIMAL' && logical.precision <= DECIMAL256_DIGITS) {
    return decimal(leaf, logical.precision, logical.scale);
  }
  if (logical?.kind === 'NULL' && leaf.repetition === Repetition.OPTIONAL) {
    return { type: new Null(), conversion: 'null' };
  }
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
  const type = new Decimal(scale, precision, precision > DECIMAL128_DIGITS ? 256 : 128);
  const bytes = leaf.type === Physical.BYTE_ARRAY || leaf.type === Physical.FIXED_LEN_BYTE_ARRAY;
  return { type, conversion: bytes ? 'decimal-bytes' : 'decimal-int' };
}

/** The hints in a file's key-values, when they may be of use for one of the fields. */
export function hintsFor(fields: readonly Field[], keyValues: KeyValues): HintField | undefined {
  return fields.some((field) => field.leaves.some(mayRefine)) ? HintField.ofFile(keyValues) : undefined;
}

/** Columns whose Arrow type a hint can refine. */
function mayRefine({ type, logicalType }: LeafColumn): boolean {
  if (type === Physical.INT96) return true;
  return type === Physical.INT64 && (logicalType === undefined || logicalType.kind === 'TIMESTAMP');
}

/** The type in the hint's finer terms; undefined when it contradicts it, or has another layout. */
function refine(type: DataType, hint: TypeHint | undefined, countHints: boolean): DataType | undefined {
  if (hint === undefined) return undefined;
  if (hint.kind === 'timestamp') {
    const { zone } = hint;
    if (type instanceof TimestampMillisecond) return type.timezone ? new TimestampMillisecond(zone) : undefined;
    if (type instanceof TimestampMicrosecond) return type.timezone ? new TimestampMicrosecond(zone) : undefined;
    // an INT96 does not say whether it is an instant
    return type instanceof TimestampNanosecond ? new TimestampNanosecond(zone) : undefined;
  }
  if (!countHints || !(type instanceof Int64)) return undefined;
  if (hint.kind === 'date64') return new DateMillisecond();
  switch (hint.unit) {
    case 'second':
      return new DurationSecond();
    case 'millisecond':
      return new DurationMillisecond();
    case 'microsecond':
      return new DurationMicrosecond();
    default:
      return new DurationNanosecond();
  }
}

/** True for byte arrays whose values are UTF-8 text: they are validated and come out as Utf8. */
export function isText(leaf: LeafColumn): boolean {
  const kind = leaf.type === Physical.BYTE_ARRAY ? leaf.logicalType?.kind : undefined;
  return kind === 'STRING' || kind === 'ENUM' || kind === 'JSON';
}

/** Arrow's canonical extension names where there is one, else Parquet's annotation, and what became of it. */
function fieldMetadata(leaf: LeafColumn, encoded: boolean): Map<string, string> {
  const logical = leaf.logicalType;
  const kind = logical?.kind;
  if (kind === 'UUID') return new Map([['ARROW:extension:name', 'arrow.uuid']]);
  // arrow.json may be stored as strings only: readers refuse a whole stream with a dictionary of it
  if (kind === 'JSON' && !encoded) return new Map([['ARROW:extension:name', 'arrow.json']]);
  const metadata = annotation(kind);
  if (leaf.note !== undefined) metadata.set('PARQUET:note', leaf.note);
  if (logical?.kind === 'DECIMAL' && logical.precision > DECIMAL256_DIGITS) {
    const { precision, scale } = logical;
    metadata.set('PARQUET:logical_type', `DECIMAL(${precision}, ${scale})`);
    metadata.set('PARQUET:note', `Arrow decimals end at ${DECIMAL256_DIGITS} digits: these are the stored bytes`);
  }
  return metadata;
}

function annotation(kind: string | undefined): Map<string, string> {
  const kept = ['JSON', 'BSON', 'INTERVAL', 'ENUM', 'VARIANT', 'GEOMETRY', 'GEOGRAPHY', 'UNKNOWN'];
  return kind !== undefined && kept.includes(kind) ? new Map([['PARQUET:logical_type', kind]]) : new Map();
}

/** A file's key-values for the Arrow schema: its own Arrow schema has been used, and what is too large stays behind. */
export function schemaMetadata(keyValues: KeyValues): Map<string, string> {
  const metadata = new Map<string, string>();
  let left = KEY_VALUE_CHARACTERS_MAX;
  for (const [key, value = ''] of keyValues) {
    if (key === 'ARROW:schema' || key.length + value.length > left || metadata.size >= KEY_VALUES_KEPT_MAX) continue;
    left -= key.length + value.length;
    metadata.set(key, value);
  }
  return metadata;
}
