/**
 * Scans of servers that nobody here wrote, behind a proxy that misbehaves by a seed: nginx for HTTP, and the S3 servers that
 * stores/setup.sh installs. QANAT_SEEDS says how many seeds each is tried with.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, type TestContext, test } from 'node:test';
import { FAULTS, type Fault, MisbehavingProxy, planFrom } from '../../fetcher/tests/misbehaving-proxy.ts';
import { isolateSdk } from '../../fetcher/tests/s3-store.ts';
import type { SourceOptions } from '../../vfs/index.ts';
import { newRandom } from '../../vfs/tests/seeded-random.ts';
import { ScanEngine } from '../scan/engine.ts';
import { Lake, numbersQuery } from './lake.ts';
import { endOf } from './misbehaving-scan.ts';
import { STORE_KEYS, STORE_KINDS, Store, whyNoStore } from './s3-process.ts';
import { Nginx, whyNoNginx } from './web-process.ts';

isolateSdk({ AWS_ACCESS_KEY_ID: STORE_KEYS.accessKeyId, AWS_SECRET_ACCESS_KEY: STORE_KEYS.secretAccessKey });

const SEEDS = Number(process.env.QANAT_SEEDS ?? 4);
const QUICK: SourceOptions = { stallMs: 1000, connectMs: 5000, retry: { attempts: 12, baseMs: 1, capMs: 20 } };

/** Faults that an S3 client gets over; HTTP has no other credentials to ask for. */
const PASSING: Readonly<Record<'http' | 's3', readonly Fault[]>> = {
  http: FAULTS.filter((fault) => fault !== 'expired' && fault !== 'other-version'),
  s3: FAULTS.filter((fault) => fault !== 'other-version'),
};

let lake: Lake;
let engine: ScanEngine;
let expected: string;
const random = newRandom('misbehaving stores');

/** Scans once for each seed: under faults that pass exactly the rows come, under all of them the rows or an error. */
async function scans(t: TestContext, target: string, speaks: 'http' | 's3', path: string): Promise<void> {
  const bytes = readFileSync(lake.path('numbers.parquet'));
  for (let i = 0; i < SEEDS; i++) {
    const seed = random.below(2 ** 31);
    const isPassing = i % 2 === 0;
    const faults = isPassing ? PASSING[speaks] : FAULTS;
    const plan = planFrom(seed, isPassing ? 20 : 10, faults);
    await using proxy = await MisbehavingProxy.start(target, { speaks, seed, plan, contentOf: () => bytes });
    const location = speaks === 's3' ? `s3:/${path}` : `${proxy.origin}${path}`;
    const options = { ...QUICK, hedge: i % 4 < 2, s3: { endpoint: proxy.origin } };
    const { result, retries, hedges } = await endOf(engine, location, options);
    const what = `seed ${seed}: ${result.slice(0, 10)}, ${retries} retries, ${hedges} hedges, after ${proxy.done.join(' ')}`;
    t.diagnostic(what);
    assert.ok(proxy.done.length > 0, 'nothing went wrong');
    // two that say "expired" in a row are believed
    const mayEnd = !isPassing || (speaks === 's3' && result === 'DENIED');
    if (!mayEnd || !/^[A-Z]+$/.test(result)) assert.equal(result, expected, what);
  }
}

/** Real servers take their time: they take part where they were asked for. */
const skip = process.env.QANAT_STORES === undefined && 'QANAT_STORES names no folder';

describe('real servers behind a proxy that misbehaves', { skip }, () => {
  before(async () => {
    lake = await Lake.create();
    await lake.write('numbers.parquet', numbersQuery(60_000), 'row_group_size 2048');
    engine = new ScanEngine({ memoryBytes: 64 * 2 ** 20, decoders: 1 });
    const { result } = await endOf(engine, lake.path('numbers.parquet'), {});
    assert.match(result, /^60000 rows /);
    expected = result;
  });
  after(async () => {
    await engine?.close();
    await lake?.[Symbol.asyncDispose]();
  });

  describe('nginx', { skip: whyNoNginx() }, () => {
    test('exact rows, or an error with a code', async (t) => {
      await using nginx = await Nginx.start(lake.folder);
      await scans(t, nginx.origin, 'http', '/numbers.parquet');
    });
  });

  for (const kind of STORE_KINDS) {
    describe(kind, { skip: whyNoStore(kind) }, () => {
      let store: Store;
      before(async () => {
        store = await Store.start(kind);
        await store.makeBucket('lake');
        await store.put('lake', 'numbers.parquet', readFileSync(lake.path('numbers.parquet')));
      });
      after(() => store?.[Symbol.asyncDispose]());

      test('exact rows, or an error with a code', (t) => scans(t, store.endpoint, 's3', '/lake/numbers.parquet'));

      test('under a storm of SlowDown fewer reads are under way, and the rows are exact', async () => {
        await using proxy = await MisbehavingProxy.start(store.endpoint, { speaks: 's3' });
        const changes: string[] = [];
        let requests = 0;
        proxy.plan = () => (++requests > 5 && requests <= 60 ? 'busy' : undefined);
        const { result } = await endOf(engine, 's3://lake/numbers.parquet', {
          s3: { endpoint: proxy.origin },
          retry: { baseMs: 1, capMs: 20 },
          onEvent: (event) => {
            if (event.kind === 'concurrency') changes.push(`${event.why} ${event.from} ${event.to}`);
          },
        });
        assert.equal(result, expected);
        assert.ok(changes.includes('busy 32 16'), changes.join());
      });
    });
  }
});
