/**
 * Files of one column each, alike but for one thing: the encoding, the codec, the share of nulls, the shape. DuckDB writes
 * all that it can; hyparquet-writer the encodings that it cannot. Kept like the lineitem table. What a file turned out to
 * be is read from its footer, so that no figure goes by a wrong name.
 */
import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { parquetWriteFile } from 'hyparquet-writer';
import { Encoding, nameOf } from '../decode/index.ts';
import { type LoadedFile, loadFile } from './decode-ours.ts';
import { tableFolder } from './table-folder.ts';

export interface Variant {
  readonly name: string;
  /** The encoding that most of its pages have. */
  readonly encoding: keyof typeof Encoding;
  /** The value of row `i` in SQL. */
  readonly sql: string;
  readonly codec?: string;
  /** By hyparquet-writer, of the values that this makes of DuckDB's. */
  readonly type?: 'STRING' | 'BOOLEAN';
  /** The value `v` as canonical text in SQL; absent for floats, which it does not know as bits. */
  readonly text?: string;
}

/** Part of a file's name: to be raised when what is below changes. */
const VERSION = 1;

const RANDOM = '(hash(i) % 1000000007)::bigint';
const TEXT = "'name ' || hash(i) % 1000000";
const NUMBER_TEXT = "coalesce(v::varchar, 'null')";
const STRING_TEXT = `'"' || v || '"'`;
const JSON_TEXT = "coalesce(to_json(v)::varchar, 'null')";

const nulls = (percent: number): Variant => ({
  name: `int64, ${percent} % nulls`,
  encoding: 'PLAIN',
  sql: `case when hash(i + 1000000007) % 100 < ${percent} then null else ${RANDOM} end`,
  text: NUMBER_TEXT,
});
const decimal = (digits: number): Variant => ({
  name: `decimal(${digits}, 2)`,
  encoding: 'PLAIN',
  sql: `((hash(i) % 1000000) / 100.0)::decimal(${digits}, 2)`,
  text: '(v * 100)::bigint::varchar',
});
const list = (element: string, sql: string, encoding: Variant['encoding']): Variant => ({
  name: `list<${element}>`,
  encoding,
  sql: `list_transform(range((hash(i) % 6)::bigint), lambda x: ${sql})`,
  text: JSON_TEXT,
});
const CODECS = ['snappy', 'gzip', 'brotli', 'zstd', 'lz4_raw'];

export const VARIANTS: readonly Variant[] = [
  { name: 'int64', encoding: 'PLAIN', sql: RANDOM, text: NUMBER_TEXT },
  { name: 'int64, 100 different', encoding: 'RLE_DICTIONARY', sql: '(hash(i) % 100)::bigint', text: NUMBER_TEXT },
  {
    name: 'int64, ascending',
    encoding: 'DELTA_BINARY_PACKED',
    sql: 'i * 3 + (hash(i) % 7)::bigint',
    text: NUMBER_TEXT,
  },
  { name: 'int64, random', encoding: 'DELTA_BINARY_PACKED', sql: RANDOM, text: NUMBER_TEXT },
  { name: 'int32, random', encoding: 'DELTA_BINARY_PACKED', sql: '(hash(i) % 100000)::int', text: NUMBER_TEXT },
  { name: 'float', encoding: 'BYTE_STREAM_SPLIT', sql: `(${RANDOM} / 7.0)::float` },
  { name: 'double', encoding: 'BYTE_STREAM_SPLIT', sql: `(${RANDOM} / 7.0)::double` },
  { name: 'string', encoding: 'PLAIN', sql: TEXT, text: STRING_TEXT },
  { name: 'string', encoding: 'DELTA_LENGTH_BYTE_ARRAY', sql: TEXT, text: STRING_TEXT },
  { name: 'string', encoding: 'DELTA_BYTE_ARRAY', sql: TEXT, text: STRING_TEXT, type: 'STRING' },
  {
    name: 'string, sorted',
    encoding: 'DELTA_BYTE_ARRAY',
    sql: "'path/to/' || (10000000 + i)",
    text: STRING_TEXT,
    type: 'STRING',
  },
  { name: 'boolean', encoding: 'PLAIN', sql: 'hash(i) % 2 = 0', text: NUMBER_TEXT },
  { name: 'boolean', encoding: 'RLE', sql: 'hash(i) % 2 = 0', text: NUMBER_TEXT, type: 'BOOLEAN' },
  { name: 'boolean, in runs', encoding: 'RLE', sql: '(i // 50) % 2 = 0', text: NUMBER_TEXT, type: 'BOOLEAN' },
  ...[9, 18, 38].map(decimal),
  ...[1, 50, 99].map(nulls),
  list('int32', '(hash(i + x) % 1000000)::int', 'PLAIN'),
  list('string', "'item ' || hash(i + x) % 1000000", 'PLAIN'),
  list('string, 100 different', "'item ' || hash(i + x) % 100", 'RLE_DICTIONARY'),
  ...CODECS.flatMap((codec): Variant[] => [
    { name: `int64, ${codec}`, codec, encoding: 'PLAIN', sql: '(hash(i) % 10000)::bigint', text: NUMBER_TEXT },
    { name: `string, ${codec}`, codec, encoding: 'PLAIN', sql: TEXT, text: STRING_TEXT },
  ]),
];

/** The file of a variant with `rows` rows, made if it is not there yet; its column is called `v`. */
export async function variantFile(variant: Variant, rows: number): Promise<LoadedFile> {
  const name = [variant.name, variant.encoding, rows].join('-').replace(/[^\w]+/g, '-');
  const path = join(tableFolder(), `variant-v${VERSION}-${name}.parquet`);
  if (!existsSync(path)) {
    const unfinished = `${path}.${process.pid}`;
    await write(variant, rows, unfinished);
    renameSync(unfinished, path);
  }
  const file = loadFile(path);
  const { encodings } = file.metadata.rowGroups[0]!.columns[0]!;
  const names = encodings.map((one) => nameOf(Encoding, one).replace('PLAIN_DICTIONARY', 'RLE_DICTIONARY'));
  if (!names.includes(variant.encoding))
    throw new Error(`${variant.name} is ${names.join(', ')}, not ${variant.encoding}`);
  return file;
}

/** Rows of a row group: DuckDB's default. */
const GROUP_ROWS = 122_880;

async function write(
  { sql, encoding, codec = 'uncompressed', type }: Variant,
  rows: number,
  path: string,
): Promise<void> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    const query = `select ${sql} as v from range(${rows}) t(i)`;
    if (type === undefined) {
      const version = encoding.startsWith('DELTA') || encoding === 'BYTE_STREAM_SPLIT' ? 'v2' : 'v1';
      const dictionary = encoding === 'RLE_DICTIONARY' ? 1000 : 0;
      await connection.run(
        `copy (${query}) to '${path}' (format parquet, codec ${codec}, parquet_version ${version},
          dictionary_size_limit ${dictionary}, row_group_size ${GROUP_ROWS})`,
      );
      return;
    }
    const data = (await connection.runAndReadAll(query)).getColumnsJS()[0] as string[] | boolean[];
    await parquetWriteFile({
      filename: path,
      columnData: [{ name: 'v', data, type, nullable: false, encoding: encoding as 'DELTA_BYTE_ARRAY' | 'RLE' }],
      codec: 'UNCOMPRESSED',
      rowGroupSize: GROUP_ROWS,
    });
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}
