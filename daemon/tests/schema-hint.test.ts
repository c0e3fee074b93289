/** The Arrow schema in a file's key-values: what it refines, what it may not change, and nonsense in its place. */
import assert from 'node:assert/strict';
import { writeFile as writeBytes } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import {
  type DataType,
  DateMillisecond,
  Dictionary,
  DurationMicrosecond,
  DurationMillisecond,
  DurationNanosecond,
  DurationSecond,
  Field,
  Int32,
  Int64,
  LargeBinary,
  LargeUtf8,
  List,
  Map_,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  TimestampMicrosecond,
  TimestampMillisecond,
  TimestampNanosecond,
  TimestampSecond,
  tableFromIPC,
  Utf8,
} from 'apache-arrow';
import { Physical } from '../../decode/index.ts';
import { elementTree, emptyChunk } from '../../decode/tests/footer-model.ts';
import { seededRandom } from '../../decode/tests/random.ts';
import type { Tree } from '../../decode/tests/thrift-twin.ts';
import { type ChunkPlan, type WriterColumn, writeFile } from '../../decode/tests/writer/index.ts';
import { HintField } from '../arrow/schema-hint.ts';
import { ScanEngine } from '../scan/engine.ts';
import type { ScanOptions } from '../scan/scan.ts';
import { Lake } from './lake.ts';
import { scanBytes, scanFile, valuesAt } from './table-file.ts';

/** As Arrow's writers write it: the schema message of an IPC stream, in base64. */
async function hintText(schema: Schema): Promise<string> {
  const writer = new RecordBatchStreamWriter();
  writer.reset(undefined, schema);
  writer.finish();
  const stream = Buffer.from(await writer.toUint8Array());
  const length = stream.readInt32LE(4);
  return stream.subarray(0, 8 + length).toString('base64');
}

const timestamp = (unit: string, utc: boolean) => ({ TIMESTAMP: { isAdjustedToUTC: utc, unit: { [unit]: {} } } });

const COLUMNS: readonly (WriterColumn & { readonly hint: DataType; readonly becomes: string })[] = [
  ['MILLIS', true, new TimestampMillisecond('Europe/Berlin'), 'Timestamp<MILLISECOND, Europe/Berlin>'] as const,
  ['MICROS', true, new TimestampMicrosecond('+05:30'), 'Timestamp<MICROSECOND, +05:30>'] as const,
  ['NANOS', true, new TimestampNanosecond('America/Argentina/Buenos_Aires'), ''] as const,
  ['MILLIS', true, new TimestampSecond('Asia/Tokyo'), 'Timestamp<MILLISECOND, Asia/Tokyo>'] as const,
  ['MICROS', false, new TimestampMicrosecond('Asia/Tokyo'), 'Timestamp<MICROSECOND>'] as const,
  ['MICROS', true, new TimestampMicrosecond(), 'Timestamp<MICROSECOND, UTC>'] as const,
  ['MICROS', true, new TimestampMicrosecond('not a zone'), 'Timestamp<MICROSECOND, UTC>'] as const,
  ['MICROS', true, new TimestampMicrosecond('x'.repeat(65)), 'Timestamp<MICROSECOND, UTC>'] as const,
  ['MICROS', true, new DurationSecond(), 'Timestamp<MICROSECOND, UTC>'] as const,
  ['MICROS', true, new Utf8(), 'Timestamp<MICROSECOND, UTC>'] as const,
].map(([unit, utc, hint, becomes], k) => ({
  name: `timestamp ${k}`,
  physical: Physical.INT64,
  logicalType: timestamp(unit, utc),
  hint,
  becomes: becomes === '' ? 'Timestamp<NANOSECOND, America/Argentina/Buenos_Aires>' : becomes,
}));

