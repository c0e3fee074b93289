/** What the wrappers add: attempts, budget, resumption, stall timer, bound on concurrency; and what URLs mean. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { FetchError, type FetchErrorCode } from '../errors.ts';
import { ConcurrencyControl, concurrencyBounds } from '../transport/concurrency.ts';
import { LatencyWindow } from '../transport/latency-window.ts';
import { openTransport } from '../transport/open-transport.ts';
import { ProgressLimit } from '../transport/progress-limit.ts';
import { type FileVersion, newTransportCounters, type ReadOptions, type Transport } from '../transport/transport.ts';
import { withFaults } from '../transport/with-faults.ts';
import { withLimit } from '../transport/with-limit.ts';
import { withRetry } from '../transport/with-retry.ts';
import { type StallRules, withStallTimer } from '../transport/with-stall-timer.ts';
import { makeFolder } from './transport-fixtures.ts';

const FILE: FileVersion = { path: 'f', length: 1000, etag: 'e', modifiedMs: 0 };
const NOW = { baseMs: 0, capMs: 0 };

const hasCode =
  (code: FetchErrorCode, text = /(?:)/) =>
  (error: unknown): boolean =>
    error instanceof FetchError && error.code === code && text.test(error.message);

type Read = (start: number, into: Uint8Array, options: ReadOptions) => Promise<void>;

function source(read: Read): Transport {
  return {
    list: async () => [FILE],
    read: (_file, start, into, options = {}) => read(start, into, options),
    close: async () => {},
  };
}

const lost = (): FetchError => new FetchError('LOST', 'gone', { retryable: true });

test('retry resumes behind what has arrived, and never tells less than before', async () => {
  const starts: [number, number][] = [];
  const told: number[] = [];
  const counters = newTransportCounters();
  const transport = withRetry(
    source(async (start, into, { onArrived }) => {
      starts.push([start, into.byteLength]);
      if (starts.length === 1) {
        into.fill(1, 0, 30);
        onArrived?.(10);
        onArrived?.(30);
        throw lost();
      }
      if (starts.length === 2) throw lost();
      if (starts.length === 3) {
        onArrived?.(into.byteLength);
        throw lost();
      }
      into.fill(2);
      onArrived?.(into.byteLength);
    }),
    counters,
    NOW,
  );
  const into = new Uint8Array(100);
  await transport.read(FILE, 500, into, { onArrived: (bytes) => told.push(bytes) });
  assert.deepEqual(starts, [
    [500, 100],
    [530, 70],
    [530, 70],
    [599, 1],
  ]);
  assert.deepEqual(told, [10, 30, 100]);
  assert.deepEqual([into[0], into[99]], [1, 2]);
  assert.deepEqual([counters.retries, counters.bytesDiscarded], [3, 1]);
});

test('attempts count since the last progress', async () => {
  let calls = 0;
  const failing = source(async (_start, _into, { onArrived }) => {
    calls++;
    if (calls <= 10) onArrived?.(1);
    throw lost();
  });
  const transport = withRetry(failing, newTransportCounters(), { ...NOW, attempts: 3, progressBytes: 1 });
  await assert.rejects(transport.read(FILE, 0, new Uint8Array(100)), hasCode('LOST', /gave up after 3 attempts/));
  assert.equal(calls, 12);
});

test('what is not retryable is not tried again', async () => {
  for (const error of [new FetchError('STALE', 'changed'), new TypeError('a bug')]) {
    let calls = 0;
    const transport = withRetry(
      source(async () => {
        calls++;
        throw error;
      }),
      newTransportCounters(),
      NOW,
    );
    await assert.rejects(transport.read(FILE, 0, new Uint8Array(1)), error);
    assert.equal(calls, 1);
  }
});

test('the budget bounds retries over all reads, and success refills it', async () => {
  let calls = 0;
  let up = false;
  const counters = newTransportCounters();
  const transport = withRetry(
    source(async () => {
      calls++;
      if (!up) throw lost();
    }),
    counters,
    { ...NOW, attempts: 5, budget: 10 },
  );
  const read = (): Promise<void> => transport.read(FILE, 0, new Uint8Array(1));
  const results = await Promise.allSettled(Array.from({ length: 20 }, read));
  assert.ok(results.every(({ status }) => status === 'rejected'));
  assert.equal(calls, 20 + 10);
  await assert.rejects(read(), hasCode('LOST', /budget/));
  up = true;
  for (let i = 0; i < 4; i++) await read();
  up = false;
  calls = 0;
  await assert.rejects(read(), hasCode('LOST', /gave up after 5/));
  assert.equal(calls, 5);
});

test('waits grow and are a random part of the whole; cancelling ends them', async () => {
  const waits: number[] = [];
  let last = performance.now();
  const transport = withRetry(
    source(async () => {
      waits.push(performance.now() - last);
      last = performance.now();
      throw lost();
    }),
    newTransportCounters(),
    { attempts: 4, baseMs: 20, capMs: 40, random: () => 0.999 },
  );
  await assert.rejects(transport.read(FILE, 0, new Uint8Array(1)), hasCode('LOST'));
  assert.equal(waits.length, 4);
  // Lower bounds only: timers may be late, never early by more than their rounding.
  assert.ok(waits[1]! > 17 && waits[2]! > 37 && waits[3]! > 37, String(waits));
  const slow = withRetry(
    source(async () => {
      throw lost();
    }),
    newTransportCounters(),
    { baseMs: 60_000, capMs: 60_000, random: () => 0.9 },
  );
  await assert.rejects(
    slow.read(FILE, 0, new Uint8Array(1), { signal: AbortSignal.timeout(20) }),
    hasCode('CANCELLED'),
  );
});

test('a source that is away is tried for as long as patience lasts, by all reads together', async () => {
  const refused = (): FetchError => new FetchError('REFUSED', 'nothing listens', { retryable: true });
  let calls = 0;
  const away = source(async () => {
    calls++;
    throw refused();
  });
  let told = 0;
  const rules = { baseMs: 5, capMs: 20, budget: 100, random: () => 0.999, onRetry: () => told++ };
  const transport = withRetry(away, newTransportCounters(), { ...rules, patienceMs: 1500 });
  const began = performance.now();
  const read = (): Promise<void> => transport.read(FILE, 0, new Uint8Array(1));
  const results = await Promise.allSettled(Array.from({ length: 50 }, read));
  assert.ok(performance.now() - began >= 1490, 'not given up before');
  for (const result of results) {
    assert.ok(result.status === 'rejected' && hasCode('REFUSED', /gave up after \d+ attempts/)(result.reason));
  }
  assert.ok(calls > 50 * 6, 'more than the attempts and the budget would give a single read');
  assert.equal(told, calls - 50);
  // what else fails is not waited for
  let stalls = 0;
  const stalled = withRetry(
    source(async () => {
      stalls++;
      throw new FetchError('STALLED', 'silent', { retryable: true });
    }),
    newTransportCounters(),
    { ...rules, patienceMs: 60_000 },
  );
  await assert.rejects(stalled.read(FILE, 0, new Uint8Array(1)), hasCode('STALLED', /gave up after 6 attempts/));
  assert.equal(stalls, 6);
});

test('closing, and cancelling, end a wait', async () => {
  const away = source(async () => {
    throw new FetchError('REFUSED', 'nothing listens', { retryable: true });
  });
  const long = { baseMs: 3_600_000, capMs: 3_600_000, random: () => 0.9, patienceMs: 3_600_000 };
  const transport = withRetry(away, newTransportCounters(), long);
  const read = (signal?: AbortSignal): Promise<void> =>
    transport.read(FILE, 0, new Uint8Array(1), signal === undefined ? {} : { signal });
  const waiting = [assert.rejects(read(), hasCode('CLOSED')), assert.rejects(read(), hasCode('CLOSED'))];
  await assert.rejects(read(AbortSignal.timeout(5)), hasCode('CANCELLED'));
  await transport.close();
  await Promise.all(waiting);
});

/** A source that tells progress every `everyMs`, and settles only when cancelled or done. */
const ticking = (everyMs: number, ticks: number): Transport =>
  source(async (_start, into, { onArrived, signal }) => {
    for (let i = 1; i <= ticks; i++) {
      await sleep(everyMs);
      if (signal?.aborted) throw new FetchError('CANCELLED', 'cancelled');
      onArrived?.(Math.floor((into.byteLength * i) / ticks));
    }
  });

