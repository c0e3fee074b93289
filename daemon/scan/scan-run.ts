/**
 * One scan from plan to batches: keeps `depth` row groups in flight, the first being the one whose rows are wanted
 * next, shares the pool between them, and hands out batches as they are asked for. The consumer's pace is the pace:
 * decoders stop when their segments are not taken, requests stop when memory is taken.
 *
 * Memory rules: only the first row group may take the last quarter of the pool; when it is short nevertheless, row
 * groups ahead of it are given up, the farthest first, and run again later; when it is short alone, the scan fails
 * and says how much it would take.
 */
import type { Pool } from '../../decode/index.ts';
import {
  type ByteLedger,
  type DepthChange,
  FetchError,
  newLedger,
  nextDepth,
  PREFETCH_DEPTH_DEFAULT,
} from '../../fetcher/index.ts';
import { AHEAD_MEMORY_SHARE, OTHERS_LOOK_MS, OTHERS_STILL_MS } from '../limits.ts';
import type { ScanEngine } from './engine.ts';
import type { RowGroupRun } from './row-group-run.ts';
import type { Batch } from './segments.ts';

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
  evictions: number;
  /** Milliseconds that the consumer waited for a batch. */
  waitedMs: number;
  peakMemoryBytes: number;
  readonly columnBusyMs: Map<string, number>;
}

/** Row groups read without giving one up, after which one more ahead is tried. */
const CALM_ROW_GROUPS = 4;

export class ScanRun {
  readonly totals: ScanTotals;
  readonly #engine: ScanEngine;
  readonly #pool: Pool;
  readonly #source: RowGroupSource;
  readonly #options: ScanRunOptions;
  readonly #context: ScanContext;
  /** Row groups in flight, the first is the one whose rows come next; closing ones leave `#leaving` when gone. */
  #runs: RowGroupRun[] = [];
  readonly #leaving = new Set<RowGroupRun>();
  readonly #evicted: RowGroupRun[] = [];
  /** The first row group was started over and has the pool for itself. */
  #alone = false;
  /** Row groups in flight that memory has room for, learnt from having to give some up. */
  #roomDepth = Number.POSITIVE_INFINITY;
  /** Row groups read since. */
  #calm = 0;
  /** The row group that row groups ahead were last given up for. */
  #relieved: RowGroupRun | undefined;
  #loading = false;
  #exhausted = false;
  #failure: Error | undefined;
  #outstanding = 0;
  #wake: (() => void) | undefined;
  /** Everything rests and the first row group is short of memory: it was let try once more. */
  #lastChance = false;
  #waitingForOthers: { readonly progress: number; readonly since: number } | undefined;
  #pumping = false;
  #ended = false;
  #depth: number;
  /** What `auto` has looked at already. */
  #observed = { at: performance.now(), waitedMs: 0, evictions: 0 };

  constructor(engine: ScanEngine, source: RowGroupSource, options: ScanRunOptions) {
    this.#engine = engine;
    this.#pool = engine.pool;
    this.#source = source;
    this.#options = options;
    this.#depth = options.depth === 'auto' ? PREFETCH_DEPTH_DEFAULT : options.depth;
    this.totals = {
      ledger: newLedger(),
      requests: 0,
      fetchMs: 0,
      rows: 0,
      batches: 0,
      rowGroups: 0,
      evictions: 0,
      waitedMs: 0,
      peakMemoryBytes: 0,
      columnBusyMs: new Map(),
    };
    this.#context = {
      engine,
      changed: () => this.#changed(),
      onFetch: (_bytes, milliseconds) => {
        this.totals.requests++;
        this.totals.fetchMs += milliseconds;
      },
    };
    engine.scans++;
    options.signal?.addEventListener('abort', this.#onAbort, { once: true });
    if (options.signal?.aborted) this.#onAbort();
  }

