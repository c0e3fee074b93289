/**
 * The decoded view read by pyarrow, polars and ClickHouse. QANAT_INTEROP_PYTHON names an interpreter that has them
 * (daemon/tests/interop/setup.sh makes one).
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { DuckDBInstance } from '@duckdb/node-api';
import { materialize } from './materialize.ts';
import { VIEW_COLUMNS } from './view-columns.ts';

const PYTHON = process.env.QANAT_INTEROP_PYTHON ?? '';
const skip = PYTHON === '' && 'QANAT_INTEROP_PYTHON names no interpreter (daemon/tests/interop/setup.sh makes one)';

test('pyarrow, polars and ClickHouse read the decoded view as they read the file', { skip }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'qanat-views-'));
  const instance = await DuckDBInstance.create();
  const duckdb = await instance.connect();
  try {
    const options = ['COMPRESSION snappy, ROW_GROUP_SIZE 2048', "COMPRESSION zstd, PARQUET_VERSION 'V2'"];
    for (const [k, written] of options.entries()) {
      const path = join(folder, `file${k}.parquet`);
      await duckdb.run(`COPY (SELECT ${VIEW_COLUMNS} FROM range(5000) t(i)) TO '${path}' (FORMAT parquet, ${written})`);
      const view = materialize(new Uint8Array(readFileSync(path)), { windowRows: 700 });
      assert.ok(view !== undefined);
      writeFileSync(join(folder, `file${k}-view.parquet`), view);
    }
    const script = join(import.meta.dirname, 'compare_views.py');
    const { stdout } = await promisify(execFile)(PYTHON, [script, folder], { maxBuffer: 64 << 20 });
    assert.deepEqual(JSON.parse(stdout), { equal: 3 * options.length, different: [] });
  } finally {
    duckdb.closeSync();
    instance.closeSync();
    rmSync(folder, { recursive: true, force: true });
  }
});
