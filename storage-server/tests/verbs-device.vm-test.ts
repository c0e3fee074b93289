/**
 * The binding to libibverbs on real queue pairs: two devices of one process, one that answers and one that asks. Every
 * byte that lands is compared with a model, every error has its status, and the devices' own counters say which way the
 * bytes went.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { WC } from '../protocol/index.ts';
import {
  type NativeMemory,
  openVerbsDevice,
  type Registration,
  type RemoteRead,
  type VerbsDevice,
} from '../verbs/index.ts';
import { randomFrom } from './random.ts';
import { CLIENT_END, countedDuring, cutCable, endCounters, plugCable, SERVER_END } from './verbs-cable.ts';

const REGION_BYTES = 4 << 20;
const LOCAL_BYTES = 4 << 20;
/** Bytes of a packet on this path. */
const PACKET_BYTES = 4096;

/** Bytes that depend on their position: a misplaced one shows. */
function pattern(length: number, seed: number): Buffer {
  const words = Uint32Array.from({ length: length >>> 2 }, (_, i) => Math.imul(i + seed, 0x9e3779b1));
  return Buffer.from(words.buffer);
}

/** Whether nothing has been written to bytes that were filled with 0xee. */
const untouched = (bytes: Uint8Array): boolean => Buffer.alloc(bytes.byteLength, 0xee).equals(bytes);

interface Outcome {
  readonly id: number;
  readonly status: number;
}

/** A region with known bytes on one device, and memory with a queue pair to it on the other. */
class Pair {
  readonly server: VerbsDevice;
  readonly client: VerbsDevice;
  readonly region: Uint8Array;
  readonly remote: Registration;
  readonly into: Uint8Array;
  readonly local: Registration;
  readonly model: Buffer;
  readonly #ends: (() => void)[] = [];

  private constructor(
    server: VerbsDevice,
    client: VerbsDevice,
    region: NativeMemory,
    remote: Registration,
    model: Buffer,
  ) {
    this.server = server;
    this.client = client;
    this.region = region.view(0, REGION_BYTES);
    this.model = model;
    this.remote = remote;
    const into = client.allocate(LOCAL_BYTES);
    this.into = into.view(0, LOCAL_BYTES);
    this.local = client.registerForReads(into);
    this.#ends.push(
      () => this.remote.release(),
      () => this.local.release(),
      () => region.free(),
      () => into.free(),
      () => server.close(),
      () => client.close(),
    );
  }

  static async open(t: TestContext, seed = 1): Promise<Pair> {
    const server = await openVerbsDevice(SERVER_END.device);
    const region = server.allocate(REGION_BYTES);
    const model = pattern(REGION_BYTES, seed);
    region.view(0, REGION_BYTES).set(model);
    const remote = await server.registerForPeers(region);
    const pair = new Pair(server, await openVerbsDevice(CLIENT_END.device), region, remote, model);
    t.after(() => {
      for (const end of pair.#ends) end();
    });
    return pair;
  }

  async connect(depth = 16): Promise<Queue> {
    const queue = new Queue(this, depth);
    this.#ends.unshift(() => queue.end());
    await queue.connect();
    return queue;
  }
}

/** A connected queue pair, with every completion that it told. */
class Queue {
  readonly outcomes: Outcome[] = [];
  readonly #pair: Pair;
  readonly asking;
  readonly answering;
  #wake: () => void = () => {};
  #id = 0;

  constructor(pair: Pair, depth: number) {
    this.#pair = pair;
    this.answering = pair.server.createQueuePair(0);
    this.asking = pair.client.createQueuePair(depth);
  }

  async connect(): Promise<void> {
    await this.answering.connect(this.asking.endpoint);
    await this.asking.connect(this.answering.endpoint);
    this.asking.watch(() => {
      while (this.asking.poll((id, status) => this.outcomes.push({ id, status })) > 0);
      this.#wake();
    });
  }

  /** Posts a READ of region bytes; gives what `post` gave. Any part can be another, to see what comes of it. */
  post(start: number, length: number, at = 0, other: Partial<RemoteRead> = {}): number {
    const { remote, local } = this.#pair;
    return this.asking.post({
      id: ++this.#id,
      localAddress: local.address + at,
      lkey: local.lkey,
      remoteAddress: remote.address + start,
      rkey: remote.rkey,
      length,
      ...other,
    });
  }

