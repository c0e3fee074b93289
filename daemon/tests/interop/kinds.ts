/**
 * Types that Parquet writers of the JavaScript world know, random values of them as plain JavaScript values, and the
 * canonical text of each as the file's schema means it (daemon/output/canonical-text.ts). The texts are made from the
 * values that go into a writer, never from what a reader gives back.
 */
import { createHash } from 'node:crypto';
import type { SeededRandom } from '../../../decode/tests/random.ts';
import type { Drawing, ExpectedColumn } from './written.ts';

/** A list is an array, a struct a record, a map a Map; null anywhere. */
export type Value =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | readonly Value[]
  | ReadonlyMap<Value, Value>
  | { readonly [name: string]: Value };

export interface LeafKind {
  readonly kind: 'leaf';
  readonly name: LeafName;
  /** The first ones are edges, the others random. */
  readonly make: (random: SeededRandom, k: number) => Value;
  readonly text: (value: never) => string;
}

export type Kind =
  | LeafKind
  | { readonly kind: 'list'; readonly name: string; readonly element: Kind }
  | { readonly kind: 'struct'; readonly name: string; readonly fields: Readonly<Record<string, Kind>> }
  | { readonly kind: 'map'; readonly name: string; readonly key: LeafKind; readonly value: Kind };

export const list = (element: Kind): Kind => ({ kind: 'list', name: `list_${element.name}`, element });
export const struct = (fields: Readonly<Record<string, Kind>>): Kind => ({
  kind: 'struct',
  name: `struct_${Object.values(fields)
    .map((field) => field.name)
    .join('_')}`,
  fields,
});
export const map = (key: LeafKind, value: Kind): Kind => ({ kind: 'map', name: `map_${value.name}`, key, value });

const TEXT_PIECES = ['a', 'b', '"', '\\', '\n', '\u0001', 'é', '漢', '🎈', ' ', '0', 'prefix/'];
const MILLIS_PER_DAY = 86_400_000;
const hex = (bytes: Uint8Array): string => `"${Buffer.from(bytes).toString('hex')}"`;
const bitsOf = (bytes: Uint8Array, isNan: boolean): string =>
  isNan ? '"nan"' : `"${Buffer.from(bytes).reverse().toString('hex')}"`;

function edged(edges: readonly Value[], make: (random: SeededRandom) => Value): LeafKind['make'] {
  return (random, k) => (k < edges.length ? edges[k]! : make(random));
}

function randomBytes(random: SeededRandom, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => random.below(256));
}

/** Of any size, the small ones as likely as the large ones. */
function randomBigint(random: SeededRandom, bits: number, signed: boolean): bigint {
  let value = 0n;
  for (let at = 0; at < bits; at += 16) value |= BigInt(random.below(65_536)) << BigInt(at);
  const width = 1 + random.below(bits);
  return signed ? BigInt.asIntN(width, value) : BigInt.asUintN(width, value);
}

function integer(bits: number, signed: boolean): Pick<LeafKind, 'make' | 'text'> {
  const low = signed ? -(1n << BigInt(bits - 1)) : 0n;
  const high = low + (1n << BigInt(bits)) - 1n;
  const form = (value: bigint): Value => (bits === 64 ? value : Number(value));
  const edges = [low, high, 0n, 1n, high - 1n, low + 1n].map(form);
  return { make: edged(edges, (random) => form(randomBigint(random, bits, signed))), text: String };
}

/** Integers of a range, as numbers or, as the file has them in 64 bits, bigints. */
function counted(low: number, high: number, wide: boolean, scale = 1): Pick<LeafKind, 'make' | 'text'> {
  const form = (value: number): Value => (wide ? BigInt(value) * BigInt(scale) : value);
  const random16 = (random: SeededRandom): number => random.below(65_536) / 65_536;
  const between = (random: SeededRandom): number =>
    low + Math.floor((high - low) * (random16(random) + random16(random) / 65_536));
  return { make: edged([0, low, high].map(form), (random) => form(between(random))), text: String };
}

function decimal(digits: number): Pick<LeafKind, 'make' | 'text'> {
  const high = 10n ** BigInt(digits) - 1n;
  const make = (random: SeededRandom): bigint => randomBigint(random, 128, true) % (high + 1n);
  return { make: edged([high, -high, 0n, 1n, -1n], make), text: String };
}

