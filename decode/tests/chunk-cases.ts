/** Chunks for tests: column kinds with generators of values, and plans that cross them with every way to write them. */
import { Codec, Encoding, Physical } from '../format/enums.ts';
import type { SeededRandom } from './random.ts';
import type { ChunkPlan, ColumnValue, PagePlan, RunStyle, WriterColumn } from './writer/index.ts';

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
  { name: 'int32', physical: Physical.INT32, make: (random) => random.below(2 ** 32) | 0 },
  {
    name: 'int64',
    physical: Physical.INT64,
    make: (random) => BigInt.asIntN(64, (BigInt(random.below(2 ** 32)) << 32n) | BigInt(random.below(2 ** 32))),
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

export const WAYS = ['plain', 'dictionary', 'old dictionary', 'fallback', 'runs'] as const;
export type Way = (typeof WAYS)[number];

/** The ways in which values of a kind can be encoded. */
export function waysOf(kind: Kind): readonly Way[] {
  return kind.physical === Physical.BOOLEAN ? ['plain', 'runs'] : ['plain', 'dictionary', 'old dictionary', 'fallback'];
}

/** Null shares in percent; -1 stands for a required column. */
export const NULL_SHARES = [-1, 0, 1, 50, 99, 100] as const;

export interface CaseShape {
  readonly kind: Kind;
  readonly nulls: number;
  readonly way: Way;
  readonly codec: number;
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
  const common = { version: shape.version, runs: shape.runs, levelRuns: shape.runs, crc: random.below(4) === 0 };
  if (dictionary) pages.push({ type: 'dictionary', encoding: dictionaryPageEncoding(shape.way), crc: common.crc });
  for (let row = 0; row < shape.rows; ) {
    let rows = shape.pageRows;
    if (rows === 0) {
      rows = random.below(6) === 0 ? 0 : 1 + random.below(300);
      if (random.below(8) === 0) pages.push({ type: 'index' });
    }
    rows = Math.min(rows, shape.rows - row);
    const stored = shape.version === 2 && random.below(4) === 0;
    pages.push({ ...common, stored, rows, encoding: dataEncoding(random, shape, row) });
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
      return row < shape.rows / 3 || random.below(5) === 0 ? Encoding.RLE_DICTIONARY : Encoding.PLAIN;
    case 'runs':
      return Encoding.RLE;
    default:
      return Encoding.PLAIN;
  }
}

const CODEC_CHOICE = [
  Codec.UNCOMPRESSED,
  Codec.SNAPPY,
  Codec.SNAPPY,
  Codec.GZIP,
  Codec.BROTLI,
  Codec.ZSTD,
  Codec.LZ4_RAW,
];
const RUN_STYLES: readonly RunStyle[] = ['auto', 'rle', 'packed', 'mixed'];

const pick = <T>(random: SeededRandom, from: readonly T[]): T => from[random.below(from.length)]!;

export function randomShape(random: SeededRandom): CaseShape {
  const kind = pick(random, KINDS);
  return {
    kind,
    nulls: pick(random, NULL_SHARES),
    way: pick(random, waysOf(kind)),
    codec: pick(random, CODEC_CHOICE),
    version: random.below(2) === 0 ? 1 : 2,
    rows: pick(random, [1, 2, 63, 64, 65, 200, 1000, 1500]),
    pageRows: pick(random, [0, 0, 1, 7, 64, 333, 5000]),
    runs: pick(random, RUN_STYLES),
    distinct: pick(random, [1, 2, 3, 30, 300, 1000]),
  };
}
