/**
 * One scan from plan to batches: keeps `depth` row groups in flight, the first being the one whose rows are wanted
 * next, shares the pool between them, and hands out batches as they are asked for. The consumer's pace is the pace:
 * decoders stop when their segments are not taken, requests stop when memory is taken. What happens when memory is
 * short is said in `shortage.ts`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from '../../decode/index.ts';
import { type ByteLedger, type DepthChange, FetchError, nextDepth } from '../../fetcher/index.ts';
import { AHEAD_MEMORY_SHARE, CONSUMER_IDLE_MS, WIDE_COLUMNS } from '../limits.ts';
import type { ScanEngine } from './engine.ts';
import type { ScanOutcome } from './engine-activity.ts';
import { RowGroupsInFlight } from './in-flight.ts';
import type { RowGroupRun } from './row-group-run.ts';
import type { Batch } from './segments.ts';
import { Shortage } from './shortage.ts';

/** Makes the runs of a scan's row groups, one after the other; undefined at the end. `again` re-makes a given-up one. */
export interface RowGroupSource {
  next(scan: ScanContext): Promise<RowGroupRun | undefined>;
  again(run: RowGroupRun, scan: ScanContext): RowGroupRun;
}

export interface ScanContext {
  readonly engine: ScanEngine;
  readonly changed: () => void;
  readonly onFetch: (bytes: number, milliseconds: number) => void;
}

export interface ScanRunOptions {
  /** Row groups in flight, the one being read included: 1 is none ahead. */
  readonly depth: number | 'auto';
  /** What `auto` begins with. */
  readonly firstDepth: number;
  /** Told when `auto` changes the depth. */
  readonly onDepth?: (change: DepthChange) => void;
  readonly preserveOrder: boolean;
  /** Rows to give out at most. */
  readonly limit: number;
  readonly batchRows: number;
  readonly signal?: AbortSignal;
}

export interface ScanTotals {
  readonly ledger: ByteLedger;
  requests: number;
  fetchMs: number;
  rows: number;
  batches: number;
  rowGroups: number;
  readonly evictions: number;
  /** Milliseconds that the consumer waited for a batch. */
  waitedMs: number;
  peakMemoryBytes: number;
  readonly columnBusyMs: Map<string, number>;
}

export class ScanRun {
  readonly totals: ScanTotals;
  readonly #engine: ScanEngine;
  readonly #pool: Pool;
  readonly #source: RowGroupSource;
  readonly #options: ScanRunOptions;
  readonly #context: ScanContext;
  readonly #flight = new RowGroupsInFlight();
  readonly #shortage: Shortage;
  #loading = false;
  /** The consumer has rows and has not asked for more, and there are row groups left. */
  #held = false;
  #exhausted = false;
  /** Calls of `next` that are not answered, and when the last one was. */
  #asked = 0;
  #answeredAt = performance.now();
  #isAside = false;
  #failure: Error | undefined;
  #outstanding = 0;
  #wake: (() => void) | undefined;
  #pumping = false;
  #ended = false;
  #complete = false;
  /** The row group that was first when last looked at. */
  #first: RowGroupRun | undefined;
  #depth: number;
  /** The last `next` that was asked for: they are answered in turn. */
  #turn: Promise<unknown> = Promise.resolve();
  /** What `auto` has looked at already. */
  #observed = { at: performance.now(), waitedMs: 0, evictions: 0 };

  constructor(engine: ScanEngine, source: RowGroupSource, options: ScanRunOptions) {
    this.#engine = engine;
    this.#pool = engine.pool;
    this.#source = source;
    this.#options = options;
    this.#depth = options.depth === 'auto' ? options.firstDepth : options.depth;
    this.#shortage = new Shortage(engine, this.#flight, this);
    const flight = this.#flight;
    this.totals = {
      ledger: flight.ledger,
      requests: 0,
      fetchMs: 0,
      rows: 0,
      batches: 0,
      rowGroups: 0,
      get evictions() {
        return flight.evictions;
      },
      waitedMs: 0,
      peakMemoryBytes: 0,
      columnBusyMs: new Map(),
    };
    this.#context = {
      engine,
      changed: () => this.#changed(),
      onFetch: (bytes, milliseconds) => {
        engine.activity.fetchSeconds.observe(milliseconds / 1000);
        engine.activity.fetchBytes.observe(bytes);
        this.totals.requests++;
        this.totals.fetchMs += milliseconds;
      },
    };
    engine.scans.add(this);
    engine.activity.opened(this);
    options.signal?.addEventListener('abort', this.#onAbort, { once: true });
    if (options.signal?.aborted) this.#onAbort();
  }

