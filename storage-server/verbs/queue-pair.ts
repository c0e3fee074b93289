/**
 * A reliable connected queue pair of libibverbs with its completion queue. A requester has a completion channel, which the
 * event loop watches; what only answers READs never has a completion. Structures that the device is handed lie in memory
 * of their own (scratch): they need an address that stays.
 */
import { randomInt } from 'node:crypto';
import type { VerbsEndpoint } from '../protocol/index.ts';
import { differs, VerbsError } from './errors.ts';
import { pointerIn, structAt, u32In } from './fields.ts';
import {
  ACCESS,
  CHANNEL,
  COMPLETION,
  COMPLETION_QUEUE,
  OPCODE_RDMA_READ,
  PIECE,
  QP_ATTR,
  QP_INIT,
  QP_MASK,
  QP_STATE,
  QP_TYPE_RC,
  QUEUE_PAIR,
  ROOM_BYTES,
  SEND_REQUEST,
  SEND_SIGNALED,
} from './layouts.ts';
import type { ContextOperations, PollHandle, VerbsLibrary } from './library.ts';
import {
  ACK_TIMEOUT_EXPONENT,
  COMPLETIONS_AT_A_TIME,
  EVENTS_IN_A_ROW_MAX,
  FLUSH_MS,
  HOP_LIMIT,
  READS_UNDER_WAY_MAX,
  RETRY_COUNT,
  RNR_RETRY_COUNT,
  RNR_TIMER_CODE,
} from './limits.ts';
import type { DevicePort } from './port.ts';
import type { NativeMemory, OnCompletion, RemoteRead, VerbsQueuePair } from './verbs.ts';

/** What a device allows. */
export interface DeviceLimits {
  readonly regionBytesMax: number;
  readonly queuePairsMax: number;
  readonly requestsMax: number;
  readonly completionsMax: number;
  readonly readsIn: number;
  readonly readsOut: number;
  readonly ports: number;
}

/** What a queue pair has to know of its device. */
export interface QueuePairDevice {
  readonly library: VerbsLibrary;
  readonly operations: ContextOperations;
  readonly context: bigint;
  readonly pd: bigint;
  readonly limits: DeviceLimits;
  readonly port: DevicePort;
  readonly facts: { readonly name: string };
  allocate(length: number): NativeMemory;
  /** A queue pair of it is there, and gone again. */
  pairMade(): void;
  pairGone(): void;
}

/** Places in the scratch memory. */
const BAD_REQUEST = 0;
const REQUEST = 64;
const PIECE_AT = 256;
const EVENT_QUEUE = 288;
const EVENT_OWN = 296;
const COMPLETIONS = 512;
const SCRATCH_BYTES = 4096;

/** Ends the polling of each queue pair: a thread that ends while koffi still polls takes the whole process with it. */
const polling = new Set<() => void>();
process.once('exit', () => {
  for (const stop of polling) stop();
});

export class LibraryQueuePair implements VerbsQueuePair {
  readonly endpoint: VerbsEndpoint;
  readonly #device: QueuePairDevice;
  readonly #depth: number;
  readonly #scratch: NativeMemory;
  readonly #view: DataView;
  readonly #base: bigint;
  #channel: bigint | null = null;
  #cq: bigint | null = null;
  #qp: bigint | null = null;
  #poller: PollHandle | undefined;
  #out = 0;
  /** A thread has it, to connect it; and it is to be destroyed when that is done. */
  #isModifying = false;
  #isDoomed = false;
  #isGone = false;

