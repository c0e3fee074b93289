/** Each claim of support.ts, which the README's tables are made of: files written for it, scanned, and compared. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Field as ArrowField, Decimal, Type } from 'apache-arrow';
import { Codec, Encoding, Physical } from '../../decode/index.ts';
import { seededRandom } from '../../decode/tests/random.ts';
import {
  type ChunkPlan,
  chunkPlan,
  type FieldPlan,
  type Framing,
  type NestedValue,
  type PagePlan,
  schemaElements,
  shred,
  writeFile,
} from '../../decode/tests/writer/index.ts';
import { openSource } from '../../vfs/index.ts';
import { ScanEngine } from '../scan/engine.ts';
import { Scan } from '../scan/scan.ts';
import {
  CODECS_READ,
  CODECS_REFUSED,
  ENCODINGS_READ,
  LEVEL_ENCODINGS_READ,
  PHYSICAL_NAMES,
  SHAPES_READ,
  TYPES_READ,
} from '../support.ts';
import { readWhole } from './interop/reading.ts';
import { type ClaimColumn, physicalColumn, typeColumn } from './support-values.ts';

const ROWS = 120;
/** Entries of a page: pages end in the middle of rows of nested columns. */
const PAGE_ENTRIES = 50;

const random = seededRandom();
let folder: string;
let engine: ScanEngine;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'qanat-support-'));
  engine = new ScanEngine({ memoryBytes: 64 << 20, decoders: 1 });
});
after(async () => {
  await engine.close();
  rmSync(folder, { recursive: true });
});

/** A column of a file to be: its place in the schema, its values by row, and their canonical texts. */
interface Column {
  readonly field: FieldPlan;
  readonly rows: readonly NestedValue[];
  readonly texts: readonly string[];
  readonly page?: PagePlan;
}

const maybe = <T>(value: T): T | null => (random.below(4) === 0 ? null : value);
const leafPlan = (name: string, { column }: ClaimColumn, optional: boolean): FieldPlan => {
  return { kind: 'leaf', name, optional, column };
};
const textOr = (text: ClaimColumn['text'], value: NestedValue): string =>
  value === null ? 'null' : text(value as never);

function flat(name: string, claim: ClaimColumn, optional: boolean, page?: PagePlan): Column {
  const rows = Array.from({ length: ROWS }, () => (optional ? maybe(claim.make(random)) : claim.make(random)));
  const texts = rows.map((value) => textOr(claim.text, value));
  return { field: leafPlan(name, claim, optional), rows, texts, ...(page === undefined ? {} : { page }) };
}

/** Lists of nullable elements that may be null themselves. */
function listed(name: string, claim: ClaimColumn, page?: PagePlan): Column {
  const rows = Array.from({ length: ROWS }, () =>
    maybe(Array.from({ length: random.below(4) }, () => maybe(claim.make(random)))),
  );
  const texts = rows.map((list) =>
    list === null ? 'null' : `[${list.map((one) => textOr(claim.text, one)).join(',')}]`,
  );
  const element = leafPlan('element', claim, true);
  const field: FieldPlan = { kind: 'list', form: 'three levels', name, optional: true, element };
  return { field, rows, texts, ...(page === undefined ? {} : { page }) };
}

/** Writes a file of the columns, each in pages of its own kind, and returns its path. */
function write(name: string, columns: readonly Column[], codec: number): string {
  const fields = columns.map(({ field }) => field);
  const plans = columns.flatMap(({ field, rows, page = {} }) =>
    shred(
      [field],
      rows.map((value) => [value]),
    ).map((leaf): ChunkPlan => {
      const pages: PagePlan[] = [];
      const isDictionary = page.encoding === Encoding.PLAIN_DICTIONARY || page.encoding === Encoding.RLE_DICTIONARY;
      const { encoding: _, ...common } = page;
      if (isDictionary) pages.push({ ...common, type: 'dictionary' });
      for (let at = 0; at < leaf.values.length; at += PAGE_ENTRIES) {
        pages.push({ ...page, rows: Math.min(PAGE_ENTRIES, leaf.values.length - at) });
      }
      return chunkPlan(leaf, pages, codec);
    }),
  );
  const path = join(folder, `${name}.parquet`);
  writeFileSync(path, writeFile({ schema: schemaElements(fields), rowGroups: [plans] }).bytes);
  return path;
}

