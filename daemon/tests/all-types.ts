/**
 * A table with every flat type that DuckDB writes to Parquet, edge values first, then random ones, and what each value
 * must be as text, said in SQL, so that DuckDB reads the same file and writes the expectation by itself.
 */
import { DuckDBInstance } from '@duckdb/node-api';

interface TypeCase {
  readonly name: string;
  readonly sqlType: string;
  /** SQL expressions. */
  readonly edges: readonly string[];
  /** An expression over random(). */
  readonly random: string;
  /** Our text of column `c`. */
  readonly text: (c: string) => string;
  /** Texts of floats differ between writers of them: they are compared as numbers. */
  readonly float?: 'single' | 'double';
  /** JSON has it bare. */
  readonly bare?: true;
}

const asText = (c: string): string => `${c}::varchar`;
const integer = (sqlType: string, min: string, max: string): TypeCase => ({
  name: sqlType.toLowerCase(),
  sqlType,
  edges: [min, max, '0', '1'],
  random: `(random() * 100)::${sqlType}`,
  text: asText,
  bare: true,
});
const decimal = (width: number, scale: number): TypeCase => {
  const digits = '9'.repeat(width - scale);
  const largest = scale === 0 ? digits : `${digits}.${'9'.repeat(scale)}`;
  return {
    name: `decimal_${width}_${scale}`,
    sqlType: `DECIMAL(${width},${scale})`,
    edges: [`'${largest}'`, `'-${largest}'`, '0', scale === 0 ? '-1' : `'-0.${'0'.repeat(scale - 1)}1'`],
    random: `((random() - 0.5) * ${width === scale ? 1 : 100})`,
    // DuckDB leaves out the zero before the point of a decimal without digits there
    text: (c) => `regexp_replace(${c}::varchar, '^(-?)\\.', '\\10.')`,
    bare: true,
  };
};
const timestamp = (name: string, sqlType: string, format: string, edges: readonly string[]): TypeCase => ({
  name,
  sqlType,
  edges,
  random: `make_timestamp((random() * 4e15)::bigint - 1000000000000000)::${sqlType}`,
  text: (c) => `strftime(${c}, '%Y-%m-%dT%H:%M:%S.${format}')`,
});

