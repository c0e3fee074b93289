/**
 * The row groups that a scan has in memory or on the way there: those in flight in their order, those that were given
 * up and are leaving memory, and those of them that wait to be run again.
 */
import { type ByteLedger, newLedger, type WasteReason } from '../../fetcher/index.ts';
import type { RowGroupRun } from './row-group-run.ts';

export class RowGroupsInFlight {
  /** The first is the one whose rows come next. */
  readonly runs: RowGroupRun[] = [];
  /** Given up for want of memory, to be run again, in their order: they come before row groups not yet begun. */
  readonly evicted: RowGroupRun[] = [];
  /** Row groups given up for want of memory so far. */
  evictions = 0;
  readonly ledger: ByteLedger = newLedger();
  readonly #leaving = new Set<RowGroupRun>();

  get first(): RowGroupRun | undefined {
    return this.runs[0];
  }

  /** True while something that was given up is still in memory. */
  get isLeaving(): boolean {
    this.#dropGone();
    return this.#leaving.size > 0;
  }

  /** A row group that is ready to be run: behind those that wait to be run again. */
  add(run: RowGroupRun): void {
    if (this.evicted.length > 0) this.evicted.push(run);
    else this.runs.push(run);
  }

  /** Takes the row groups out that are done, the first ones first. */
  takeDone(): RowGroupRun[] {
    this.#dropGone();
    const done = this.runs.filter((run) => run.isDone);
    for (const run of done) {
      this.runs.splice(this.runs.indexOf(run), 1);
      run.settleInto(this.ledger);
    }
    return done;
  }

  /** Gives one up for want of memory; it is run again later. Only the last one may be given up, so that order holds. */
  evictLast(): void {
    const run = this.runs.pop()!;
    this.evicted.unshift(run);
    this.evictions++;
    this.#leave(run, 'evicted');
  }

  evictAll(): void {
    while (this.runs.length > 0) this.evictLast();
  }

  /** Gives all up for good. */
  close(reason: WasteReason): void {
    for (const run of this.runs.splice(0)) this.#leave(run, reason);
    this.evicted.length = 0;
  }

  #leave(run: RowGroupRun, reason: WasteReason): void {
    this.#leaving.add(run);
    run.close(reason);
  }

  #dropGone(): void {
    for (const run of this.#leaving) {
      if (!run.isGone) continue;
      run.settleInto(this.ledger);
      this.#leaving.delete(run);
    }
  }
}
