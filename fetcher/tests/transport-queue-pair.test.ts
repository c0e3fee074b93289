/**
 * The queue pair alone, fed with frames byte by byte: states, refusals without side effect, one completion per request in
 * post order, and every answer that does not match its request.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { crc32 } from 'node:zlib';
import {
  decodeRequest,
  encodeClosed,
  encodePayloadHeader,
  FRAME_HEADER_BYTES,
  isProtocolError,
  REQUEST_BYTES,
  type Request,
  viewOf,
  WC,
} from '../../storage-server/protocol/index.ts';
import { QueuePair, type QueuePairLimits } from '../transport/queue-pair.ts';
import type { Completion, QueuePairState } from '../transport/requester.ts';
import { seededRandom } from './random.ts';
import { pattern } from './transport-fixtures.ts';

const LIMITS: QueuePairLimits = { queueDepth: 128, outstandingMax: 16, readBytesMax: 1 << 20, checksum: false };
const RKEY = 77;

class Bench {
  readonly completions: Completion[] = [];
  readonly requests: Request[] = [];
  readonly errors: string[] = [];
  onWire = 0;
  discarded = 0;
  readonly pair = new QueuePair({
    send: (bytes) => {
      for (let at = 0; at < bytes.byteLength; at += REQUEST_BYTES) this.requests.push(decodeRequest(viewOf(bytes), at));
    },
    onCompletion: (completion) => this.completions.push(completion),
    onError: (reason) => this.errors.push(reason),
    onPayload: (bytes, discarded) => {
      this.onWire += bytes;
      this.discarded += discarded;
    },
  });

  static ready(limits: Partial<QueuePairLimits> = {}): Bench {
    const bench = new Bench();
    assert.ok(bench.pair.modify('INIT'));
    assert.ok(bench.pair.modify('RTR', { ...LIMITS, ...limits }));
    assert.ok(bench.pair.modify('RTS'));
    return bench;
  }

  post(wrId: number, length = 10, into = new Uint8Array(length)): string {
    return this.pair.post({ wrId, rkey: RKEY, address: wrId * 1000, into });
  }

  /** Delivers bytes as a socket would: as much as the target takes, at most `step` at a time. */
  deliver(bytes: Uint8Array, step = Number.POSITIVE_INFINITY): void {
    for (let at = 0; at < bytes.byteLength; ) {
      const target = this.pair.target();
      assert.ok(target.byteLength > 0);
      const taken = Math.min(step, target.byteLength, bytes.byteLength - at);
      target.set(bytes.subarray(at, at + taken));
      this.pair.landed(taken);
      at += taken;
    }
  }

  statuses(): [number, number][] {
    return this.completions.map(({ wrId, status }) => [wrId, status]);
  }
}

interface FrameFields {
  wrId?: number;
  offset?: number;
  last?: boolean;
  status?: number;
  payload?: Uint8Array;
  crc?: number;
}

function frame({
  wrId = 1,
  offset = 0,
  last = true,
  status = 0,
  payload = new Uint8Array(0),
  crc = 0,
}: FrameFields): Uint8Array {
  const bytes = new Uint8Array(FRAME_HEADER_BYTES + payload.byteLength);
  const fields = { last, payloadBytes: payload.byteLength, wrLow: wrId, wrHigh: 0, offset, status, crc };
  encodePayloadHeader(viewOf(bytes), 0, fields);
  bytes.set(payload, FRAME_HEADER_BYTES);
  return bytes;
}

const ten = pattern(10, 1);

test('invalid transitions are refused and change nothing', () => {
  const path: QueuePairState[] = ['RESET', 'INIT', 'RTR', 'RTS', 'ERR'];
  for (const [at, state] of path.entries()) {
    for (const to of path) {
      const bench = new Bench();
      for (const step of path.slice(1, at + 1)) assert.ok(bench.pair.modify(step, step === 'RTR' ? LIMITS : undefined));
      assert.equal(bench.pair.state, state);
      const legal = state !== 'ERR' && (to === 'ERR' || to === path[at + 1]);
      assert.equal(bench.pair.modify(to, to === 'RTR' ? LIMITS : undefined), legal, `${state} to ${to}`);
      assert.equal(bench.pair.state, legal ? to : state);
    }
  }
  const bench = new Bench();
  bench.pair.modify('INIT');
  assert.equal(bench.pair.modify('RTR'), false, 'RTR needs the limits of the other end');
});

