/**
 * The demo's table, made by DuckDB: a lineitem like TPC-H's, with the same column types and value ranges, and DuckDB's
 * own checksums of it, of the same canonical texts that `--format checksum` hashes (output/canonical-text.ts). They come
 * from a decoder and an SQL engine that share no code with Qanat.
 */
import { DuckDBInstance } from '@duckdb/node-api';
import type { ColumnChecksum } from '../output/checksum.ts';

export interface DemoTable {
  readonly rows: number;
  /** DuckDB's, in the order of the columns. */
  readonly checksums: readonly ColumnChecksum[];
}

/** Writes about `rows` rows to `file` with DuckDB's default settings (Snappy, row groups of 122,880 rows). */
export async function makeDemoTable(file: string, rows: number): Promise<DemoTable> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    await connection.run('select setseed(0.42)');
    await connection.run(`create table lineitem as ${lineitemQuery(rows)}`);
    await connection.run(`copy lineitem to ${literal(file)} (format parquet)`);
    const described = await connection.runAndReadAll('describe lineitem');
    const checksums: ColumnChecksum[] = [];
    for (const [name, type] of described.getRows()) {
      checksums.push(await checksumOf(connection, file, String(name), String(type)));
    }
    return { rows: checksums[0]!.rows, checksums };
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

type Connection = Awaited<ReturnType<DuckDBInstance['connect']>>;

async function checksumOf(connection: Connection, file: string, name: string, type: string): Promise<ColumnChecksum> {
  const text = `coalesce(${canonicalSql(name, type)}, 'null') || chr(10)`;
  const reader = await connection.runAndReadAll(
    `select count(*)::integer, (count(*) - count(${name}))::integer,
            sha256(coalesce(string_agg(${text}, '' order by file_row_number), ''))
     from read_parquet(${literal(file)}, file_row_number = true)`,
  );
  const [rows, nulls, sha256] = reader.getRows()[0]!;
  return { name, rows: Number(rows), nulls: Number(nulls), sha256: String(sha256) };
}

/** The canonical text of a value in SQL: what the Parquet file stores, not how DuckDB shows it. */
function canonicalSql(name: string, type: string): string {
  const [, scale] = /^DECIMAL\(\d+,(\d+)\)$/.exec(type) ?? [];
  if (scale !== undefined) return `(${name} * ${10 ** Number(scale)})::bigint::varchar`;
  if (type === 'DATE') return `(${name} - date '1970-01-01')::varchar`;
  return type === 'VARCHAR' ? `to_json(${name})::varchar` : `${name}::varchar`;
}

const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** Four lines an order on average; keys, prices and dates are related as in TPC-H, comments are not English. */
function lineitemQuery(rows: number): string {
  return `
    with orders as (
      select ((i // 8) * 32 + i % 8 + 1)::bigint as l_orderkey,
             date '1992-01-01' + (random() * 2405)::integer as orderdate,
             1 + (random() * 7)::integer % 7 as lines
      from range(${Math.ceil(rows / 4)}) t(i)
    ), items as (
      select l_orderkey, line::integer as l_linenumber,
             (1 + floor(random() * 200000))::bigint as l_partkey,
             (1 + floor(random() * 10000))::bigint as l_suppkey,
             (1 + floor(random() * 50))::integer as quantity,
             floor(random() * 11)::integer as discount, floor(random() * 9)::integer as tax,
             orderdate + (1 + floor(random() * 121))::integer as l_shipdate,
             orderdate + (30 + floor(random() * 61))::integer as l_commitdate
      from orders, range(1, 8) r(line) where line <= lines
    )
    select l_orderkey, l_partkey, l_suppkey, l_linenumber, quantity::decimal(15, 2) as l_quantity,
           (quantity * (90000 + (l_partkey // 10) % 20001 + 100 * (l_partkey % 1000)) / 100.0)::decimal(15, 2) as l_extendedprice,
           (discount / 100.0)::decimal(15, 2) as l_discount, (tax / 100.0)::decimal(15, 2) as l_tax,
           case when random() < 0.5 then 'R' when random() < 0.5 then 'A' else 'N' end as l_returnflag,
           case when l_shipdate > date '1995-06-17' then 'O' else 'F' end as l_linestatus,
           l_shipdate, l_commitdate, l_shipdate + (1 + floor(random() * 30))::integer as l_receiptdate,
           (['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN'])[1 + floor(random() * 4)::integer] as l_shipinstruct,
           (['REG AIR', 'AIR', 'RAIL', 'SHIP', 'TRUCK', 'MAIL', 'FOB'])[1 + floor(random() * 7)::integer] as l_shipmode,
           substr(md5(l_partkey::varchar) || ' furiously express packages ' || md5(random()::varchar),
                  1, 10 + floor(random() * 34)::integer) as l_comment
    from items`;
}
