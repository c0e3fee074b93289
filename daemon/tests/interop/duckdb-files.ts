/** Parquet files by DuckDB: both of its format versions, dictionaries or not, every codec it has. */
import { join } from 'node:path';
import {
  BIGINT,
  BLOB,
  BOOLEAN,
  DATE,
  DECIMAL,
  DOUBLE,
  DuckDBBlobValue,
  type DuckDBConnection,
  DuckDBDataChunk,
  DuckDBDateValue,
  DuckDBDecimalValue,
  DuckDBInstance,
  DuckDBMapValue,
  DuckDBTimestampMillisecondsValue,
  DuckDBTimestampNanosecondsValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  DuckDBTimeValue,
  type DuckDBType,
  DuckDBUUIDValue,
  type DuckDBValue,
  FLOAT,
  INTEGER,
  LIST,
  listValue,
  MAP,
  SMALLINT,
  STRUCT,
  structValue,
  TIME,
  TIMESTAMP,
  TIMESTAMP_MS,
  TIMESTAMP_NS,
  TIMESTAMPTZ,
  TINYINT,
  UBIGINT,
  UINTEGER,
  USMALLINT,
  UTINYINT,
  UUID,
  VARCHAR,
} from '@duckdb/node-api';
import type { SeededRandom } from '../../../decode/tests/random.ts';
import { type Column, KINDS, type Kind, type LeafName, leavesOf, makeColumn, type Value } from './kinds.ts';
import { pairwise } from './pairwise.ts';
import { drawingOf, NULLS, type WrittenFile } from './written.ts';

/** Of a row group: the fewest that it can be asked for, a vector of its own. */
const GROUP_ROWS = 2048;

type Leaf = readonly [type: DuckDBType, make?: (value: never) => DuckDBValue];

const decimal = (width: number, scale: number): Leaf => [
  DECIMAL(width, scale),
  (value: bigint) => new DuckDBDecimalValue(value, width, scale),
];

const LEAVES: Readonly<Partial<Record<LeafName, Leaf>>> = {
  bool: [BOOLEAN],
  int8: [TINYINT],
  int16: [SMALLINT],
  int32: [INTEGER],
  int64: [BIGINT],
  uint8: [UTINYINT],
  uint16: [USMALLINT],
  uint32: [UINTEGER],
  uint64: [UBIGINT],
  float: [FLOAT],
  double: [DOUBLE],
  date: [DATE, (days: number) => new DuckDBDateValue(days)],
  time_micros: [TIME, (micros: bigint) => new DuckDBTimeValue(micros)],
  timestamp_millis: [TIMESTAMP_MS, (millis: bigint) => new DuckDBTimestampMillisecondsValue(millis)],
  timestamp_micros: [TIMESTAMP, (micros: bigint) => new DuckDBTimestampValue(micros)],
  timestamp_nanos: [TIMESTAMP_NS, (nanos: bigint) => new DuckDBTimestampNanosecondsValue(nanos)],
  timestamp_micros_utc: [TIMESTAMPTZ, (micros: bigint) => new DuckDBTimestampTZValue(micros)],
  decimal_4_1: decimal(4, 1),
  decimal_9_2: decimal(9, 2),
  decimal_18_4: decimal(18, 4),
  decimal_38_10: decimal(38, 10),
  string: [VARCHAR],
  binary: [BLOB, (bytes: Uint8Array) => new DuckDBBlobValue(bytes)],
  uuid: [UUID, (bytes: Uint8Array) => DuckDBUUIDValue.fromUint128(BigInt(`0x${Buffer.from(bytes).toString('hex')}`))],
};

export async function* writeDuckdbFiles(folder: string, random: SeededRandom): AsyncGenerator<WrittenFile> {
  const choices = pairwise(random, {
    kinds: ['flat', 'nested'],
    nulls: NULLS.filter((nulls) => nulls !== 'required'), // it writes every column as one that may hold nulls
    distinct: [1, 12, 1000],
    codec: ['uncompressed', 'snappy', 'gzip', 'brotli', 'zstd', 'lz4_raw'],
    version: ['v1', 'v2'],
    dictionaryEntries: [0, 200, 100_000],
    rows: [200, GROUP_ROWS + 100],
  });
  const known = KINDS.filter((kind) => leavesOf(kind).every((leaf) => LEAVES[leaf.name] !== undefined));
  await using duckdb = await openDuckdb();
  for (const [k, options] of choices.entries()) {
    const kinds = known.filter((kind) => (kind.kind === 'leaf') === (options.kinds === 'flat'));
    const columns = kinds.map((kind) =>
      makeColumn(random, kind, options.rows, drawingOf(options.nulls, options.distinct)),
    );
    const file = `duckdb-${k}.parquet`;
    await fill(duckdb.connection, columns);
    await duckdb.connection.run(
      `copy rows_to_write to '${join(folder, file)}' (format parquet, codec ${options.codec}, parquet_version ${options.version},
        row_group_size ${GROUP_ROWS}, dictionary_size_limit ${options.dictionaryEntries})`,
    );
    yield { file, options, rows: options.rows, columns: columns.map(({ expected }) => expected) };
  }
}

async function openDuckdb(): Promise<AsyncDisposable & { connection: DuckDBConnection }> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' });
  const connection = await instance.connect();
  return {
    connection,
    async [Symbol.asyncDispose]() {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

async function fill(connection: DuckDBConnection, columns: readonly Column[]): Promise<void> {
  const types = columns.map(({ kind }) => typeOf(kind));
  const definitions = columns.map(({ kind }, k) => `"${kind.name}" ${types[k]}`);
  await connection.run(`create or replace table rows_to_write (${definitions.join(', ')})`);
  const appender = await connection.createAppender('rows_to_write');
  const rows = columns[0]!.values.length;
  for (let row = 0; row < rows; row += GROUP_ROWS) {
    const end = Math.min(rows, row + GROUP_ROWS);
    const chunk = DuckDBDataChunk.create(types, end - row);
    for (const [k, { kind, values }] of columns.entries()) {
      chunk.setColumnValues(
        k,
        values.slice(row, end).map((value) => duckdbValue(kind, value)),
      );
    }
    appender.appendDataChunk(chunk);
  }
  appender.closeSync();
}

function typeOf(kind: Kind): DuckDBType {
  switch (kind.kind) {
    case 'leaf':
      return LEAVES[kind.name]![0];
    case 'list':
      return LIST(typeOf(kind.element));
    case 'struct':
      return STRUCT(Object.fromEntries(Object.entries(kind.fields).map(([name, field]) => [name, typeOf(field)])));
    case 'map':
      return MAP(typeOf(kind.key), typeOf(kind.value));
  }
}

function duckdbValue(kind: Kind, value: Value): DuckDBValue {
  if (value === null) return null;
  switch (kind.kind) {
    case 'leaf': {
      const make = LEAVES[kind.name]![1];
      return make === undefined ? (value as DuckDBValue) : make(value as never);
    }
    case 'list':
      return listValue((value as Value[]).map((element) => duckdbValue(kind.element, element)));
    case 'struct': {
      const record = value as Record<string, Value>;
      return structValue(
        Object.fromEntries(
          Object.entries(kind.fields).map(([name, field]) => [name, duckdbValue(field, record[name]!)]),
        ),
      );
    }
    case 'map': {
      const entries = [...(value as ReadonlyMap<Value, Value>)];
      return new DuckDBMapValue(
        entries.map(([key, item]) => ({ key: duckdbValue(kind.key, key), value: duckdbValue(kind.value, item) })),
      );
    }
  }
}