test('post in RESET, INIT, RTR and ERR is refused without side effect', async () => {
  const bench = new Bench();
  assert.equal(bench.post(1), 'WRONG_STATE');
  bench.pair.modify('INIT');
  assert.equal(bench.post(1), 'WRONG_STATE');
  bench.pair.modify('RTR', LIMITS);
  assert.equal(bench.post(1), 'WRONG_STATE');
  bench.pair.modify('RTS');
  bench.pair.modify('ERR');
  assert.equal(bench.post(1), 'WRONG_STATE');
  await Promise.resolve();
  assert.deepEqual([bench.requests, bench.completions, bench.pair.depth], [[], [], 0]);
});

test('malformed work requests are refused without side effect', async () => {
  const bench = Bench.ready();
  const good = { wrId: 1, rkey: RKEY, address: 0, into: new Uint8Array(10) };
  for (const bad of [
    { wrId: -1 },
    { wrId: 2 ** 53 },
    { address: -1 },
    { address: 2 ** 53 - 5 },
    { address: Number.NaN },
    { into: new Uint8Array((1 << 20) + 1) },
  ]) {
    assert.equal(bench.pair.post({ ...good, ...bad }), 'BAD_REQUEST', JSON.stringify(bad).slice(0, 80));
  }
  assert.equal(bench.pair.post(good), 'POSTED');
  assert.equal(bench.pair.post(good), 'BAD_REQUEST', 'a wr_id that is out already');
  await Promise.resolve();
  assert.equal(bench.requests.length, 1);
});

test('full submission queue', async () => {
  const bench = Bench.ready();
  for (let wrId = 0; wrId < 128; wrId++) assert.equal(bench.post(wrId), 'POSTED');
  assert.equal(bench.post(128), 'QUEUE_FULL');
  await Promise.resolve();
  assert.equal(bench.requests.length, 16, 'no more on the wire than may be outstanding');
  bench.deliver(frame({ wrId: 0, payload: ten }));
  await Promise.resolve();
  assert.equal(bench.requests.length, 17);
  assert.equal(bench.post(128), 'POSTED');
  assert.equal(bench.post(129), 'QUEUE_FULL');
});

test('flush errors in order', async () => {
  const bench = Bench.ready();
  for (let wrId = 0; wrId < 40; wrId++) bench.post(wrId);
  await Promise.resolve();
  bench.deliver(frame({ wrId: 0, payload: ten }));
  bench.deliver(frame({ wrId: 1, status: WC.REM_ACCESS_ERR, payload: Buffer.from('no such key') }));
  const flushed = Array.from({ length: 38 }, (_, i) => [i + 2, WC.WR_FLUSH_ERR]);
  assert.deepEqual(bench.statuses(), [[0, WC.SUCCESS], [1, WC.REM_ACCESS_ERR], ...flushed]);
  assert.match(bench.completions[1]!.reason, /^no such key$/);
  assert.equal(bench.pair.state, 'ERR');
  assert.equal(bench.errors.length, 1);
});

test('a burst of completions larger than anyone waits for loses none and doubles none', async () => {
  const bench = Bench.ready({ outstandingMax: 128 });
  for (let wrId = 0; wrId < 128; wrId++) bench.post(wrId);
  await Promise.resolve();
  bench.deliver(Buffer.concat(Array.from({ length: 128 }, (_, wrId) => frame({ wrId, payload: ten }))));
  assert.deepEqual(
    bench.statuses(),
    Array.from({ length: 128 }, (_, wrId) => [wrId, WC.SUCCESS]),
  );
});