const FLOAT_EDGES = [0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 1.5];

function floating(bytes: 4 | 8): Pick<LeafKind, 'make' | 'text'> {
  const Values = bytes === 4 ? Float32Array : Float64Array;
  const make = (random: SeededRandom): number => new Values(Uint8Array.from(randomBytes(random, bytes)).buffer)[0]!;
  const text = (value: number): string => bitsOf(new Uint8Array(Values.of(value).buffer), Number.isNaN(value));
  return { make: edged(FLOAT_EDGES, make), text };
}

const half: Pick<LeafKind, 'make' | 'text'> = {
  make: edged(FLOAT_EDGES, (random) => Math.f16round((random.below(200_000) - 100_000) / 1024)),
  text: (value: number) => {
    const bytes = new Uint8Array(2);
    new DataView(bytes.buffer).setFloat16(0, value, true);
    return bitsOf(bytes, Number.isNaN(value));
  },
};

const textual: Pick<LeafKind, 'make' | 'text'> = {
  make: edged(['', 'null', 'long '.repeat(200)], (random) =>
    Array.from({ length: random.below(20) }, () => TEXT_PIECES[random.below(TEXT_PIECES.length)]).join(''),
  ),
  text: (value: string) => JSON.stringify(value),
};

function fixed(length: number): Pick<LeafKind, 'make' | 'text'> {
  return { make: edged([new Uint8Array(length)], (random) => randomBytes(random, length)), text: hex };
}

const YEAR = 365 * MILLIS_PER_DAY;
/** Milliseconds since 1970 whose nanoseconds fit in 64 bits. */
const timestamps = (scale: number): Pick<LeafKind, 'make' | 'text'> => counted(-70 * YEAR, 280 * YEAR, true, scale);

const LEAVES = {
  bool: { make: (random: SeededRandom) => random.below(2) === 1, text: String },
  int8: integer(8, true),
  int16: integer(16, true),
  int32: integer(32, true),
  int64: integer(64, true),
  uint8: integer(8, false),
  uint16: integer(16, false),
  uint32: integer(32, false),
  uint64: integer(64, false),
  float: floating(4),
  double: floating(8),
  half,
  date: counted(-719_162, 2_932_896, false),
  time_millis: counted(0, MILLIS_PER_DAY - 1, false),
  time_micros: counted(0, MILLIS_PER_DAY - 1, true, 1000),
  time_nanos: counted(0, MILLIS_PER_DAY - 1, true, 1_000_000),
  timestamp_millis: timestamps(1),
  timestamp_micros: timestamps(1000),
  timestamp_nanos: timestamps(1_000_000),
  timestamp_millis_utc: timestamps(1),
  timestamp_micros_utc: timestamps(1000),
  timestamp_nanos_utc: timestamps(1_000_000),
  /** Digits and scale. */
  decimal_4_1: decimal(4),
  decimal_9_2: decimal(9),
  decimal_18_4: decimal(18),
  decimal_38_10: decimal(38),
  decimal_76_5: decimal(76),
  string: textual,
  json: { ...textual, make: (random: SeededRandom) => `{"k":${random.below(1000)}}` },
  binary: {
    make: edged([new Uint8Array(0), Uint8Array.of(0, 255)], (random) => randomBytes(random, random.below(20))),
    text: hex,
  },
  fixed_5: fixed(5),
  uuid: fixed(16),
} satisfies Record<string, Pick<LeafKind, 'make' | 'text'>>;

export type LeafName = keyof typeof LEAVES;
export const LEAF_NAMES = Object.keys(LEAVES) as LeafName[];

export const leaf = (name: LeafName): LeafKind => ({ kind: 'leaf', name, ...LEAVES[name] });

