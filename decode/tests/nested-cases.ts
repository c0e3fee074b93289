/** Nested columns for tests: random fields of every form, values for them, and pages cut anywhere that the format allows. */
import { Codec, Converted, Encoding, Physical } from '../format/enums.ts';
import { encodingsOf, KINDS, type Kind } from './chunk-cases.ts';
import type { SeededRandom } from './random.ts';
import {
  type ChunkPlan,
  CODECS,
  chunkPlan,
  DELTA_SHAPES,
  type FieldPlan,
  type Framing,
  type LeafColumn,
  type LeafPlan,
  type NestedValue,
  type PagePlan,
  type RunStyle,
  schemaElements,
  shred,
  type WrittenFile,
  writeFile,
} from './writer/index.ts';

export const pick = <T>(random: SeededRandom, from: readonly T[]): T => from[random.below(from.length)]!;

export function leaf(name: string, kind: Kind, optional = false): LeafPlan {
  const { physical, typeLength, utf8 } = kind;
  const column = {
    physical,
    ...(typeLength === undefined ? {} : { typeLength }),
    ...(utf8 ? { converted: Converted.UTF8 } : {}),
  };
  return { kind: 'leaf', name, optional, column };
}

const FIELD_NAMES = ['a', 'b', 'x y', 'ß', 'd.e'];

/** A random field of up to `depth` levels of groups and lists. `mayRepeat` is false where a repeated node means another thing. */
export function randomField(
  random: SeededRandom,
  name: string,
  depth: number,
  { optional = random.below(3) > 0, mayRepeat = true, kinds = KINDS } = {},
): FieldPlan {
  const choice = depth === 0 ? 0 : random.below(7);
  if (choice <= 1) return leaf(name, pick(random, kinds), optional);
  if (choice === 2 || choice === 3) {
    const names = FIELD_NAMES.slice(0, 1 + random.below(FIELD_NAMES.length));
    return {
      kind: 'struct',
      name,
      optional,
      fields: names.map((one) => randomField(random, one, depth - 1, { kinds })),
    };
  }
  if (choice === 4) return randomMap(random, name, depth, optional, kinds);
  const form = pick(
    random,
    mayRepeat ? (['three levels', 'two levels', 'bare'] as const) : (['three levels', 'two levels'] as const),
  );
  if (form === 'bare') {
    const element = randomField(random, name, depth - 1, { optional: false, mayRepeat: false, kinds });
    return { kind: 'list', name, optional: false, form, element };
  }
  if (form === 'two levels') {
    const elementName = pick(random, ['array', `${name}_tuple`]);
    const element = randomField(random, elementName, depth - 1, { optional: false, mayRepeat: false, kinds });
    return { kind: 'list', name, optional, form, element };
  }
  const element = randomField(random, 'element', depth - 1, { mayRepeat: false, kinds });
  return { kind: 'list', name, optional, form, middle: pick(random, ['list', 'bag', 'array_element']), element };
}

function randomMap(
  random: SeededRandom,
  name: string,
  depth: number,
  optional: boolean,
  kinds: readonly Kind[],
): FieldPlan {
  const key = leaf('key', pick(random, kinds));
  const map = { kind: 'map', name, optional, key, old: random.below(4) === 0 } as const;
  if (random.below(5) === 0) return map;
  return { ...map, value: randomField(random, 'value', depth - 1, { mayRepeat: false, kinds }) };
}

/** Makes values of a field: leaves from a few of their own, so that dictionaries come up. */
export type Generator = () => NestedValue;

export interface ValueShape {
  /** Percent of what may be null. */
  readonly nulls: number;
  /** Elements of a list at most, of most lists; some are longer. */
  readonly elements: number;
  readonly distinct: number;
}

export function valueGenerator(random: SeededRandom, field: FieldPlan, shape: ValueShape): Generator {
  const make = contentGenerator(random, field, shape);
  return field.optional ? () => (random.below(100) < shape.nulls ? null : make()) : make;
}