const PLAIN: readonly (WriterColumn & { readonly hint: DataType; readonly becomes: string })[] = [
  { name: 'seconds', physical: Physical.INT64, hint: new DurationSecond(), becomes: 'Duration<SECOND>' },
  { name: 'millis', physical: Physical.INT64, hint: new DurationMillisecond(), becomes: 'Duration<MILLISECOND>' },
  { name: 'micros', physical: Physical.INT64, hint: new DurationMicrosecond(), becomes: 'Duration<MICROSECOND>' },
  { name: 'nanos', physical: Physical.INT64, hint: new DurationNanosecond(), becomes: 'Duration<NANOSECOND>' },
  { name: 'date64', physical: Physical.INT64, hint: new DateMillisecond(), becomes: 'Date64<MILLISECOND>' },
  { name: 'narrow duration', physical: Physical.INT32, hint: new DurationSecond(), becomes: 'Int32' },
  {
    name: 'date64 as days',
    physical: Physical.INT32,
    converted: 6,
    hint: new DateMillisecond(),
    becomes: 'Date32<DAY>',
  },
  {
    name: 'int96',
    physical: Physical.INT96,
    hint: new TimestampNanosecond('UTC'),
    becomes: 'Timestamp<NANOSECOND, UTC>',
  },
  { name: 'large text', physical: Physical.BYTE_ARRAY, converted: 0, hint: new LargeUtf8(), becomes: 'Utf8' },
  { name: 'large bytes', physical: Physical.BYTE_ARRAY, hint: new LargeBinary(), becomes: 'Binary' },
  { name: 'bytes as text', physical: Physical.BYTE_ARRAY, hint: new Utf8(), becomes: 'Binary' },
  {
    name: 'dictionary',
    physical: Physical.BYTE_ARRAY,
    converted: 0,
    hint: new Dictionary(new Utf8(), new Int32()),
    becomes: 'Utf8',
  },
  {
    name: 'dictionary of durations',
    physical: Physical.INT64,
    hint: new Dictionary(new DurationSecond(), new Int32()),
    becomes: 'Int64',
  },
  { name: 'counter', physical: Physical.INT64, hint: new Int64(), becomes: 'Int64' },
];

const ALL = [...COLUMNS, ...PLAIN];

function chunkOf(column: WriterColumn): ChunkPlan {
  const value = (row: number) => {
    if (column.physical === Physical.INT64) return BigInt(row) * 1000n;
    if (column.physical === Physical.BYTE_ARRAY) return `text ${row}`;
    if (column.physical !== Physical.INT96) return row;
    const bytes = new Uint8Array(12);
    new DataView(bytes.buffer).setInt32(8, 2_440_588 + row, true);
    return bytes;
  };
  return { column, values: [0, 1, 2].map(value), pages: [{}] };
}

function fileWith(columns: readonly WriterColumn[], keyValues: Tree[]): Uint8Array {
  return writeFile({
    rowGroups: [columns.map(chunkOf)],
    footer: (footer) => {
      footer.key_value_metadata = keyValues;
    },
  }).bytes;
}

