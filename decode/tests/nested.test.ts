/** Nested columns of every form, written in every way and arriving in every manner, against the values they hold. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChunkSpec } from '../column/spec.ts';
import { KINDS, kindOf } from './chunk-cases.ts';
import { type Feed, LINES, makeEnvironments, randomFeed, WHOLE } from './chunk-run.ts';
import { leaf, nestedFile, pick, randomField, randomPlan, type ValueShape, valueGenerator } from './nested-cases.ts';
import { assertSameRows, projections, runNested, specsOf } from './nested-run.ts';
import { type SeededRandom, seededRandom } from './random.ts';
import type { FieldPlan, NestedValue } from './writer/index.ts';

const { wasm, scalar } = makeEnvironments(64 << 20);
const WINDOWS = [1, 3, 64, 100, 333, 4096];

interface Case {
  readonly field: FieldPlan;
  readonly values: readonly NestedValue[];
  readonly change?: Partial<ChunkSpec>;
}

/** Writes the values as a column, decodes every leaf of it by both kernels, and compares. */
function check(random: SeededRandom, { field, values, change = {} }: Case): void {
  const { bytes } = nestedFile([field], [values.map((value) => [value])], randomPlan(random));
  const windowRows = pick(random, WINDOWS);
  const specs = specsOf(bytes, { windowRows, ...change })[0]!;
  for (const [k, project] of projections(field).entries()) {
    const spec = specs[k]!;
    const chunk = bytes.subarray(spec.fileOffset, spec.fileOffset + spec.byteLength);
    const expected = values.map(project);
    for (const environment of [wasm, scalar]) {
      const feed: Feed = [WHOLE, LINES, randomFeed(random, chunk.length, 3), randomFeed(random, chunk.length, 12)][
        random.below(4)
      ]!;
      try {
        const { rows, segments } = runNested(environment, spec, chunk, { feed });
        assertSameRows(rows, expected);
        for (const count of segments) assert.ok(count > 0 && count <= windowRows, `a segment of ${count} rows`);
      } catch (error) {
        const what = JSON.stringify({ leaf: k, field, windowRows, kernels: environment === wasm ? 'wasm' : 'scalar' });
        throw new Error(`${what}: ${(error as Error).message}`, { cause: error });
      }
    }
  }
}

const randomShape = (random: SeededRandom): ValueShape => ({
  nulls: pick(random, [0, 10, 50, 95]),
  elements: pick(random, [0, 1, 3, 9]),
  distinct: pick(random, [1, 5, 200]),
});

test('random fields', () => {
  const random = seededRandom();
  for (let turn = 0; turn < 250; turn++) {
    const field = randomField(random, 'f', 1 + random.below(4));
    const make = valueGenerator(random, field, randomShape(random));
    check(random, { field, values: Array.from({ length: pick(random, [1, 20, 70, 150]) }, make) });
  }
});

test('lists of every kind of value, in every form', () => {
  const random = seededRandom();
  for (const kind of KINDS) {
    for (const form of ['three levels', 'two levels', 'bare'] as const) {
      for (const optional of form === 'three levels' ? [false, true] : [false]) {
        const element = leaf(form === 'two levels' ? 'array' : 'element', kind, optional);
        const field: FieldPlan = { kind: 'list', name: 'f', optional: form !== 'bare', form, element };
        const make = valueGenerator(random, field, { nulls: 20, elements: 4, distinct: 40 });
        check(random, { field, values: Array.from({ length: 300 }, make) });
      }
    }
  }
});

test('nulls and empty lists at every level', () => {
  const random = seededRandom();
  const list = (name: string, element: FieldPlan): FieldPlan => {
    return { kind: 'list', name, optional: true, form: 'three levels', element };
  };
  const struct = (name: string, ...fields: FieldPlan[]): FieldPlan => ({
    kind: 'struct',
    name,
    optional: true,
    fields,
  });
  const field = struct('s', list('l', list('element', struct('element', leaf('x', kindOf('int32'), true)))));
  const values: NestedValue[] = [
    null,
    { l: null },
    { l: [] },
    { l: [null] },
    { l: [[]] },
    { l: [[null]] },
    { l: [[{ x: null }]] },
    { l: [[{ x: 1 }]] },
    { l: [null, [], [null, { x: null }, { x: 2 }], [], null] },
    { l: [[{ x: 3 }, { x: 4 }], [{ x: 5 }], [null]] },
  ];
  for (let turn = 0; turn < 60; turn++) {
    const count = 1 + random.below(80);
    check(random, { field, values: Array.from({ length: count }, () => pick(random, values)) });
  }
  for (const value of values) check(random, { field, values: Array.from({ length: 100 }, () => value) });
});

test('structs of required fields leave no trace in the levels', () => {
  const random = seededRandom();
  const fields = KINDS.map((kind) => leaf(kind.name, kind));
  const inner: FieldPlan = { kind: 'struct', name: 'inner', optional: false, fields };
  const field: FieldPlan = { kind: 'struct', name: 'f', optional: false, fields: [inner] };
  const make = valueGenerator(random, field, { nulls: 0, elements: 0, distinct: 50 });
  check(random, { field, values: Array.from({ length: 500 }, make) });
});

test('lists and structs in each other, 99 levels deep', () => {
  const random = seededRandom();
  for (const form of ['lists', 'structs', 'both', 'optional structs'] as const) {
    let field: FieldPlan = leaf('element', kindOf('int64'), true);
    for (let depth = 98; depth > 0; depth--) {
      const name = depth === 1 ? 'f' : 'element';
      const isList = form === 'lists' || (form === 'both' && depth % 2 === 0);
      if (isList) field = { kind: 'list', name, optional: depth % 3 === 0, form: 'three levels', element: field };
      else field = { kind: 'struct', name, optional: form === 'optional structs', fields: [field] };
    }
    const make = valueGenerator(random, field, { nulls: 1, elements: 1, distinct: 9 });
    const values = Array.from({ length: 40 }, make);
    values.push(deepest(field));
    check(random, { field, values });
  }
});

/** A value that is there all the way down. */
function deepest(field: FieldPlan): NestedValue {
  if (field.kind === 'list') return [deepest(field.element)];
  if (field.kind === 'struct') return { [field.fields[0]!.name]: deepest(field.fields[0]!) };
  return 7n;
}

test('maps with null values, sets, and maps of maps', () => {
  const random = seededRandom();
  const key = leaf('key', kindOf('string'));
  const maps: FieldPlan[] = [false, true].flatMap((old) => {
    const inner: FieldPlan = {
      kind: 'map',
      name: 'value',
      optional: true,
      old,
      key,
      value: leaf('value', kindOf('int32'), true),
    };
    return [
      { kind: 'map', name: 'f', optional: true, old, key },
      { kind: 'map', name: 'f', optional: true, old, key, value: leaf('value', kindOf('string'), true) },
      { kind: 'map', name: 'f', optional: false, old, key, value: leaf('value', kindOf('boolean'), false) },
      { kind: 'map', name: 'f', optional: true, old, key, value: inner },
    ] as const;
  });
  for (const field of maps) {
    const make = valueGenerator(random, field, { nulls: 40, elements: 3, distinct: 20 });
    check(random, { field, values: Array.from({ length: 250 }, make) });
  }
});
