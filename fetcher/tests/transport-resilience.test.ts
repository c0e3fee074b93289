/** What keeps reads going when sources are slow, busy or broken: limits that follow latencies, second requests, shared looks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { FetchError } from '../errors.ts';
import { ConcurrencyControl, concurrencyBounds } from '../transport/concurrency.ts';
import type { TransportEvent } from '../transport/events.ts';
import { LatencyWindow } from '../transport/latency-window.ts';
import { LATENCIES_KEPT, LATENCIES_MIN, STALL_FACTOR } from '../transport/limits.ts';
import { openTransport } from '../transport/open-transport.ts';
import { ProgressLimit } from '../transport/progress-limit.ts';
import { type FileVersion, newTransportCounters, type ReadOptions, type Transport } from '../transport/transport.ts';
import { withHedge } from '../transport/with-hedge.ts';
import { withRetry } from '../transport/with-retry.ts';
import { withSharedLooks } from '../transport/with-shared-looks.ts';
import { withStallTimer } from '../transport/with-stall-timer.ts';
import { seededRandom } from './random.ts';
import { makeFolder, pattern } from './transport-fixtures.ts';
import { startWebServer } from './web-server.ts';

const BYTES = pattern(100_000, 11);
const FILE: FileVersion = { path: 'f', length: BYTES.length, etag: 'e', modifiedMs: 0 };

type Read = (start: number, into: Uint8Array, options: ReadOptions) => Promise<void>;

function source(read: Read): Transport {
  return {
    list: async () => [FILE],
    read: (_file, start, into, options = {}) => read(start, into, options),
    close: async () => {},
  };
}

const hasCode =
  (code: string, text = /(?:)/) =>
  (error: unknown): boolean =>
    error instanceof FetchError && error.code === code && text.test(error.message);

function known(milliseconds: number): LatencyWindow {
  const latencies = new LatencyWindow();
  for (let i = 0; i < LATENCIES_MIN; i++) latencies.observe(milliseconds);
  return latencies;
}

test('latencies: of the recent past, once enough are known', () => {
  const latencies = new LatencyWindow();
  for (let i = 1; i < LATENCIES_MIN; i++) latencies.observe(i);
  assert.equal(latencies.quantile(0.5), undefined);
  for (let i = 0; i < LATENCIES_KEPT; i++) latencies.observe(i);
  assert.equal(latencies.quantile(0), 0);
  assert.equal(latencies.quantile(0.5), LATENCIES_KEPT / 2);
  assert.equal(latencies.quantile(1), LATENCIES_KEPT - 1);
  for (let i = 0; i < LATENCIES_KEPT; i++) latencies.observe(7);
  assert.deepEqual([latencies.quantile(0), latencies.quantile(1)], [7, 7]);
});

test('the progress limit follows latencies, within floor and cap, and doubles with each stall until bytes come', () => {
  const limit = new ProgressLimit(known(100), 20_000, 50);
  assert.equal(limit.milliseconds, STALL_FACTOR * 100);
  for (let i = 1; i <= 3; i++) {
    const before = limit.milliseconds;
    limit.stalled(before);
    // a read that was allowed less says nothing new
    limit.stalled(before / 2);
    assert.equal(limit.milliseconds, STALL_FACTOR * 100 * 2 ** i);
  }
  for (let i = 0; i < 10; i++) limit.stalled(limit.milliseconds);
  assert.equal(limit.milliseconds, 20_000);
  limit.arrived(100);
  assert.equal(limit.milliseconds, STALL_FACTOR * 100);
  assert.equal(new ProgressLimit(known(1), 20_000, 50).milliseconds, 50);
  assert.equal(new ProgressLimit(known(1), 20, 50).milliseconds, 20, 'the cap wins over the floor');
  assert.equal(new ProgressLimit(known(60_000), 20_000, 50).milliseconds, 20_000);
  assert.equal(new ProgressLimit(new LatencyWindow(), 20_000, 50).milliseconds, 20_000, 'nothing known yet');
});

test('a read stalls after the limit that latencies give, not after the cap', async () => {
  const events: TransportEvent[] = [];
  const silent = source(async (_start, _into, { signal }) => {
    await new Promise((resolve) => signal!.addEventListener('abort', resolve));
    throw new FetchError('CANCELLED', 'cancelled');
  });
  const limit = new ProgressLimit(known(1), 3_600_000, 30);
  const timed = withStallTimer(silent, { limit, isApart: true, tell: (event) => events.push(event) });
  await assert.rejects(timed.read(FILE, 0, new Uint8Array(9)), hasCode('STALLED', /no bytes for 30 ms/));
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ['stall'],
  );
});

test('a read over a connection of its own stalls although others move', async () => {
  const over = new AbortController();
  const inner = source(async (start, into, { signal, onArrived }) => {
    for (let i = 1; !signal!.aborted && !over.signal.aborted; i++) {
      await sleep(5);
      if (start === 0) onArrived?.(Math.min(i, into.byteLength));
    }
    if (signal!.aborted) throw new FetchError('CANCELLED', 'cancelled');
  });
  const limit = new ProgressLimit(new LatencyWindow(), 300);
  const timed = withStallTimer(inner, { limit, isApart: true, paceBytesPerSecond: 0 });
  const moving = timed.read(FILE, 0, new Uint8Array(100_000));
  await assert.rejects(timed.read(FILE, 1, new Uint8Array(1)), hasCode('STALLED'));
  over.abort();
  await moving;
});

test('a source that drips is given up, each attempt in its time', async () => {
  let calls = 0;
  const drip = source(async (_start, into, { signal, onArrived }) => {
    calls++;
    for (let i = 1; i <= into.byteLength; i++) {
      await sleep(10);
      if (signal?.aborted) throw new FetchError('CANCELLED', 'cancelled');
      onArrived?.(i);
    }
  });
  const limit = new ProgressLimit(new LatencyWindow(), 300);
  const counters = newTransportCounters();
  const transport = withRetry(withStallTimer(drip, { limit, isApart: true }), counters, {
    attempts: 2,
    baseMs: 0,
    capMs: 0,
  });
  const read = transport.read(FILE, 0, new Uint8Array(50_000));
  await assert.rejects(
    read,
    hasCode('STALLED', /(fewer than \d+ bytes a second|no bytes for).*gave up after 2 attempts/),
  );
  assert.equal(calls, 2);
  assert.deepEqual([...counters.failures], [['STALLED', 2]]);
  assert.equal(counters.resumes, 1);
});

/** A server whose answers take `baseMs` up to `capacity` at a time, in proportion more beyond, and are busy beyond `most`. */
function simulate(
  control: ConcurrencyControl,
  rounds: number,
  capacity: number,
  most: number,
  baseMs: number,
): number[] {
  const limits: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const under = control.limit;
    const era = control.began();
    for (let i = 0; i < under; i++) {
      const latencyMs = baseMs * Math.max(1, under / capacity);
      control.ended(era, { how: i < most ? 'good' : 'busy', latencyMs, othersWait: true });
    }
    limits.push(control.limit);
  }
  return limits;
}

