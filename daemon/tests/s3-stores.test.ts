/**
 * Buckets of S3 servers that nobody here wrote, as the commands see them: partitioned data, globs, keys of any kind, packed
 * regions, overwritten objects, keys that are wrong. stores/setup.sh makes what it needs; QANAT_STORES says where.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { FetchError } from '../../fetcher/index.ts';
import { openSource } from '../../vfs/index.ts';
import { qanat } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';
import { STORE_KEYS, STORE_KINDS, Store, whyNoStore } from './s3-process.ts';

const ENVIRONMENT = {
  AWS_ACCESS_KEY_ID: STORE_KEYS.accessKeyId,
  AWS_SECRET_ACCESS_KEY: STORE_KEYS.secretAccessKey,
  AWS_CONFIG_FILE: '/dev/null',
  AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
  AWS_EC2_METADATA_DISABLED: 'true',
};

const PARTS = ['year=2024/part one+1.parquet', 'year=2025/ü (2).parquet'] as const;

for (const kind of STORE_KINDS) {
  describe(`a bucket of ${kind}`, { skip: whyNoStore(kind) }, () => {
    let lake: Lake;
    let store: Store;

    const run = async (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
      qanat([...args, '--endpoint', store.endpoint], { env: { ...ENVIRONMENT, ...env } });
    const succeeds = async (...args: string[]): Promise<string> => {
      const { code, text, errors } = await run(args);
      assert.deepEqual([code, errors], [0, ''], args.join(' '));
      return text;
    };

    before(async () => {
      lake = await Lake.create();
      for (const [i, part] of PARTS.entries()) {
        mkdirSync(lake.path(part.split('/')[0]!), { recursive: true });
        await lake.write(part, numbersQuery(20_000 + i));
      }
      store = await Store.start(kind);
      await store.makeBucket('lake');
      for (const part of PARTS) await store.put('lake', `data/${part}`, readFileSync(lake.path(part)));
      await store.put('lake', 'data/notes.txt', Buffer.from('no Parquet'));
      const packed = await qanat(['pack', lake.folder, '-o', lake.path('lake.qanat')]);
      assert.equal(packed.code, 0, packed.errors);
      await store.put('lake', 'packed/lake.qanat', readFileSync(lake.path('lake.qanat')));
    });
    after(async () => {
      await store?.[Symbol.asyncDispose]();
      await lake?.[Symbol.asyncDispose]();
    });

    test('ls of a folder, of a glob, and of what it told', async () => {
      const listed = await run(['ls', 's3://lake/data', '--json']);
      assert.equal(listed.code, 0, listed.errors);
      const files = JSON.parse(listed.text) as { location: string; path: string; bytes: number }[];
      assert.deepEqual(
        files.map(({ path, bytes }) => [path, bytes]),
        PARTS.map((part) => [`data/${part}`, readFileSync(lake.path(part)).length]),
      );
      for (const { location, path } of files) {
        const again = JSON.parse(await succeeds('ls', location, '--json')) as { path: string }[];
        assert.deepEqual(
          again.map((file) => file.path),
          [path],
        );
      }
      assert.match(await succeeds('ls', 's3://lake/data/year=2024/*.parquet'), /part one\+1\.parquet\n$/);
      assert.match(await succeeds('ls', 's3://lake/**/*.txt'), /notes\.txt\n$/);
    });

    test('scan, inspect and cp give what the files hold', async () => {
      const local = await qanat(['scan', `${lake.folder}/year=*/*.parquet`, '--format', 'checksum']);
      const checksum = await succeeds('scan', 's3://lake/data/**/*.parquet', '--format', 'checksum');
      assert.equal(checksum, local.text);
      const packed = await succeeds('scan', 's3://lake/packed/lake.qanat!/**/*.parquet', '--format', 'checksum');
      assert.equal(packed, local.text);
      const inspected = JSON.parse(await succeeds('inspect', `s3://lake/data/${PARTS[1]}`, '--json')) as {
        num_rows: number;
      };
      assert.equal(inspected.num_rows, 20_001);
      const copied = await run(['cp', `s3://lake/data/${PARTS[0]}`, '-']);
      assert.ok(copied.stdout.equals(readFileSync(lake.path(PARTS[0]))));
    });

    test('an object that is overwritten is STALE for who had opened it, and new for who opens it then', async () => {
      const [first, second] = PARTS.map((part) => readFileSync(lake.path(part)));
      await store.put('lake', 'changing.parquet', first!);
      Object.assign(process.env, ENVIRONMENT);
      const source = await openSource('s3://lake/changing.parquet', { s3: { endpoint: store.endpoint } });
      try {
        const [file] = await source.list();
        await store.put('lake', 'changing.parquet', second!);
        const read = source.transport.read(file!, 0, new Uint8Array(100));
        await assert.rejects(read, (error) => error instanceof FetchError && error.code === 'STALE');
        const [next] = await source.list();
        const into = Buffer.alloc(next!.length);
        await source.transport.read(next!, 0, into);
        assert.ok(into.equals(second!));
      } finally {
        await source.close();
      }
    });

    const noVersions = kind === 'rclone' && 'rclone keeps no versions';
    test('where the bucket has versions a read goes on in the one that was opened', { skip: noVersions }, async () => {
      const [first, second] = PARTS.map((part) => readFileSync(lake.path(part)));
      await store.makeBucket('versions');
      await store.keepVersions('versions');
      await store.put('versions', 'f.parquet', first!);
      Object.assign(process.env, ENVIRONMENT);
      const source = await openSource('s3://versions/f.parquet', { s3: { endpoint: store.endpoint } });
      try {
        const [file] = await source.list();
        await store.put('versions', 'f.parquet', second!);
        const into = Buffer.alloc(file!.length);
        await source.transport.read(file!, 0, into);
        assert.ok(into.equals(first!));
        const [next] = await source.list();
        assert.equal(next!.length, second!.length);
      } finally {
        await source.close();
      }
    });

    test('what is not there, and keys that are not known', async () => {
      const missing = await run(['scan', 's3://lake/none.parquet']);
      assert.equal(missing.code, 1);
      assert.match(missing.errors, /fetch NOT_FOUND: no Parquet file at "s3:\/\/lake\/none\.parquet"/);
      const bucket = await run(['ls', 's3://no-such-bucket']);
      assert.equal(bucket.code, 1);
      assert.match(bucket.errors, /fetch NOT_FOUND: .*no such bucket/);
      // moto believes anybody
      if (kind === 'moto') return;
      const stranger = await run(['ls', 's3://lake'], { AWS_SECRET_ACCESS_KEY: 'other' });
      assert.equal(stranger.code, 1);
      assert.match(stranger.errors, /fetch DENIED: /);
    });
  });
}