  /** Waits until so many completions have been told in all. */
  async completed(count: number): Promise<void> {
    const until = performance.now() + 60_000;
    while (this.outcomes.length < count) {
      assert.ok(performance.now() < until, `${this.outcomes.length} of ${count} completions came`);
      await Promise.race([sleep(1000), new Promise<void>((resolve) => (this.#wake = resolve))]);
    }
  }

  /** One READ to its end: its status. */
  async read(start: number, length: number, at = 0, other: Partial<RemoteRead> = {}): Promise<number> {
    const before = this.outcomes.length;
    assert.equal(this.post(start, length, at, other), 0);
    await this.completed(before + 1);
    return this.outcomes[before]!.status;
  }

  get statuses(): number[] {
    return this.outcomes.map(({ status }) => status);
  }

  end(): void {
    this.asking.destroy();
    this.answering.destroy();
  }
}

test('the devices say what they are', async (t) => {
  const { server, client } = await Pair.open(t);
  for (const [device, end] of [
    [server, SERVER_END],
    [client, CLIENT_END],
  ] as const) {
    const { facts } = device;
    const { name, link, gidKind, mtuBytes } = facts;
    assert.deepEqual(
      { name, link, gidKind, mtuBytes },
      { name: end.device, link: 'Ethernet', gidKind: 'RoCE v2', mtuBytes: PACKET_BYTES },
    );
    assert.equal(facts.gid, `::ffff:${end.address}`);
    console.log(`# ${JSON.stringify(facts)}`);
  }
});

test('basic read, read to the last byte, large read; nothing but the destination is written to', async (t) => {
  const pair = await Pair.open(t);
  const queue = await pair.connect();
  for (const [start, length] of [
    [0, 1],
    [0, 4096],
    [1, 4095],
    [12_345, 70_001],
    [REGION_BYTES - 3, 3],
    [REGION_BYTES - (1 << 20), 1 << 20],
    [7, REGION_BYTES - 7 - 64],
  ] as const) {
    pair.into.fill(0xee);
    assert.equal(await queue.read(start, length, 32), WC.SUCCESS, `${length} bytes at ${start}`);
    assert.ok(pair.model.subarray(start, start + length).equals(pair.into.subarray(32, 32 + length)));
    assert.ok(untouched(pair.into.subarray(0, 32)));
    assert.ok(untouched(pair.into.subarray(32 + length)));
  }
});

test('the bytes go from device to device: their counters say so, and TCP has no part in it', async (t) => {
  const pair = await Pair.open(t);
  const queue = await pair.connect();
  const length = 2 << 20;
  const atServer = await countedDuring(SERVER_END, async () => {
    const atClient = await countedDuring(CLIENT_END, async () => {
      assert.equal(await queue.read(0, length), WC.SUCCESS);
    });
    assert.ok(atClient.rdmaReceived >= length / PACKET_BYTES, JSON.stringify(atClient));
    assert.ok(atClient.wireSent < length / 10, JSON.stringify(atClient));
  });
  console.log(`# ${length} bytes: ${JSON.stringify(atServer)}`);
  assert.ok(atServer.rdmaSent >= length / PACKET_BYTES, JSON.stringify(atServer));
  assert.ok(atServer.wireSent >= length, JSON.stringify(atServer));
});

test('one-sided: what the server stores is seen by the next READ, without a call of the server', async (t) => {
  const pair = await Pair.open(t);
  const queue = await pair.connect();
  for (const value of [1, 99, 255]) {
    pair.region[500] = value;
    assert.equal(await queue.read(500, 1), WC.SUCCESS);
    assert.equal(pair.into[0], value);
  }
});

test('10,000 random READs against a model, completed in the order that they were posted in', async (t) => {
  const random = randomFrom('random READs');
  const pair = await Pair.open(t, random.below(1 << 30));
  const depth = 16;
  const queue = await pair.connect(depth);
  const slot = LOCAL_BYTES / depth;
  const out: { start: number; length: number; at: number }[] = [];
  let posted = 0;
  let checked = 0;
  while (checked < 10_000) {
    while (posted < 10_000 && posted - checked < depth) {
      const length = random.below(20) === 0 ? random.below(slot) : random.below(600);
      const read = { start: random.below(REGION_BYTES - length + 1), length, at: (posted % depth) * slot };
      assert.equal(queue.post(read.start, length, read.at), 0);
      out[posted++ % depth] = read;
    }
    await queue.completed(checked + 1);
    for (; checked < queue.outcomes.length; checked++) {
      assert.deepEqual(queue.outcomes[checked], { id: checked + 1, status: WC.SUCCESS });
      const { start, length, at } = out[checked % depth]!;
      const landed = pair.into.subarray(at, at + length);
      assert.ok(pair.model.subarray(start, start + length).equals(landed), `READ ${checked}: ${length} at ${start}`);
    }
  }
});

const ACCESS_ERRORS: readonly [string, number, (pair: Pair) => Partial<RemoteRead>][] = [
  [
    'one byte behind the region',
    WC.REM_ACCESS_ERR,
    ({ remote }) => ({ remoteAddress: remote.address + REGION_BYTES - 15 }),
  ],
  ['far behind it', WC.REM_ACCESS_ERR, ({ remote }) => ({ remoteAddress: remote.address + REGION_BYTES * 2 })],
  ['in front of it', WC.REM_ACCESS_ERR, ({ remote }) => ({ remoteAddress: remote.address - 4096 })],
  ['a wrong rkey', WC.REM_ACCESS_ERR, ({ remote }) => ({ rkey: remote.rkey ^ 0x5500 })],
  ['a local address outside', WC.LOC_PROT_ERR, ({ local }) => ({ localAddress: local.address + LOCAL_BYTES - 8 })],
  ['a wrong lkey', WC.LOC_PROT_ERR, ({ local }) => ({ lkey: local.lkey ^ 0x5500 })],
];

for (const [name, status, wrong] of ACCESS_ERRORS) {
  test(`${name}: status ${status}, what is queued behind is flushed, and a new queue pair reads on`, async (t) => {
    const pair = await Pair.open(t);
    const queue = await pair.connect();
    pair.into.fill(0xee);
    assert.equal(queue.post(0, 16, 0, wrong(pair)), 0);
    for (let k = 0; k < 3; k++) queue.post(0, 16, 1024);
    await queue.completed(1);
    await sleep(50);
    console.log(`# ${name}: statuses ${queue.statuses.join(' ')}`);
    assert.equal(queue.statuses[0], status);
    assert.ok(queue.statuses.slice(1).every((one) => one === WC.WR_FLUSH_ERR));
    assert.ok(untouched(pair.into.subarray(0, 16)));
    const fresh = await pair.connect();
    assert.equal(await fresh.read(100, 16), WC.SUCCESS);
    assert.ok(pair.model.subarray(100, 116).equals(pair.into.subarray(0, 16)));
  });
}

test('a key whose registration is released is refused, also to a queue pair that used it before', async (t) => {
  const pair = await Pair.open(t);
  const queue = await pair.connect();
  const memory = pair.server.allocate(8192);
  memory.view(0, 8192).fill(0x77);
  const registration = await pair.server.registerForPeers(memory);
  const place = { remoteAddress: registration.address, rkey: registration.rkey };
  assert.equal(await queue.read(0, 8192, 0, place), WC.SUCCESS);
  assert.ok(pair.into.subarray(0, 8192).every((byte) => byte === 0x77));
  registration.release();
  assert.equal(await queue.read(0, 8192, 0, place), WC.REM_ACCESS_ERR);
  memory.free();
});

test('queue overrun: what is posted beyond the depth is refused, and all the rest completes once', async (t) => {
  const pair = await Pair.open(t);
  const queue = await pair.connect(4);
  const answers = Array.from({ length: 200 }, (_, k) => queue.post(k * 64, 64, k * 64));
  const taken = answers.filter((answer) => answer === 0).length;
  assert.ok(taken >= 4 && taken < 200, `${taken} were taken`);
  assert.deepEqual(answers.slice(0, 4), [0, 0, 0, 0]);
  await queue.completed(taken);
  await sleep(50);
  assert.deepEqual(queue.statuses, new Array(taken).fill(WC.SUCCESS));
  assert.ok(pair.model.subarray(0, 256).equals(pair.into.subarray(0, 256)));
  assert.equal(await queue.read(0, 64), WC.SUCCESS);
});

test('a queue pair of the other end that is gone: no answer after all retries', async (t) => {
  const pair = await Pair.open(t);
  const queue = await pair.connect();
  assert.equal(await queue.read(0, 64), WC.SUCCESS);
  queue.answering.destroy();
  assert.equal(await queue.read(0, 64), WC.RETRY_EXC_ERR);
});

test('cable cut with READs under way: no answer after all retries, and nothing lands when it is back', async (t) => {
  t.after(plugCable);
  const pair = await Pair.open(t);
  const queue = await pair.connect(4);
  assert.equal(await queue.read(0, 64), WC.SUCCESS);
  const { givenUp } = endCounters(CLIENT_END);
  cutCable();
  pair.into.fill(0xee);
  for (let k = 0; k < 4; k++) queue.post(0, 64 << 10, k << 16);
  await queue.completed(5);
  console.log(`# cable cut: statuses ${queue.statuses.join(' ')}`);
  assert.deepEqual(queue.statuses, [WC.SUCCESS, WC.RETRY_EXC_ERR, WC.WR_FLUSH_ERR, WC.WR_FLUSH_ERR, WC.WR_FLUSH_ERR]);
  assert.ok(endCounters(CLIENT_END).givenUp > givenUp);
  plugCable();
  const fresh = await pair.connect();
  assert.equal(await fresh.read(0, 64, 1 << 20), WC.SUCCESS);
  assert.ok(untouched(pair.into.subarray(0, 1 << 18)));
});