test('payload frames interleave, completions do not', async () => {
  const [one, two] = [pattern(100_000, 1), pattern(100_000, 2)];
  const stream = Buffer.concat([
    frame({ wrId: 1, payload: one.subarray(0, 60_000), last: false }),
    frame({ wrId: 2, payload: two.subarray(0, 99_999), last: false }),
    frame({ wrId: 1, payload: one.subarray(60_000), offset: 60_000 }),
    frame({ wrId: 2, payload: two.subarray(99_999), offset: 99_999 }),
  ]);
  for (const step of [Number.POSITIVE_INFINITY, 7919, 31, 1]) {
    const bench = Bench.ready();
    const into = [new Uint8Array(100_000), new Uint8Array(100_000)] as const;
    bench.post(1, 0, into[0]);
    bench.post(2, 0, into[1]);
    await Promise.resolve();
    bench.deliver(stream, step);
    assert.deepEqual(bench.statuses(), [
      [1, WC.SUCCESS],
      [2, WC.SUCCESS],
    ]);
    assert.ok(one.equals(into[0]) && two.equals(into[1]));
    assert.equal(bench.onWire, 200_000);
  }
  const bench = Bench.ready();
  bench.post(1);
  bench.post(2);
  await Promise.resolve();
  bench.deliver(frame({ wrId: 2, payload: ten }));
  assert.deepEqual(bench.statuses(), [
    [1, WC.BAD_RESP_ERR],
    [2, WC.WR_FLUSH_ERR],
  ]);
});

test('answers that do not match their request', async () => {
  const cases: Record<string, FrameFields> = {
    'nobody asked': { wrId: 9, payload: ten },
    'posted but not sent yet': { wrId: 30, payload: ten },
    'too long': { payload: pattern(11, 1) },
    'too short': { payload: ten.subarray(1) },
    'not at its start': { payload: ten.subarray(1), offset: 1 },
    'beyond its end': { payload: ten.subarray(0, 1), offset: 10 },
    'all bytes, but not the last frame': { payload: ten, last: false },
    'empty completion of a READ that is not': {},
  };
  for (const [name, fields] of Object.entries(cases)) {
    const bench = Bench.ready();
    for (let wrId = 1; wrId <= 17; wrId++) bench.post(wrId === 17 ? 30 : wrId);
    await Promise.resolve();
    bench.deliver(frame(fields).subarray(0, FRAME_HEADER_BYTES));
    assert.deepEqual(bench.statuses()[0], [1, WC.BAD_RESP_ERR], name);
    assert.equal(bench.completions.length, 17, name);
  }
});

test('checksums: bytes count as landed when they are proved, and damage is an error', async () => {
  const bench = Bench.ready({ checksum: true });
  const told: number[] = [];
  const into = new Uint8Array(10);
  bench.pair.post({ wrId: 1, rkey: RKEY, address: 0, into, onLanded: (bytes) => told.push(bytes) });
  await Promise.resolve();
  const [front, rear] = [ten.subarray(0, 6), ten.subarray(6)];
  bench.deliver(frame({ payload: front, last: false, crc: crc32(front) }), 3);
  assert.deepEqual(told, [6]);
  bench.deliver(frame({ payload: rear, offset: 6, crc: crc32(rear) ^ 1 }), 3);
  assert.deepEqual(told, [6]);
  assert.deepEqual(bench.statuses(), [[1, WC.BAD_RESP_ERR]]);
  assert.equal(bench.completions[0]!.landed, 10);
});

test('the goodbye of a server flushes what is out', async () => {
  const bench = Bench.ready();
  bench.post(1);
  bench.post(2);
  await Promise.resolve();
  bench.deliver(encodeClosed());
  assert.deepEqual(bench.statuses(), [
    [1, WC.WR_FLUSH_ERR],
    [2, WC.WR_FLUSH_ERR],
  ]);
});

test('events that are not known are skipped', async () => {
  const bench = Bench.ready();
  bench.post(1);
  await Promise.resolve();
  const event = frame({ wrId: 0, last: false, status: 99, payload: pattern(4096, 5) });
  event[2] = 2;
  bench.deliver(Buffer.concat([event, frame({ payload: ten }), event]), 1000);
  assert.deepEqual(bench.statuses(), [[1, WC.SUCCESS]]);
  assert.equal(bench.onWire, 10);
});

