/** Small lakes for tests: a folder of Parquet files written by DuckDB, removed with the test. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';

export class Lake {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static async create(): Promise<Lake> {
    return new Lake(await mkdtemp(join(tmpdir(), 'qanat-test-')));
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  /** Writes the rows of a query; options as in DuckDB's COPY, for example `row_group_size 2048`. */
  async write(name: string, query: string, options = 'row_group_size 8192'): Promise<string> {
    const instance = await DuckDBInstance.create(':memory:');
    const connection = await instance.connect();
    try {
      await connection.run('set threads=1');
      await connection.run(`copy (${query}) to '${this.path(name)}' (format parquet, ${options})`);
    } finally {
      connection.closeSync();
      instance.closeSync();
    }
    return this.path(name);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** Rows of a numbers table: every value follows from the row's number. */
export function numbersQuery(rows: number): string {
  return `select i::bigint as id, (i * 7919 % 100003)::int as n, case when i % 3 = 0 then null else i / 4.0 end as d,
    'name ' || (i % 1000) as name, repeat(chr(97 + (i % 26)::int), (i % 50)::int) || i as note, i % 2 = 0 as flag
    from range(${rows}) t(i)`;
}
