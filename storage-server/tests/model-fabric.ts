/**
 * A model of RDMA for tests: devices of one process, wired to each other. Memory is what a device has allocated or been
 * given; READs happen in order, a few at a time, whenever the event loop has a turn, and fail as those of real devices do:
 * with REM_ACCESS_ERR for keys and ranges that are not registered for peers, LOC_PROT_ERR for local ones, and
 * WR_FLUSH_ERR for what was queued behind. It checks what a real device would punish with more than an error.
 */
import assert from 'node:assert/strict';
import { type VerbsEndpoint, WC } from '../protocol/index.ts';
import {
  type NativeMemory,
  type OnCompletion,
  type OpenVerbsDevice,
  type Registration,
  type RemoteRead,
  type VerbsDevice,
  VerbsError,
  type VerbsQueuePair,
} from '../verbs/index.ts';

interface Registered {
  readonly bytes: Uint8Array;
  readonly address: number;
  readonly access: 'peers' | 'reads';
}

export interface ModelLimits {
  readonly messageBytesMax: number;
  readonly readsMax: number;
  /** Bytes that may be registered by one device. */
  readonly lockedBytesMax: number;
  readonly queuePairsMax: number;
}

const LIMITS: ModelLimits = {
  messageBytesMax: 2 ** 23,
  readsMax: 16,
  lockedBytesMax: 2 ** 31,
  queuePairsMax: 1000,
};

/** What connects devices. */
export class ModelFabric {
  readonly byKey = new Map<number, Registered>();
  readonly pairs = new Map<number, ModelQueuePair>();
  /** READs that were answered, and their bytes. */
  reads = 0;
  bytes = 0;
  /** READs that were out at a time on one queue pair, at most. */
  outMax = 0;
  /** Called before each READ: gives the status that it fails with, undefined if it succeeds, 'never' if nothing comes. */
  onRead: (read: RemoteRead) => number | 'never' | undefined = () => undefined;
  /** Waited for whenever a queue pair is connected. */
  onConnect: () => Promise<void> = async () => {};
  #next = 0x1000;
  #nextAddress = 0x7000_0000_0000;
  readonly devices: ModelDevice[] = [];

  /** A device on it. */
  open(name = 'model0', limits: Partial<ModelLimits> = {}): OpenVerbsDevice {
    return async (wanted) => {
      if (wanted !== undefined && wanted !== name)
        throw new VerbsError('NO_DEVICE', `there is no RDMA device ${wanted}`);
      const device = new ModelDevice(this, name, { ...LIMITS, ...limits });
      this.devices.push(device);
      return device;
    };
  }

  number(): number {
    return ++this.#next;
  }

  address(length: number): number {
    const address = this.#nextAddress;
    this.#nextAddress += Math.ceil(length / 4096 + 1) * 4096;
    return address;
  }

  /** Bytes of a registration, or undefined if the range is not all in it. */
  find(key: number, access: Registered['access'], address: number, length: number): Uint8Array | undefined {
    const found = this.byKey.get(key);
    if (found === undefined || found.access !== access) return undefined;
    const start = address - found.address;
    return start >= 0 && start + length <= found.bytes.byteLength
      ? found.bytes.subarray(start, start + length)
      : undefined;
  }
}

export class ModelDevice implements VerbsDevice {
  readonly fabric: ModelFabric;
  readonly limits: ModelLimits;
  readonly gid: Uint8Array;
  readonly #name: string;
  readonly #addresses = new WeakMap<SharedArrayBuffer, number>();
  /** What is held now. */
  registered = 0;
  lockedBytes = 0;
  mapped = 0;
  pairs = 0;
  closed = false;

  constructor(fabric: ModelFabric, name: string, limits: ModelLimits) {
    this.fabric = fabric;
    this.limits = limits;
    this.#name = name;
    this.gid = Uint8Array.from({ length: 16 }, (_, i) => (i === 15 ? fabric.number() & 0xff : i === 0 ? 0xfe : 0));
  }

  get facts() {
    const { messageBytesMax, readsMax, queuePairsMax } = this.limits;
    return {
      name: this.#name,
      port: 1,
      link: 'Ethernet' as const,
      gid: Buffer.from(this.gid).toString('hex'),
      gidKind: 'RoCE v2' as const,
      lid: 0,
      mtuBytes: 1024,
      messageBytesMax,
      queuePairsMax,
      readsOutMax: readsMax,
      readsInMax: readsMax,
    };
  }

  allocate(length: number): NativeMemory {
    assert.ok(!this.closed && length > 0);
    let bytes: Uint8Array | undefined = new Uint8Array(length);
    this.mapped++;
    const address = this.fabric.address(length);
    MEMORY.set(address, bytes);
    const free = (): void => {
      assert.ok(bytes !== undefined, 'freed once');
      for (const { bytes: held } of this.fabric.byKey.values()) assert.notEqual(held, bytes, 'freed while registered');
      bytes = undefined;
      MEMORY.delete(address);
      this.mapped--;
    };
    return {
      address,
      length,
      view: (start, count) => {
        assert.ok(bytes !== undefined && start >= 0 && start + count <= length, 'a view of memory that is there');
        return bytes.subarray(start, start + count);
      },
      free,
      freeAside: async () => free(),
    };
  }

  async registerForPeers(memory: NativeMemory): Promise<Registration> {
    return this.#register(memory.address, MEMORY.get(memory.address)!, 'peers');
  }

  registerForReads(memory: NativeMemory | SharedArrayBuffer): Registration {
    if (!(memory instanceof SharedArrayBuffer)) {
      return this.#register(memory.address, MEMORY.get(memory.address)!, 'reads');
    }
    const address = this.#addresses.get(memory) ?? this.fabric.address(memory.byteLength);
    this.#addresses.set(memory, address);
    return this.#register(address, new Uint8Array(memory), 'reads');
  }