test('concurrency rises while reads wait, to its bound', () => {
  const changes: string[] = [];
  const control = new ConcurrencyControl(concurrencyBounds(8), (from, to, why) => changes.push(`${from}-${to} ${why}`));
  const limits = simulate(control, 100, 1000, 1000, 10);
  assert.equal(limits.at(-1), 64);
  assert.ok(changes.every((change) => change.endsWith('demand')));
  const idle = new ConcurrencyControl(concurrencyBounds(8));
  for (let i = 0; i < 1000; i++) idle.ended(idle.began(), { how: 'good', latencyMs: 1, othersWait: false });
  assert.equal(idle.limit, 8, 'nobody waits');
});

test('concurrency halves once for each time that the source is busy, to one, and comes back', () => {
  const control = new ConcurrencyControl(concurrencyBounds());
  const era = control.began();
  const busy = { how: 'busy', latencyMs: undefined, othersWait: true } as const;
  for (let i = 0; i < 32; i++) control.ended(era, busy);
  assert.equal(control.limit, 16, 'one storm, one step');
  for (let i = 0; i < 10; i++) control.ended(control.began(), busy);
  assert.equal(control.limit, 1);
  control.ended(control.began(), { ...busy, how: 'stalled' });
  assert.equal(control.limit, 1);
  simulate(control, 100, 1000, 1000, 10);
  assert.equal(control.limit, 64);
});

test('concurrency stays around what a server takes that refuses more', () => {
  const control = new ConcurrencyControl(concurrencyBounds());
  const limits = simulate(control, 400, 1000, 20, 10).slice(50);
  assert.ok(Math.max(...limits) <= 21 && Math.min(...limits) >= 9, String(limits));
});

