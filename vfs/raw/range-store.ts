/**
 * The one place where a mount keeps bytes of its source: units of file versions, each absent, on its way, or there, in
 * slabs of the pool. Whoever reads waits for the same request; nothing is fetched twice while it is in memory. Readers'
 * requests start at once; what is fetched ahead waits for room and for its turn. When memory is short, units leave that
 * nobody reads: those that were read through first, then the least recently used.
 * Callbacks, not promises: a read of bytes that are there is answered within the call.
 */
import type { Pool, Range } from '../../decode/index.ts';
import {
  type ByteLedger,
  coalesceRanges,
  FetchError,
  type FileVersion,
  newLedger,
  RangeFetch,
  type Transport,
} from '../../fetcher/index.ts';
import { AHEAD_SHARE, SPECULATIVE_REQUESTS_MAX, STORE_REQUEST_BYTES_MAX } from '../limits.ts';
import { type BytesReady, StoredFile, type Unit, type UnitKeeper } from './stored-file.ts';
import type { FileUnits } from './units.ts';

interface Waiter {
  readonly units: readonly Unit[];
  readonly range: Range;
  readonly done: BytesReady;
  over: boolean;
}

export interface RangeStoreOptions {
  readonly pool: Pool;
  readonly transport: Transport;
  /** Bytes that may lie between two units of one request. */
  readonly gapBytes: () => number;
  readonly onFetch?: (bytes: number, milliseconds: number) => void;
  /** Asked for room when units alone can't give it: frees something else and says whether it did. */
  readonly makeRoom?: () => boolean;
}

export class RangeStore implements UnitKeeper {
  readonly ledger: ByteLedger = newLedger();
  /** Reads answered from memory, with bytes that were on their way, and with a request of their own. */
  readonly reads = { there: 0, late: 0, absent: 0 };
  requests = 0;
  evictions = 0;
  readonly #options: RangeStoreOptions;
  /** Units in memory or on their way, the least recently used first. */
  readonly #units = new Set<Unit>();
  readonly #waiters = new Set<Waiter>();
  /** Readers' units that found no room. */
  #short: Unit[] = [];
  /** Units to be fetched ahead, in order. */
  #ahead: Unit[] = [];
  #aheadRequests = 0;
  #requestsOpen = 0;
  #closed: Error | undefined;
  readonly #cancel = new AbortController();

  constructor(options: RangeStoreOptions) {
    this.#options = options;
  }

  /** A version of a file; close it when nobody reads it any more. */
  open(version: FileVersion, units: FileUnits): StoredFile {
    return new StoredFile(this, version, units);
  }

  /** Bytes that units take of the pool, as far as they know. */
  get heldBytes(): number {
    let bytes = 0;
    for (const unit of this.#units) bytes += unit.end - unit.start;
    return bytes;
  }

  /** Requests under way. */
  get requestsOpen(): number {
    return this.#requestsOpen;
  }

  read(units: readonly Unit[], range: Range, done: BytesReady): (() => void) | undefined {
    if (this.#closed !== undefined) {
      done(this.#closed, []);
      return undefined;
    }
    const waiter: Waiter = { units, range, done, over: false };
    for (const unit of units) unit.pins++;
    const absent = units.filter((unit) => unit.fetch === undefined);
    for (const unit of units) this.#touch(unit);
    if (absent.length > 0) this.#startNow(absent);
    if (this.#answer(waiter)) {
      this.reads[absent.length > 0 ? 'absent' : 'there']++;
      return undefined;
    }
    this.reads[absent.length > 0 ? 'absent' : 'late']++;
    this.#waiters.add(waiter);
    return () => this.#drop(waiter);
  }

  /** Nobody waits any more. */
  #drop(waiter: Waiter): void {
    if (waiter.over) return;
    waiter.over = true;
    this.#waiters.delete(waiter);
    for (const unit of waiter.units) this.unpin(unit);
  }

  /** Answers a waiter whose bytes are all there, or one of whose units has failed. */
  #answer(waiter: Waiter): boolean {
    const { units, range, done } = waiter;
    const failed = units.find((unit) => unit.failure !== undefined);
    if (failed === undefined) {
      for (const unit of units) {
        if (unit.fetch === undefined || unit.start + unit.landed < Math.min(unit.end, range.end)) return false;
      }
    }
    waiter.over = true;
    this.#waiters.delete(waiter);
    try {
      if (failed !== undefined) done(failed.failure!, []);
      else
        done(
          undefined,
          units.map((unit) => this.#view(unit, range)),
        );
    } finally {
      for (const unit of units) {
        if (failed === undefined) unit.readTo = Math.max(unit.readTo, Math.min(unit.end, range.end) - unit.start);
        this.unpin(unit);
      }
    }
    return true;
  }

  #view(unit: Unit, range: Range): Uint8Array {
    const address = this.addressOf(unit);
    const from = Math.max(unit.start, range.start) - unit.start;
    const to = Math.min(unit.end, range.end) - unit.start;
    return this.#options.pool.u8.subarray(address + from, address + to);
  }