const stallAfter = (milliseconds: number): StallRules => ({
  limit: new ProgressLimit(new LatencyWindow(), milliseconds),
  isApart: false,
  paceBytesPerSecond: 0,
});

test('slow is not stalled, silent is', async () => {
  await withStallTimer(ticking(100, 15), stallAfter(1000)).read(FILE, 0, new Uint8Array(100));
  const silent = withStallTimer(ticking(400, 1), stallAfter(50));
  await assert.rejects(silent.read(FILE, 0, new Uint8Array(100)), (error) => {
    assert.ok(hasCode('STALLED')(error));
    return (error as FetchError).retryable;
  });
  await assert.rejects(
    silent.read(FILE, 0, new Uint8Array(100), { signal: AbortSignal.timeout(5) }),
    hasCode('CANCELLED'),
    'cancelled by the caller stays cancelled',
  );
});

test('a read that waits behind others does not stall while those move', async () => {
  let calls = 0;
  const inner = source(async (...read) => ticking(calls++ === 0 ? 60 : 1200, calls === 1 ? 20 : 1).read(FILE, ...read));
  const transport = withStallTimer(inner, stallAfter(1000));
  await Promise.all([transport.read(FILE, 0, new Uint8Array(20)), transport.read(FILE, 0, new Uint8Array(20))]);
});

