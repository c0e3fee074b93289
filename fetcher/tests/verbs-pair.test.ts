/** The queue pair over RDMA on a model of devices: cutting, flow control, order, errors, what is given up. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { WC } from '../../storage-server/protocol/index.ts';
import { ModelFabric, type ModelLimits } from '../../storage-server/tests/model-fabric.ts';
import type { VerbsDevice } from '../../storage-server/verbs/index.ts';
import { VERBS_READ_BYTES } from '../transport/limits.ts';
import type { Completion } from '../transport/requester.ts';
import { VerbsClient } from '../transport/verbs-client.ts';
import { VerbsPair, type VerbsPairOptions } from '../transport/verbs-pair.ts';
import { seededRandom } from './random.ts';
import { pattern } from './transport-fixtures.ts';

const REGION = pattern(3_000_000, 9);
const RKEY = 77;

interface Rig {
  readonly fabric: ModelFabric;
  readonly pair: VerbsPair;
  readonly client: VerbsClient;
  readonly server: VerbsDevice;
  readonly completions: Completion[];
  readonly errors: string[];
  readonly counts: { readsOut: number; completions: Map<number, number> };
  readonly payload: { bytes: number; discarded: number };
  post(wrId: number, address: number, into: Uint8Array, rkey?: number): string;
  settled(count: number): Promise<void>;
}

async function makeRig(
  t: TestContext,
  options: Partial<VerbsPairOptions> = {},
  limits: Partial<ModelLimits> = {},
): Promise<Rig> {
  const fabric = new ModelFabric();
  const server = await fabric.open('server')(undefined);
  const client = new VerbsClient(await fabric.open('client', limits)(undefined));
  const memory = server.allocate(REGION.byteLength);
  memory.view(0, REGION.byteLength).set(REGION);
  const registration = await server.registerForPeers(memory);
  const native = client.device.createQueuePair(64);
  const responder = server.createQueuePair(0);
  await responder.connect(native.endpoint);
  await native.connect(responder.endpoint);
  const completions: Completion[] = [];
  const errors: string[] = [];
  const payload = { bytes: 0, discarded: 0 };
  const counts = { readsOut: 0, completions: new Map<number, number>() };
  const pair = new VerbsPair(
    {
      client,
      native,
      readsOutMax: Math.min(native.endpoint.readsMax, responder.endpoint.readsMax),
      queueDepth: 16,
      readBytesMax: 1 << 20,
      stallMs: 60_000,
      busyPoll: false,
      ...options,
    },
    {
      onCompletion: (completion) => completions.push(completion),
      onError: (reason) => errors.push(reason),
      onPayload(bytes, discarded) {
        payload.bytes += bytes;
        payload.discarded += discarded;
      },
    },
    counts,
  );
  const { address, rkey } = registration;
  pair.serve(RKEY, { generation: new Uint8Array(16), rkey, address, length: REGION.byteLength });
  t.after(() => {
    pair.fail(WC.FATAL_ERR, 'the test is over');
    responder.destroy();
    client.close();
    registration.release();
    memory.free();
    server.close();
    assert.equal(counts.readsOut, 0);
  });
  return {
    ...{ fabric, pair, client, server, completions, errors, counts, payload },
    post: (wrId, at, into, key = RKEY) => pair.post({ wrId, rkey: key, address: at, into }),
    async settled(count) {
      const until = performance.now() + 60_000;
      while (completions.length < count) {
        assert.ok(performance.now() < until, `${completions.length} of ${count} completions`);
        await turn();
      }
    },
  };
}

const shared = (length: number): Uint8Array =>
  new Uint8Array(new SharedArrayBuffer(Math.max(length, 1 << 20)), 0, length);

const isRegion = (bytes: Uint8Array, at: number): boolean =>
  Buffer.from(bytes).equals(REGION.subarray(at, at + bytes.byteLength));

test('a large READ is cut, told in order, and never more is out than the ends allow', async (t) => {
  const { fabric, pair, completions, settled } = await makeRig(t, {}, { readsMax: 3 });
  const into = shared(1 << 20);
  const landed: number[] = [];
  pair.post({ wrId: 5, rkey: RKEY, address: 1001, into, onLanded: (bytes) => landed.push(bytes) });
  await settled(1);
  assert.deepEqual(completions, [{ wrId: 5, status: WC.SUCCESS, reason: '', stale: false, landed: 1 << 20 }]);
  assert.ok(isRegion(into, 1001));
  assert.deepEqual(
    landed,
    [1, 2, 3, 4].map((n) => n * VERBS_READ_BYTES),
  );
  assert.equal(fabric.outMax, 3);
});

test('READs are no larger than the device takes', async (t) => {
  const { fabric, post, settled } = await makeRig(t, {}, { messageBytesMax: 10_000 });
  const into = new Uint8Array(100_001);
  assert.equal(post(1, 7, into), 'POSTED');
  await settled(1);
  assert.ok(isRegion(into, 7));
  assert.equal(fabric.reads, 11);
});

test('completions come in the order of the requests, of registered and of copied memory, empty ones too', async (t) => {
  const { post, completions, settled, payload } = await makeRig(t);
  const buffers = Array.from({ length: 16 }, (_, i) =>
    i % 3 === 0 ? shared(300_000) : new Uint8Array(i % 3 === 1 ? 0 : 300_000),
  );
  for (const [i, into] of buffers.entries()) assert.equal(post(i, i * 1000, into), 'POSTED');
  assert.equal(post(99, 0, new Uint8Array(1)), 'QUEUE_FULL');
  await settled(16);
  assert.deepEqual(
    completions.map(({ wrId }) => wrId),
    buffers.map((_, i) => i),
  );
  for (const [i, into] of buffers.entries()) assert.ok(isRegion(into, i * 1000), `request ${i}`);
  assert.deepEqual(payload, { bytes: 11 * 300_000, discarded: 0 });
});

test('what makes no sense is refused and changes nothing', async (t) => {
  const { pair, post, completions } = await makeRig(t);
  assert.equal(post(1, -1, new Uint8Array(1)), 'BAD_REQUEST');
  assert.equal(post(1, 2 ** 53, new Uint8Array(1)), 'BAD_REQUEST');
  assert.equal(post(1.5, 0, new Uint8Array(1)), 'BAD_REQUEST');
  assert.equal(post(1, 0, new Uint8Array((1 << 20) + 1)), 'BAD_REQUEST');
  assert.deepEqual(completions, []);
  pair.fail(WC.WR_FLUSH_ERR, 'moved to ERR');
  assert.equal(post(1, 0, new Uint8Array(1)), 'WRONG_STATE');
});

test('a key or a range that nothing lies at fails in its turn, and no device sees it', async (t) => {
  for (const [at, rkey] of [
    [REGION.byteLength - 5, RKEY],
    [REGION.byteLength + 10, RKEY],
    [0, RKEY + 1],
  ] as const) {
    const { fabric, post, completions, errors, settled } = await makeRig(t);
    const before = new Uint8Array(500_000);
    post(1, 0, before);
    post(2, at, new Uint8Array(10), rkey);
    post(3, 0, new Uint8Array(10));
    await settled(3);
    assert.deepEqual(
      completions.map(({ wrId, status }) => [wrId, status]),
      [
        [1, WC.SUCCESS],
        [2, WC.REM_ACCESS_ERR],
        [3, WC.WR_FLUSH_ERR],
      ],
    );
    assert.ok(isRegion(before, 0));
    assert.equal(errors.length, 1);
    assert.equal(fabric.reads, 2);
  }
});

test('an error of the device: the oldest has its status, the others are flushed, nothing lands any more', async (t) => {
  for (const status of [WC.REM_ACCESS_ERR, WC.RETRY_EXC_ERR, WC.LOC_PROT_ERR, WC.REM_OP_ERR]) {
    const { fabric, pair, post, completions, counts, settled } = await makeRig(t);
    fabric.onRead = ({ id }) => (id === 3 ? status : undefined);
    const into = shared(1 << 20);
    for (let i = 0; i < 4; i++) post(i, i, into.subarray(i * 250_000, (i + 1) * 250_000));
    await settled(4);
    assert.deepEqual(
      completions.map((completion) => completion.status),
      [WC.SUCCESS, WC.SUCCESS, status, WC.WR_FLUSH_ERR],
    );
    assert.equal(pair.state, 'ERR');
    assert.equal(counts.completions.get(status), 1);
    const after = Buffer.from(into);
    for (let turns = 0; turns < 20; turns++) await turn();
    assert.ok(after.equals(Buffer.from(into)));
  }
});

test('the key of a generation that was replaced is told as stale', async (t) => {
  const { fabric, pair, post, completions, settled } = await makeRig(t);
  fabric.onRead = () => WC.REM_ACCESS_ERR;
  post(1, 0, new Uint8Array(100));
  pair.serve(RKEY + 1, { generation: new Uint8Array(16), rkey: 1, address: 4096, length: 100 });
  await settled(1);
  assert.deepEqual([completions[0]!.status, completions[0]!.stale], [WC.REM_ACCESS_ERR, true]);
});

test('a request that is given up: registered memory is free when nothing lands there any more, copied memory at once', async (t) => {
  const { pair, post, completions, payload, settled } = await makeRig(t, {}, { readsMax: 2 });
  const registered = shared(1 << 20);
  const copied = new Uint8Array(1 << 20);
  post(1, 0, registered);
  post(2, 0, copied);
  post(3, 0, new Uint8Array(1000));
  await turn();
  assert.ok(pair.outstanding > 0);
  const free: number[] = [];
  pair.abandon(1, () => free.push(1));
  pair.abandon(2, () => free.push(2));
  assert.deepEqual(free, [2]);
  copied.fill(0xee);
  await settled(3);
  assert.deepEqual(free, [2, 1]);
  registered.fill(0xee);
  for (let turns = 0; turns < 20; turns++) await turn();
  for (const bytes of [registered, copied]) assert.ok(bytes.every((byte) => byte === 0xee));
  assert.deepEqual(
    completions.map(({ wrId }) => wrId),
    [1, 2, 3],
  );
  assert.equal(completions[2]!.status, WC.SUCCESS);
  assert.ok(payload.discarded > 0 && payload.bytes < 2 << 20, 'what was not posted yet is not read');
});

test('a device that gives nothing is noticed', async (t) => {
  const { fabric, completions, post, settled } = await makeRig(t, { stallMs: 30 });
  fabric.onRead = () => 'never';
  post(1, 0, new Uint8Array(100));
  await settled(1);
  assert.equal(completions[0]!.status, WC.RESP_TIMEOUT_ERR);
});

test('memory is registered once, and not when it is small or may not be locked', async (t) => {
  const { client, post, settled } = await makeRig(t, {}, { lockedBytesMax: 9 * 2 ** 20 });
  const told: string[] = [];
  client.onUnregistered = (reason) => told.push(reason);
  const pool = new Uint8Array(new SharedArrayBuffer(4 * 2 ** 20));
  const tooLarge = new Uint8Array(new SharedArrayBuffer(8 * 2 ** 20));
  const small = new Uint8Array(new SharedArrayBuffer(1000));
  let wrId = 0;
  for (const memory of [pool, tooLarge, small, pool, tooLarge]) {
    const into = memory.subarray(memory.byteLength - 900, memory.byteLength - 400);
    post(++wrId, 123, into);
    await settled(wrId);
    assert.ok(isRegion(into, 123));
  }
  assert.equal(client.figures.registeredBytes, pool.byteLength);
  assert.equal(told.length, 1);
});

test('random requests, given up at random: each completes once, in order, and success means the right bytes', async (t) => {
  const random = seededRandom();
  for (const busyPoll of [false, true]) {
    const { pair, completions } = await makeRig(
      t,
      { busyPoll },
      { readsMax: 1 + random.below(16), messageBytesMax: 4096 + random.below(300_000) },
    );
    const pool = new Uint8Array(new SharedArrayBuffer(1 << 24));
    const posted = new Map<number, { into: Uint8Array; address: number; isGivenUp: boolean }>();
    let next = 0;
    for (let round = 0; round < 300; round++) {
      const length = random.below(5) === 0 ? random.below(600_000) : random.below(5000);
      const wrId = next;
      const slot = pool.subarray((wrId % 16) << 20, ((wrId % 16) << 20) + length);
      const into = random.below(2) === 0 ? slot : new Uint8Array(length);
      const address = random.below(REGION.byteLength - length);
      if (pair.post({ wrId, rkey: RKEY, address, into }) === 'POSTED') {
        posted.set(wrId, { into, address, isGivenUp: false });
        next++;
      }
      if (random.below(8) === 0 && next > 0) {
        const victim = random.below(next);
        posted.get(victim)!.isGivenUp = true;
        pair.abandon(victim, () => {});
      }
      if (random.below(3) === 0) await turn();
      for (const { wrId: id, status } of completions.slice(-16)) {
        const { into: bytes, address: at, isGivenUp } = posted.get(id)!;
        if (status === WC.SUCCESS && !isGivenUp && id > next - 16) assert.ok(isRegion(bytes, at), `request ${id}`);
      }
    }
    while (completions.length < next) await turn();
    assert.deepEqual(
      completions.map(({ wrId }) => wrId),
      Array.from({ length: next }, (_, i) => i),
    );
  }
});