test('an abandoned request: nothing more lands, its bytes are thrown away, the others go on', async () => {
  const bench = Bench.ready();
  const payload = pattern(200_000, 3);
  const into = new Uint8Array(200_000);
  bench.post(1, 0, into);
  bench.post(2);
  await Promise.resolve();
  const stream = frame({ payload });
  bench.deliver(stream.subarray(0, FRAME_HEADER_BYTES + 50_000));
  assert.ok(payload.subarray(0, 50_000).equals(into.subarray(0, 50_000)));
  const armed = bench.pair.target();
  assert.equal(armed.buffer, into.buffer, 'the payload goes straight to its destination');
  let free = false;
  const onFree = (): void => {
    free = true;
  };
  assert.equal(bench.pair.abandon(1, onFree), 50_000);
  assert.equal(free, false, 'the socket still holds the destination');
  armed.set(payload.subarray(50_000, 50_100));
  bench.pair.landed(100);
  assert.equal(free, true);
  into.fill(0);
  bench.deliver(stream.subarray(FRAME_HEADER_BYTES + 50_100), 1 << 16);
  bench.deliver(frame({ wrId: 2, payload: ten }));
  assert.ok(into.every((byte) => byte === 0));
  assert.deepEqual(bench.statuses(), [
    [1, WC.SUCCESS],
    [2, WC.SUCCESS],
  ]);
  assert.deepEqual([bench.onWire, bench.discarded], [200_010, 150_000]);
});

test('a request abandoned before it was sent never is, and completes in its turn', async () => {
  const bench = Bench.ready({ outstandingMax: 1 });
  for (const wrId of [1, 2, 3]) bench.post(wrId);
  await Promise.resolve();
  bench.pair.abandon(2, () => {});
  assert.deepEqual(bench.statuses(), []);
  bench.deliver(frame({ payload: ten }));
  await Promise.resolve();
  bench.deliver(frame({ wrId: 3, payload: ten }));
  assert.deepEqual(bench.statuses(), [
    [1, WC.SUCCESS],
    [2, WC.WR_FLUSH_ERR],
    [3, WC.SUCCESS],
  ]);
  assert.deepEqual(
    bench.requests.map(({ wrLow }) => wrLow),
    [1, 3],
  );
});

test('random frames and damage: each request completes once, in order, and success means the right bytes', async () => {
  const random = seededRandom();
  for (let round = 0; round < 400; round++) {
    const bench = Bench.ready({ outstandingMax: 64 });
    const wanted = Array.from({ length: 1 + random.below(20) }, (_, i) => ({
      payload: pattern(random.below(5) === 0 ? random.below(100_000) : random.below(300), i),
      into: new Uint8Array(0),
    }));
    for (const [wrId, want] of wanted.entries()) {
      want.into = new Uint8Array(want.payload.byteLength);
      assert.equal(bench.post(wrId, 0, want.into), 'POSTED');
    }
    await Promise.resolve();
    const frames = wanted.flatMap(({ payload }, wrId) => {
      const cut = payload.byteLength > 1 && random.below(2) === 0 ? 1 + random.below(payload.byteLength - 1) : 0;
      const rest = frame({ wrId, payload: payload.subarray(cut), offset: cut });
      return cut === 0 ? [rest] : [frame({ wrId, payload: payload.subarray(0, cut), last: false }), rest];
    });
    const stream = Buffer.concat(frames);
    const damaged = round % 2 === 1;
    // Damage to headers only: a flipped payload bit is the checksum's business.
    if (damaged) {
      const hit = random.below(frames.length);
      const at = Buffer.concat(frames.slice(0, hit)).byteLength + random.below(FRAME_HEADER_BYTES);
      stream[at]! ^= 1 << random.below(8);
    }
    try {
      bench.deliver(stream, 1 + random.below(70_000));
      if (!damaged) assert.equal(bench.completions.length, wanted.length);
    } catch (error) {
      assert.ok(isProtocolError(error), String(error));
    }
    bench.pair.fail(WC.FATAL_ERR, 'the end');
    assert.deepEqual(
      bench.completions.map(({ wrId }) => wrId),
      wanted.map((_, wrId) => wrId),
    );
    for (const { wrId, status } of bench.completions) {
      if (status === WC.SUCCESS) assert.ok(wanted[wrId]!.payload.equals(wanted[wrId]!.into));
    }
  }
});
