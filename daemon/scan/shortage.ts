/**
 * What a scan does when memory is short. Only the first row group may take the last quarter of the pool; when it is
 * short nevertheless, row groups ahead of it are given up, the farthest first, and run again later. When it is short
 * with what it alone holds, its slabs may only lie scattered: it is started over in an empty pool. When other scans
 * hold the rest, the younger gives way to the older, which then can go on, and comes back when no older one is short;
 * and if it can't for its slabs lie between where theirs were, it is started over once more, with the pool to itself
 * until a row group is read. A scan whose consumer does not ask for rows gives its memory to any other until it asks
 * again. When all of that was tried, the scan fails and names the memory that it would take.
 */
import { FetchError } from '../../fetcher/index.ts';
import { formatCounted } from '../argument.ts';
import { OTHERS_LOOK_MS, OTHERS_STILL_MS } from '../limits.ts';
import type { OpenScan, ScanEngine } from './engine.ts';
import type { RowGroupsInFlight } from './in-flight.ts';
import type { RowGroupRun } from './row-group-run.ts';

/** Row groups read without giving one up, after which one more ahead is tried. */
const CALM_ROW_GROUPS = 4;

/** Milliseconds without any news after which a running decoder counts as one that waits for bytes that find no room. */
const QUIET_MS = 200;

export class Shortage {
  readonly #engine: ScanEngine;
  readonly #flight: RowGroupsInFlight;
  readonly #scan: OpenScan;
  /** Row groups in flight that memory has room for, learnt from having to give some up. */
  #roomDepth = Number.POSITIVE_INFINITY;
  /** Row groups read since. */
  #calm = 0;
  /** The row group that row groups ahead were last given up for. */
  #relieved: RowGroupRun | undefined;
  /** Everything rests: the first row group was let try once more. */
  #lastChance = false;
  /** The first row group was started over and has the pool for itself. */
  #alone = false;
  /** Gave way to an older scan. */
  #yielded = false;
  #waitingForOthers: { readonly progress: number; readonly since: number } | undefined;
  #quietSince = performance.now();

  /** `scan` is what the engine knows the scan by. */
  constructor(engine: ScanEngine, flight: RowGroupsInFlight, scan: OpenScan) {
    this.#engine = engine;
    this.#flight = flight;
    this.#scan = scan;
  }

  /** How many row groups of the `depth` asked for may be in flight now. */
  depth(depth: number): number {
    if (this.#yielded || this.#isShutOut || (this.#alone && this.#flight.isLeaving)) return 0;
    return this.#alone ? 1 : Math.min(depth, this.#roomDepth);
  }

  /** The pool is another scan's. */
  get #isShutOut(): boolean {
    const { reservedFor } = this.#engine;
    return reservedFor !== undefined && reservedFor !== this.#scan;
  }

  /** No other scan has anything in memory. */
  get #isOnly(): boolean {
    return [...this.#engine.scans].every((scan) => scan === this.#scan || !scan.holdsMemory);
  }

  /** The consumer rests while others are short: all that is in memory goes, and comes back when it asks again. */
  stepAside(): void {
    this.end();
    this.#yielded = true;
    this.#alone = false;
    this.#waitingForOthers = undefined;
    this.#flight.evictAll();
  }