function contentGenerator(random: SeededRandom, field: FieldPlan, shape: ValueShape): Generator {
  switch (field.kind) {
    case 'leaf': {
      const kind = kindOfLeaf(field);
      const choice = Array.from({ length: shape.distinct }, () => kind.make(random));
      return () => pick(random, choice);
    }
    case 'struct': {
      const fields = field.fields.map((child) => [child.name, valueGenerator(random, child, shape)] as const);
      return () => Object.fromEntries(fields.map(([name, make]) => [name, make()]));
    }
    case 'list': {
      const element = valueGenerator(random, field.element, shape);
      return () => Array.from({ length: lengthOf(random, shape) }, element);
    }
    case 'map': {
      const key = valueGenerator(random, field.key, shape);
      const value = field.value === undefined ? undefined : valueGenerator(random, field.value, shape);
      const pair = (): NestedValue => (value === undefined ? [key()] : [key(), value()]);
      return () => Array.from({ length: lengthOf(random, shape) }, pair);
    }
  }
}

function lengthOf(random: SeededRandom, { elements }: ValueShape): number {
  return random.below(30) === 0 ? random.below(elements * 8 + 1) : random.below(elements + 1);
}

export function kindOfLeaf({ column }: LeafPlan): Kind {
  return KINDS.find(
    (kind) =>
      kind.physical === column.physical &&
      kind.typeLength === column.typeLength &&
      (kind.utf8 === true) === (column.converted === Converted.UTF8),
  )!;
}

export interface PageShape {
  readonly codec: number;
  readonly version: 1 | 2;
  /** Entries of a page at most; 0 for random sizes. */
  readonly pageEntries: number;
  readonly runs: RunStyle;
  /** An encoding for all pages, or others for each. */
  readonly mixed: boolean;
}

export function randomPageShape(random: SeededRandom): PageShape {
  return {
    codec: random.below(2) === 0 ? Codec.UNCOMPRESSED : pick(random, CODECS),
    version: random.below(2) === 0 ? 1 : 2,
    pageEntries: pick(random, [0, 0, 1, 13, 64, 700, 100_000]),
    runs: pick(random, ['auto', 'rle', 'packed', 'mixed'] as const),
    mixed: random.below(2) === 0,
  };
}

/** Pages of a leaf: V1 pages are cut anywhere, V2 pages where a row begins. */
export function makePages(random: SeededRandom, column: LeafColumn, shape: PageShape): PagePlan[] {
  const { repetition } = column;
  const encodings = [...encodingsOf(column.column), ...(column.column.physical === Physical.BOOLEAN ? [] : [INDEXED])];
  const own = pick(random, encodings);
  const framing: Framing = pick(random, ['one', 'several', 'bare'] as const);
  const bitPacked = random.below(4) === 0;
  const pages: PagePlan[] = [];
  const entries = repetition.length;
  for (let at = 0; at < entries; ) {
    let end = at + (shape.pageEntries === 0 ? random.below(200) : shape.pageEntries);
    if (shape.version === 2) while (end < entries && repetition[end] !== 0) end++;
    end = Math.min(end, entries);
    pages.push({
      rows: end - at,
      version: shape.version,
      encoding: shape.mixed ? pick(random, encodings) : own,
      framing,
      runs: shape.runs,
      levelRuns: shape.runs,
      bitPackedLevels: bitPacked && shape.version === 1,
      stored: shape.version === 2 && random.below(4) === 0,
      delta: pick(random, DELTA_SHAPES),
      crc: random.below(4) === 0,
    });
    at = end;
  }
  if (pages.some(({ encoding }) => encoding === INDEXED)) pages.unshift({ type: 'dictionary' });
  return pages;
}

const INDEXED = Encoding.RLE_DICTIONARY;

/** A file of the fields; each row group's rows hold a value for each field. */
export function nestedFile(
  fields: readonly FieldPlan[],
  rowGroups: ReadonlyArray<ReadonlyArray<readonly NestedValue[]>>,
  plan: (column: LeafColumn) => ChunkPlan,
): WrittenFile {
  const schema = schemaElements(fields);
  return writeFile({ schema, rowGroups: rowGroups.map((rows) => shred(fields, rows).map(plan)) });
}

export function randomPlan(random: SeededRandom): (column: LeafColumn) => ChunkPlan {
  return (column) => {
    const shape = randomPageShape(random);
    return chunkPlan(column, makePages(random, column, shape), shape.codec);
  };
}