  #register(address: number, bytes: Uint8Array, access: Registered['access']): Registration {
    assert.ok(!this.closed);
    const { byteLength: length } = bytes;
    if (this.lockedBytes + length > this.limits.lockedBytesMax) {
      throw new VerbsError('MEMORY', `${length} bytes can't be locked`);
    }
    const key = this.fabric.number();
    this.fabric.byKey.set(key, { bytes, address, access });
    this.registered++;
    this.lockedBytes += length;
    let released = false;
    const release = (): void => {
      if (released) return;
      released = true;
      for (const pair of this.fabric.pairs.values()) assert.ok(!pair.uses(key), 'released while a READ lands in it');
      this.fabric.byKey.delete(key);
      this.registered--;
      this.lockedBytes -= length;
    };
    return {
      address,
      length,
      lkey: key,
      rkey: key,
      release,
      releaseAside: async () => release(),
    };
  }

  createQueuePair(depth: number): VerbsQueuePair {
    assert.ok(!this.closed);
    if (this.pairs >= this.limits.queuePairsMax) throw new VerbsError('RESOURCES', 'no queue pair');
    this.pairs++;
    return new ModelQueuePair(this, depth);
  }

  close(): void {
    assert.ok(!this.closed);
    assert.deepEqual([this.pairs, this.registered, this.mapped], [0, 0, 0], 'closed when nothing is left');
    this.closed = true;
  }
}

/** Memory by its address, over all devices. */
const MEMORY = new Map<number, Uint8Array>();

class ModelQueuePair implements VerbsQueuePair {
  readonly endpoint: VerbsEndpoint;
  readonly #device: ModelDevice;
  readonly #depth: number;
  readonly #queue: RemoteRead[] = [];
  readonly #done: [id: number, status: number][] = [];
  #peer: VerbsEndpoint | undefined;
  #failed = false;
  #destroyed = false;
  #onReady: (() => void) | undefined;
  #running = false;

  constructor(device: ModelDevice, depth: number) {
    const { fabric, gid, limits } = device;
    this.#device = device;
    this.#depth = depth;
    this.endpoint = { qpn: fabric.number(), psn: 7, lid: 0, gid, mtu: 3, readsMax: limits.readsMax };
    fabric.pairs.set(this.endpoint.qpn, this);
  }

  uses(key: number): boolean {
    return this.#queue.some(({ lkey }) => lkey === key);
  }

  answers(qpn: number): boolean {
    return !this.#destroyed && this.#peer?.qpn === qpn;
  }

  async connect(remote: VerbsEndpoint): Promise<void> {
    await this.#device.fabric.onConnect();
    if (this.#destroyed) throw new VerbsError('CONNECT', 'the queue pair is gone');
    this.#peer = remote;
  }

  post(read: RemoteRead): number {
    const { fabric, limits } = this.#device;
    assert.ok(this.#peer !== undefined && !this.#destroyed, 'posted to a pair that is connected');
    assert.ok(read.length > 0 && read.length <= limits.messageBytesMax, `a READ of ${read.length} bytes`);
    const out = this.#queue.length + this.#done.length;
    assert.ok(out < this.#depth, 'the completion queue is never overrun');
    assert.ok(out < Math.min(limits.readsMax, this.#peer.readsMax), 'no more READs out than both ends allow');
    fabric.outMax = Math.max(fabric.outMax, out + 1);
    this.#queue.push(read);
    this.#run();
    return 0;
  }

  #run(): void {
    if (this.#running) return;
    this.#running = true;
    setImmediate(() => {
      this.#running = false;
      for (let n = 0; n < 5 && this.#queue.length > 0; n++) {
        const status = this.#failed ? WC.WR_FLUSH_ERR : this.#read(this.#queue[0]!);
        if (status === 'never') return;
        if (status !== WC.SUCCESS) this.#failed = true;
        this.#done.push([this.#queue.shift()!.id, status]);
      }
      if (this.#queue.length > 0) this.#run();
      if (this.#done.length > 0) this.#onReady?.();
    });
  }

  #read(read: RemoteRead): number | 'never' {
    const { fabric } = this.#device;
    const forced = fabric.onRead(read);
    if (forced !== undefined) return forced;
    const peer = fabric.pairs.get(this.#peer!.qpn);
    if (peer === undefined || !peer.answers(this.endpoint.qpn)) return WC.RETRY_EXC_ERR;
    const into = fabric.find(read.lkey, 'reads', read.localAddress, read.length);
    if (into === undefined) return WC.LOC_PROT_ERR;
    const from = fabric.find(read.rkey, 'peers', read.remoteAddress, read.length);
    if (from === undefined) return WC.REM_ACCESS_ERR;
    into.set(from);
    fabric.reads++;
    fabric.bytes += read.length;
    return WC.SUCCESS;
  }

  poll(onCompletion: OnCompletion): number {
    if (this.#destroyed) return 0;
    const taken = this.#done.splice(0, 3);
    for (const [id, status] of taken) onCompletion(id, status, 0);
    return taken.length;
  }

  watch(onReady: () => void): void {
    this.#onReady = onReady;
  }

  destroy(onCompletion: OnCompletion = () => {}): void {
    assert.ok(!this.#destroyed, 'destroyed once');
    this.#destroyed = true;
    this.#onReady = undefined;
    this.#device.fabric.pairs.delete(this.endpoint.qpn);
    this.#device.pairs--;
    for (const [id, status] of this.#done.splice(0)) onCompletion(id, status, 0);
    for (const { id } of this.#queue.splice(0)) onCompletion(id, WC.WR_FLUSH_ERR, 0);
  }
}
