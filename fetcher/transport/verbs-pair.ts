/**
 * The requester's end of a queue pair over RDMA, with the manners of queue-pair.ts: the same states, each request completes
 * exactly once and in post order, an error is fatal to the pair. Cuts requests into READs that the device takes, keeps no
 * more of them out than both ends allow, and checks every key and range before the device sees it. Completions are taken
 * when the completion channel says so, or by asking all the time (`busyPoll`).
 */
import { statusName, type VerbsRegion, WC } from '../../storage-server/protocol/index.ts';
import {
  type NativeMemory,
  type Registration,
  VerbsError,
  type VerbsQueuePair,
} from '../../storage-server/verbs/index.ts';
import { POLLS_IN_A_ROW_MAX, VERBS_READ_BYTES } from './limits.ts';
import type { Completion, PostResult, QueuePairState, Requester, RequesterHost, WorkRequest } from './requester.ts';
import type { VerbsClient } from './verbs-client.ts';

export interface VerbsPairOptions {
  readonly client: VerbsClient;
  /** Connected; this pair's from now on. */
  readonly native: VerbsQueuePair;
  /** READs that may be out. */
  readonly readsOutMax: number;
  readonly queueDepth: number;
  readonly readBytesMax: number;
  readonly stallMs: number;
  readonly busyPoll: boolean;
}

/** What pairs count, together with others of their source. */
export interface VerbsCounts {
  /** READs that the device has to complete. */
  readsOut: number;
  /** Completions that the device gave, by status. */
  readonly completions: Map<number, number>;
}

interface Entry {
  readonly wrId: number;
  readonly request: WorkRequest;
  /** undefined for a key or a range that nothing lies at: it fails in its turn, as it would at the other end. */
  readonly place: VerbsRegion | undefined;
  /** Bytes that are to be read; less than asked for once it is given up. */
  length: number;
  /** undefined once abandoned. */
  into: Uint8Array | undefined;
  readonly registration: Registration | undefined;
  /** Bytes for which READs were posted, and those that came. */
  cut: number;
  received: number;
  landed: number;
  onFree: (() => void) | undefined;
}

/** A READ that is out. */
interface Out {
  readonly entry: Entry;
  readonly start: number;
  readonly length: number;
  /** Its place in the pair's own memory, if it is to be copied from there. */
  readonly slot: number | undefined;
}

export class VerbsPair implements Requester {
  #state: QueuePairState = 'RTS';
  readonly #host: RequesterHost;
  readonly #options: VerbsPairOptions;
  readonly #readBytes: number;
  /** Regions by the key that READs over the connection name them by. */
  readonly #places = new Map<number, VerbsRegion>();
  #newest: VerbsRegion | undefined;
  /** Posted and not completed, in post order. */
  readonly #entries: Entry[] = [];
  readonly #out = new Map<number, Out>();
  #nextId = 1;
  readonly #staging: NativeMemory;
  readonly #stagingKey: Registration;
  readonly #stagingView: Uint8Array;
  readonly #freeSlots: number[] = [];
  #progressMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #draining = false;
  readonly #counts: VerbsCounts;