test('concurrency falls when first bytes take far longer than they did, and no further than slowness is worth', () => {
  const control = new ConcurrencyControl(concurrencyBounds());
  simulate(control, 20, 1000, 1000, 10);
  const before = control.limit;
  for (let i = 0; i < 20; i++) simulate(control, 1, 1000, 1000, 1000);
  assert.ok(control.limit < before, 'a server that has become slow');
  const slow = new ConcurrencyControl(concurrencyBounds());
  simulate(slow, 3, 1000, 1000, 1);
  simulate(slow, 1000, 0.01, 1000, 100);
  assert.ok(slow.limit >= 8, String(slow.limit));
  const fixed = new ConcurrencyControl(concurrencyBounds(3, true));
  simulate(fixed, 50, 1, 1, 10);
  assert.equal(fixed.limit, 3);
});

test('a late read is asked for again, what comes first counts, and the other one is cancelled', async () => {
  const counters = newTransportCounters();
  const events: TransportEvent[] = [];
  const cancelled: number[] = [];
  let calls = 0;
  const inner = source(async (start, into, { signal, onArrived }) => {
    const call = calls++;
    // the first brings 100 bytes and then nothing
    const bytes = call === 0 ? 100 : into.byteLength;
    into.set(BYTES.subarray(start, start + bytes));
    counters.bytesOnWire += bytes;
    onArrived?.(bytes);
    if (call > 0) return;
    await new Promise((resolve) => signal!.addEventListener('abort', resolve));
    cancelled.push(call);
    throw new FetchError('CANCELLED', 'cancelled');
  });
  const rules = { afterMs: () => 5, share: 1, burst: 1 };
  const transport = withHedge(inner, rules, counters, (event) => events.push(event));
  const into = new Uint8Array(1000);
  const told: number[] = [];
  await transport.read(FILE, 50, into, { onArrived: (bytes) => told.push(bytes) });
  assert.ok(BYTES.subarray(50, 1050).equals(into));
  assert.deepEqual(told, [100, 1000]);
  assert.deepEqual([calls, cancelled], [2, [0]]);
  await sleep(1);
  const { hedges, hedgesWon, bytesHedged, bytesDiscarded, bytesOnWire } = counters;
  assert.deepEqual([hedges, hedgesWon, bytesHedged, bytesDiscarded, bytesOnWire], [1, 1, 0, 0, 1000]);
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ['hedge', 'hedge-ended'],
  );
});

test('second requests stay in their budget', async () => {
  const counters = newTransportCounters();
  const inner = source(async (start, into, { onArrived }) => {
    await sleep(4);
    into.set(BYTES.subarray(start, start + into.byteLength));
    onArrived?.(into.byteLength);
  });
  const transport = withHedge(inner, { afterMs: () => 0, share: 0.1, burst: 2 }, counters);
  for (let i = 0; i < 40; i++) await transport.read(FILE, 0, new Uint8Array(10));
  assert.ok(counters.hedges >= 1 && counters.hedges <= 4, String(counters.hedges));
  const unknown = newTransportCounters();
  const quiet = withHedge(inner, { afterMs: () => undefined, share: 1, burst: 9 }, unknown);
  await quiet.read(FILE, 0, new Uint8Array(10));
  assert.equal(unknown.hedges, 0, 'nothing is late before it is known what usual is');
});

