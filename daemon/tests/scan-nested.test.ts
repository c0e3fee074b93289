/** Nested columns from a file through a scan to Arrow: the values that were written, whatever form they were written in. */
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { Codec, Encoding, Physical } from '../../decode/format/enums.ts';
import { KINDS, kindOf } from '../../decode/tests/chunk-cases.ts';
import { leaf, nestedFile, pick, randomField, randomPlan, valueGenerator } from '../../decode/tests/nested-cases.ts';
import { seededRandom } from '../../decode/tests/random.ts';
import { chunkPlan, type FieldPlan, type NestedValue } from '../../decode/tests/writer/index.ts';
import { ScanEngine } from '../scan/engine.ts';
import { Scan, type ScanOptions } from '../scan/scan.ts';
import { columnRows, expectedRow, type Row } from './arrow-rows.ts';
import { memorySource } from './memory-source.ts';

/** An INT96 becomes a timestamp in Arrow, which most of its bytes are not. */
const PLAIN_KINDS = KINDS.filter(({ physical }) => physical !== Physical.INT96);

describe('nested columns through a scan', () => {
  const random = seededRandom();
  const engine = new ScanEngine({ memoryBytes: 96 << 20, decoders: 2 });
  const idle = engine.pool.usedBytes;
  after(async () => {
    assert.equal(engine.pool.usedBytes, idle, 'the pool is as empty as at the start');
    await engine.close();
  });

  /** Rows of every column, in the order of the scan. */
  async function scanRows(bytes: Uint8Array, options: ScanOptions = {}, on = engine): Promise<Row[][]> {
    const { source } = await memorySource(bytes);
    const scan = await Scan.open(on, source, options);
    const columns: Row[][] = scan.schema.fields.map(() => []);
    for await (const batch of scan) {
      for (const [k, rows] of columns.entries()) rows.push(...columnRows(batch, k));
      (batch as Partial<Disposable>)[Symbol.dispose]?.();
    }
    await source.close();
    return columns;
  }

  function assertRows(actual: readonly Row[], expected: readonly Row[], what: string): void {
    assert.equal(actual.length, expected.length, what);
    for (const [k, row] of expected.entries()) {
      const [a, b] = [JSON.stringify(actual[k]), JSON.stringify(row)];
      if (a !== b) assert.fail(`${what}, row ${k} is ${a?.slice(0, 300)} instead of ${b?.slice(0, 300)}`);
    }
  }

  test('random fields in several row groups', async () => {
    for (let turn = 0; turn < 60; turn++) {
      const names = ['f', 'g', 'h'].slice(0, 1 + random.below(3));
      const fields = names.map((name) => randomField(random, name, 1 + random.below(3), { kinds: PLAIN_KINDS }));
      const shape = { nulls: pick(random, [0, 30, 90]), elements: pick(random, [1, 4]), distinct: 20 };
      const makers = fields.map((field) => valueGenerator(random, field, shape));
      const groups = Array.from({ length: 1 + random.below(3) }, () =>
        Array.from({ length: 1 + random.below(120) }, () => makers.map((make) => make())),
      );
      const { bytes } = nestedFile(fields, groups, randomPlan(random));
      const options = { batchRows: pick(random, [1, 7, 100, 8192]), zeroCopy: random.below(2) === 0 };
      const columns = await scanRows(bytes, options);
      for (const [k, field] of fields.entries()) {
        const expected = groups.flat().map((row) => expectedRow(field, row[k]!));
        assertRows(columns[k]!, expected, JSON.stringify({ field, options }));
      }
    }
  });

  const int = (name: string, optional = false): FieldPlan => leaf(name, kindOf('int32'), optional);
  const struct = (name: string, optional: boolean, ...fields: FieldPlan[]): FieldPlan => {
    return { kind: 'struct', name, optional, fields };
  };
  const list = (
    name: string,
    form: 'three levels' | 'two levels' | 'bare',
    element: FieldPlan,
    middle?: string,
  ): FieldPlan => {
    return {
      kind: 'list',
      name,
      optional: form !== 'bare',
      form,
      element,
      ...(middle === undefined ? {} : { middle }),
    };
  };

  /** Each form and the Arrow type that it must have. */
  const FORMS: readonly [name: string, field: FieldPlan, type: string][] = [
    ['three levels', list('x', 'three levels', int('element', true)), 'List<Int32>'],
    ['three levels of other names', list('x', 'three levels', int('item'), 'bag'), 'List<Int32>'],
    ['two levels of values', list('x', 'two levels', int('element')), 'List<Int32>'],
    [
      'two levels of structs',
      list('x', 'two levels', struct('whatever', false, int('a'), int('b', true))),
      'List<Struct<{a:Int32, b:Int32}>>',
    ],
    ['two levels, array', list('x', 'two levels', struct('array', false, int('a', true))), 'List<Struct<{a:Int32}>>'],
    [
      'two levels, x_tuple',
      list('x', 'two levels', struct('x_tuple', false, int('a', true))),
      'List<Struct<{a:Int32}>>',
    ],
    [
      'two levels of two levels',
      list('x', 'two levels', { ...list('array', 'two levels', int('array')), optional: false } as FieldPlan),
      'List<List<Int32>>',
    ],
    [
      'three levels of three levels',
      list('x', 'three levels', list('element', 'three levels', int('element', true))),
      'List<List<Int32>>',
    ],
    ['bare', list('x', 'bare', int('x')), 'List<Int32>'],
    [
      'bare structs',
      list('x', 'bare', struct('x', false, int('a', true), list('b', 'bare', int('b')))),
      'List<Struct<{a:Int32, b:List<Int32>}>>',
    ],
    ['a set', { kind: 'map', name: 'x', optional: true, key: int('key') }, 'List<Int32>'],
    [
      'a map',
      { kind: 'map', name: 'x', optional: true, key: int('key'), value: int('value', true) },
      'Map<{key:Int32, value:Int32}>',
    ],
    [
      'an old map',
      {
        kind: 'map',
        name: 'x',
        optional: true,
        old: true,
        key: int('key'),
        value: list('value', 'three levels', int('element')),
      },
      'Map<{key:Int32, value:List<Int32>}>',
    ],
  ];
  for (const [name, field, type] of FORMS) {
    test(`${name}: ${type}`, async () => {
      const make = valueGenerator(random, field, { nulls: 25, elements: 3, distinct: 50 });
      const values = Array.from({ length: 200 }, make);
      const { bytes } = nestedFile([field], [values.map((value) => [value])], randomPlan(random));
      const { source } = await memorySource(bytes);
      const scan = await Scan.open(engine, source);
      assert.equal(String(scan.schema.fields[0]!.type), type);
      assert.equal(scan.schema.fields[0]!.nullable, field.optional);
      await scan.close();
      const [rows] = await scanRows(bytes);
      assertRows(
        rows!,
        values.map((value) => expectedRow(field, value)),
        name,
      );
    });
  }

  test('99 levels of lists and structs', async () => {
    let field: FieldPlan = int('element', true);
    for (let depth = 98; depth > 0; depth--) {
      const name = depth === 1 ? 'f' : 'element';
      if (depth % 2 === 0) field = list(name, 'three levels', field);
      else field = struct(name, depth % 3 === 0, field);
    }
    const make = valueGenerator(random, field, { nulls: 1, elements: 1, distinct: 9 });
    const values = Array.from({ length: 30 }, make);
    const { bytes } = nestedFile([field], [values.map((value) => [value])], randomPlan(random));
    const [rows] = await scanRows(bytes);
    assertRows(
      rows!,
      values.map((value) => expectedRow(field, value)),
      'deep',
    );
  });

  test('projecting a nested leaf reads its chunk and no other byte', async () => {
    const inner = struct('element', true, leaf('c', kindOf('string'), true), int('d', true));
    const fields = [
      int('id'),
      struct('a', true, list('b', 'three levels', inner), leaf('e', kindOf('binary'), true)),
      int('z'),
    ];
    const makers = fields.map((field) => valueGenerator(random, field, { nulls: 20, elements: 4, distinct: 30_000 }));
    const groups = [0, 1].map(() => Array.from({ length: 15_000 }, () => makers.map((make) => make())));
    const plan = (column: Parameters<typeof chunkPlan>[0]) => chunkPlan(column, [{}], Codec.UNCOMPRESSED);
    const { bytes, chunks } = nestedFile(fields, groups, plan);
    for (const [name, leaves] of [
      ['a.b.list.element.c', [1]],
      ['a.b.list.element.d', [2]],
      ['a.e', [3]],
      ['a.b', [1, 2]],
      ['a', [1, 2, 3]],
    ] as const) {
      const { source, transport } = await memorySource(bytes);
      const scan = await Scan.open(engine, source, { columns: [name], maxGap: 0 });
      assert.ok(transport.reads[0]![1] > chunks[1]![3]!.offset, 'the footer is read apart from what is projected');
      const rows: Row[] = [];
      for await (const batch of scan) rows.push(...columnRows(batch, 0));
      await source.close();
      const wanted = chunks.flatMap((group) => leaves.map((leafIndex) => group[leafIndex]!));
      let total = 0;
      for (const [, start, end] of transport.reads.slice(1)) {
        total += end - start;
        let known = 0;
        for (const { offset, bytes: chunk } of wanted) {
          known += Math.max(0, Math.min(end, offset + chunk.length) - Math.max(start, offset));
        }
        assert.equal(known, end - start, `${name} reads ${start} to ${end}`);
      }
      assert.equal(
        total,
        wanted.reduce((sum, chunk) => sum + chunk.bytes.length, 0),
        `${name}: bytes`,
      );
      const expected = groups.flat().map((row) => projected(fields[1]!, row[1]!, name.split('.').slice(1)));
      assertRows(rows, expected, name);
    }
  });

  /** What is left of a value when one path below it is chosen; `path` as in the file, or cut short. */
  function projected(field: FieldPlan, value: NestedValue, path: readonly string[]): Row {
    if (value === null || path.length === 0 || field.kind === 'leaf') return expectedRow(field, value);
    if (field.kind === 'list') {
      return (value as NestedValue[]).map((element) => projected(field.element, element, path.slice(2)));
    }
    assert.equal(field.kind, 'struct');
    if (field.kind !== 'struct') return null;
    const child = field.fields.find(({ name }) => name === path[0])!;
    const struct = value as Record<string, NestedValue>;
    return { [child.name]: projected(child, struct[child.name]!, path.slice(1)) };
  }

  test('rows larger than a batch, a window and most of the memory', async () => {
    const numbers = list('n', 'three levels', int('element'));
    const texts = list('t', 'three levels', leaf('element', kindOf('string'), true));
    const million = Array.from({ length: 3_000_000 }, (_, k) => k);
    const long = Array.from({ length: 20 }, (_, k) => 'abcdefgh'.repeat((1 << 17) + k));
    const rows: NestedValue[][] = [
      [[1, 2], ['a']],
      [million, []],
      [null, long],
      [[], null],
      [[7], [null, 'z']],
    ];
    const pages = [{ rows: 1000 }, { rows: 999_999 }, {}];
    const plan = (column: Parameters<typeof chunkPlan>[0]) => {
      const encoding = column.column.physical === Physical.BYTE_ARRAY ? Encoding.DELTA_BYTE_ARRAY : Encoding.PLAIN;
      return chunkPlan(
        column,
        pages.map((page) => ({ ...page, encoding, levelRuns: 'rle' })),
        Codec.SNAPPY,
      );
    };
    const { bytes } = nestedFile([numbers, texts], [rows], plan);
    const { source } = await memorySource(bytes);
    const lengths: unknown[] = [];
    // what the rows take at once, and half as much again: where the free memory lies is a matter of time
    await using roomy = {
      engine: new ScanEngine({ memoryBytes: 144 << 20, decoders: 2 }),
      [Symbol.asyncDispose]: () => roomy.engine.close(),
    };
    for await (const batch of await Scan.open(roomy.engine, source)) {
      const [n, t] = [batch.getChildAt(0)!, batch.getChildAt(1)!];
      for (let row = 0; row < batch.numRows; row++)
        lengths.push([n.get(row)?.length ?? null, t.get(row)?.length ?? null]);
      for (let row = 0; row < batch.numRows; row++) {
        if (n.get(row)?.length === million.length) assert.deepEqual(n.get(row).toArray(), Int32Array.from(million));
        if (t.get(row)?.length === long.length) assert.deepEqual([...t.get(row)], long);
      }
    }
    await source.close();
    assert.deepEqual(
      lengths,
      rows.map((row) => row.map((value) => (value as unknown[] | null)?.length ?? null)),
    );
  });

  test('in little memory, the same rows', async () => {
    const small = new ScanEngine({ memoryBytes: 8 << 20, decoders: 1 });
    try {
      const field = list(
        'x',
        'three levels',
        struct('element', true, leaf('s', kindOf('string'), true), int('i', true)),
      );
      const make = valueGenerator(random, field, { nulls: 15, elements: 5, distinct: 5000 });
      const groups = Array.from({ length: 4 }, () => Array.from({ length: 9000 }, () => [make()]));
      const { bytes } = nestedFile([field], groups, randomPlan(random));
      const [rows] = await scanRows(bytes, { prefetchDepth: 4 }, small);
      assertRows(
        rows!,
        groups.flat().map(([value]) => expectedRow(field, value!)),
        'little memory',
      );
    } finally {
      await small.close();
    }
  });
});
