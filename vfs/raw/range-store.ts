/**
 * The one place where a mount keeps bytes of its source: units of file versions, each absent, on its way, or there, in
 * slabs of the pool. Whoever reads waits for the same request; nothing is fetched twice while it is in memory. Readers'
 * requests start at once; what is fetched ahead waits for room and for its turn. When memory is short, units leave that
 * nobody reads: those that were read through first, then the least recently used; then readers take turns
 * (memory-turns.ts).
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
import { PAGE_BYTES } from '../fuse/limits.ts';
import { AHEAD_SHARE, REQUEST_SHARE, STORE_REQUEST_BYTES_MAX } from '../limits.ts';
import { AheadQueue } from './ahead-queue.ts';
import { type Keeper, MemoryTurns } from './memory-turns.ts';
import { type BytesReady, StoredFile, type Turn, type Unit, type UnitKeeper } from './stored-file.ts';
import type { FileUnits } from './units.ts';
import { type ReadKeeper, WaitingRead } from './waiting-read.ts';

export interface RangeStoreOptions {
  readonly pool: Pool;
  readonly transport: Transport;
  /** Bytes that may lie between two units of one request. */
  readonly gapBytes: () => number;
  readonly onFetch?: (bytes: number, milliseconds: number) => void;
  /** Bytes that stay although they were read to their end, for those who read them again; all that have room by default. */
  readonly readKeptBytes?: number;
}

/** It is there, whole, and nobody uses it. */
function isIdle({ pins, landed, start, end }: Unit): boolean {
  return pins === 0 && landed === end - start;
}

export class RangeStore implements UnitKeeper, ReadKeeper, Keeper {
  readonly ledger: ByteLedger = newLedger();
  /** Reads answered from memory, with bytes that were on their way, and with a request of their own. */
  readonly reads = { there: 0, late: 0, absent: 0 };
  requests = 0;
  evictions = 0;
  /** Who gets memory when it is short: shared with all that take from the same pool. */
  readonly turns = new MemoryTurns();
  readonly #options: RangeStoreOptions;
  /** Units in memory or on their way, the least recently used first. */
  readonly #units = new Set<Unit>();
  /** Those of them that were read to their end, in the same order. */
  readonly #readThrough = new Set<Unit>();
  #readThroughBytes = 0;
  readonly #waiters = new Set<WaitingRead>();
  readonly #ahead = new AheadQueue();
  #requestsOpen = 0;
  #closed: Error | undefined;
  readonly #requestBytesMax: number;
  readonly #cancel = new AbortController();

  constructor(options: RangeStoreOptions) {
    this.#options = options;
    this.#requestBytesMax = Math.min(STORE_REQUEST_BYTES_MAX, options.pool.capacityBytes * REQUEST_SHARE);
    this.turns.add(this);
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

  read(units: readonly Unit[], range: Range, done: BytesReady, turn?: Turn): (() => void) | undefined {
    if (this.#closed !== undefined) {
      done(this.#closed, []);
      return undefined;
    }
    const absent = units.some((unit) => unit.fetch === undefined);
    const read = new WaitingRead(this, units, range, done, turn ?? { turn: this.turns.nextTurn() });
    for (const unit of units) this.#touch(unit);
    if (!absent) {
      this.#unpark(read);
      if (this.#answer(read)) {
        this.reads.there++;
        return undefined;
      }
    }
    this.reads[absent ? 'absent' : 'late']++;
    this.#waiters.add(read);
    this.turns.begin(read);
    // what is free belongs to those who came before
    if (absent && this.turns.isBehind(read)) this.turns.wait(read);
    else this.resume(read);
    return read.over ? undefined : () => this.#drop(read);
  }

  /** Brings the units of a read into memory. */
  resume(read: WaitingRead): void {
    this.#unpark(read);
    const absent = read.units.filter((unit) => unit.fetch === undefined);
    const policy = {
      gapBytesMax: this.#options.gapBytes(),
      requestBytesMax: read.wasShort ? 1 : this.#requestBytesMax,
      amplificationMax: 2,
    };
    for (const request of coalesceRanges(absent, policy)) {
      while (!this.#startRequest(request, request.parts, false)) {
        if (this.turns.evict()) continue;
        read.wasShort = true;
        this.turns.wait(read);
        return;
      }
      if (read.over) return;
    }
    this.#answer(read);
  }

  #unpark(read: WaitingRead): void {
    if (!read.isParked) return;
    read.isParked = false;
    for (const unit of read.units) unit.pins++;
  }

  park(read: WaitingRead): void {
    this.#letGo(read);
    this.turns.wait(read);
  }

  #letGo(read: WaitingRead, readTo = 0): void {
    if (read.isParked) return;
    read.isParked = true;
    for (const unit of read.units) {
      if (readTo > 0) this.#readUpTo(unit, readTo);
      this.unpin(unit);
    }
  }

  #readUpTo(unit: Unit, end: number): void {
    unit.readTo = Math.max(unit.readTo, Math.min(unit.end, end) - unit.start);
    if (unit.readTo < unit.end - unit.start || unit.fetch === undefined || this.#readThrough.has(unit)) return;
    this.#readThrough.add(unit);
    this.#readThroughBytes += unit.end - unit.start;
  }

