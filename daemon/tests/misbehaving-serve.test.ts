/** Scans of `qanat serve` through a proxy that misbehaves by a seed, over queue pairs, HTTP and S3. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  FAULTS,
  type Fault,
  MisbehavingProxy,
  MisbehavingWire,
  planFrom,
  WIRE_FAULTS,
} from '../../fetcher/tests/misbehaving-proxy.ts';
import { isolateSdk } from '../../fetcher/tests/s3-store.ts';
import type { SourceOptions } from '../../vfs/index.ts';
import { newRandom } from '../../vfs/tests/seeded-random.ts';
import { ScanEngine } from '../scan/engine.ts';
import { qanatServe, type Server } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';
import { type Ended, endOf } from './misbehaving-scan.ts';

isolateSdk({ AWS_ACCESS_KEY_ID: 'AKIATEST', AWS_SECRET_ACCESS_KEY: 'secret' });

/** Quick to give up, so that a test is: what is slow only because the machine is goes on, for there are many attempts. */
const QUICK: SourceOptions = { stallMs: 400, connectMs: 2000, retry: { attempts: 12, baseMs: 1, capMs: 20 } };
/** Scans of each kind. */
const SEEDS = Number(process.env.QANAT_SEEDS ?? 1);

describe('scans of qanat serve behind a proxy that misbehaves', () => {
  let lake: Lake;
  let server: Server;
  let engine: ScanEngine;
  let expected: string;
  const random = newRandom('misbehaving serve');

  before(async () => {
    lake = await Lake.create();
    await lake.write('numbers.parquet', numbersQuery(20_000), 'row_group_size 4096');
    server = await qanatServe([lake.folder, '--s3', '127.0.0.1:0', '--s3-bucket', 'lake']);
    engine = new ScanEngine({ memoryBytes: 64 * 2 ** 20, decoders: 1 });
    const { result } = await endOf(engine, lake.path('numbers.parquet'), {});
    assert.match(result, /^20000 rows /);
    expected = result;
  });
  after(async () => {
    await engine?.close();
    await server?.stop();
    await lake?.[Symbol.asyncDispose]();
  });

  /** Some scans under the plans of seeds; `front` scans the source as the plan has it. */
  async function scans(front: (seed: number, options: SourceOptions) => Promise<readonly [Ended, readonly Fault[]]>) {
    for (let i = 0; i < SEEDS; i++) {
      const seed = random.below(2 ** 31);
      const [{ result, retries, hedges }, done] = await front(seed, { ...QUICK, hedge: i % 2 === 0 });
      const what = `seed ${seed}: ${result.slice(0, 10)}, ${retries} retries, ${hedges} hedges, after ${done.join(' ')}`;
      console.log(what);
      assert.ok(done.length > 0, 'nothing went wrong');
      // what is final may have come of it, and exact rows of everything else
      if (!/^[A-Z]+$/.test(result)) assert.equal(result, expected, what);
    }
  }

  /** Those that need not be tried again. */
  const FINAL: readonly Fault[] = ['expired', 'other-version', 'whole'];

  test('over queue pairs', () =>
    scans(async (seed, options) => {
      // the first connection is in trouble in any case
      const plan = planFrom(seed, 50, WIRE_FAULTS, 0);
      await using wire = await MisbehavingWire.start(portOf(server.ready.rdma), { seed, bytesMost: 300_000, plan });
      const location = `rdma://127.0.0.1:${wire.port}/numbers.parquet`;
      // damaged bytes are bytes like others without
      return [await endOf(engine, location, { ...options, checksum: true }), wire.done];
    }));

  const overHttp =
    (speaks: 'http' | 's3', faults: readonly Fault[]) => async (seed: number, options: SourceOptions) => {
      const target = `http://${speaks === 's3' ? server.ready.s3 : server.ready.http}`;
      await using proxy = await MisbehavingProxy.start(target, { speaks, seed, plan: planFrom(seed, 30, faults) });
      const location = speaks === 's3' ? 's3://lake/numbers.parquet' : `${proxy.origin}/files/numbers.parquet`;
      return [await endOf(engine, location, { ...options, s3: { endpoint: proxy.origin } }), proxy.done] as const;
    };
  const PASSING = FAULTS.filter((fault) => !FINAL.includes(fault));

  test('over HTTP', () => scans(overHttp('http', PASSING)));
  test('over S3', () => scans(overHttp('s3', [...PASSING, 'expired'])));
  test('over HTTP with what is final', () => scans(overHttp('http', FAULTS)));
});

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1));
}