  readonly #onAbort = (): void => this.fail(new FetchError('CANCELLED', 'the scan was cancelled'));

  get holdsMemory(): boolean {
    return this.#outstanding > 0 || this.#flight.runs.length > 0 || this.#flight.isLeaving;
  }

  get isShort(): boolean {
    return this.#shortage.isShort;
  }

  get isAside(): boolean {
    return this.#isAside;
  }

  stepAside(): boolean {
    const isIdle = this.#asked === 0 && performance.now() - this.#answeredAt > CONSUMER_IDLE_MS;
    if (!isIdle || this.#ended || this.#flight.runs.length === 0) return false;
    this.#isAside = true;
    this.#shortage.stepAside();
    return true;
  }

  /** Row groups in flight at most. */
  get depth(): number {
    return this.#depth;
  }

  get rowGroupsInFlight(): number {
    return this.#flight.runs.length;
  }

  /** Ends the scan from outside: the next batch that is asked for is this error. */
  fail(error: Error): void {
    this.#failure ??= error;
    this.#changed();
  }

  /**
   * The next batch; undefined at the end. The caller releases it. Calls are answered in turn. Throws DecodeError or
   * FetchError.
   */
  next(): Promise<Batch | undefined> {
    this.#asked++;
    this.#isAside = false;
    const answer = this.#turn.then(
      () => this.#answer(),
      () => this.#answer(),
    );
    this.#turn = answer;
    return answer;
  }