/** Every level of nesting over every other, and some leaves that are stored differently. */
export const NESTED: readonly Kind[] = [
  ...(['int32', 'string', 'bool', 'double', 'date', 'decimal_18_4', 'timestamp_micros', 'binary'] as const).map(
    (name) => list(leaf(name)),
  ),
  list(list(leaf('int64'))),
  list(list(list(leaf('string')))),
  struct({ a: leaf('int32'), b: leaf('string') }),
  struct({ x: struct({ y: struct({ z: leaf('double') }) }), w: leaf('date') }),
  list(struct({ a: leaf('int64'), b: leaf('string'), c: list(leaf('float')) })),
  struct({ items: list(struct({ name: leaf('string'), counts: list(leaf('int32')) })), total: leaf('decimal_18_4') }),
  map(leaf('string'), leaf('int32')),
  map(leaf('string'), list(leaf('int64'))),
  list(map(leaf('string'), leaf('double'))),
  struct({ m: map(leaf('string'), struct({ a: leaf('int32'), b: leaf('bool') })) }),
];

export const KINDS: readonly Kind[] = [...LEAF_NAMES.map(leaf), ...NESTED];

export function leavesOf(kind: Kind): LeafKind[] {
  if (kind.kind === 'leaf') return [kind];
  if (kind.kind === 'list') return leavesOf(kind.element);
  return (kind.kind === 'map' ? [kind.key, kind.value] : Object.values(kind.fields)).flatMap(leavesOf);
}

export interface Column {
  readonly kind: Kind;
  readonly values: readonly Value[];
  readonly expected: ExpectedColumn;
}

export function makeColumn(random: SeededRandom, kind: Kind, rows: number, drawing: Drawing): Column {
  const draw = drawer(random, kind, drawing);
  const values = Array.from({ length: rows }, draw);
  const text = textOf(kind);
  const hash = createHash('sha256').update(values.map((value) => `${text(value)}\n`).join(''));
  const nulls = values.filter((value) => value === null).length;
  return { kind, values, expected: { name: kind.name, nulls, sha256: hash.digest('hex') } };
}

const LENGTHS = [0, 0, 1, 1, 2, 3, 5, 17];

function drawer(random: SeededRandom, kind: Kind, { nulls, distinct }: Drawing): () => Value {
  const inner = drawNonNull(random, kind, { nulls, distinct });
  return () => (random.below(100) < nulls ? null : inner());
}

function drawNonNull(random: SeededRandom, kind: Kind, drawing: Drawing): () => Value {
  if (kind.kind === 'leaf') {
    const pool = Array.from({ length: drawing.distinct }, (_, k) => kind.make(random, k));
    return () => pool[random.below(pool.length)]!;
  }
  if (kind.kind === 'list') {
    const element = drawer(random, kind.element, drawing);
    return () => Array.from({ length: LENGTHS[random.below(LENGTHS.length)]! }, element);
  }
  if (kind.kind === 'struct') {
    const fields = Object.entries(kind.fields).map(([name, field]) => [name, drawer(random, field, drawing)] as const);
    return () => Object.fromEntries(fields.map(([name, draw]) => [name, draw()]));
  }
  const key = drawNonNull(random, kind.key, { nulls: 0, distinct: 100 });
  const value = drawer(random, kind.value, drawing);
  return () => new Map(Array.from({ length: random.below(5) }, () => [key(), value()]));
}

/** The canonical text of a kind's values. */
function textOf(kind: Kind): (value: Value) => string {
  const inner = textOfNonNull(kind);
  return (value) => (value === null ? 'null' : inner(value));
}

function textOfNonNull(kind: Kind): (value: Value) => string {
  if (kind.kind === 'leaf') return (value) => kind.text(value as never);
  if (kind.kind === 'list') {
    const element = textOf(kind.element);
    return (value) => `[${(value as Value[]).map(element).join(',')}]`;
  }
  if (kind.kind === 'struct') {
    const fields = Object.entries(kind.fields).map(([name, field]) => [name, textOf(field)] as const);
    const member = (value: Record<string, Value>) =>
      fields.map(([name, text]) => `${JSON.stringify(name)}:${text(value[name]!)}`);
    return (value) => `{${member(value as Record<string, Value>).join(',')}}`;
  }
  const [key, text] = [textOf(kind.key), textOf(kind.value)];
  return (value) => `[${[...(value as Map<Value, Value>)].map(([k, v]) => `[${key(k)},${text(v)}]`).join(',')}]`;
}