  /** The pool's address of a unit that is in memory or on its way. */
  addressOf(unit: Unit): number {
    return unit.fetch!.address + (unit.start - unit.fetch!.start);
  }

  pin(unit: Unit): void {
    unit.pins++;
  }

  unpin(unit: Unit, isDone = false): void {
    unit.pins--;
    if (unit.pins > 0) return;
    const isWhole = unit.landed === unit.end - unit.start;
    if (unit.failure !== undefined || unit.file.isClosed || (isDone && isWhole)) this.#release(unit, 'speculation');
    else if (this.#short.length > 0) this.#startShort();
  }

  #touch(unit: Unit): void {
    if (this.#units.delete(unit)) this.#units.add(unit);
  }

  /** Fetches units that nobody waits for yet, in this order, as room and turns allow. */
  prefetch(units: readonly Unit[]): void {
    if (this.#closed !== undefined) return;
    const waiting = new Set(this.#ahead);
    for (const unit of units) if (unit.fetch === undefined && !waiting.has(unit)) this.#ahead.push(unit);
    this.#startAhead();
  }

  /** Forgets what was to be fetched ahead of a file. */
  forget(file: StoredFile): void {
    this.#ahead = this.#ahead.filter((unit) => unit.file !== file);
  }

  #startNow(units: readonly Unit[]): void {
    const short = this.#start(units, () => this.#makeRoom());
    if (short.length === 0) return;
    this.#short.push(...short);
    this.#failIfHopeless();
  }

  #startShort(): void {
    const units = this.#short.filter((unit) => unit.fetch === undefined && unit.pins > 0);
    this.#short = [];
    if (units.length > 0) this.#startNow(units);
  }

  #startAhead(): void {
    const { pool } = this.#options;
    while (this.#ahead.length > 0 && this.#aheadRequests < SPECULATIVE_REQUESTS_MAX && this.#short.length === 0) {
      const batch: Unit[] = [];
      let bytes = 0;
      for (const unit of this.#ahead) {
        if (unit.fetch !== undefined || unit.file.isClosed) continue;
        if (
          batch.length > 0 &&
          (unit.file !== batch[0]!.file || bytes + unit.end - unit.start > STORE_REQUEST_BYTES_MAX)
        ) {
          break;
        }
        batch.push(unit);
        bytes += unit.end - unit.start;
      }
      if (batch.length === 0) {
        this.#ahead = [];
        return;
      }
      // room for it is made only from what has been read through: what was fetched ahead must not push out its like
      while (pool.usedBytes + bytes > pool.capacityBytes * AHEAD_SHARE) if (!this.#evict(true)) return;
      const started = new Set(batch);
      this.#ahead = this.#ahead.filter((unit) => !started.has(unit) && unit.fetch === undefined);
      if (this.#start(batch, () => false, true).length > 0) return;
    }
  }

  /** Starts the requests of units of one file; returns those that found no room. */
  #start(units: readonly Unit[], makeRoom: () => boolean, ahead = false): Unit[] {
    const policy = {
      gapBytesMax: this.#options.gapBytes(),
      requestBytesMax: STORE_REQUEST_BYTES_MAX,
      amplificationMax: 2,
    };
    const short: Unit[] = [];
    for (const request of coalesceRanges(units, policy)) {
      while (!this.#startRequest(request, request.parts, ahead)) {
        if (makeRoom()) continue;
        short.push(...request.parts);
        break;
      }
    }
    return short;
  }

  #startRequest(range: Range, units: readonly Unit[], ahead: boolean): boolean {
    const { pool, transport, onFetch } = this.#options;
    const parts = units.map((unit) => {
      const { start, end } = unit;
      return { start, end, arrived: (bytes: number): void => this.#arrived(unit, bytes) };
    });
    const began = performance.now();
    const fetch = RangeFetch.start({
      pool,
      ledger: this.ledger,
      transport,
      file: units[0]!.file.version,
      range: { start: range.start, end: range.end },
      parts,
      signal: this.#cancel.signal,
      onFreed: () => this.#freed(),
    });
    if (fetch === undefined) return false;
    this.requests++;
    this.#requestsOpen++;
    if (ahead) this.#aheadRequests++;
    for (const [k, unit] of units.entries()) {
      unit.fetch = fetch;
      unit.part = parts[k];
      unit.readTo = 0;
      unit.failure = undefined;
      this.#units.add(unit);
    }
    // of a transport that needs no waiting, bytes may have come before the request was known
    for (const unit of units) if (unit.landed > 0 && unit.pins > 0) this.#answerWaiters(unit);
    void fetch.done.then((error) => {
      this.#requestsOpen--;
      if (ahead) this.#aheadRequests--;
      if (error === undefined) onFetch?.(range.end - range.start, performance.now() - began);
      else for (const unit of units) this.#fail(unit, error);
      this.#startShort();
      this.#startAhead();
    });
    return true;
  }

  #arrived(unit: Unit, bytes: number): void {
    unit.landed = bytes;
    if (unit.pins > 0 && unit.fetch !== undefined) this.#answerWaiters(unit);
  }

