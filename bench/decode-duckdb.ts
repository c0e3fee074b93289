/**
 * DuckDB's own Parquet scan: the operator time of the scan from its profiler, one thread, one column at a time. That
 * time includes reading the file from the page cache, and not what the query does with the values.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';

interface ProfileNode {
  readonly operator_type?: string;
  readonly operator_name?: string;
  readonly operator_timing?: number;
  readonly children?: readonly ProfileNode[];
}

export interface DuckdbScan extends AsyncDisposable {
  /** Milliseconds of the scan of one column. */
  scanMs(column: string): Promise<number>;
  /** SHA-256 over the texts of an SQL expression for each row, in the order of the file, each followed by a line feed. */
  digest(expression: string): Promise<string>;
}

export async function openDuckdbScan(file: string): Promise<DuckdbScan> {
  const folder = mkdtempSync(join(tmpdir(), 'qanat-bench-duckdb-'));
  const profile = join(folder, 'profile.json');
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' });
  const connection = await instance.connect();
  await connection.run(`pragma enable_profiling='json'`);
  await connection.run(`pragma profiling_output='${profile}'`);
  return {
    async scanMs(column) {
      // the query touches every value, so that nothing is left undecoded
      await connection.runAndReadAll(
        `select count(*) filter (where ${column} is null), bit_xor(hash(${column})) from '${file}'`,
      );
      return scanSeconds(JSON.parse(readFileSync(profile, 'utf8'))) * 1000;
    },
    async digest(expression) {
      const reader = await connection.runAndReadAll(
        `select sha256(string_agg(${expression} || chr(10), '' order by file_row_number)) ` +
          `from read_parquet('${file}', file_row_number = true)`,
      );
      return String(reader.getRows()[0]![0]);
    },
    async [Symbol.asyncDispose]() {
      connection.closeSync();
      instance.closeSync();
      rmSync(folder, { recursive: true });
    },
  };
}

function scanSeconds(node: ProfileNode): number {
  const own = /SCAN|PARQUET/.test(node.operator_type ?? node.operator_name ?? '') ? (node.operator_timing ?? 0) : 0;
  return (node.children ?? []).reduce((total, child) => total + scanSeconds(child), own);
}