  async #answer(): Promise<Batch | undefined> {
    try {
      return await this.#next();
    } finally {
      this.#asked--;
      this.#answeredAt = performance.now();
    }
  }

  async #next(): Promise<Batch | undefined> {
    const asked = performance.now();
    this.#hold(false);
    for (;;) {
      if (this.#ended) return this.#afterEnd();
      this.#pump();
      if (this.#failure !== undefined) {
        await this.close();
        throw this.#failure;
      }
      const batch = this.#takeBatch();
      if (batch !== undefined) {
        this.totals.waitedMs += performance.now() - asked;
        this.totals.rows += batch.rows;
        this.totals.batches++;
        this.#hold(!this.#exhausted && this.totals.rows < this.#options.limit);
        return batch;
      }
      if (this.#isFinished()) {
        this.#complete = true;
        await this.close();
        return undefined;
      }
      if (!this.#loading && this.#shortage.isStuck) {
        const remedy = this.#shortage.resolve(this.#outstanding);
        if (remedy instanceof Error) this.#failure ??= remedy;
        if (remedy !== 'wait') continue;
      }
      await this.#news();
    }
  }

  /** A scan that failed stays failed. */
  #afterEnd(): undefined {
    if (this.#failure !== undefined) throw this.#failure;
    return undefined;
  }

  /** Waits until something happens; memory that others hold comes back without a word, so that is looked for. */
  async #news(): Promise<void> {
    const woken = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    const lookAgainMs = this.#shortage.lookAgainMs;
    if (lookAgainMs === undefined) return woken;
    const cancel = new AbortController();
    await Promise.race([woken, sleep(lookAgainMs, undefined, { signal: cancel.signal }).catch(() => {})]);
    cancel.abort();
  }

  #isFinished(): boolean {
    if (this.totals.rows >= this.#options.limit) return true;
    return this.#exhausted && this.#flight.runs.length === 0 && this.#flight.evicted.length === 0;
  }

  /**
   * Something happened: look again, soon; after all messages of this turn where there are so many columns that a look
   * at them costs more than it may find.
   */
  #changed(): void {
    this.#shortage.news();
    if (this.#pumping || this.#ended) return;
    this.#pumping = true;
    const soon = (this.#flight.first?.columns.length ?? 0) > WIDE_COLUMNS ? setImmediate : queueMicrotask;
    soon(() => {
      this.#pumping = false;
      if (this.#ended) return;
      this.#pump();
      const wake = this.#wake;
      this.#wake = undefined;
      wake?.();
    });
  }

  #pump(): void {
    const { runs } = this.#flight;
    for (const run of runs) if (run.failure !== undefined) this.#failure ??= run.failure;
    if (this.#failure !== undefined || this.#ended) return;
    for (const run of this.#flight.takeDone()) this.#finished(run);
    this.#refill();
    this.#countTurn();
    const share = this.#pool.capacityBytes * AHEAD_MEMORY_SHARE;
    for (const [ahead, run] of runs.entries()) {
      if (ahead === 0) run.advance(() => true, true);
      else run.advance((bytes) => this.#pool.usedBytes + bytes <= share, this.#pool.usedBytes <= share);
    }
    this.#shortage.relieve();
    this.totals.peakMemoryBytes = Math.max(this.totals.peakMemoryBytes, this.#pool.usedBytes);
  }

  /** Another row group has become the first one: counts what the prefetch had brought of it. */
  #countTurn(): void {
    const { first } = this.#flight;
    if (first === this.#first) return;
    this.#first = first;
    if (first !== undefined && first.group.fetches.length > 0) this.#engine.activity.turns[first.fetched]++;
  }

  #finished(run: RowGroupRun): void {
    for (const column of run.columns) {
      const name = column.column.name;
      this.totals.columnBusyMs.set(name, (this.totals.columnBusyMs.get(name) ?? 0) + column.busyMs);
    }
    this.totals.rowGroups++;
    this.#shortage.done(this.#depth);
    if (this.#options.depth === 'auto') this.#adaptDepth();
  }

  #adaptDepth(): void {
    const { waitedMs, evictions } = this.totals;
    const now = performance.now();
    const change = nextDepth(this.#depth, {
      wallMs: now - this.#observed.at,
      waitedMs: waitedMs - this.#observed.waitedMs,
      evictions: evictions - this.#observed.evictions,
      memoryShare: this.#pool.usedBytes / this.#pool.capacityBytes,
    });
    this.#observed = { at: now, waitedMs, evictions };
    if (change === undefined) return;
    this.#depth = change.depth;
    this.#options.onDepth?.(change);
  }

  #refill(): void {
    const { runs, evicted } = this.#flight;
    const depth = this.#shortage.depth(this.#depth);
    while (runs.length < depth && evicted.length > 0) {
      if (!this.#shortage.mayReturn) return;
      runs.push(this.#source.again(evicted.shift()!, this.#context));
    }
    if (evicted.length > 0 || this.#loading || this.#exhausted || runs.length >= depth) return;
    this.#setLoading(true);
    this.#source.next(this.#context).then(
      (run) => {
        this.#setLoading(false);
        if (run === undefined) this.#exhausted = true;
        else if (this.#ended) run.close('speculation');
        else this.#flight.add(run);
        this.#changed();
      },
      (error: unknown) => {
        this.#setLoading(false);
        this.fail(error instanceof Error ? error : new Error(String(error)));
      },
    );
  }

  /** Tells the decoders' profilers why they have no work: the next row group is being looked up. */
  #setLoading(loading: boolean): void {
    this.#loading = loading;
    this.#engine.streams.expect(loading ? 1 : -1);
  }

  /** The same: the next row groups wait for the consumer. */
  #hold(held: boolean): void {
    if (held === this.#held) return;
    this.#held = held;
    this.#engine.streams.hold(held ? 1 : -1);
  }

  #takeBatch(): Batch | undefined {
    const left = this.#options.limit - this.totals.rows;
    if (left <= 0) return undefined;
    const rows = Math.min(left, this.#options.batchRows);
    const { runs } = this.#flight;
    for (const run of this.#options.preserveOrder ? runs.slice(0, 1) : runs) {
      const batch = run.takeBatch(rows, () => {
        this.#outstanding--;
        this.#changed();
      });
      if (run.failure !== undefined) {
        batch?.release();
        this.#changed();
        return undefined;
      }
      if (batch === undefined) continue;
      this.#shortage.moved();
      this.#engine.progress++;
      this.#outstanding++;
      this.#pump();
      return batch;
    }
    return undefined;
  }

  #outcome(): ScanOutcome {
    const isCancelled = this.#failure instanceof FetchError && this.#failure.code === 'CANCELLED';
    if (this.#failure !== undefined && !isCancelled) return 'failed';
    return this.#complete ? 'complete' : 'closed';
  }

  /** Stops everything; resolves when nothing of the scan is in memory but batches that the consumer holds. */
  async close(): Promise<void> {
    if (!this.#ended) {
      this.#ended = true;
      this.#hold(false);
      this.#engine.scans.delete(this);
      this.#shortage.end();
      this.#options.signal?.removeEventListener('abort', this.#onAbort);
      this.#flight.close('speculation');
    }
    this.#wake?.();
    while (this.#flight.isLeaving) await this.#engine.tick();
    this.#engine.progress++;
    this.#engine.activity.closed(this, this.#outcome());
  }
}