  #answerWaiters(unit: Unit): void {
    for (const waiter of [...this.#waiters]) {
      if (!waiter.over && waiter.units.includes(unit)) this.#answer(waiter);
    }
  }

  #fail(unit: Unit, error: Error): void {
    unit.failure = error;
    this.#answerWaiters(unit);
    if (unit.pins === 0) this.#release(unit, 'cancelled');
  }

  /** Frees some memory; false when nothing is left to free. */
  #makeRoom(): boolean {
    return this.#evict(true) || this.#evict(false) || (this.#options.makeRoom?.() ?? false);
  }

  /** Gives up the first unit that nobody needs; only one that has been read through when `readOnly`. */
  #evict(readOnly: boolean): boolean {
    for (const unit of this.#units) {
      if (unit.pins > 0 || unit.landed < unit.end - unit.start) continue;
      if (readOnly && unit.readTo < unit.end - unit.start) continue;
      this.evictions++;
      this.#release(unit, 'evicted');
      return true;
    }
    return false;
  }

  /** Gives up one unit that nobody needs: for others who are short of memory. */
  giveUpOne(): boolean {
    return this.#evict(true) || this.#evict(false);
  }

  #release(unit: Unit, reason: 'evicted' | 'speculation' | 'cancelled'): void {
    const { fetch, part, readTo } = unit;
    if (fetch === undefined) return;
    this.#units.delete(unit);
    unit.fetch = undefined;
    unit.part = undefined;
    unit.landed = 0;
    fetch.release(part!, readTo, reason);
  }

  /** Memory came back. */
  #freed(): void {
    if (this.#short.length > 0) queueMicrotask(() => this.#startShort());
  }

  /** Tells that memory came back which is not the store's. */
  roomAgain(): void {
    this.#startShort();
    this.#startAhead();
  }

  /** Readers that find no room although nothing of the store is on its way or pinned by others fail: none would come. */
  #failIfHopeless(): void {
    if (this.#requestsOpen > 0 || this.#short.length === 0) return;
    const shortUnits = new Set(this.#short);
    for (const unit of this.#units) if (unit.pins > 0 && !shortUnits.has(unit)) return;
    const { pool } = this.#options;
    const { start, end } = this.#short[0]!;
    const error = new FetchError(
      'MEMORY',
      `no room for ${end - start} bytes beside the ${pool.usedBytes} in use; use a larger --memory`,
    );
    for (const unit of this.#short.splice(0)) {
      unit.failure = error;
      this.#answerWaiters(unit);
      unit.failure = undefined;
    }
  }

  /** Gives up every unit of a file; those in use when they are not any more. */
  drop(file: StoredFile): void {
    this.forget(file);
    for (const unit of [...this.#units]) {
      if (unit.file === file && unit.pins === 0) this.#release(unit, 'speculation');
    }
  }

  /** Cancels everything; readers that wait are answered with `error`. */
  close(error: Error): void {
    if (this.#closed !== undefined) return;
    this.#closed = error;
    this.#ahead = [];
    this.#short = [];
    for (const waiter of [...this.#waiters]) {
      if (waiter.over) continue;
      this.#drop(waiter);
      waiter.done(error, []);
    }
    this.#cancel.abort();
    for (const unit of [...this.#units]) if (unit.pins === 0) this.#release(unit, 'cancelled');
  }
}