async function assertReads(path: string, columns: readonly Column[]): Promise<void> {
  const reading = await readWhole(engine, path);
  assert.equal(reading.rows, ROWS);
  const expected = columns.map(({ field, texts }) => ({
    name: field.name,
    sha256: createHash('sha256').update(texts.map((text) => `${text}\n`).join('')).digest('hex'), // biome-ignore format: one line
  }));
  assert.deepEqual(
    reading.columns.map(({ name, sha256 }) => ({ name, sha256 })),
    expected,
  );
}

/** Every encoding on every type that may have it, required, nullable and in lists. */
function encodedColumns(page: PagePlan): Column[] {
  return Object.entries(ENCODINGS_READ).flatMap(([encoding, types]) =>
    types.flatMap((physical) => {
      const own = { ...page, encoding: Encoding[encoding as keyof typeof ENCODINGS_READ] };
      const claim = physicalColumn(physical);
      const name = `${encoding} ${physical}`;
      return [
        flat(`${name} required`, claim, false, own),
        flat(`${name} nullable`, claim, true, own),
        listed(`${name} list`, claim, own),
      ];
    }),
  );
}

describe('every encoding, in required, nullable and nested columns', () => {
  for (const { codec, versions, framings } of CODECS_READ) {
    for (const version of versions) {
      for (const framing of ['one', ...framings] satisfies Framing[]) {
        test(`${codec}, V${version} pages${framing === 'one' ? '' : `, ${framing}`}`, async () => {
          const columns = encodedColumns({ version, framing, crc: true });
          await assertReads(write(`${codec} ${version} ${framing}`, columns, Codec[codec]), columns);
        });
      }
    }
  }

  for (const { encoding, versions } of LEVEL_ENCODINGS_READ) {
    for (const version of versions) {
      test(`levels in ${encoding}, V${version} pages`, async () => {
        const columns = encodedColumns({ version, bitPackedLevels: encoding === 'BIT_PACKED' });
        await assertReads(write(`levels ${encoding} ${version}`, columns, Codec.SNAPPY), columns);
      });
    }
  }

  test('no combination of an encoding and a type is left out that the format allows', () => {
    // parquet-format, Encodings.md
    const allowed: Record<string, readonly string[]> = {
      PLAIN: PHYSICAL_NAMES,
      PLAIN_DICTIONARY: PHYSICAL_NAMES.slice(1),
      RLE_DICTIONARY: PHYSICAL_NAMES.slice(1),
      RLE: ['BOOLEAN'],
      DELTA_BINARY_PACKED: ['INT32', 'INT64'],
      DELTA_LENGTH_BYTE_ARRAY: ['BYTE_ARRAY'],
      DELTA_BYTE_ARRAY: ['BYTE_ARRAY', 'FIXED_LEN_BYTE_ARRAY'],
      BYTE_STREAM_SPLIT: ['INT32', 'INT64', 'FLOAT', 'DOUBLE', 'FIXED_LEN_BYTE_ARRAY'],
    };
    assert.deepEqual(ENCODINGS_READ, allowed);
    const codecs = [...CODECS_READ.map(({ codec }) => codec), ...CODECS_REFUSED];
    assert.deepEqual(codecs.toSorted(), Object.keys(Codec).toSorted());
    assert.deepEqual(PHYSICAL_NAMES, Object.keys(Physical));
  });

  for (const codec of CODECS_REFUSED) {
    test(`${codec} is refused`, async () => {
      const columns = [flat('v', physicalColumn('INT32'), false)];
      const path = write(codec, columns, Codec[codec]);
      await assert.rejects(readWhole(engine, path), { code: 'UNSUPPORTED', message: new RegExp(codec) });
    });
  }
});

