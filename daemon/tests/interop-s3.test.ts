/**
 * Clients that nobody here wrote read a partitioned data set over the S3 API of `qanat serve`: pyarrow, boto3,
 * ClickHouse, DuckDB, the aws command and rclone, as far as they are there; with and without signatures. Needs the environment
 * that interop/setup.sh makes; QANAT_INTEROP_PYTHON names its interpreter.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { qanatServe } from './command-run.ts';
import { Lake } from './lake.ts';

const PYTHON = process.env.QANAT_INTEROP_PYTHON ?? '';
const skip = PYTHON === '' && 'QANAT_INTEROP_PYTHON names no interpreter (daemon/tests/interop/setup.sh makes one)';
const SCRIPT = join(import.meta.dirname, 'interop/read_s3.py');
const KEY = ['AKIDEXAMPLE', 'secret/with+signs='] as const;

for (const isSigned of [false, true]) {
  test(`real clients list and read equal values, ${isSigned ? 'signing' : 'anonymous'}`, { skip }, async () => {
    await using lake = await Lake.create();
    for (const year of [2024, 2025]) {
      mkdirSync(lake.path(`data/year=${year}`), { recursive: true });
      const query = `select i + ${year} * 100000 as id, 'text ' || (i % 97) as s from range(30000) t(i)`;
      await lake.write(`data/year=${year}/part one.parquet`, query);
    }
    writeFileSync(lake.path('keys'), `${KEY.join(' ')}\n`, { mode: 0o600 });
    const keys = isSigned ? ['--s3-keys', lake.path('keys')] : [];
    const server = await qanatServe([lake.path('data'), '--s3', '127.0.0.1:0', ...keys]);
    try {
      const { s3, buckets } = server.ready as unknown as { s3: string; buckets: string[] };
      assert.deepEqual(buckets, ['data']);
      const args = [SCRIPT, s3, 'data', lake.path('data'), ...(isSigned ? KEY : [])];
      const { stdout } = await promisify(execFile)(PYTHON, args, { timeout: 300_000 });
      const answers = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      for (const { client, skipped } of answers)
        if (skipped !== undefined) console.log(`${client} skipped: ${skipped}`);
      assert.deepEqual(
        answers.filter(({ failed }) => failed !== undefined),
        [],
      );
      const read = answers.filter(({ files }) => files === 2).map(({ client }) => client);
      console.log(`read by ${read.join(', ')}`);
      for (const client of ['pyarrow', 'boto3', 'chdb']) assert.ok(read.includes(client), client);
    } finally {
      await server.stop();
    }
  });
}
