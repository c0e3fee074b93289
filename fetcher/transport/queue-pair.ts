/**
 * The requester's end of a queue pair: verbs semantics over any byte stream (storage-server/protocol/PROTOCOL.md). States
 * RESET -> INIT -> RTR -> RTS -> ERR; what is illegal is refused by a return value and changes nothing. Each posted
 * request completes exactly once, in post order. Does no I/O: it asks for bytes to be sent, says where the next received
 * bytes belong (`target`: straight into a request's destination where it can), and is told when they landed (`landed`).
 */
import { crc32 } from 'node:zlib';
import {
  decodeFrameHeader,
  decodeGenerationEvent,
  EVENT,
  encodeRead,
  FRAME_KIND,
  type FrameHeader,
  GENERATION_EVENT_BYTES,
  REQUEST_BYTES,
  type ServedGeneration,
  statusName,
  viewOf,
  WC,
} from '../../storage-server/protocol/index.ts';
import { FrameReceiver, type FrameSink } from './frame-receiver.ts';
import type { PostResult, QueuePairState, Requester, RequesterHost, WorkRequest } from './requester.ts';

/** What was agreed with the other end, on the way to RTR. */
export interface QueuePairLimits {
  readonly queueDepth: number;
  readonly outstandingMax: number;
  readonly readBytesMax: number;
  readonly checksum: boolean;
}

export interface QueuePairHost extends RequesterHost {
  send(bytes: Uint8Array): void;
  /** The server serves another region from now on. */
  onGeneration?(served: ServedGeneration): void;
  /** An event that is about RDMA. */
  onVerbs?(event: number, payload: Uint8Array): void;
}

interface Entry {
  readonly wrId: number;
  readonly rkey: number;
  readonly address: number;
  readonly length: number;
  /** undefined once abandoned. */
  into: Uint8Array | undefined;
  readonly onLanded: ((bytes: number) => void) | undefined;
  sent: boolean;
  /** Bytes of whole frames and of the frame that is arriving. */
  received: number;
  landed: number;
  onFree: (() => void) | undefined;
}

const NEXT: Record<QueuePairState, readonly QueuePairState[]> = {
  RESET: ['INIT', 'ERR'],
  INIT: ['RTR', 'ERR'],
  RTR: ['RTS', 'ERR'],
  RTS: ['ERR'],
  ERR: [],
};

const NO_LIMITS: QueuePairLimits = { queueDepth: 0, outstandingMax: 0, readBytesMax: 0, checksum: false };

export class QueuePair implements FrameSink<Entry>, Requester {
  #state: QueuePairState = 'RESET';
  #limits = NO_LIMITS;
  readonly #host: QueuePairHost;
  readonly #receiver = new FrameReceiver<Entry>(this);
  /** Posted and not completed, in post order. */
  readonly #entries: Entry[] = [];
  #outstanding = 0;
  #flushing = false;
  /** Of the entries, those that are not on the wire yet. */
  readonly #unsent: Entry[] = [];

  constructor(host: QueuePairHost) {
    this.#host = host;
  }

  get state(): QueuePairState {
    return this.#state;
  }

  /** Requests on the wire. */
  get outstanding(): number {
    return this.#outstanding;
  }

  /** Requests posted and not completed. */
  get depth(): number {
    return this.#entries.length;
  }

