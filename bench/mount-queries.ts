/** TPC-H's queries over lineitem as far as one table goes, and a projection of every fixed-width column. */
import { LINEITEM } from './make-lineitem.ts';

export const QUERIES = {
  q6: (table: string) => `select sum(l_extendedprice * l_discount) as revenue from ${table}
    where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
    and l_discount between 0.05 and 0.07 and l_quantity < 24`,
  q14: (table: string) => `select sum(case when l_partkey % 5 = 0 then l_extendedprice * (1 - l_discount) else 0 end),
    sum(l_extendedprice * (1 - l_discount)) from ${table}
    where l_shipdate >= date '1995-09-01' and l_shipdate < date '1995-10-01'`,
  q15: (table: string) => `select l_suppkey, sum(l_extendedprice * (1 - l_discount)) as revenue from ${table}
    where l_shipdate >= date '1996-01-01' and l_shipdate < date '1996-04-01'
    group by 1 order by 2 desc, 1 limit 1`,
  all: (table: string) => `select ${LINEITEM.fixed.map((name) => `last(${name})`).join(', ')} from ${table}`,
  q1: (table: string) => `select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
    sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
    avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*) from ${table}
    where l_shipdate <= date '1998-09-02' group by 1, 2 order by 1, 2`,
  comment: (table: string) => `select max(l_comment), count(distinct l_shipmode) from ${table}`,
} as const;

export type QueryName = keyof typeof QUERIES;

/** Queries whose time is the scan's: fixed-width columns alone. */
export const SCAN_BOUND: readonly QueryName[] = ['q6', 'q14', 'q15', 'all'];
/** Queries that read strings as well, or alone. */
export const STRING_BOUND: readonly QueryName[] = ['q1', 'comment'];