export const ALL_TYPES: readonly TypeCase[] = [
  { name: 'flag', sqlType: 'BOOLEAN', edges: ['true', 'false'], random: 'random() < 0.5', text: asText, bare: true },
  integer('TINYINT', '-128', '127'),
  integer('SMALLINT', '-32768', '32767'),
  integer('INTEGER', '-2147483648', '2147483647'),
  integer('BIGINT', '-9223372036854775808', '9223372036854775807'),
  integer('UTINYINT', '0', '255'),
  integer('USMALLINT', '0', '65535'),
  integer('UINTEGER', '0', '4294967295'),
  integer('UBIGINT', '0', '18446744073709551615'),
  { ...integer('BIGINT', '9007199254740991', '-9007199254740993'), name: 'around_2_53' },
  {
    name: 'single',
    sqlType: 'FLOAT',
    edges: ["'NaN'", "'Infinity'", "'-Infinity'", '-0.0', '0.1', '3.4028235e38', '1.4e-45', '16777216'],
    random: '(random() - 0.5) * 1e6',
    text: asText,
    float: 'single',
  },
  {
    name: 'double',
    sqlType: 'DOUBLE',
    edges: [
      "'NaN'",
      "'Infinity'",
      "'-Infinity'",
      '-0.0',
      '0.1',
      '1.7976931348623157e308',
      '5e-324',
      '1e21',
      '123456789012345680',
    ],
    random: 'random() * 1e-3',
    text: asText,
    float: 'double',
  },
  decimal(4, 1),
  decimal(9, 2),
  decimal(18, 0),
  decimal(18, 18),
  decimal(38, 10),
  {
    name: 'text',
    sqlType: 'VARCHAR',
    edges: [
      "''",
      `'a "quote", a comma'`,
      "e'line\\nfeed\\r'",
      "e'tab\\tand\\\\ \\x01'",
      "'ünïcödé 漢字 🎈'",
      "' led by a space'",
      'repeat(\'"long",\', 5000)',
      "chr(65279) || 'mark'",
    ],
    random: `repeat(chr(32 + (random() * 90)::integer), (random() * 20)::integer)`,
    text: asText,
  },
  {
    name: 'bytes',
    sqlType: 'BLOB',
    edges: ["''::blob", "'\\x00\\xFF\\x22'::blob"],
    random: `md5(random()::varchar)::blob`,
    text: (c) => `lower(hex(${c}))`,
  },
  {
    name: 'day',
    sqlType: 'DATE',
    edges: [
      "date '1970-01-01'",
      "date '1969-12-31'",
      "date '2000-02-29'",
      "date '0001-01-01'",
      "date '9999-12-31'",
      "date '1900-03-01'",
    ],
    random: "date '1970-01-01' + ((random() - 0.5) * 100000)::integer",
    text: asText,
  },
  {
    name: 'clock',
    sqlType: 'TIME',
    edges: ["time '00:00:00'", "time '23:59:59.999999'"],
    random: 'make_timestamp((random() * 8e10)::bigint)::time',
    text: (c) => `strftime(date '2000-01-01' + ${c}, '%H:%M:%S.%f')`,
  },
  timestamp('micros', 'TIMESTAMP', '%f', [
    "timestamp '1969-12-31 23:59:59.999999'",
    "timestamp '0001-01-01'",
    "timestamp '9999-12-31 23:59:59.999999'",
  ]),
  timestamp('millis', 'TIMESTAMP_MS', '%g', ["timestamp '1969-12-31 23:59:59.999'", "timestamp '0001-01-01'"]),
  timestamp('nanos', 'TIMESTAMP_NS', '%n', [
    "'1969-12-31 23:59:59.999999999'",
    "'1700-01-01 00:00:00.000000001'",
    "'2262-01-01'",
  ]),
  {
    ...timestamp('zoned', 'TIMESTAMPTZ', '', ["'1969-12-31 23:59:59.999999+00'", "'2024-05-05 01:02:03+02'"]),
    text: (c) => `strftime(make_timestamp(epoch_us(${c})), '%Y-%m-%dT%H:%M:%S.%f') || 'Z'`,
  },
  {
    name: 'uuid',
    sqlType: 'UUID',
    edges: ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
    random: 'md5(random()::varchar)::uuid',
    text: asText,
  },
  {
    name: 'span',
    sqlType: 'INTERVAL',
    edges: ["interval '0' second", "interval '14 months 3 days 4567 milliseconds'"],
    random: 'to_days((random() * 100)::integer) + to_milliseconds((random() * 100000)::integer)',
    text: (c) =>
      `format('P{}M{}DT{}.{:03d}S', datepart('year', ${c}) * 12 + datepart('month', ${c}), datepart('day', ${c}),
        epoch_ms(${c} - to_months((datepart('year', ${c}) * 12 + datepart('month', ${c}))::integer) - to_days(datepart('day', ${c})::integer)) // 1000, epoch_ms(${c}) % 1000)`,
  },
  {
    name: 'mood',
    sqlType: "ENUM('happy', 'so, so')",
    edges: ["'happy'", "'so, so'"],
    random: "case when random() < 0.5 then 'happy' else 'so, so' end",
    text: asText,
  },
  {
    name: 'document',
    sqlType: 'JSON',
    edges: [`'{"a":[1,"x"]}'`],
    random: `'[' || random()::varchar || ']'`,
    text: asText,
  },
  { ...integer('INTEGER', '1', '2'), name: 'comma, "quote"' },
  { ...integer('INTEGER', '1', '2'), name: '__proto__' },
];

export const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** A query that makes the table; its random values follow from `seed` alone. */
export function allTypesQuery(rows: number, seed: number): string {
  const columns = ALL_TYPES.map(({ name, sqlType, edges, random }, k) => {
    const cases = edges.map((edge, row) => `when ${row} then (${edge})::${sqlType}`).join(' ');
    let calls = 0;
    // DuckDB's own random() differs from run to run and from thread to thread
    const value = `case when random() < 0.1 then null else (${random})::${sqlType} end`.replace(
      /random\(\)/g,
      () => `(hash(i, ${seed}, ${k * 10 + calls++}) / 18446744073709551616.0::double)`,
    );
    return `case i ${cases} when ${edges.length} then null else ${value} end as ${quoteName(name)}`;
  });
  return `select ${columns.join(',\n')} from range(${rows}) t(i)`;
}

/** What DuckDB reads in the file, as our texts: a row an array, in the file's order. */
export async function expectedTexts(file: string): Promise<(string | null)[][]> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    await connection.run("set timezone = 'UTC'");
    // as hexadecimal: the binding drops a leading U+FEFF
    const texts = ALL_TYPES.map(({ name, text }) => `hex(encode((${text(quoteName(name))})::varchar))`);
    const reader = await connection.runAndReadAll(
      `select ${texts.join(', ')} from read_parquet('${file}', file_row_number = true) order by file_row_number`,
    );
    return reader
      .getRows()
      .map((row) => row.map((value) => (value === null ? null : Buffer.from(String(value), 'hex').toString())));
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** Equal as texts, or as numbers where the column holds floats. */
export function sameText({ float }: TypeCase, ours: string | null, theirs: string | null): boolean {
  if (ours === null || theirs === null || float === undefined) return ours === theirs;
  const number = (text: string): number => {
    const lower = text.toLowerCase();
    if (lower === 'nan') return Number.NaN;
    const infinite = /^(-?)inf/.exec(lower);
    return infinite === null ? Number(text) : infinite[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  };
  const round = float === 'single' ? Math.fround : (value: number): number => value;
  return Object.is(round(number(ours)), round(number(theirs)));
}
