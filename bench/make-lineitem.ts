/**
 * A table like TPC-H's lineitem as DuckDB writes it: the same columns, types, value ranges and repetitions, so that
 * pages have the encodings and the compression that such tables have. Files are kept in the system's temporary folder
 * under a name made of everything that went into them, and are made once.
 */
import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { tableFolder } from './table-folder.ts';

export interface LineitemOptions {
  readonly rows: number;
  /** The table this many times over, for files larger than the time to make their values allows. Default 1. */
  readonly copies?: number;
  readonly codec?: 'snappy' | 'zstd';
  /** Only the columns of a fixed width. */
  readonly fixedOnly?: boolean;
}

/** Part of the file's name: to be raised when the query below changes. */
const VERSION = 1;

const FIXED_COLUMNS = [
  'l_orderkey',
  'l_partkey',
  'l_suppkey',
  'l_linenumber',
  'l_quantity',
  'l_extendedprice',
  'l_discount',
  'l_tax',
  'l_shipdate',
  'l_commitdate',
  'l_receiptdate',
] as const;
const STRING_COLUMNS = ['l_returnflag', 'l_linestatus', 'l_shipinstruct', 'l_shipmode', 'l_comment'] as const;

export const LINEITEM = { fixed: FIXED_COLUMNS, strings: STRING_COLUMNS } as const;

/** Path of a Parquet file of at least `rows` times `copies` rows, made if it is not there yet. */
export async function lineitemFile(options: LineitemOptions): Promise<string> {
  const { rows, copies = 1, codec = 'snappy', fixedOnly = false } = options;
  const file = join(
    tableFolder(),
    `lineitem-v${VERSION}-${rows}x${copies}-${codec}${fixedOnly ? '-fixed' : ''}.parquet`,
  );
  if (existsSync(file)) return file;
  const unfinished = `${file}.${process.pid}`;
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  try {
    await connection.run('select setseed(0.42)');
    await connection.run(query(rows));
    const columns = fixedOnly ? FIXED_COLUMNS.join(', ') : '*';
    // one whole copy after the other: rows that repeat would compress away
    const from = Array.from({ length: copies }, () => `select ${columns} from lineitem`).join(' union all ');
    await connection.run(`copy (${from}) to '${unfinished}' (format parquet, compression ${codec})`);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
  renameSync(unfinished, file);
  return file;
}

/** Orders have 1 to 7 lines, 4 on average. */
function query(rows: number): string {
  return `create table lineitem as
    with orders as (
      select ((i // 8) * 32 + i % 8 + 1)::bigint as l_orderkey,
        date '1992-01-01' + (random() * 2405)::int as order_date,
        1 + floor(random() * 7)::int as line_count
      from range(${Math.ceil(rows / 4) + 1000}) t(i)),
    lines as (
      select l_orderkey, order_date, line::int as l_linenumber,
        (1 + floor(random() * 200000))::bigint as l_partkey,
        (1 + floor(random() * 10000))::bigint as l_suppkey,
        (1 + floor(random() * 50))::int as quantity,
        floor(random() * 11)::int as discount,
        floor(random() * 9)::int as tax,
        order_date + (1 + floor(random() * 121))::int as l_shipdate,
        order_date + (30 + floor(random() * 61))::int as l_commitdate
      from orders, range(1, 8) r(line) where line <= line_count)
    select l_orderkey, l_partkey, l_suppkey, l_linenumber,
      quantity::decimal(15,2) as l_quantity,
      (quantity * (90000 + ((l_partkey // 10) % 20001) + 100 * (l_partkey % 1000)) / 100.0)::decimal(15,2)
        as l_extendedprice,
      (discount / 100.0)::decimal(15,2) as l_discount,
      (tax / 100.0)::decimal(15,2) as l_tax,
      case when random() < 0.5 then 'R' when random() < 0.5 then 'A' else 'N' end as l_returnflag,
      case when l_shipdate > date '1995-06-17' then 'O' else 'F' end as l_linestatus,
      l_shipdate, l_commitdate, l_shipdate + (1 + floor(random() * 30))::int as l_receiptdate,
      (['DELIVER IN PERSON', 'COLLECT COD', 'NONE', 'TAKE BACK RETURN'])[1 + floor(random() * 4)::int]
        as l_shipinstruct,
      (['REG AIR', 'AIR', 'RAIL', 'SHIP', 'TRUCK', 'MAIL', 'FOB'])[1 + floor(random() * 7)::int] as l_shipmode,
      substr(md5(l_partkey::varchar) || ' furiously express packages ' || md5(random()::varchar),
        1, 10 + floor(random() * 34)::int) as l_comment
    from lines`;
}