test('no more reads under way than the limit; those that wait can be cancelled', async () => {
  let under = 0;
  let most = 0;
  const transport = withLimit(
    source(async () => {
      most = Math.max(most, ++under);
      await sleep(5);
      under--;
    }),
    new ConcurrencyControl(concurrencyBounds(3, true)),
  );
  const read = (signal?: AbortSignal): Promise<void> =>
    transport.read(FILE, 0, new Uint8Array(1), signal === undefined ? {} : { signal });
  const reads = Array.from({ length: 10 }, () => read());
  await assert.rejects(read(AbortSignal.timeout(1)), hasCode('CANCELLED'));
  await Promise.all(reads);
  assert.equal(most, 3);
  const controller = new AbortController();
  const begun = read(controller.signal);
  await sleep(1);
  controller.abort();
  await begun;
  assert.equal(under, 0, 'a read that has begun settles when its transport says so');
});

test('faults are the same for the same seed', async () => {
  const run = async (seed: number): Promise<string> => {
    const transport = withFaults(
      source(async () => {}),
      { seed, rate: 0.5 },
    );
    const results = await Promise.allSettled(
      Array.from({ length: 50 }, () => transport.read(FILE, 0, new Uint8Array(9))),
    );
    return results.map((result) => (result.status === 'fulfilled' ? 'ok' : String(result.reason))).join();
  };
  assert.equal(await run(1), await run(1));
  assert.notEqual(await run(1), await run(2));
});

test('URLs', async (t) => {
  const folder = makeFolder(t, {
    'x/a.parquet': Buffer.of(1),
    'x/b[1].parquet': Buffer.of(1),
    'y z.parquet': Buffer.of(1),
  });
  const pathOf = async (url: string): Promise<string> => (await openTransport(url)).path;
  assert.equal(await pathOf('rdma://h:1/year=2024/**/*.parquet'), 'year=2024/**/*.parquet');
  assert.equal(await pathOf('rdma://h/a?b/{c,d}/%25%20e f#g'), 'a?b/{c,d}/% e f#g');
  assert.equal(await pathOf('rdma://[::1]:7400'), '');
  assert.equal(await pathOf(`file://${folder}`), '');
  assert.equal(await pathOf(`file://${folder}/x/*.parquet`), '*.parquet');
  assert.equal(await pathOf(`file://${folder}/*/a.parquet`), '*/a.parquet');
  assert.equal(await pathOf(`file://${folder}/x/b[1].parquet`), 'b[1].parquet');
  assert.equal(await pathOf(`file://${folder}/y%20z.parquet`), 'y z.parquet');
  for (const url of [
    '',
    'x.parquet',
    'rdma://',
    'rdma://h:99999/',
    'rdma://h:x/',
    'file://x',
    'rdma://h/%',
    'ftp://h/x',
  ]) {
    await assert.rejects(openTransport(url), hasCode('BAD_URL'), url);
  }
  await assert.rejects(openTransport(`file://${folder}/none/a.parquet`), hasCode('NOT_FOUND'));
  const { transport, path } = await openTransport(`file://${folder}/y z.parquet`);
  assert.deepEqual(
    (await transport.list(path)).map((file) => file.path),
    ['y z.parquet'],
  );
});
