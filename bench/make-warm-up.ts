/**
 * Makes the file that mounts read before they are ready (daemon/mount/warm-up.ts): what engines write mostly, small.
 *   node bench/make-warm-up.ts
 */
import { DuckDBInstance } from '@duckdb/node-api';
import { WARM_UP_FILE } from '../daemon/mount/warm-up-file.ts';

/** Rows of a group: few enough that columns without a dictionary stay small. */
const GROUP_ROWS = 4096;
const GROUPS = 4;

const instance = await DuckDBInstance.create(':memory:');
const connection = await instance.connect();
await connection.run('set threads = 1');
await connection.run(`copy (
  select date '1992-01-02' + cast(i * 7 % 400 as integer) as day,
    cast(i * 11 % 50 as decimal(15, 2)) as quantity,
    i * 4 as key,
    if(i % 97 = 0, null, cast(i % 11 as double) / 100) as share,
    cast(i % 7 as integer) as line,
    ['MAIL', 'SHIP', 'TRUCK'][i % 3 + 1] as how
  from range(${GROUP_ROWS * GROUPS}) r(i))
  to '${WARM_UP_FILE}' (format parquet, compression snappy, row_group_size ${GROUP_ROWS})`);
