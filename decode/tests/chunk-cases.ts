/** Chunks for tests: column kinds with generators of values, and plans that cross them with every way to write them. */
import { Codec, Encoding, Physical } from '../format/enums.ts';
import type { SeededRandom } from './random.ts';
import {
  type ChunkPlan,
  type ColumnValue,
  DELTA_SHAPES,
  type Framing,
  type PagePlan,
  type RunStyle,
  type WriterColumn,
} from './writer/index.ts';

export interface Kind {
  readonly name: string;
  readonly physical: number;
  readonly typeLength?: number;
  readonly utf8?: boolean;
  readonly make: (random: SeededRandom) => Exclude<ColumnValue, null>;
}

const bytes = (random: SeededRandom, length: number): Uint8Array =>
  Uint8Array.from({ length }, () => random.below(256));

const fixed = (typeLength: number): Kind => ({
  name: `fixed${typeLength}`,
  physical: Physical.FIXED_LEN_BYTE_ARRAY,
  typeLength,
  make: (random) => bytes(random, typeLength),
});

const LETTERS = [...'abcdefgh éßжŁ漢字𐍈🂡'];

function text(random: SeededRandom): string {
  const length = random.below(20) === 0 ? random.below(200) : random.below(24);
  let value = '';
  for (let i = 0; i < length; i++) value += LETTERS[random.below(LETTERS.length)];
  return value;
}

const FLOATS = [0, -0, Number.NaN, Infinity, -Infinity, 1.5, -1e-30, 3e38];

export const KINDS: readonly Kind[] = [
  { name: 'boolean', physical: Physical.BOOLEAN, make: (random) => random.below(2) === 1 },
  { name: 'int32', physical: Physical.INT32, make: (random) => random.below(2 ** (1 + random.below(32))) | 0 },
  {
    name: 'int64',
    physical: Physical.INT64,
    make: (random) => {
      const bits = (BigInt(random.below(2 ** 32)) << 32n) | BigInt(random.below(2 ** 32));
      return BigInt.asIntN(64, bits >> BigInt(random.below(64)));
    },
  },
  { name: 'int96', physical: Physical.INT96, make: (random) => bytes(random, 12) },
  { name: 'float', physical: Physical.FLOAT, make: (random) => FLOATS[random.below(FLOATS.length)]! },
  {
    name: 'double',
    physical: Physical.DOUBLE,
    make: (random) => FLOATS[random.below(FLOATS.length)]! * (1 + random.below(1000)),
  },
  { name: 'string', physical: Physical.BYTE_ARRAY, utf8: true, make: text },
  { name: 'binary', physical: Physical.BYTE_ARRAY, make: (random) => bytes(random, random.below(40)) },
  ...[1, 2, 3, 4, 8, 16, 21].map(fixed),
];

export const kindOf = (name: string): Kind => KINDS.find((kind) => kind.name === name)!;

export type Way =
  | 'plain'
  | 'dictionary'
  | 'old dictionary'
  | 'fallback' // dictionary pages, then others of an encoding each
  | 'runs'
  | 'delta'
  | 'delta lengths'
  | 'delta bytes'
  | 'split';

/** The ways in which values of a kind can be encoded. */
export function waysOf({ physical }: Pick<Kind, 'physical'>): readonly Way[] {
  if (physical === Physical.BOOLEAN) return ['plain', 'runs'];
  const common: readonly Way[] = ['plain', 'dictionary', 'old dictionary', 'fallback'];
  switch (physical) {
    case Physical.INT32:
    case Physical.INT64:
      return [...common, 'delta', 'split'];
    case Physical.BYTE_ARRAY:
      return [...common, 'delta lengths', 'delta bytes'];
    case Physical.FIXED_LEN_BYTE_ARRAY:
      return [...common, 'delta bytes', 'split'];
    case Physical.INT96:
      return common;
    default:
      return [...common, 'split'];
  }
}

/** Null shares in percent; -1 stands for a required column. */
export const NULL_SHARES = [-1, 0, 1, 50, 99, 100] as const;

export interface CaseShape {
  readonly kind: Kind;
  readonly nulls: number;
  readonly way: Way;
  readonly codec: number;
  readonly framing?: Framing;
  readonly bitPackedLevels?: boolean;
  readonly version: 1 | 2;
  readonly rows: number;
  /** Rows of a page at most; 0 for random sizes, empty pages and index pages in between. */
  readonly pageRows: number;
  readonly runs: RunStyle;
  /** Different values at most. */
  readonly distinct: number;
}

export function columnOf(kind: Kind, optional: boolean): WriterColumn {
  return {
    name: kind.name,
    physical: kind.physical,
    optional,
    ...(kind.typeLength === undefined ? {} : { typeLength: kind.typeLength }),
  };
}

