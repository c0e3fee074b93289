/**
 * What Qanat reads of the Parquet format, as the README says it. Each line is a claim: a test writes files for it and
 * reads them back through a whole scan (tests/support.test.ts), so that none stands here which does not hold.
 */
import type { Codec, Encoding, Physical } from '../decode/index.ts';

type PhysicalName = keyof typeof Physical;
type EncodingName = keyof typeof Encoding;
type CodecName = keyof typeof Codec;

export const PHYSICAL_NAMES: readonly PhysicalName[] = [
  'BOOLEAN',
  'INT32',
  'INT64',
  'INT96',
  'FLOAT',
  'DOUBLE',
  'BYTE_ARRAY',
  'FIXED_LEN_BYTE_ARRAY',
];

const NUMBERS: readonly PhysicalName[] = ['INT32', 'INT64', 'FLOAT', 'DOUBLE'];
const BYTES: readonly PhysicalName[] = ['BYTE_ARRAY', 'FIXED_LEN_BYTE_ARRAY'];
const ALL_BUT_BOOLEAN = PHYSICAL_NAMES.filter((name) => name !== 'BOOLEAN');

/** Encodings of values and the physical types that may have them; every one in the files' pages of every codec. */
export const ENCODINGS_READ: Readonly<Partial<Record<EncodingName, readonly PhysicalName[]>>> = {
  PLAIN: PHYSICAL_NAMES,
  PLAIN_DICTIONARY: ALL_BUT_BOOLEAN,
  RLE_DICTIONARY: ALL_BUT_BOOLEAN,
  RLE: ['BOOLEAN'],
  DELTA_BINARY_PACKED: ['INT32', 'INT64'],
  DELTA_LENGTH_BYTE_ARRAY: ['BYTE_ARRAY'],
  DELTA_BYTE_ARRAY: BYTES,
  BYTE_STREAM_SPLIT: [...NUMBERS, 'FIXED_LEN_BYTE_ARRAY'],
};

/** Encodings of repetition and definition levels, by the version of the page. */
export const LEVEL_ENCODINGS_READ: readonly {
  readonly encoding: EncodingName;
  readonly versions: readonly (1 | 2)[];
}[] = [
  { encoding: 'RLE', versions: [1, 2] },
  { encoding: 'BIT_PACKED', versions: [1] },
];

export interface CodecClaim {
  readonly codec: CodecName;
  readonly versions: readonly (1 | 2)[];
  /** Ways to frame a page that are read besides the one in a single piece. */
  readonly framings: readonly ('several' | 'bare')[];
  readonly note: string;
}

const BOTH = [1, 2] as const;

export const CODECS_READ: readonly CodecClaim[] = [
  { codec: 'UNCOMPRESSED', versions: BOTH, framings: [], note: '' },
  { codec: 'SNAPPY', versions: BOTH, framings: [], note: '' },
  { codec: 'GZIP', versions: BOTH, framings: ['several'], note: 'one or several members' },
  { codec: 'BROTLI', versions: BOTH, framings: [], note: '' },
  { codec: 'ZSTD', versions: BOTH, framings: ['several'], note: 'one or several frames' },
  { codec: 'LZ4_RAW', versions: BOTH, framings: [], note: '' },
  { codec: 'LZ4', versions: BOTH, framings: ['several', 'bare'], note: "Hadoop's frames, or a bare block" },
];

/** Refused with an error that says so. */
export const CODECS_REFUSED: readonly CodecName[] = ['LZO'];

export interface TypeClaim {
  /** As in parquet.thrift's LogicalType; empty for none. */
  readonly annotation: string;
  readonly storage: PhysicalName;
  /** Bytes of a FIXED_LEN_BYTE_ARRAY. */
  readonly bytes?: number;
  readonly arrow: string;
}

const integers = (bits: number, storage: PhysicalName): TypeClaim[] => [
  { annotation: `INTEGER(${bits}, signed)`, storage, arrow: `Int${bits}` },
  { annotation: `INTEGER(${bits}, unsigned)`, storage, arrow: `Uint${bits}` },
];
const decimal = (digits: number, scale: number, storage: PhysicalName, bytes?: number): TypeClaim => ({
  annotation: `DECIMAL(${digits}, ${scale})`,
  storage,
  ...(bytes === undefined ? {} : { bytes }),
  arrow: `Decimal${digits > 38 ? 256 : 128}(${digits}, ${scale})`,
});
const UNITS = ['MILLIS', 'MICROS', 'NANOS'] as const;
const ARROW_UNITS = { MILLIS: 'MILLISECOND', MICROS: 'MICROSECOND', NANOS: 'NANOSECOND' } as const;

