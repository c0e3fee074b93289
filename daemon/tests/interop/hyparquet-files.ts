/** Parquet files by hyparquet-writer: V2 pages, all encodings on request, every codec through a compressor of ours. */
import { join } from 'node:path';
import { parquetWriteFile } from 'hyparquet-writer';
import { Codec } from '../../../decode/index.ts';
import type { SeededRandom } from '../../../decode/tests/random.ts';
import { compress } from '../../../decode/tests/writer/index.ts';
import { KINDS, type Kind, type LeafName, leavesOf, makeColumn, type Value } from './kinds.ts';
import { pairwise } from './pairwise.ts';
import { drawingOf, NULLS, type WrittenFile } from './written.ts';

/** Its own version of hyparquet has these types. */
type WriteOptions = Parameters<typeof parquetWriteFile>[0];
type SchemaElement = NonNullable<WriteOptions['schema']>[number];
type CompressionCodec = NonNullable<WriteOptions['codec']>;
type Encoding = NonNullable<WriteOptions['columnData'][number]['encoding']>;
type Element = Omit<SchemaElement, 'name'>;

const timestamp = (unit: 'MILLIS' | 'MICROS' | 'NANOS', isAdjustedToUTC: boolean): Element => ({
  type: 'INT64',
  logical_type: { type: 'TIMESTAMP', isAdjustedToUTC, unit },
});
const decimal = (precision: number, scale: number, storage: Element): Element => ({
  ...storage,
  converted_type: 'DECIMAL',
  precision,
  scale,
});

const ELEMENTS: Readonly<Partial<Record<LeafName, Element>>> = {
  bool: { type: 'BOOLEAN' },
  int8: { type: 'INT32', converted_type: 'INT_8' },
  int16: { type: 'INT32', converted_type: 'INT_16' },
  int32: { type: 'INT32' },
  int64: { type: 'INT64' },
  uint8: { type: 'INT32', converted_type: 'UINT_8' },
  uint16: { type: 'INT32', converted_type: 'UINT_16' },
  uint32: { type: 'INT32', converted_type: 'UINT_32' },
  uint64: { type: 'INT64', converted_type: 'UINT_64' },
  float: { type: 'FLOAT' },
  double: { type: 'DOUBLE' },
  half: { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 2, logical_type: { type: 'FLOAT16' } },
  date: { type: 'INT32', converted_type: 'DATE' },
  time_millis: { type: 'INT32', converted_type: 'TIME_MILLIS' },
  time_micros: { type: 'INT64', converted_type: 'TIME_MICROS' },
  timestamp_millis: timestamp('MILLIS', false),
  timestamp_micros: timestamp('MICROS', false),
  timestamp_nanos: timestamp('NANOS', false),
  timestamp_millis_utc: { type: 'INT64', converted_type: 'TIMESTAMP_MILLIS' },
  timestamp_micros_utc: { type: 'INT64', converted_type: 'TIMESTAMP_MICROS' },
  timestamp_nanos_utc: timestamp('NANOS', true),
  // decimals on each physical type
  decimal_4_1: decimal(4, 1, { type: 'BYTE_ARRAY' }),
  decimal_9_2: decimal(9, 2, { type: 'INT32' }),
  decimal_18_4: decimal(18, 4, { type: 'INT64' }),
  decimal_38_10: decimal(38, 10, { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16 }),
  decimal_76_5: decimal(76, 5, { type: 'BYTE_ARRAY' }),
  string: { type: 'BYTE_ARRAY', converted_type: 'UTF8' },
  json: { type: 'BYTE_ARRAY', converted_type: 'JSON' },
  binary: { type: 'BYTE_ARRAY' },
  fixed_5: { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 5 },
  uuid: { type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, logical_type: { type: 'UUID' } },
};

const COMPRESSORS = Object.fromEntries(
  (['GZIP', 'BROTLI', 'ZSTD', 'LZ4_RAW', 'SNAPPY'] as const).map((name) => [
    name,
    (bytes: Uint8Array): Uint8Array => compress(Codec[name], bytes),
  ]),
);

const ROWS = 300;

