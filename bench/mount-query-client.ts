/**
 * One query in a process of its own, as an engine that comes, reads and goes: prints { wallMs, cpuMs, rows } as JSON.
 *   node mount-query-client.ts <file> <query> [threads] [table]
 * With `table` the file is read into memory before the time begins.
 */
import { DuckDBInstance } from '@duckdb/node-api';
import { QUERIES, type QueryName } from './mount-queries.ts';

const [file, name, threads = '1', table] = process.argv.slice(2) as [string, QueryName, string?, string?];
const instance = await DuckDBInstance.create(':memory:');
const connection = await instance.connect();
await connection.run(`set threads = ${Number(threads)}`);
await connection.run('set enable_external_file_cache = false');
await connection.run('load parquet');
const quoted = `'${file}'`;
if (table !== undefined) await connection.run(`create table t as from ${quoted}`);
const query = QUERIES[name](table === undefined ? quoted : 't');
// what parses and plans for the first time is no part of the scan
await connection.run("select sum(a), last(b) from (values (1, date '1994-01-01')) v(a, b) where a < 3");
const cpu = process.cpuUsage();
const began = performance.now();
const result = await connection.runAndReadAll(query);
const wallMs = performance.now() - began;
const { user, system } = process.cpuUsage(cpu);
console.log(JSON.stringify({ wallMs, cpuMs: (user + system) / 1000, rows: JSON.stringify(result.getRowsJson()) }));
process.exit(0);