  readonly #onAbort = (): void => {
    this.#failure ??= new FetchError('CANCELLED', 'the scan was cancelled');
    this.#changed();
  };

  /** The next batch; undefined at the end. The caller releases it. Throws DecodeError or FetchError. */
  async next(): Promise<Batch | undefined> {
    const asked = performance.now();
    for (;;) {
      if (this.#ended) return undefined;
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
        return batch;
      }
      if (this.#isFinished()) {
        await this.close();
        return undefined;
      }
      this.#failWhenStuck();
      if (this.#failure !== undefined) continue;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #isFinished(): boolean {
    if (this.totals.rows >= this.#options.limit) return true;
    return this.#exhausted && this.#runs.length === 0 && this.#evicted.length === 0;
  }

  /** Something happened: look again, once per turn of the event loop's microtasks. */
  #changed(): void {
    if (this.#pumping || this.#ended) return;
    this.#pumping = true;
    queueMicrotask(() => {
      this.#pumping = false;
      if (this.#ended) return;
      this.#pump();
      const wake = this.#wake;
      this.#wake = undefined;
      wake?.();
    });
  }

  #pump(): void {
    this.#dropGone();
    for (const run of this.#runs) if (run.failure !== undefined) this.#failure ??= run.failure;
    if (this.#failure !== undefined || this.#ended) return;
    this.#dropDone();
    this.#refill();
    const share = this.#pool.capacityBytes * AHEAD_MEMORY_SHARE;
    for (const [ahead, run] of this.#runs.entries()) {
      if (ahead === 0) run.advance(() => true, true);
      else run.advance((bytes) => this.#pool.usedBytes + bytes <= share, this.#pool.usedBytes <= share);
    }
    this.#relieveFirst();
    this.totals.peakMemoryBytes = Math.max(this.totals.peakMemoryBytes, this.#pool.usedBytes);
  }

  /** Row groups that were given up and have left memory. */
  #dropGone(): void {
    for (const run of this.#leaving) {
      if (!run.isGone) continue;
      run.settleInto(this.totals.ledger);
      this.#leaving.delete(run);
    }
  }

  #dropDone(): void {
    this.#runs = this.#runs.filter((run) => {
      if (!run.isDone) return true;
      for (const column of run.columns) {
        const name = column.column.name;
        this.totals.columnBusyMs.set(name, (this.totals.columnBusyMs.get(name) ?? 0) + column.busyMs);
      }
      run.settleInto(this.totals.ledger);
      this.totals.rowGroups++;
      this.#alone = false;
      if (++this.#calm >= CALM_ROW_GROUPS && this.#roomDepth < this.#depth) {
        this.#roomDepth++;
        this.#calm = 0;
      }
      if (this.#options.depth === 'auto') this.#adaptDepth();
      return false;
    });
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
    if (this.#alone && this.#leaving.size > 0) return;
    const depth = this.#alone ? 1 : Math.min(this.#depth, this.#roomDepth);
    while (this.#runs.length < depth) {
      const evicted = this.#evicted[0];
      if (evicted === undefined) break;
      // not before the one that it made room for has been read: both would only push each other out
      if (this.#runs.length > 0 && this.#runs[0] === this.#relieved) return;
      this.#evicted.shift();
      this.#runs.push(this.#source.again(evicted, this.#context));
    }
    if (this.#evicted.length > 0 || this.#loading || this.#exhausted) return;
    if (this.#runs.length >= depth) return;
    this.#loading = true;
    this.#source.next(this.#context).then(
      (run) => {
        this.#loading = false;
        if (run === undefined) this.#exhausted = true;
        else if (this.#ended) run.close('speculation');
        else if (this.#evicted.length > 0)
          this.#evicted.push(run); // its turn comes after theirs
        else this.#runs.push(run);
        this.#changed();
      },
      (error: unknown) => {
        this.#loading = false;
        this.#failure ??= error instanceof Error ? error : new Error(String(error));
        this.#changed();
      },
    );
  }

  /** When the first row group is short of memory, gives up the farthest one ahead of it. */
  #relieveFirst(): void {
    const first = this.#runs[0];
    if (first === undefined || first.memoryShort === 0 || this.#leaving.size > 0) return;
    const last = this.#runs.findLast((run) => run !== first && run.isUntouched);
    if (last === undefined) return;
    this.#runs.splice(this.#runs.indexOf(last), 1);
    this.#leaving.add(last);
    this.#evicted.unshift(last);
    this.#relieved = first;
    this.totals.evictions++;
    this.#roomDepth = Math.max(1, this.#runs.length);
    this.#calm = 0;
    last.close('evicted');
  }

  #failWhenStuck(): void {
    const first = this.#runs[0];
    if (first === undefined || first.memoryShort === 0 || this.#loading) return;
    if (this.#leaving.size > 0 || this.#runs.some((run) => run.isBusy)) return;
    if (this.#runs.length > 1 && this.#runs.some((run) => run !== first && run.isUntouched)) return;
    if (!this.#lastChance) {
      // what was freed since it was short may be enough
      this.#lastChance = true;
      first.retry();
      this.#pump();
      return;
    }
    if (!this.#alone && this.#outstanding === 0) {
      // its slabs lie scattered among those of row groups that are gone: start it over in an empty pool
      this.#alone = true;
      this.#lastChance = false;
      this.#runs = [];
      this.#leaving.add(first);
      this.#evicted.unshift(first);
      this.totals.evictions++;
      first.close('evicted');
      this.#changed();
      return;
    }
    if (this.#othersMayFree()) return;
    const pool = this.#pool;
    const needed = pool.usedBytes + first.memoryShort * 2;
    const held =
      this.#outstanding > 0 ? `; ${this.#outstanding} batches are held by the consumer and not released` : '';
    this.#failure = new FetchError(
      'MEMORY',
      `row group ${first.group.ordinal} needs ${first.memoryShort} bytes more than the cap of ${pool.capacityBytes} ` +
        `leaves (${pool.usedBytes} in use)${held}; try --memory ${mebibytes(needed)}MiB`,
    );
  }

  /** Other scans of the engine hold memory too: theirs goes back as long as they move. Looks again in a while. */
  #othersMayFree(): boolean {
    if (this.#engine.scans === 1) return false;
    const { progress } = this.#engine;
    if (this.#waitingForOthers?.progress !== progress) this.#waitingForOthers = { progress, since: performance.now() };
    if (performance.now() - this.#waitingForOthers.since > OTHERS_STILL_MS) return false;
    setTimeout(() => this.#changed(), OTHERS_LOOK_MS);
    return true;
  }

  #takeBatch(): Batch | undefined {
    const left = this.#options.limit - this.totals.rows;
    if (left <= 0) return undefined;
    const rows = Math.min(left, this.#options.batchRows);
    const candidates = this.#options.preserveOrder ? this.#runs.slice(0, 1) : this.#runs;
    for (const run of candidates) {
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
      this.#lastChance = false;
      this.#engine.progress++;
      this.#outstanding++;
      this.#pump();
      return batch;
    }
    return undefined;
  }

  /** Stops everything; resolves when nothing of the scan is in memory but batches that the consumer holds. */
  async close(): Promise<void> {
    if (!this.#ended) {
      this.#ended = true;
      this.#engine.scans--;
      this.#options.signal?.removeEventListener('abort', this.#onAbort);
      for (const run of this.#runs.splice(0)) {
        this.#leaving.add(run);
        run.close('speculation');
      }
    }
    this.#wake?.();
    for (;;) {
      this.#dropGone();
      if (this.#leaving.size === 0) break;
      await this.#engine.tick();
    }
    this.#engine.progress++;
  }
}

const mebibytes = (bytes: number): number => Math.ceil(bytes / 2 ** 20);