  /** Throws VerbsError MEMORY. */
  constructor(options: VerbsPairOptions, host: RequesterHost, counts: VerbsCounts) {
    const { client, native, readsOutMax } = options;
    const { device } = client;
    this.#options = options;
    this.#host = host;
    this.#counts = counts;
    this.#readBytes = Math.min(VERBS_READ_BYTES, device.facts.messageBytesMax);
    this.#staging = device.allocate(readsOutMax * this.#readBytes);
    try {
      this.#stagingKey = device.registerForReads(this.#staging);
    } catch (error) {
      this.#staging.free();
      throw error;
    }
    this.#stagingView = this.#staging.view(0, this.#staging.length);
    for (let slot = readsOutMax - 1; slot >= 0; slot--) this.#freeSlots.push(slot);
    if (!options.busyPoll) native.watch(() => this.#drain());
  }

  get state(): QueuePairState {
    return this.#state;
  }

  get outstanding(): number {
    return this.#out.size;
  }

  /** From now on READs with `rkey` go to `place`; the one before goes on for what is under way. */
  serve(rkey: number, place: VerbsRegion): void {
    for (const [old, known] of this.#places) if (known !== this.#newest) this.#places.delete(old);
    this.#places.set(rkey, place);
    this.#newest = place;
  }

  post(request: WorkRequest): PostResult {
    if (this.#state !== 'RTS') return 'WRONG_STATE';
    if (this.#entries.length >= this.#options.queueDepth) return 'QUEUE_FULL';
    const { wrId, address, into } = request;
    const length = into.byteLength;
    const valid =
      length <= this.#options.readBytesMax &&
      Number.isSafeInteger(wrId) &&
      wrId >= 0 &&
      Number.isSafeInteger(address + length) &&
      address >= 0 &&
      !this.#entries.some((entry) => entry.wrId === wrId);
    if (!valid) return 'BAD_REQUEST';
    const place = this.#places.get(request.rkey);
    const isInside = place !== undefined && address + length <= place.length;
    const registration = isInside && length > 0 ? this.#options.client.registrationOf(into) : undefined;
    const counts = { length, cut: 0, received: 0, landed: 0, onFree: undefined };
    this.#entries.push({ wrId, request, place: isInside ? place : undefined, into, registration, ...counts });
    queueMicrotask(() => this.#pump());
    return 'POSTED';
  }

  abandon(wrId: number, onFree: () => void): number {
    const entry = this.#entries.find((candidate) => candidate.wrId === wrId);
    if (entry === undefined || entry.into === undefined) {
      onFree();
      return 0;
    }
    entry.into = undefined;
    entry.length = entry.cut;
    const isHeld = [...this.#out.values()].some((out) => out.entry === entry && out.slot === undefined);
    if (isHeld) entry.onFree = onFree;
    else onFree();
    queueMicrotask(() => this.#pump());
    return entry.landed;
  }

  /** Goes to ERR: the oldest request completes with `status`, the others with WR_FLUSH_ERR, in post order. */
  fail(status: number, reason: string, stale = false): void {
    if (this.#state === 'ERR') return;
    this.#state = 'ERR';
    clearTimeout(this.#timer);
    // When it is gone nothing lands any more: only then the memory is anybody else's.
    this.#options.native.destroy((_id, flushed) => this.#count(flushed));
    this.#counts.readsOut -= this.#out.size;
    this.#out.clear();
    this.#freeStaging();
    this.#host.onError(reason);
    let own = status;
    for (let entry = this.#entries.shift(); entry !== undefined; entry = this.#entries.shift()) {
      entry.into = undefined;
      entry.onFree?.();
      const isFlushed = own === WC.WR_FLUSH_ERR;
      this.#complete(entry, own, isFlushed ? `flushed: ${reason}` : reason, stale && !isFlushed);
      own = WC.WR_FLUSH_ERR;
    }
  }

  #freeStaging(): void {
    try {
      this.#stagingKey.release();
      this.#staging.free();
    } catch (error) {
      // The device keeps it, so it stays mapped: lost, but nobody's.
      if (!(error instanceof VerbsError)) throw error;
    }
  }

  /** Posts what may be posted, and completes what needs no READ. */
  #pump(): void {
    if (this.#state !== 'RTS') return;
    this.#completeFront();
    for (const entry of this.#entries) {
      const { place } = entry;
      // A READ of nothing succeeds, whatever its key.
      while (entry.cut < entry.length) {
        if (place === undefined) {
          if (entry === this.#entries[0]) this.fail(WC.REM_ACCESS_ERR, 'unknown rkey, or range outside the region');
          return;
        }
        if (this.#out.size >= this.#options.readsOutMax || !this.#postNext(entry, place)) return;
      }
    }
  }

  /** False if there is no room, or the pair has failed. */
  #postNext(entry: Entry, place: VerbsRegion): boolean {
    const { registration, request } = entry;
    const start = entry.cut;
    const length = Math.min(this.#readBytes, entry.length - start);
    const slot = registration === undefined ? this.#freeSlots.pop() : undefined;
    if (registration === undefined && slot === undefined) return false;
    const id = this.#nextId++;
    const errno = this.#options.native.post({
      id,
      ...this.#destination(entry, start, slot),
      remoteAddress: place.address + request.address + start,
      rkey: place.rkey,
      length,
    });
    if (errno !== 0) {
      this.fail(WC.LOC_QP_OP_ERR, `the device refuses a READ: errno ${errno}`);
      return false;
    }
    entry.cut += length;
    if (this.#out.size === 0) this.#watchProgress();
    this.#out.set(id, { entry, start, length, slot });
    this.#counts.readsOut++;
    if (this.#options.busyPoll) this.#drainSoon();
    return true;
  }

  #destination(entry: Entry, start: number, slot: number | undefined): { localAddress: number; lkey: number } {
    const { registration, request } = entry;
    if (registration !== undefined) {
      return { localAddress: registration.address + request.into.byteOffset + start, lkey: registration.lkey };
    }
    return { localAddress: this.#stagingKey.address + slot! * this.#readBytes, lkey: this.#stagingKey.lkey };
  }

  /** Takes completions, then posts what there is room for; gives the event loop a turn in between. */
  #drain(): void {
    for (let polls = 0; this.#state === 'RTS' && polls < POLLS_IN_A_ROW_MAX; polls++) {
      let count: number;
      try {
        count = this.#options.native.poll((id, status, vendor) => this.#completed(id, status, vendor));
      } catch (error) {
        this.fail(WC.FATAL_ERR, (error as Error).message);
        return;
      }
      if (count === 0) {
        if (this.#options.busyPoll && this.#out.size > 0) this.#drainSoon();
        return;
      }
      this.#pump();
    }
    this.#drainSoon();
  }

  #drainSoon(): void {
    if (this.#draining || this.#state !== 'RTS') return;
    this.#draining = true;
    setImmediate(() => {
      this.#draining = false;
      this.#drain();
    });
  }

  #completed(id: number, status: number, vendorError: number): void {
    this.#count(status);
    const out = this.#out.get(id);
    // What is told after the end of the pair, or twice, is nobody's.
    if (out === undefined || this.#state !== 'RTS') return;
    this.#out.delete(id);
    this.#counts.readsOut--;
    this.#progressMs = performance.now();
    const { entry } = out;
    if (status !== WC.SUCCESS) {
      const stale = status === WC.REM_ACCESS_ERR && entry.place !== this.#newest;
      const vendor = vendorError === 0 ? '' : `, vendor's error ${vendorError}`;
      this.fail(status, `the device gave ${statusName(status) ?? `status ${status}`}${vendor}`, stale);
      return;
    }
    this.#land(out);
    if (out.slot !== undefined) this.#freeSlots.push(out.slot);
    if (entry.into === undefined && entry.received === entry.cut) {
      entry.onFree?.();
      entry.onFree = undefined;
    }
    this.#completeFront();
  }

  #land({ entry, start, length, slot }: Out): void {
    entry.received += length;
    const { into } = entry;
    this.#host.onPayload(length, into === undefined ? length : 0);
    if (into === undefined) return;
    if (slot !== undefined) {
      const from = slot * this.#readBytes;
      into.set(this.#stagingView.subarray(from, from + length), start);
    }
    entry.landed += length;
    entry.request.onLanded?.(entry.received);
  }

  /** Completes the requests at the front that have all their bytes, or were given up and are waited for no more. */
  #completeFront(): void {
    for (let head = this.#entries[0]; head !== undefined; head = this.#entries[0]) {
      if (this.#state !== 'RTS' || head.received < head.length) return;
      this.#entries.shift();
      const isWhole = head.length === head.request.into.byteLength;
      this.#complete(
        head,
        isWhole ? WC.SUCCESS : WC.WR_FLUSH_ERR,
        isWhole ? '' : 'abandoned before it was sent',
        false,
      );
    }
  }

  #complete({ wrId, landed }: Entry, status: number, reason: string, stale: boolean): void {
    const completion: Completion = { wrId, status, reason, stale, landed };
    this.#host.onCompletion(completion);
  }

  #count(status: number): void {
    const { completions } = this.#counts;
    completions.set(status, (completions.get(status) ?? 0) + 1);
  }

  /** A timer on completions while READs are out: slow is not stalled. */
  #watchProgress(): void {
    const { stallMs } = this.#options;
    this.#progressMs = performance.now();
    const check = (): void => {
      this.#timer = undefined;
      if (this.#out.size === 0 || this.#state !== 'RTS') return;
      const quietMs = performance.now() - this.#progressMs;
      if (quietMs >= stallMs) this.fail(WC.RESP_TIMEOUT_ERR, `no completion for ${stallMs} ms`);
      else this.#timer = setTimeout(check, Math.ceil(stallMs - quietMs));
    };
    this.#timer ??= setTimeout(check, stallMs);
  }
}
