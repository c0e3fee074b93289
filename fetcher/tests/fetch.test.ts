/** Requests into the pool: parts are told early, every byte is entered once, the slab goes back when all is over. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pool } from '../../decode/index.ts';
import { FetchError } from '../errors.ts';
import { type FetchPart, RangeFetch } from '../fetch.ts';
import { ledgerTotal, newLedger, wastedTotal } from '../ledger.ts';
import type { FileVersion, ReadOptions, Transport } from '../transport/transport.ts';

const FILE: FileVersion = { path: 'f', length: 1 << 20, etag: 'v', modifiedMs: 0 };

/** A transport whose one read is driven by the test. */
class ManualTransport implements Transport {
  into: Uint8Array | undefined;
  options: ReadOptions | undefined;
  #resolve = (): void => {};
  #reject = (_error: Error): void => {};

  async list(): Promise<readonly FileVersion[]> {
    return [FILE];
  }

  read(_file: FileVersion, _start: number, into: Uint8Array, options?: ReadOptions): Promise<void> {
    this.into = into;
    this.options = options;
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  arrive(bytes: number): void {
    this.into?.fill(7, 0, bytes);
    this.options?.onArrived?.(bytes);
  }

  finish(): void {
    this.#resolve();
  }

  fail(error: Error): void {
    this.#reject(error);
  }

  async close(): Promise<void> {}
}

function begin(ranges: readonly [start: number, end: number][]) {
  const pool = Pool.create(16 << 20);
  const ledger = newLedger();
  const transport = new ManualTransport();
  const arrivals: [part: number, bytes: number][] = [];
  const parts: FetchPart[] = ranges.map(([start, end], k) => ({
    start,
    end,
    arrived: (bytes) => arrivals.push([k, bytes]),
  }));
  const range = { start: ranges[0]![0], end: ranges.at(-1)![1] };
  let freed = 0;
  const signal = new AbortController().signal;
  const onFreed = (): void => void freed++;
  const fetch = RangeFetch.start({ pool, ledger, transport, file: FILE, range, parts, signal, onFreed })!;
  return { pool, ledger, transport, arrivals, parts, fetch, freed: () => freed };
}

test('a part is told as soon as its own bytes are there', async () => {
  const { transport, arrivals, parts, fetch, pool, ledger } = begin([
    [100, 200],
    [250, 300],
  ]);
  transport.arrive(60);
  transport.arrive(120);
  transport.arrive(160);
  assert.deepEqual(arrivals, [
    [0, 60],
    [0, 100],
    [1, 10],
  ]);
  transport.finish();
  assert.equal(await fetch.done, undefined);
  assert.deepEqual(arrivals.at(-1), [1, 50]);
  assert.ok(pool.usedBytes > 0);
  fetch.release(parts[0]!, 100, 'speculation');
  fetch.release(parts[1]!, 30, 'speculation');
  assert.equal(pool.usedBytes, 0);
  assert.deepEqual(ledger, { used: 130, wasted: { gap: 50, speculation: 20, cancelled: 0, evicted: 0 } });
  assert.equal(ledgerTotal(ledger), 200);
});

test('the slab stays until the transport is done with it, whatever was released', async () => {
  const { transport, parts, fetch, pool, ledger, freed } = begin([[0, 1000]]);
  transport.arrive(400);
  fetch.release(parts[0]!, 64, 'evicted');
  assert.equal(freed(), 0);
  transport.arrive(500);
  transport.fail(new FetchError('CANCELLED', 'given up'));
  assert.ok((await fetch.done) instanceof FetchError);
  assert.equal(freed(), 1);
  assert.equal(pool.usedBytes, 0);
  assert.equal(ledger.used, 64);
  assert.equal(ledger.wasted.evicted, 436);
  assert.equal(ledgerTotal(ledger), 500);
});

test('what landed of a failed read and was not consumed is cancelled, not speculation', async () => {
  const { transport, parts, fetch, ledger } = begin([[0, 1000]]);
  transport.arrive(300);
  transport.fail(new FetchError('LOST', 'the connection ended'));
  await fetch.done;
  fetch.release(parts[0]!, 100, 'speculation');
  assert.deepEqual(ledger, { used: 100, wasted: { gap: 0, speculation: 0, cancelled: 200, evicted: 0 } });
  assert.equal(wastedTotal(ledger), 200);
});

test('a part released twice is a bug that shows', () => {
  const { parts, fetch } = begin([[0, 10]]);
  fetch.release(parts[0]!, 10, 'speculation');
  assert.throws(() => fetch.release(parts[0]!, 10, 'speculation'), /twice/);
});

test('a request is as far from a border as it is in its file where that is asked for', async () => {
  const pool = Pool.create(16 << 20);
  const transport = new ManualTransport();
  const part: FetchPart = { start: 4100, end: 70_000, arrived: () => {} };
  const fetch = RangeFetch.start({
    ...{ pool, ledger: newLedger(), transport, file: FILE, range: part, parts: [part] },
    ...{ signal: new AbortController().signal, onFreed: () => {}, alignment: 4096 },
  })!;
  assert.equal(fetch.address % 4096, 4);
  assert.equal(transport.into!.byteOffset, fetch.address);
  assert.equal(transport.into!.byteLength, 65_900);
  transport.finish();
  await fetch.done;
  fetch.release(part, 65_900, 'speculation');
  assert.equal(pool.usedBytes, 0);
});

test('a request that does not fit in the pool is not begun', () => {
  const pool = Pool.create(8 << 20);
  const transport = new ManualTransport();
  const fetch = RangeFetch.start({
    pool,
    ledger: newLedger(),
    transport,
    file: FILE,
    range: { start: 0, end: 64 << 20 },
    parts: [],
    signal: new AbortController().signal,
    onFreed: () => {},
  });
  assert.equal(fetch, undefined);
  assert.equal(transport.into, undefined);
});