  /** Nobody waits any more. */
  #drop(read: WaitingRead): void {
    if (read.over) return;
    read.over = true;
    this.#waiters.delete(read);
    this.#letGo(read);
    this.turns.end(read);
  }

  /** Answers a read whose bytes are all there, or one of whose units has failed. */
  #answer(read: WaitingRead): boolean {
    const { units, range, done } = read;
    if (read.over || read.isParked) return false;
    const failure = units.find((unit) => unit.failure !== undefined)?.failure;
    if (failure === undefined) {
      for (const unit of units) {
        if (unit.fetch === undefined || unit.start + unit.landed < Math.min(unit.end, range.end)) return false;
      }
    }
    read.over = true;
    this.#waiters.delete(read);
    try {
      if (failure !== undefined) done(failure, []);
      else done(undefined, this.#views(units, range));
    } finally {
      this.#letGo(read, failure === undefined ? range.end : 0);
      this.turns.end(read);
    }
    return true;
  }

  /** The bytes of a range, in as few views as its units lie in places. */
  #views(units: readonly Unit[], range: Range): Uint8Array[] {
    const { u8 } = this.#options.pool;
    const views: Uint8Array[] = [];
    for (let k = 0; k < units.length; ) {
      const first = units[k]!;
      const from = this.addressOf(first) + Math.max(first.start, range.start) - first.start;
      while (k + 1 < units.length && units[k + 1]!.fetch === first.fetch) k++;
      const last = units[k++]!;
      views.push(u8.subarray(from, this.addressOf(last) + Math.min(last.end, range.end) - last.start));
    }
    return views;
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
    else if (this.turns.isShort) this.turns.freed();
    else this.#dropRead();
  }

  /** What was read to its end leaves beyond the bytes that are to be kept of it. */
  #dropRead(): void {
    const { readKeptBytes = Number.POSITIVE_INFINITY } = this.#options;
    for (const unit of this.#readThrough) {
      if (this.#readThroughBytes <= readKeptBytes) return;
      if (isIdle(unit)) this.#release(unit, 'evicted');
    }
  }

  #touch(unit: Unit): void {
    if (this.#units.delete(unit)) this.#units.add(unit);
    if (this.#readThrough.delete(unit)) this.#readThrough.add(unit);
  }

  /** Fetches units that nobody waits for yet, in this order, as room and turns allow. */
  prefetch(units: readonly Unit[]): void {
    if (this.#closed !== undefined) return;
    this.#ahead.add(units);
    this.#startAhead();
  }

  /** Forgets what was to be fetched ahead of a file. */
  forget(file: StoredFile): void {
    this.#ahead.forget(file);
  }

  #startAhead(): void {
    const { pool } = this.#options;
    while (this.#ahead.mayBegin && !this.turns.isShort) {
      const { units, bytes } = this.#ahead.batch(this.#requestBytesMax);
      if (units.length === 0) return;
      // room for it is made only from what has been read through: what was fetched ahead must not push out its like
      while (pool.usedBytes + bytes > pool.capacityBytes * AHEAD_SHARE) if (!this.evict(true)) return;
      this.#ahead.remove(units);
      if (!this.#startBatch(units)) return;
    }
  }

  /** Starts the requests of units of one file that nobody waits for; false when there was no room for all. */
  #startBatch(units: readonly Unit[]): boolean {
    const policy = {
      gapBytesMax: this.#options.gapBytes(),
      requestBytesMax: this.#requestBytesMax,
      amplificationMax: 2,
    };
    return coalesceRanges(units, policy).every((request) => this.#startRequest(request, request.parts, true));
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
      onFreed: () => this.turns.freed(),
      // the kernel copies page by page: of pages that lie as its own do, it takes one for one
      alignment: PAGE_BYTES,
    });
    if (fetch === undefined) return false;
    this.requests++;
    this.#requestsOpen++;
    const bytes = range.end - range.start;
    const ended = ahead ? this.#ahead.began(bytes) : undefined;
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
      ended?.();
      if (error === undefined) onFetch?.(bytes, performance.now() - began);
      else for (const unit of units) this.#fail(unit, error);
      // what nobody waits for can be evicted from now on
      this.turns.freed();
    });
    return true;
  }

  #arrived(unit: Unit, bytes: number): void {
    unit.landed = bytes;
    if (unit.pins > 0 && unit.fetch !== undefined) this.#answerWaiters(unit);
  }

  #answerWaiters(unit: Unit): void {
    for (const read of [...this.#waiters]) if (read.units.includes(unit)) this.#answer(read);
  }

  #fail(unit: Unit, error: Error): void {
    unit.failure = error;
    this.#answerWaiters(unit);
    if (unit.pins === 0) this.#release(unit, 'cancelled');
  }

  /** Gives up the first unit that nobody needs; only one that has been read through when `readOnly`. */
  evict(readOnly: boolean): boolean {
    for (const unit of readOnly ? this.#readThrough : this.#units) {
      if (!isIdle(unit)) continue;
      this.evictions++;
      this.#release(unit, 'evicted');
      return true;
    }
    return false;
  }

  isBusy(): boolean {
    return this.#requestsOpen > 0;
  }

  roomAgain(): void {
    this.#startAhead();
  }

  #release(unit: Unit, reason: 'evicted' | 'speculation' | 'cancelled'): void {
    const { fetch, part, readTo } = unit;
    if (fetch === undefined) return;
    this.#units.delete(unit);
    if (this.#readThrough.delete(unit)) this.#readThroughBytes -= unit.end - unit.start;
    unit.fetch = undefined;
    unit.part = undefined;
    unit.landed = 0;
    fetch.release(part!, readTo, reason);
  }

  failShort(read: WaitingRead): void {
    if (read.over) return;
    const { pool } = this.#options;
    const { start, end } = read.range;
    this.#drop(read);
    const room = `no room for a read of ${end - start} bytes beside the ${pool.usedBytes} in use`;
    read.done(new FetchError('MEMORY', `${room}; use a larger --memory`), []);
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
    this.#ahead.clear();
    for (const read of [...this.#waiters]) {
      if (read.over) continue;
      this.#drop(read);
      read.done(error, []);
    }
    this.#cancel.abort();
    for (const unit of [...this.#units]) if (unit.pins === 0) this.#release(unit, 'cancelled');
  }
}