/** Arrow's type of a field as support.ts writes it. */
function arrowText({ type, metadata }: ArrowField): string {
  const name = type instanceof Decimal ? `Decimal${type.bitWidth}(${type.precision}, ${type.scale})` : String(type);
  const extension = metadata.get('ARROW:extension:name');
  return extension === undefined ? name : `${name}, ${extension}`;
}

async function arrowFields(path: string): Promise<readonly ArrowField[]> {
  const source = await openSource(path);
  try {
    const scan = await Scan.open(engine, source);
    await scan.close();
    return scan.schema.fields;
  } finally {
    await source.close();
  }
}

describe('types', () => {
  for (const [k, claim] of TYPES_READ.entries()) {
    test(`${claim.annotation || 'no annotation'} on ${claim.storage} is ${claim.arrow}`, async () => {
      const column = typeColumn(claim);
      const columns = [flat('required', column, false), flat('nullable', column, true), listed('list', column)];
      const path = write(`type ${k}`, columns, Codec.UNCOMPRESSED);
      await assertReads(path, columns);
      const [required, nullable, list] = await arrowFields(path);
      assert.deepEqual([required!, nullable!, list!.type.children[0]!].map(arrowText), Array(3).fill(claim.arrow));
    });
  }
});

describe('shapes', () => {
  const number = physicalColumn('INT32');
  const make = (): number => number.make(random) as number;
  const leaf = (name: string, optional: boolean): FieldPlan => leafPlan(name, number, optional);
  const many = <T>(one: () => T): T[] => Array.from({ length: random.below(4) }, one);
  const json = (value: NestedValue): string => JSON.stringify(value);
  const list = (form: 'two levels' | 'bare', optional: boolean): FieldPlan => {
    return { kind: 'list', form, name: 'v', optional, element: leaf('array', false) };
  };
  const map = (old: boolean): FieldPlan => {
    return { kind: 'map', name: 'v', optional: true, old, key: leaf('key', false), value: leaf('value', true) };
  };
  const pairs = (): NestedValue => maybe(many(() => [make(), maybe(make())]));
  const SHAPES: Readonly<Record<string, readonly [field: FieldPlan, make: () => NestedValue, type: Type]>> = {
    'required or nullable column': [leaf('v', true), () => maybe(make()), Type.Int],
    group: [
      { kind: 'struct', name: 'v', optional: true, fields: [leaf('a', true), leaf('b', false)] },
      () => maybe({ a: maybe(make()), b: make() }),
      Type.Struct,
    ],
    'LIST of three levels': [listed('v', number).field, () => maybe(many(() => maybe(make()))), Type.List],
    'LIST of two levels, as old writers have it': [list('two levels', true), () => maybe(many(make)), Type.List],
    'repeated field without an annotation': [list('bare', false), () => many(make), Type.List],
    MAP: [map(false), pairs, Type.Map],
    'MAP_KEY_VALUE, as old writers have it': [map(true), pairs, Type.Map],
    'MAP without values': [
      { kind: 'map', name: 'v', optional: true, key: leaf('key', false) },
      () => maybe(many(() => [make()])),
      Type.List,
    ],
  };
  for (const { shape, arrow } of SHAPES_READ) {
    test(`${shape} is ${arrow}`, async () => {
      const [field, value, type] = SHAPES[shape]!;
      const rows = Array.from({ length: ROWS }, value);
      const columns = [{ field, rows, texts: rows.map(json) }];
      const path = write(shape, columns, Codec.SNAPPY);
      await assertReads(path, columns);
      const [arrowField] = await arrowFields(path);
      assert.equal(arrowField!.type.typeId, type);
      if (type !== Type.Int) assert.equal(Type[type], arrow);
    });
  }
});