  /** Goes to the next state; false, and nothing happens, if there is no such transition. RTR takes the limits. */
  modify(to: QueuePairState, limits?: QueuePairLimits): boolean {
    if (!NEXT[this.#state].includes(to) || (to === 'RTR') !== (limits !== undefined)) return false;
    if (to === 'ERR') {
      this.fail(WC.WR_FLUSH_ERR, 'the queue pair was moved to ERR');
      return true;
    }
    if (limits !== undefined) this.#limits = limits;
    this.#state = to;
    return true;
  }

  /** Posts a READ; anything but POSTED changes nothing. */
  post(request: WorkRequest): PostResult {
    if (this.#state !== 'RTS') return 'WRONG_STATE';
    if (this.#entries.length >= this.#limits.queueDepth) return 'QUEUE_FULL';
    const length = request.into.byteLength;
    const valid =
      length <= this.#limits.readBytesMax &&
      Number.isSafeInteger(request.wrId) &&
      request.wrId >= 0 &&
      Number.isSafeInteger(request.address + length) &&
      request.address >= 0 &&
      !this.#entries.some((entry) => entry.wrId === request.wrId);
    if (!valid) return 'BAD_REQUEST';
    const { wrId, rkey, address, into, onLanded } = request;
    this.#entries.push({
      wrId,
      rkey,
      address,
      length,
      into,
      onLanded,
      sent: false,
      received: 0,
      landed: 0,
      onFree: undefined,
    });
    this.#unsent.push(this.#entries.at(-1)!);
    this.#sendSoon();
    return 'POSTED';
  }

  /**
   * Gives a request up: nothing more lands in its destination once `onFree` has been called, which may be at once, and
   * `onFree` is called at the latest when the pair goes to ERR. If it is not on the wire yet it never gets there, and
   * completes with WR_FLUSH_ERR in its turn; else its bytes are taken and thrown away. Returns what had landed.
   */
  abandon(wrId: number, onFree: () => void): number {
    const entry = this.#entries.find((candidate) => candidate.wrId === wrId);
    if (entry === undefined || entry.into === undefined) {
      onFree();
      return 0;
    }
    const armed = this.#state === 'RTS' && this.#receiver.isArmedFor(entry.into);
    entry.into = undefined;
    if (armed) entry.onFree = onFree;
    else onFree();
    if (!entry.sent && this.#state === 'RTS') {
      this.#unsent.splice(this.#unsent.indexOf(entry), 1);
      this.#completeAbandoned();
    }
    return entry.landed;
  }

  /** Goes to ERR: the oldest request completes with `status`, the others with WR_FLUSH_ERR, in post order. */
  fail(status: number, reason: string, stale = false): void {
    if (this.#state === 'ERR') return;
    this.#state = 'ERR';
    this.#unsent.length = 0;
    this.#outstanding = 0;
    this.#host.onError(reason);
    let own = status;
    for (let entry = this.#entries.shift(); entry !== undefined; entry = this.#entries.shift()) {
      entry.into = undefined;
      entry.onFree?.();
      const flushed = own === WC.WR_FLUSH_ERR;
      this.#complete(entry, own, flushed ? `flushed: ${reason}` : reason, stale && !flushed);
      own = WC.WR_FLUSH_ERR;
    }
  }

  /** Where the next received bytes go. */
  target(): Uint8Array {
    return this.#receiver.target(this.#nextBytes());
  }

  /** `bytes` have been received into the last target. */
  landed(bytes: number): void {
    this.#receiver.landed(bytes);
  }

  // FrameSink: what arrives.

  get checksum(): boolean {
    return this.#limits.checksum;
  }

  onFrame(headerBytes: DataView): void {
    const header = decodeFrameHeader(headerBytes, 0);
    switch (header.kind) {
      case FRAME_KIND.EVENT:
        this.#onEvent(header);
        return;
      case FRAME_KIND.CLOSED:
        this.fail(WC.WR_FLUSH_ERR, 'the server closes the connection');
        return;
      default:
        this.#onPayloadFrame(header);
    }
  }

  #onEvent({ status: event, payloadBytes, crc }: FrameHeader): void {
    const isVerbs = event === EVENT.VERBS || event === EVENT.VERBS_REGION;
    if (event !== EVENT.GENERATION && !isVerbs) {
      this.#receiver.skip(payloadBytes);
    } else if (event === EVENT.GENERATION && payloadBytes !== GENERATION_EVENT_BYTES) {
      this.#badAnswer(`the event of a generation with ${payloadBytes} bytes`);
    } else {
      this.#receiver.message(payloadBytes, (bytes) => {
        if (this.#limits.checksum && crc32(bytes) !== crc) this.#badAnswer('an event fails its checksum');
        else if (isVerbs) this.#host.onVerbs?.(event, bytes);
        else this.#host.onGeneration?.(decodeGenerationEvent(bytes));
      });
    }
  }

  #onPayloadFrame(header: FrameHeader): void {
    const head = this.#entries[0];
    const entry = head?.wrId === header.wrId ? head : this.#entries.find(({ wrId }) => wrId === header.wrId);
    if (entry === undefined || !entry.sent) {
      this.#badAnswer(`answer to request ${header.wrId}, which is not out`);
    } else if (header.last && entry !== head) {
      this.#badAnswer(`request ${header.wrId} completed out of order`);
    } else if (header.status !== WC.SUCCESS) {
      this.#receiver.message(header.payloadBytes, (bytes) => {
        // the number is for programs, the server's own words are for people
        const text = new TextDecoder().decode(bytes);
        const reason = text === '' ? (statusName(header.status) ?? `status ${header.status}`) : text;
        this.fail(header.status, reason, header.stale);
      });
    } else {
      this.#onData(entry, header);
    }
  }

  #onData(entry: Entry, header: FrameHeader): void {
    const { length, received } = entry;
    const left = length - received - header.payloadBytes;
    if (header.offset !== received || left < 0 || header.last !== (left === 0)) {
      const frame = `frame of ${header.payloadBytes} bytes at ${header.offset}${header.last ? ', the last,' : ''}`;
      this.#badAnswer(`${frame} in a READ of ${length} bytes of which ${received} are here`);
    } else if (header.payloadBytes === 0) {
      this.#finishEntry();
    } else {
      this.#receiver.payload(entry, header);
    }
  }

  destination(entry: Entry): Uint8Array | undefined {
    return entry.into;
  }

  /** Payload bytes of `entry` landed, in its destination or, when it was abandoned, possibly elsewhere. */
  onBytes(entry: Entry, bytes: number): void {
    entry.received += bytes;
    const discarded = entry.into === undefined;
    this.#host.onPayload(bytes, discarded ? bytes : 0);
    if (discarded) {
      entry.onFree?.();
      entry.onFree = undefined;
      return;
    }
    entry.landed += bytes;
    if (!this.#limits.checksum) entry.onLanded?.(entry.received);
  }

  onPayloadEnd(entry: Entry, header: FrameHeader, crcMatches: boolean): void {
    // Failed while its bytes were being taken: it has its completion.
    if (this.#state === 'ERR') return;
    if (!crcMatches) {
      this.#badAnswer(`payload at ${header.offset} of request ${header.wrId} fails its checksum`);
      return;
    }
    if (this.#limits.checksum && entry.into !== undefined) entry.onLanded?.(entry.received);
    if (header.last) this.#finishEntry();
  }

  #badAnswer(reason: string): void {
    this.fail(WC.BAD_RESP_ERR, reason);
  }

  #finishEntry(): void {
    const entry = this.#entries.shift()!;
    this.#outstanding--;
    this.#complete(entry, WC.SUCCESS, '');
    this.#completeAbandoned();
    this.#sendSoon();
  }

  /** Requests that were given up before they were sent complete when their turn comes. */
  #completeAbandoned(): void {
    for (
      let head = this.#entries[0];
      head !== undefined && !head.sent && head.into === undefined;
      head = this.#entries[0]
    ) {
      this.#entries.shift();
      this.#complete(head, WC.WR_FLUSH_ERR, 'abandoned before it was sent');
    }
  }

  #complete(entry: Entry, status: number, reason: string, stale = false): void {
    this.#host.onCompletion({ wrId: entry.wrId, status, reason, stale, landed: entry.landed });
  }

  /** Bytes to come for the oldest request that is out: what the receiver sizes its next read by. */
  #nextBytes(): number {
    const head = this.#entries[0];
    return head?.sent === true ? head.length - head.received : 0;
  }

  /** Sends what may be sent, all that is posted in one turn of the event loop together. */
  #sendSoon(): void {
    if (this.#flushing || this.#unsent.length === 0 || this.#outstanding >= this.#limits.outstandingMax) return;
    this.#flushing = true;
    queueMicrotask(() => {
      this.#flushing = false;
      this.#flush();
    });
  }

  #flush(): void {
    const count = Math.min(this.#unsent.length, this.#limits.outstandingMax - this.#outstanding);
    if (this.#state !== 'RTS' || count <= 0) return;
    const frames = new Uint8Array(count * REQUEST_BYTES);
    const view = viewOf(frames);
    for (const [i, entry] of this.#unsent.splice(0, count).entries()) {
      encodeRead(view, i * REQUEST_BYTES, entry);
      entry.sent = true;
    }
    this.#outstanding += count;
    this.#host.send(frames);
  }
}