  /** Throws VerbsError RESOURCES or LAYOUT. */
  constructor(device: QueuePairDevice, depth: number) {
    const { requestsMax, completionsMax } = device.limits;
    this.#device = device;
    this.#depth = Math.min(depth, requestsMax, completionsMax - 1);
    this.#scratch = device.allocate(SCRATCH_BYTES);
    device.pairMade();
    const bytes = this.#scratch.view(0, SCRATCH_BYTES);
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, SCRATCH_BYTES);
    this.#base = BigInt(this.#scratch.address);
    try {
      const number = this.#create();
      this.endpoint = {
        qpn: number,
        psn: randomInt(2 ** 24),
        lid: device.port.lid,
        gid: device.port.gid,
        mtu: device.port.mtu,
        readsMax: Math.min(READS_UNDER_WAY_MAX, depth === 0 ? device.limits.readsIn : device.limits.readsOut),
      };
    } catch (error) {
      this.destroy();
      throw error;
    }
  }

  /** Makes channel, completion queue and queue pair, and compares each with what was asked for; gives its number. */
  #create(): number {
    const { library, context, pd } = this.#device;
    const isRequester = this.#depth > 0;
    if (isRequester) {
      this.#channel = library.createChannel(context);
      if (this.#channel === null) throw this.#failed('no completion channel');
      const channel = structAt(library, this.#channel, CHANNEL.bytes);
      if (pointerIn(channel, CHANNEL.context) !== context) throw differs('ibv_comp_channel');
      if (!library.setNonBlocking(channel.getInt32(CHANNEL.fd, true))) throw differs('ibv_comp_channel');
    }
    this.#cq = library.createCq(context, this.#depth + 1, this.#channel);
    if (this.#cq === null) throw this.#failed('no completion queue');
    const cq = structAt(library, this.#cq, COMPLETION_QUEUE.bytes);
    const isQueue =
      pointerIn(cq, COMPLETION_QUEUE.context) === context &&
      pointerIn(cq, COMPLETION_QUEUE.channel) === (this.#channel ?? 0n) &&
      cq.getInt32(COMPLETION_QUEUE.entries, true) > this.#depth;
    if (!isQueue) throw differs('ibv_cq');
    const bytes = new Uint8Array(ROOM_BYTES);
    const init = new DataView(bytes.buffer);
    init.setBigUint64(QP_INIT.sendCq, this.#cq, true);
    init.setBigUint64(QP_INIT.recvCq, this.#cq, true);
    init.setUint32(QP_INIT.sendRequestsMax, Math.max(1, this.#depth), true);
    init.setUint32(QP_INIT.recvRequestsMax, 1, true);
    init.setUint32(QP_INIT.sendPiecesMax, 1, true);
    init.setUint32(QP_INIT.recvPiecesMax, 1, true);
    init.setUint32(QP_INIT.type, QP_TYPE_RC, true);
    this.#qp = library.createQp(pd, bytes);
    if (this.#qp === null) throw this.#failed('no queue pair');
    const qp = structAt(library, this.#qp, QUEUE_PAIR.bytes);
    const isPair =
      pointerIn(qp, QUEUE_PAIR.context) === context &&
      pointerIn(qp, QUEUE_PAIR.pd) === pd &&
      pointerIn(qp, QUEUE_PAIR.sendCq) === this.#cq &&
      pointerIn(qp, QUEUE_PAIR.recvCq) === this.#cq &&
      u32In(qp, QUEUE_PAIR.state) === QP_STATE.RESET &&
      u32In(qp, QUEUE_PAIR.type) === QP_TYPE_RC;
    if (!isPair) throw differs('ibv_qp');
    return u32In(qp, QUEUE_PAIR.number);
  }

  #failed(what: string): VerbsError {
    const { library, facts } = this.#device;
    return new VerbsError('RESOURCES', `${facts.name}: ${what}: errno ${library.errno()}`);
  }

  async connect(remote: VerbsEndpoint): Promise<void> {
    const { port } = this.#device;
    const isRequester = this.#depth > 0;
    const reads = Math.min(this.endpoint.readsMax, remote.readsMax);
    await this.#modify('INIT', QP_MASK.STATE | QP_MASK.ACCESS | QP_MASK.KEY_INDEX | QP_MASK.PORT, (attributes) => {
      attributes.setUint32(QP_ATTR.state, QP_STATE.INIT, true);
      // Who only asks lets nobody read: a peer that turns hostile finds nothing.
      attributes.setUint32(QP_ATTR.access, isRequester ? 0 : ACCESS.REMOTE_READ, true);
      attributes.setUint8(QP_ATTR.port, port.number);
    });
    const { ROUTE, PATH_MTU, REMOTE_NUMBER, RECEIVE_PSN, READS_IN, RNR_TIMER } = QP_MASK;
    const toReceive = ROUTE | PATH_MTU | REMOTE_NUMBER | RECEIVE_PSN | READS_IN | RNR_TIMER;
    await this.#modify('RTR', QP_MASK.STATE | toReceive, (attributes, bytes) => {
      attributes.setUint32(QP_ATTR.state, QP_STATE.RTR, true);
      attributes.setInt32(QP_ATTR.pathMtu, Math.min(port.mtu, remote.mtu), true);
      attributes.setUint32(QP_ATTR.receivePsn, remote.psn, true);
      attributes.setUint32(QP_ATTR.remoteNumber, remote.qpn, true);
      attributes.setUint16(QP_ATTR.remoteLid, remote.lid, true);
      attributes.setUint8(QP_ATTR.routePort, port.number);
      if (remote.gid.some((byte) => byte !== 0)) {
        bytes.set(remote.gid, QP_ATTR.remoteGid);
        attributes.setUint8(QP_ATTR.localGidIndex, port.gidIndex);
        attributes.setUint8(QP_ATTR.hopLimit, HOP_LIMIT);
        attributes.setUint8(QP_ATTR.isGlobal, 1);
      }
      attributes.setUint8(QP_ATTR.readsIn, isRequester ? 0 : reads);
      attributes.setUint8(QP_ATTR.rnrTimer, RNR_TIMER_CODE);
    });
    // Who only answers is done here: it never sends of itself.
    if (!isRequester) return;
    const { TIMEOUT, RETRIES, RNR_RETRIES, SEND_PSN, READS_OUT } = QP_MASK;
    await this.#modify('RTS', QP_MASK.STATE | TIMEOUT | RETRIES | RNR_RETRIES | SEND_PSN | READS_OUT, (attributes) => {
      attributes.setUint32(QP_ATTR.state, QP_STATE.RTS, true);
      attributes.setUint32(QP_ATTR.sendPsn, this.endpoint.psn, true);
      attributes.setUint8(QP_ATTR.readsOut, reads);
      attributes.setUint8(QP_ATTR.timeout, ACK_TIMEOUT_EXPONENT);
      attributes.setUint8(QP_ATTR.retries, RETRY_COUNT);
      attributes.setUint8(QP_ATTR.rnrRetries, RNR_RETRY_COUNT);
    });
    if (this.#qp === null) throw new VerbsError('CONNECT', 'the queue pair is gone');
    this.#checkConnected(remote);
  }

  async #modify(
    to: 'INIT' | 'RTR' | 'RTS',
    mask: number,
    fill: (attributes: DataView, bytes: Uint8Array) => void,
  ): Promise<void> {
    const { library, facts } = this.#device;
    if (this.#qp === null || this.#isDoomed) throw new VerbsError('CONNECT', 'the queue pair is gone');
    const bytes = new Uint8Array(ROOM_BYTES);
    fill(new DataView(bytes.buffer), bytes);
    this.#isModifying = true;
    const errno = await library.modifyQpAside(this.#qp, bytes, mask).finally(() => {
      this.#isModifying = false;
      if (this.#isDoomed) this.destroy();
    });
    if (errno === 0) return;
    const why = errno === 110 || errno === 113 || errno === 101 ? ': the other end has no route from here' : '';
    throw new VerbsError('CONNECT', `${facts.name}: the queue pair does not go to ${to}: errno ${errno}${why}`);
  }

  /** What was written into the attributes is read back: a layout that differs would have set something else. */
  #checkConnected(remote: VerbsEndpoint): void {
    const bytes = new Uint8Array(ROOM_BYTES);
    const mask = QP_MASK.STATE | QP_MASK.REMOTE_NUMBER | QP_MASK.RETRIES | QP_MASK.READS_OUT | QP_MASK.PATH_MTU;
    const errno = this.#device.library.queryQp(this.#qp!, bytes, mask, new Uint8Array(ROOM_BYTES));
    if (errno !== 0) throw new VerbsError('CONNECT', `the queue pair does not say how it is: errno ${errno}`);
    const attributes = new DataView(bytes.buffer);
    const isRight =
      attributes.getUint32(QP_ATTR.state, true) === QP_STATE.RTS &&
      attributes.getUint32(QP_ATTR.remoteNumber, true) === remote.qpn &&
      attributes.getUint8(QP_ATTR.retries) === RETRY_COUNT;
    if (!isRight) throw differs('ibv_qp_attr');
  }

  post({ id, localAddress, lkey, remoteAddress, rkey, length }: RemoteRead): number {
    if (this.#qp === null || this.#out >= this.#depth) return 11;
    const view = this.#view;
    view.setBigUint64(REQUEST + SEND_REQUEST.id, BigInt(id), true);
    view.setBigUint64(REQUEST + SEND_REQUEST.pieces, this.#base + BigInt(PIECE_AT), true);
    view.setInt32(REQUEST + SEND_REQUEST.pieceCount, 1, true);
    view.setInt32(REQUEST + SEND_REQUEST.opcode, OPCODE_RDMA_READ, true);
    view.setUint32(REQUEST + SEND_REQUEST.flags, SEND_SIGNALED, true);
    view.setBigUint64(REQUEST + SEND_REQUEST.remoteAddress, BigInt(remoteAddress), true);
    view.setUint32(REQUEST + SEND_REQUEST.remoteKey, rkey, true);
    view.setBigUint64(PIECE_AT + PIECE.address, BigInt(localAddress), true);
    view.setUint32(PIECE_AT + PIECE.length, length, true);
    view.setUint32(PIECE_AT + PIECE.key, lkey, true);
    const request = this.#base + BigInt(REQUEST);
    const errno = this.#device.operations.postSend(this.#qp, request, this.#base + BigInt(BAD_REQUEST));
    if (errno === 0) this.#out++;
    return errno;
  }

  poll(onCompletion: OnCompletion): number {
    if (this.#cq === null) return 0;
    const at = this.#base + BigInt(COMPLETIONS);
    const count = this.#device.operations.pollCq(this.#cq, COMPLETIONS_AT_A_TIME, at);
    if (count < 0) throw new VerbsError('RESOURCES', `completions can't be taken: ${count}`);
    // Copied first: a callback may post, poll or destroy.
    const taken: [id: number, status: number, vendorError: number][] = [];
    for (let i = 0; i < count; i++) {
      const place = COMPLETIONS + i * COMPLETION.bytes;
      taken.push([
        Number(this.#view.getBigUint64(place + COMPLETION.id, true)),
        this.#view.getUint32(place + COMPLETION.status, true),
        this.#view.getUint32(place + COMPLETION.vendorError, true),
      ]);
    }
    this.#out -= count;
    for (const [id, status, vendorError] of taken) onCompletion(id, status, vendorError);
    return count;
  }

  watch(onReady: () => void): void {
    if (this.#channel === null || this.#cq === null)
      throw new Error('a queue pair that only answers has no completions');
    const { library, operations } = this.#device;
    polling.add(this.#stopPolling);
    const descriptor = structAt(library, this.#channel, CHANNEL.bytes).getInt32(CHANNEL.fd, true);
    operations.requestNotify(this.#cq, 0);
    this.#poller = library.poll(descriptor, () => {
      let events = 0;
      while (events < EVENTS_IN_A_ROW_MAX && this.#channel !== null && this.#takeEvent()) events++;
      if (this.#cq === null) return;
      // First asked for, then polled: what completes in between has its event.
      operations.requestNotify(this.#cq, 0);
      onReady();
    });
  }

  /** Takes an event, and acknowledges it at once: destroying the queue waits for all that were taken. */
  #takeEvent(): boolean {
    const { library } = this.#device;
    const queue = this.#base + BigInt(EVENT_QUEUE);
    if (library.getCqEvent(this.#channel!, queue, this.#base + BigInt(EVENT_OWN)) !== 0) return false;
    library.ackCqEvents(this.#cq!, 1);
    return true;
  }

  readonly #stopPolling = (): void => {
    polling.delete(this.#stopPolling);
    this.#poller?.stop();
    this.#poller?.close();
    this.#poller = undefined;
  };

  destroy(onCompletion: OnCompletion = () => {}): void {
    this.#isDoomed = true;
    // Nothing can have been posted: it is not connected.
    if (this.#isModifying || this.#isGone) return;
    this.#isGone = true;
    const { library } = this.#device;
    this.#stopPolling();
    if (this.#qp !== null) {
      const bytes = new Uint8Array(ROOM_BYTES);
      new DataView(bytes.buffer).setUint32(QP_ATTR.state, QP_STATE.ERR, true);
      library.modifyQp(this.#qp, bytes, QP_MASK.STATE);
      this.#flush(onCompletion);
      // From here on the device has nothing of it any more.
      library.destroyQp(this.#qp);
      this.#qp = null;
    }
    if (this.#cq !== null) library.destroyCq(this.#cq);
    this.#cq = null;
    if (this.#channel !== null) library.destroyChannel(this.#channel);
    this.#channel = null;
    this.#scratch.free();
    this.#device.pairGone();
  }

  #flush(onCompletion: OnCompletion): void {
    const until = performance.now() + FLUSH_MS;
    try {
      while (this.#out > 0 && performance.now() < until) this.poll(onCompletion);
    } catch (error) {
      if (!(error instanceof VerbsError)) throw error;
    }
  }
}