test('second requests at random, with failures and damage of the loser: exact bytes or an error, and the books add up', async () => {
  const random = seededRandom();
  const counters = newTransportCounters();
  let under = 0;
  const inner = source(async (start, into, { signal, onArrived }) => {
    under++;
    try {
      const pieces = 1 + random.below(4);
      const outcome = random.below(6);
      for (let i = 1; i <= pieces; i++) {
        if (random.below(3) === 0) await sleep(random.below(12));
        if (signal?.aborted) throw new FetchError('CANCELLED', 'cancelled');
        if (outcome === 0 && i === pieces) {
          // what fails may have left anything behind what it told
          into.fill(0xee, Math.floor((into.byteLength * (i - 1)) / pieces));
          throw new FetchError('LOST', 'gone', { retryable: true });
        }
        const bytes = Math.floor((into.byteLength * i) / pieces);
        const before = Math.floor((into.byteLength * (i - 1)) / pieces);
        into.set(BYTES.subarray(start + before, start + bytes), before);
        counters.bytesOnWire += bytes - before;
        if (bytes > before) onArrived?.(bytes);
      }
    } finally {
      under--;
    }
  });
  const transport = withHedge(inner, { afterMs: () => 3, share: 0.8, burst: 20 }, counters);
  let arrived = 0;
  await Promise.all(
    Array.from({ length: 150 }, async (_, i) => {
      await sleep(random.below(200));
      const start = random.below(BYTES.length);
      const into = new Uint8Array(Math.min(1 + random.below(20_000), BYTES.length - start));
      const controller = new AbortController();
      if (i % 10 === 0) setTimeout(() => controller.abort(), random.below(10)).unref();
      let last = 0;
      try {
        await transport.read(FILE, start, into, {
          signal: controller.signal,
          onArrived: (bytes) => {
            assert.ok(bytes > last && bytes <= into.byteLength);
            assert.ok(
              BYTES.subarray(start + last, start + bytes).equals(into.subarray(last, bytes)),
              'wrong bytes told',
            );
            last = bytes;
          },
        });
        assert.ok(BYTES.subarray(start, start + into.byteLength).equals(into));
        into.fill(0x55);
        await sleep(20);
        assert.ok(
          into.every((byte) => byte === 0x55),
          'somebody wrote after the end',
        );
      } catch (error) {
        assert.ok(hasCode('LOST')(error) || (controller.signal.aborted && hasCode('CANCELLED')(error)), String(error));
      } finally {
        arrived += last;
      }
    }),
  );
  while (under > 0) await sleep(5);
  await sleep(1);
  assert.ok(counters.hedgesWon > 0 && counters.hedges > counters.hedgesWon, JSON.stringify(counters));
  assert.equal(counters.bytesOnWire, arrived + counters.bytesDiscarded);
});

test('who looks while a look is under way shares the next one, and gets nothing older than the question', async () => {
  let version = 0;
  let calls = 0;
  const inner: Transport = {
    list: async (prefix) => {
      calls++;
      const seen = version;
      await sleep(5);
      if (prefix === 'bad') throw new FetchError('SERVER', 'no');
      return [{ ...FILE, etag: `v${seen}` }];
    },
    find: async (path) => (await inner.list(path))[0],
    read: async () => {},
    close: async () => {},
  };
  const transport = withSharedLooks(inner);
  const first = transport.list('');
  version = 1;
  const later = await Promise.all(Array.from({ length: 20 }, () => transport.list('')));
  assert.equal((await first)[0]!.etag, 'v0');
  assert.ok(later.every(([file]) => file!.etag === 'v1'));
  assert.equal(calls, 2);
  version = 2;
  assert.equal((await transport.find!('f'))!.etag, 'v2');
  const failures = await Promise.allSettled(Array.from({ length: 5 }, () => transport.list('bad')));
  assert.ok(failures.every(({ status }) => status === 'rejected'));
  assert.equal(calls, 5);
});

test('connections of web servers are counted: made, and used again', async (t) => {
  const server = await startWebServer(t, makeFolder(t, { 'f.parquet': BYTES }));
  const events: TransportEvent[] = [];
  const { transport, counters } = await openTransport(`${server.origin}/`, { onEvent: (event) => events.push(event) });
  t.after(() => transport.close());
  const [file] = await transport.list('f.parquet');
  for (let i = 0; i < 10; i++) await transport.read(file!, i, new Uint8Array(1000));
  assert.equal(counters.connections, server.connections());
  assert.equal(counters.connections + counters.requestsReusing, counters.requests);
  assert.ok(counters.requestsReusing >= 1);
  assert.equal(events.filter(({ kind }) => kind === 'connected').length, counters.connections);
});

test('a redirect whose target has expired is asked for once, for all reads that find that out', async (t) => {
  let target = 'one';
  let asked = 0;
  const folder = makeFolder(t, { 'f.parquet': BYTES });
  const server = await startWebServer(t, folder, {
    intercept: (request, response) => {
      const url = new URL(request.url!, 'http://h');
      if (url.pathname !== '/f.parquet') return false;
      const given = url.searchParams.get('target');
      if (given === target) return false;
      if (given === null) asked++;
      response.writeHead(given === null ? 302 : 403, given === null ? { Location: `/f.parquet?target=${target}` } : {});
      response.end();
      return true;
    },
  });
  const { transport } = await openTransport(`${server.origin}/`);
  t.after(() => transport.close());
  const [file] = await transport.list('f.parquet');
  assert.equal(asked, 1);
  target = 'two';
  const intos = Array.from({ length: 20 }, () => new Uint8Array(1000));
  await Promise.all(intos.map((into, i) => transport.read(file!, i * 1000, into)));
  for (const [i, into] of intos.entries()) assert.ok(BYTES.subarray(i * 1000, (i + 1) * 1000).equals(into));
  assert.equal(asked, 2);
});