export const TYPES_READ: readonly TypeClaim[] = [
  { annotation: '', storage: 'BOOLEAN', arrow: 'Bool' },
  { annotation: '', storage: 'INT32', arrow: 'Int32' },
  { annotation: '', storage: 'INT64', arrow: 'Int64' },
  { annotation: '', storage: 'INT96', arrow: 'Timestamp<NANOSECOND>' },
  { annotation: '', storage: 'FLOAT', arrow: 'Float32' },
  { annotation: '', storage: 'DOUBLE', arrow: 'Float64' },
  { annotation: '', storage: 'BYTE_ARRAY', arrow: 'Binary' },
  { annotation: '', storage: 'FIXED_LEN_BYTE_ARRAY', bytes: 5, arrow: 'FixedSizeBinary[5]' },
  ...[8, 16, 32].flatMap((bits) => integers(bits, 'INT32')),
  ...integers(64, 'INT64'),
  decimal(9, 2, 'INT32'),
  decimal(18, 4, 'INT64'),
  decimal(38, 10, 'FIXED_LEN_BYTE_ARRAY', 16),
  decimal(76, 10, 'FIXED_LEN_BYTE_ARRAY', 32),
  decimal(38, 10, 'BYTE_ARRAY'),
  decimal(76, 10, 'BYTE_ARRAY'),
  { annotation: 'FLOAT16', storage: 'FIXED_LEN_BYTE_ARRAY', bytes: 2, arrow: 'Float16' },
  { annotation: 'DATE', storage: 'INT32', arrow: 'Date32<DAY>' },
  ...UNITS.map((unit): TypeClaim => {
    const millis = unit === 'MILLIS';
    const arrow = `Time${millis ? 32 : 64}<${ARROW_UNITS[unit]}>`;
    return { annotation: `TIME(${unit})`, storage: millis ? 'INT32' : 'INT64', arrow };
  }),
  ...UNITS.flatMap((unit): TypeClaim[] => [
    { annotation: `TIMESTAMP(${unit}, local)`, storage: 'INT64', arrow: `Timestamp<${ARROW_UNITS[unit]}>` },
    { annotation: `TIMESTAMP(${unit}, UTC)`, storage: 'INT64', arrow: `Timestamp<${ARROW_UNITS[unit]}, UTC>` },
  ]),
  { annotation: 'STRING', storage: 'BYTE_ARRAY', arrow: 'Utf8' },
  { annotation: 'ENUM', storage: 'BYTE_ARRAY', arrow: 'Utf8' },
  { annotation: 'JSON', storage: 'BYTE_ARRAY', arrow: 'Utf8, arrow.json' },
  { annotation: 'BSON', storage: 'BYTE_ARRAY', arrow: 'Binary' },
  { annotation: 'UUID', storage: 'FIXED_LEN_BYTE_ARRAY', bytes: 16, arrow: 'FixedSizeBinary[16], arrow.uuid' },
  { annotation: 'INTERVAL', storage: 'FIXED_LEN_BYTE_ARRAY', bytes: 12, arrow: 'FixedSizeBinary[12]' },
  { annotation: 'GEOMETRY', storage: 'BYTE_ARRAY', arrow: 'Binary' },
  { annotation: 'GEOGRAPHY', storage: 'BYTE_ARRAY', arrow: 'Binary' },
];

export interface ShapeClaim {
  readonly shape: string;
  readonly arrow: string;
}

export const SHAPES_READ: readonly ShapeClaim[] = [
  { shape: 'required or nullable column', arrow: 'the type above' },
  { shape: 'group', arrow: 'Struct' },
  { shape: 'LIST of three levels', arrow: 'List' },
  { shape: 'LIST of two levels, as old writers have it', arrow: 'List' },
  { shape: 'repeated field without an annotation', arrow: 'List' },
  { shape: 'MAP', arrow: 'Map' },
  { shape: 'MAP_KEY_VALUE, as old writers have it', arrow: 'Map' },
  { shape: 'MAP without values', arrow: 'List' },
];