describe('the ARROW:schema hint', () => {
  let lake: Lake;
  let engine: ScanEngine;
  before(async () => {
    lake = await Lake.create();
    engine = new ScanEngine({ memoryBytes: 32 << 20, decoders: 1 });
  });
  after(async () => {
    await engine.close();
    await lake[Symbol.asyncDispose]();
  });
  const scan = (bytes: Uint8Array, options: ScanOptions = {}) => scanBytes(engine, lake.folder, bytes, options);
  const schemaOf = (columns: readonly { name: string; hint: DataType }[]): Schema =>
    new Schema(columns.map(({ name, hint }) => new Field(name, hint, true)));

  test('refines what Parquet does not tell and leaves every layout as it is', async () => {
    const value = await hintText(schemaOf(ALL));
    const scanned = await scan(fileWith(ALL, [{ key: 'ARROW:schema', value }]));
    for (const [k, { name, becomes }] of ALL.entries()) {
      assert.equal(String(scanned.schema.fields[k]!.type), becomes, name);
      const values = scanned.batches[0]!.getChildAt(k)!.data[0]!.values;
      if (ALL[k]!.physical === Physical.INT64)
        assert.deepEqual([...(values as BigInt64Array)], [0n, 1000n, 2000n], name);
    }
    const without = await scan(fileWith(ALL, []));
    for (const [k, { name, physical }] of PLAIN.entries()) {
      const { type } = without.schema.fields[COLUMNS.length + k]!;
      if (physical === Physical.INT64) assert.equal(String(type), 'Int64', name);
    }
  });

  test('is found by name where the places differ, and for a projection', async () => {
    const columns = PLAIN.slice(0, 4);
    const value = await hintText(schemaOf([...columns].reverse()));
    const scanned = await scan(fileWith(columns, [{ key: 'ARROW:schema', value }]), { columns: ['nanos', 'seconds'] });
    assert.deepEqual(
      scanned.schema.fields.map((field) => String(field.type)),
      ['Duration<NANOSECOND>', 'Duration<SECOND>'],
    );
    const twice = await hintText(new Schema([...schemaOf(columns).fields, ...schemaOf(columns).fields].slice(1)));
    const doubtful = await scan(fileWith(columns, [{ key: 'ARROW:schema', value: twice }]), { columns: ['millis'] });
    assert.equal(String(doubtful.schema.fields[0]!.type), 'Int64');
  });

  test('says nothing of counts when more than one file is read', async () => {
    const columns = [PLAIN[0]!, COLUMNS[0]!];
    const value = await hintText(schemaOf(columns));
    const bytes = fileWith(columns, [{ key: 'ARROW:schema', value }]);
    for (const name of ['hint-1.parquet', 'hint-2.parquet']) await writeBytes(lake.path(name), bytes);
    const { schema } = await scanFile(engine, lake.path('hint-*.parquet'));
    assert.deepEqual(
      schema.fields.map((field) => String(field.type)),
      ['Int64', COLUMNS[0]!.becomes],
    );
  });

  test('goes into structs, lists and maps, whatever their middles are called', async () => {
    const zoned = new TimestampMicrosecond('Asia/Tokyo');
    const entry = new Field('entries', new Struct([new Field('k', new Utf8()), new Field('v', zoned, true)]), false);
    const schema = new Schema([
      new Field('s', new Struct([new Field('other', new Int64()), new Field('t', zoned)]), true),
      new Field('l', new List(new Field('item', zoned, true)), true),
      new Field('m', new Map_(entry as never), true),
    ]);
    const leaf = {
      type: Physical.INT64,
      repetition: 1,
      logicalType: { kind: 'TIMESTAMP', unit: 'micros', utc: true },
    } as const;
    const elements = [
      { name: 'root', numChildren: 3 },
      { name: 's', repetition: 1, numChildren: 1 },
      { name: 't', ...leaf },
      { name: 'l', repetition: 1, numChildren: 1, convertedType: 3 },
      { name: 'list', repetition: 2, numChildren: 1 },
      { name: 'element', ...leaf },
      { name: 'm', repetition: 1, numChildren: 1, convertedType: 1 },
      { name: 'key_value', repetition: 2, numChildren: 2 },
      { name: 'key', type: Physical.BYTE_ARRAY, repetition: 0, convertedType: 0 },
      { name: 'value', ...leaf },
    ] as const;
    const value = await hintText(schema);
    const paths = [
      ['s', 't'],
      ['l', 'list', 'element'],
      ['m', 'key_value', 'key'],
      ['m', 'key_value', 'value'],
    ];
    const { bytes } = writeFile({
      rowGroups: [],
      footer: (footer) => {
        footer.schema = elements.map((element) => elementTree(element));
        const columns = paths.map((path) => {
          const chunk = emptyChunk('', path.at(-1) === 'key' ? Physical.BYTE_ARRAY : Physical.INT64);
          (chunk.meta_data as Tree).path_in_schema = path;
          return chunk;
        });
        footer.row_groups = [{ columns, total_byte_size: 0n, num_rows: 0n }];
        footer.key_value_metadata = [{ key: 'ARROW:schema', value }];
      },
    });
    const scanned = await scan(bytes);
    assert.equal(String(scanned.schema.fields[0]!.type), 'Struct<{t:Timestamp<MICROSECOND, Asia/Tokyo>}>');
    assert.match(String(scanned.schema.fields[1]!.type), /Asia\/Tokyo/);
    assert.match(String(scanned.schema.fields[2]!.type), /Asia\/Tokyo/);
  });

  test('a file’s key-values are in the Arrow schema, but for that one and what is too large', async () => {
    const value = await hintText(schemaOf(PLAIN.slice(0, 1)));
    const { schema } = await scan(
      fileWith(PLAIN.slice(0, 1), [
        { key: 'ARROW:schema', value },
        { key: 'pandas', value: '{"index_columns": []}' },
        { key: 'empty' },
        { key: 'large', value: 'x'.repeat(2 << 20) },
        { key: 'after', value: 'ü' },
      ]),
    );
    assert.deepEqual(
      [...schema.metadata],
      [
        ['pandas', '{"index_columns": []}'],
        ['empty', ''],
        ['after', 'ü'],
      ],
    );
  });

  test('nonsense is no hint', async () => {
    const value = await hintText(schemaOf(ALL));
    const raw = Buffer.from(value, 'base64');
    const header = (size: number, at: number, word: number): string => {
      const bytes = Buffer.from(raw.subarray(0, size));
      bytes.writeUInt32LE(word, at);
      return bytes.toString('base64');
    };
    const nonsense = ['', '====', 'not base64 at all', value.slice(0, 40), header(raw.length, 8, 0xfffffff0)];
    nonsense.push('A'.repeat(1000), '/'.repeat(1000), header(raw.length, 8, 4), 'x'.repeat(40 << 20));
    for (const text of nonsense) {
      const { schema } = await scan(fileWith(PLAIN.slice(0, 1), [{ key: 'ARROW:schema', value: text }]));
      assert.equal(String(schema.fields[0]!.type), 'Int64');
    }
    const { schema } = await scan(fileWith(PLAIN.slice(0, 1), [{ key: 'ARROW:schema' }]));
    assert.equal(String(schema.fields[0]!.type), 'Int64');
  });

  test('changed bytes give a type of the same layout or none, and end', async () => {
    const random = seededRandom();
    const raw = Buffer.from(await hintText(schemaOf(ALL)), 'base64');
    let changedTypes = 0;
    for (let round = 0; round < 3000; round++) {
      const bytes = Buffer.from(raw.subarray(0, random.below(10) === 0 ? random.below(raw.length) : raw.length));
      for (let flips = 1 + random.below(4); flips > 0 && bytes.length > 0; flips--) {
        bytes[random.below(bytes.length)] = [0, 1, 0x7f, 0x80, 0xff, random.below(256)][random.below(6)]!;
      }
      const hints = HintField.ofFile([['ARROW:schema', bytes.toString('base64')]]);
      for (const [k, { name }] of ALL.entries()) {
        const type = hints?.child(name, k)?.type();
        if (type === undefined) changedTypes++;
        else assert.match(type.kind, /^(timestamp|duration|date64)$/);
      }
    }
    assert.ok(changedTypes > 0);
  });

  test('many fields of one long name, and a vector that claims more than there is, take no time', async () => {
    // every offset of the vector leads to the same field, whose name is long
    const schema = new Schema([new Field('x'.repeat(4000), new DurationSecond()), new Field('b', new Int64())]);
    const raw = Buffer.from(await hintText(schema), 'base64');
    const hints = HintField.ofFile([['ARROW:schema', raw.toString('base64')]]);
    assert.equal(hints!.child('none', 9), undefined);
    assert.deepEqual(hints!.child('x'.repeat(4000), 1)?.type(), { kind: 'duration', unit: 'second' });
    assert.equal(hints!.childAt(2), undefined);
  });

  test('streams with refined types are read back by an Arrow reader', async () => {
    const value = await hintText(schemaOf(PLAIN.slice(0, 5)));
    const scanned = await scan(fileWith(PLAIN.slice(0, 5), [{ key: 'ARROW:schema', value }]));
    const writer = new RecordBatchStreamWriter();
    for (const batch of scanned.batches) writer.write(batch);
    writer.finish();
    const table = tableFromIPC(await writer.toUint8Array());
    assert.deepEqual(
      table.schema.fields.map((field) => String(field.type)),
      PLAIN.slice(0, 5).map(({ becomes }) => becomes),
    );
    assert.deepEqual([...table.getChildAt(1)!].map(String), valuesAt(scanned, 1).map(String));
  });
});