/** `rows` values of a kind; repeated in stretches now and then, so that runs of every length come up. */
export function makeValues(random: SeededRandom, shape: Pick<CaseShape, 'kind' | 'nulls' | 'rows' | 'distinct'>) {
  const choice = Array.from({ length: shape.distinct }, () => shape.kind.make(random));
  const values: ColumnValue[] = [];
  while (values.length < shape.rows) {
    const value = choice[random.below(choice.length)]!;
    const stretch = random.below(4) === 0 ? 1 + random.below(60) : 1;
    for (let k = 0; k < stretch && values.length < shape.rows; k++) {
      values.push(random.below(100) < shape.nulls ? null : value);
    }
  }
  return values;
}

export function makePlan(random: SeededRandom, shape: CaseShape): ChunkPlan {
  const values = makeValues(random, shape);
  const pages: PagePlan[] = [];
  const dictionary = shape.way === 'dictionary' || shape.way === 'old dictionary' || shape.way === 'fallback';
  const common = {
    version: shape.version,
    runs: shape.runs,
    levelRuns: shape.runs,
    crc: random.below(4) === 0,
    framing: shape.framing ?? 'one',
    bitPackedLevels: shape.bitPackedLevels === true && shape.version === 1,
  };
  if (dictionary) pages.push({ type: 'dictionary', encoding: dictionaryPageEncoding(shape.way), crc: common.crc });
  for (let row = 0; row < shape.rows; ) {
    let rows = shape.pageRows;
    if (rows === 0) {
      rows = random.below(6) === 0 ? 0 : 1 + random.below(300);
      if (random.below(8) === 0) pages.push({ type: 'index' });
    }
    rows = Math.min(rows, shape.rows - row);
    const stored = shape.version === 2 && random.below(4) === 0;
    const delta = pick(random, DELTA_SHAPES);
    pages.push({ ...common, stored, delta, rows, encoding: dataEncoding(random, shape, row) });
    row += rows;
  }
  return { column: columnOf(shape.kind, shape.nulls >= 0), values, codec: shape.codec, pages };
}

function dictionaryPageEncoding(way: Way): number {
  return way === 'old dictionary' ? Encoding.PLAIN_DICTIONARY : Encoding.PLAIN;
}

function dataEncoding(random: SeededRandom, shape: CaseShape, row: number): number {
  switch (shape.way) {
    case 'dictionary':
      return Encoding.RLE_DICTIONARY;
    case 'old dictionary':
      return Encoding.PLAIN_DICTIONARY;
    case 'fallback': // and now and then back again, which the format allows
      if (row < shape.rows / 3 || random.below(5) === 0) return Encoding.RLE_DICTIONARY;
      return pick(random, encodingsOf(shape.kind));
    case 'runs':
      return Encoding.RLE;
    case 'delta':
      return Encoding.DELTA_BINARY_PACKED;
    case 'delta lengths':
      return Encoding.DELTA_LENGTH_BYTE_ARRAY;
    case 'delta bytes':
      return Encoding.DELTA_BYTE_ARRAY;
    case 'split':
      return Encoding.BYTE_STREAM_SPLIT;
    default:
      return Encoding.PLAIN;
  }
}

/** Encodings of values of a physical type that need no dictionary. */
export function encodingsOf(kind: Pick<Kind, 'physical'>): readonly number[] {
  const ways = waysOf(kind);
  const encodings: number[] = [Encoding.PLAIN];
  if (ways.includes('runs')) encodings.push(Encoding.RLE);
  if (ways.includes('delta')) encodings.push(Encoding.DELTA_BINARY_PACKED);
  if (ways.includes('delta lengths')) encodings.push(Encoding.DELTA_LENGTH_BYTE_ARRAY);
  if (ways.includes('delta bytes')) encodings.push(Encoding.DELTA_BYTE_ARRAY);
  if (ways.includes('split')) encodings.push(Encoding.BYTE_STREAM_SPLIT);
  return encodings;
}

const CODEC_CHOICE = [
  Codec.UNCOMPRESSED,
  Codec.SNAPPY,
  Codec.SNAPPY,
  Codec.GZIP,
  Codec.BROTLI,
  Codec.ZSTD,
  Codec.LZ4_RAW,
  Codec.LZ4,
];
const FRAMINGS: readonly Framing[] = ['one', 'several', 'bare'];
const RUN_STYLES: readonly RunStyle[] = ['auto', 'rle', 'packed', 'mixed'];

const pick = <T>(random: SeededRandom, from: readonly T[]): T => from[random.below(from.length)]!;

export function randomShape(random: SeededRandom): CaseShape {
  const kind = pick(random, KINDS);
  return {
    kind,
    nulls: pick(random, NULL_SHARES),
    way: pick(random, waysOf(kind)),
    codec: pick(random, CODEC_CHOICE),
    framing: pick(random, FRAMINGS),
    bitPackedLevels: random.below(4) === 0,
    version: random.below(2) === 0 ? 1 : 2,
    rows: pick(random, [1, 2, 63, 64, 65, 200, 1000, 1500]),
    pageRows: pick(random, [0, 0, 1, 7, 64, 333, 5000]),
    runs: pick(random, RUN_STYLES),
    distinct: pick(random, [1, 2, 3, 30, 300, 1000]),
  };
}
