/** Every nanosecond in one state and counted once, whoever moves the word and whoever reads when. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import {
  addStreamProfile,
  newStreamProfile,
  PROFILER_BYTES,
  StreamProfiler,
  StreamState,
  streamProfileSince,
  takeStreamProfile,
  utilisation,
  wallNs,
} from '../stream-profiler.ts';

const { BUSY, STARVED, STALLED, IDLE } = StreamState;

/** A profiler at an odd place of its memory, under a clock that is moved by hand. */
function makeProfiler() {
  const words = new BigInt64Array(new SharedArrayBuffer(PROFILER_BYTES * 3));
  const at = PROFILER_BYTES / 8;
  const time = { now: 1_000_000n };
  const clock = (): bigint => time.now;
  const profiler = new StreamProfiler(words, at, clock);
  profiler.reset();
  const pass = (ns: number): void => {
    time.now += BigInt(ns);
  };
  return { words, profiler, pass, take: () => takeStreamProfile(words, at, clock) };
}

test('time goes to the state it was spent in, beats to the wait before them', () => {
  const { profiler, pass, take } = makeProfiler();
  pass(5);
  profiler.enter(BUSY);
  pass(100);
  profiler.handOver(10);
  profiler.enter(STARVED);
  pass(40);
  profiler.enter(BUSY);
  pass(1);
  profiler.handOver(3);
  profiler.handOver(4);
  profiler.enter(STALLED);
  pass(7);
  profiler.enter(BUSY);
  profiler.handOver(0); // woken for nothing
  profiler.enter(STALLED);
  pass(2);
  profiler.enter(BUSY);
  profiler.handOver(1);
  assert.deepEqual(take(), {
    handshakeBeats: 18,
    starvedBeats: 1,
    stalledBeats: 1,
    idleBeats: 1,
    busyNs: 101,
    starvedNs: 40,
    stalledNs: 9,
    idleNs: 5,
  });
});

test('reading takes: time under way is read once, before the state has ended', () => {
  const { profiler, pass, take } = makeProfiler();
  profiler.enter(STARVED);
  pass(1000);
  assert.equal(take().starvedNs, 1000);
  assert.deepEqual(take(), newStreamProfile());
  pass(10);
  profiler.enter(BUSY);
  assert.equal(take().starvedNs, 10);
});

test('others change the state of a profiler that is free, and of no other', () => {
  const { profiler, pass, take } = makeProfiler();
  profiler.redirect(STARVED); // free from the start
  pass(10);
  profiler.redirect(IDLE);
  pass(20);
  profiler.enter(BUSY);
  profiler.redirect(STALLED);
  pass(30);
  profiler.enter(STARVED);
  profiler.redirect(IDLE);
  pass(40);
  profiler.enter(IDLE, true);
  profiler.redirect(STALLED);
  pass(50);
  profiler.enter(BUSY);
  profiler.handOver(2);
  const taken = take();
  assert.deepEqual([taken.busyNs, taken.starvedNs, taken.stalledNs, taken.idleNs], [30, 50, 50, 20]);
  assert.equal(taken.stalledBeats, 1);
});

test('random states, reads and redirections against a model', (context) => {
  const seed = Number(process.env.QANAT_SEED ?? Math.floor(Math.random() * 2 ** 31));
  context.diagnostic(`QANAT_SEED=${seed}`);
  let random = seed;
  const below = (bound: number): number => {
    random = (Math.imul(random, 1664525) + 1013904223) >>> 0;
    return Math.floor((random / 2 ** 32) * bound);
  };
  const { words, profiler, pass, take } = makeProfiler();
  const names = ['busyNs', 'starvedNs', 'stalledNs', 'idleNs'] as const;
  const expected = newStreamProfile();
  const total = newStreamProfile();
  let state: number = IDLE;
  let free = true;
  for (let k = 0; k < 20_000; k++) {
    const ns = below(3) === 0 ? 0 : below(1e9);
    pass(ns);
    expected[names[state]!] += ns;
    const next = below(4) as StreamState;
    switch (below(4)) {
      case 0:
        addStreamProfile(total, take());
        break;
      case 1:
        profiler.redirect(next);
        if (free) state = next;
        break;
      case 2: {
        const beats = below(1000);
        profiler.handOver(beats);
        expected.handshakeBeats += beats;
        break;
      }
      default:
        free = next !== BUSY && below(2) === 0;
        profiler.enter(next, free);
        state = next;
    }
  }
  addStreamProfile(total, take());
  for (const name of [...names, 'handshakeBeats'] as const) assert.equal(total[name], expected[name], name);
  const around = [...words].filter((_, k) => k < PROFILER_BYTES / 8 || k >= (PROFILER_BYTES / 8) * 2);
  assert.ok(
    around.every((word) => word === 0n),
    'nothing was written beside the registers',
  );
});

test('a thread that changes states and one that reads: together they have the wall time, exactly', async () => {
  const words = new BigInt64Array(new SharedArrayBuffer(PROFILER_BYTES));
  const clock = (): bigint => process.hrtime.bigint();
  new StreamProfiler(words, 0, clock).reset();
  const began = words[0]! >> 3n;
  const code = `
    import { workerData } from 'node:worker_threads';
    import { StreamProfiler } from ${JSON.stringify(new URL('../stream-profiler.ts', import.meta.url).href)};
    const profiler = new StreamProfiler(workerData, 0, () => process.hrtime.bigint());
    for (let k = 0; k < 100_000; k++) {
      profiler.enter(k & 3, (k & 3) === 3);
      profiler.handOver(1);
    }
  `;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`), { workerData: words });
  let running = true;
  const exited = new Promise<void>((resolve, reject) => {
    worker.once('error', reject);
    worker.once('exit', () => {
      running = false;
      resolve();
    });
  });
  const profiler = new StreamProfiler(words, 0, clock);
  const total = newStreamProfile();
  while (running) {
    for (let k = 0; k < 200; k++) {
      const taken = takeStreamProfile(words, 0, clock);
      assert.ok(
        Object.values(taken).every((amount) => amount >= 0),
        'nothing is ever taken back',
      );
      addStreamProfile(total, taken);
      profiler.redirect((k & 3) as StreamState);
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  await exited;
  addStreamProfile(total, takeStreamProfile(words, 0, clock));
  assert.equal(wallNs(total), Number((words[0]! >> 3n) - began));
  assert.equal(total.handshakeBeats, 100_000);
});

test('shares and differences', () => {
  assert.equal(utilisation(newStreamProfile()), 0);
  const before = { ...newStreamProfile(), busyNs: 10, idleNs: 5 };
  const now = { ...newStreamProfile(), busyNs: 40, idleNs: 15, handshakeBeats: 3 };
  const since = streamProfileSince(now, before);
  assert.deepEqual([since.busyNs, since.idleNs, since.handshakeBeats, wallNs(since)], [30, 10, 3, 40]);
  assert.equal(utilisation(since), 0.75);
});