export async function* writeHyparquetFiles(folder: string, random: SeededRandom): AsyncGenerator<WrittenFile> {
  const choices = pairwise(random, {
    kinds: ['flat', 'nested'],
    nulls: NULLS,
    distinct: [1, 12, 300],
    encoding: ['any', 'PLAIN', 'DELTA', 'DELTA_BYTE_ARRAY', 'BYTE_STREAM_SPLIT'],
    codec: ['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'BROTLI', 'ZSTD', 'LZ4_RAW'] satisfies CompressionCodec[],
    pageSize: [10, 300, 1 << 20],
    rowGroupSize: [61, ROWS],
    index: [true, false],
    bloomFilter: [true, false],
  });
  const known = KINDS.filter((kind) => leavesOf(kind).every((leaf) => ELEMENTS[leaf.name] !== undefined));
  for (const [k, options] of choices.entries()) {
    const kinds = known.filter((kind) => (kind.kind === 'leaf') === (options.kinds === 'flat'));
    const columns = kinds.map((kind) => makeColumn(random, kind, ROWS, drawingOf(options.nulls, options.distinct)));
    const repetition = options.nulls === 'required' ? 'REQUIRED' : 'OPTIONAL';
    const file = `hyparquet-writer-${k}.parquet`;
    await parquetWriteFile({
      filename: join(folder, file),
      schema: [
        { name: 'root', num_children: kinds.length },
        ...kinds.flatMap((kind) => elementsOf(kind.name, kind, repetition)),
      ],
      columnData: columns.map(({ kind, values }) => ({
        name: kind.name,
        data: values.map((value) => given(kind, value)) as WriteOptions['columnData'][number]['data'],
        columnIndex: options.index,
        offsetIndex: options.index,
        bloomFilter: options.bloomFilter && kind.kind === 'leaf' && kind.name !== 'bool',
        ...encodingOf(kind, options.encoding),
      })),
      codec: options.codec,
      compressors: COMPRESSORS,
      pageSize: options.pageSize,
      rowGroupSize: options.rowGroupSize,
    });
    yield { file, options, rows: ROWS, columns: columns.map(({ expected }) => expected) };
  }
}

/** It turns JSON's values into text itself. */
function given(kind: Kind, value: Value): unknown {
  return kind.name === 'json' && value !== null ? JSON.parse(value as string) : value;
}

function encodingOf(kind: Kind, wanted: string): { encoding?: Encoding } {
  if (wanted === 'any') return {};
  if (wanted === 'PLAIN') return { encoding: 'PLAIN' };
  // a column of several leaves has one encoding for all
  const physical = new Set(leavesOf(kind).map((leaf) => ELEMENTS[leaf.name]!.type));
  const every = (...allowed: readonly string[]): boolean => [...physical].every((one) => allowed.includes(one!));
  if (wanted === 'BYTE_STREAM_SPLIT') {
    return every('INT32', 'INT64', 'FLOAT', 'DOUBLE', 'FIXED_LEN_BYTE_ARRAY') ? { encoding: wanted } : {};
  }
  if (every('INT32', 'INT64')) return { encoding: 'DELTA_BINARY_PACKED' };
  if (!every('BYTE_ARRAY')) return {};
  return { encoding: wanted === 'DELTA' ? 'DELTA_LENGTH_BYTE_ARRAY' : 'DELTA_BYTE_ARRAY' };
}

function elementsOf(name: string, kind: Kind, repetition: 'REQUIRED' | 'OPTIONAL'): SchemaElement[] {
  const group = (name: string, children: readonly SchemaElement[], count: number, more: Element = {}) => [
    { name, repetition_type: repetition, num_children: count, ...more },
    ...children,
  ];
  const repeated = (name: string, count: number): SchemaElement => {
    return { name, repetition_type: 'REPEATED', num_children: count };
  };
  switch (kind.kind) {
    case 'leaf':
      return [{ name, repetition_type: repetition, ...ELEMENTS[kind.name]! }];
    case 'list': {
      const element = elementsOf('element', kind.element, repetition);
      return group(name, [repeated('list', 1), ...element], 1, { converted_type: 'LIST' });
    }
    case 'struct': {
      const fields = Object.entries(kind.fields);
      const children = fields.flatMap(([field, inner]) => elementsOf(field, inner, repetition));
      return group(name, children, fields.length);
    }
    case 'map': {
      const key: SchemaElement = { name: 'key', repetition_type: 'REQUIRED', ...ELEMENTS[kind.key.name]! };
      const value = elementsOf('value', kind.value, repetition);
      return group(name, [repeated('key_value', 2), key, ...value], 1, { converted_type: 'MAP' });
    }
  }
}