  /** The scan has ended. */
  end(): void {
    if (this.#engine.reservedFor === this.#scan) this.#engine.reservedFor = undefined;
  }

  /** May a row group that was given up come back now? Not beside the one that it made room for. */
  get mayReturn(): boolean {
    const { first } = this.#flight;
    return first === undefined || first !== this.#relieved;
  }

  /** Something moved: a request, a decoder, the consumer. */
  news(): void {
    this.#quietSince = performance.now();
  }

  /** Rows were given out. */
  moved(): void {
    this.#lastChance = false;
  }

  /** A row group was read to its end. */
  done(depth: number): void {
    this.#alone = false;
    this.end();
    if (++this.#calm < CALM_ROW_GROUPS || this.#roomDepth >= depth) return;
    this.#roomDepth++;
    this.#calm = 0;
  }

  /** When the first row group is short, gives up the farthest one ahead of it. */
  relieve(): void {
    const { first, runs, isLeaving } = this.#flight;
    if (first === undefined || first.memoryShort === 0 || isLeaving || runs.length === 1) return;
    if (!runs.at(-1)!.isUntouched) return;
    this.#flight.evictLast();
    this.#relieved = first;
    this.#roomDepth = Math.max(1, runs.length);
    this.#calm = 0;
  }

  /** It goes on as soon as there is memory. */
  get isShort(): boolean {
    return !this.#yielded && (this.#flight.first?.memoryShort ?? 0) > 0;
  }

  /** True when nothing will move unless this does something: only memory is missing. */
  get isStuck(): boolean {
    const { first, runs, isLeaving } = this.#flight;
    if (this.#yielded || (this.#isShutOut && first === undefined)) return true;
    if (first === undefined || first.memoryShort === 0 || isLeaving) return false;
    if (runs.length > 1 && runs.at(-1)!.isUntouched) return false; // relieve() comes first
    if (runs.some((run) => run.isFetching)) return false;
    return !runs.some((run) => run.isBusy) || performance.now() - this.#quietSince > QUIET_MS;
  }

  /** Milliseconds after which to look again though nothing happened; undefined when something will. */
  get lookAgainMs(): number | undefined {
    if (this.#yielded || this.#isShutOut || this.#waitingForOthers !== undefined) return OTHERS_LOOK_MS;
    return (this.#flight.first?.memoryShort ?? 0) > 0 ? QUIET_MS : undefined;
  }

  /**
   * Tries the next remedy: 'again' when the scan should look at once, 'wait' when others have to move first, an error
   * when nothing is left. `held` batches are the consumer's.
   */
  resolve(held: number): FetchError | 'again' | 'wait' {
    const { first } = this.#flight;
    this.#yielded ||= first === undefined;
    if (this.#yielded) return this.#waitForOthers(held);
    if (!this.#lastChance) {
      // what was freed since it was short may be enough
      this.#lastChance = true;
      first!.retry();
      return 'again';
    }
    const hasPool = this.#engine.reservedFor === this.#scan;
    if (held === 0 && !hasPool && (!this.#alone || this.#isOnly)) {
      if (this.#isOnly) this.#engine.reservedFor = this.#scan;
      this.#alone = true;
      this.#lastChance = false;
      this.#flight.evictAll();
      return 'again';
    }
    if (!hasPool && this.#engine.scans.size > 1) return this.#waitForOthers(held);
    return this.#failure(first!, held);
  }

  /** Others hold memory: theirs goes back as long as they move. A younger scan gives its own to an older one. */
  #waitForOthers(held: number): FetchError | 'again' | 'wait' {
    const { pool, progress, scans } = this.#engine;
    const now = performance.now();
    if (this.#waitingForOthers?.progress !== progress) this.#waitingForOthers = { progress, since: now };
    for (const scan of scans) {
      if (scan === this.#scan || !scan.stepAside()) continue;
      this.#waitingForOthers = { progress, since: now };
      this.#lastChance = false;
    }
    const all = [...scans];
    const older = all.slice(0, all.indexOf(this.#scan)).filter((scan) => !scan.isAside);
    const isOldest = older.length === 0;
    // who comes back must not take what an older one still waits for
    const hasRoom = pool.usedBytes <= pool.capacityBytes / 2 && !older.some((scan) => scan.isShort);
    if (this.#yielded && !this.#isShutOut && (isOldest || hasRoom)) {
      this.#yielded = false;
      this.#waitingForOthers = undefined;
      return 'again';
    }
    if (now - this.#waitingForOthers.since > OTHERS_STILL_MS) return this.#failure(this.#flight.first, held);
    if (!isOldest && !this.#yielded) {
      this.#yielded = true;
      this.#flight.evictAll();
      return 'again';
    }
    if (!this.#yielded) this.#flight.first?.retry();
    return 'wait';
  }

  #failure(first: RowGroupRun | undefined, held: number): FetchError {
    const { pool } = this.#engine;
    const run = first ?? this.#flight.evicted[0];
    const needed = Math.max(pool.capacityBytes * 1.5, run?.memoryEstimate ?? 0);
    const who = run === undefined ? 'a row group' : `row group ${run.group.ordinal}`;
    const what = `${who} needs ${run?.memoryShort ?? 'some'} bytes more than the cap of`;
    const batches = held > 0 ? `; ${held} batches are held by the consumer and not released` : '';
    // who had the pool to itself needs more, whoever is there
    const hadPool = this.#engine.reservedFor === this.#scan;
    const othersCount = hadPool ? 0 : this.#engine.scans.size - 1;
    const others = othersCount > 0 ? `; ${formatCounted(othersCount, 'other scan')} shared it` : '';
    return new FetchError(
      'MEMORY',
      `${what} ${pool.capacityBytes} leaves (${pool.usedBytes} in use)${batches}${others}; ` +
        `try --memory ${Math.ceil(needed / 2 ** 20)}MiB`,
      { retryable: othersCount > 0 },
    );
  }
}
