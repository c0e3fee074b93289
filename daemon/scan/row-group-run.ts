/**
 * One row group in flight: brings its planned requests into the pool as memory and the decoders' appetite allow, runs
 * its columns, and zips their segments to batches of rows that all columns have. It decides nothing about other row
 * groups: the scan asks it to `advance`, to give a batch, or to give itself up.
 */
import { DecodeError, type Pool } from '../../decode/index.ts';
import {
  type ByteLedger,
  type FileVersion,
  mergeLedger,
  newLedger,
  type PlannedRowGroup,
  RangeFetch,
  type Transport,
  type WasteReason,
} from '../../fetcher/index.ts';
import type { ColumnRun } from './column-run.ts';
import { Batch, type ColumnSlice, type SharedSegment } from './segments.ts';

type PlannedFetch = PlannedRowGroup['fetches'][number];

export interface RowGroupContext {
  readonly pool: Pool;
  readonly transport: Transport;
  readonly file: FileVersion;
  /** Called whenever something changed that may let the scan go on. */
  readonly changed: () => void;
  readonly onFetch: (bytes: number, milliseconds: number) => void;
}

/** Bytes of a page: what writers make unless they are told otherwise. */
const PAGE_BYTES_GUESS = 1 << 20;

/** Bytes of a flow's kernel states and the rounding of its slabs. */
const FLOW_BYTES = 48 << 10;

export class RowGroupRun {
  readonly group: PlannedRowGroup;
  readonly columns: readonly ColumnRun[];
  failure: Error | undefined;
  /** Bytes that a request needed and did not get when it was last tried; 0 when none is short. */
  fetchShort = 0;
  readonly #context: RowGroupContext;
  readonly #cancel = new AbortController();
  readonly #byColumn: Map<number, ColumnRun>;
  #waiting: PlannedFetch[];
  #fetching = 0;
  #skipRows: number;
  #rowsTaken = 0;
  #closed: WasteReason | undefined;
  readonly #ledger = newLedger();

  /** `skipRows` are rows that an earlier run of the row group has given out already. */
  constructor(context: RowGroupContext, group: PlannedRowGroup, columns: readonly ColumnRun[], skipRows = 0) {
    this.#context = context;
    this.#skipRows = skipRows;
    this.group = group;
    this.columns = columns;
    this.#byColumn = new Map(columns.map((run) => [run.column.index, run]));
    this.#waiting = [...group.fetches];
  }

  get isFetching(): boolean {
    return this.#fetching > 0;
  }

  /** What has come of its requests so far: those that were sent have ended, some are on their way, none was sent. */
  get fetched(): 'hit' | 'late' | 'miss' {
    if (this.#fetching > 0) return 'late';
    return this.#waiting.length < this.group.fetches.length ? 'hit' : 'miss';
  }

  /** Bytes of the pool that it may take alone: pieces, pages and windows of all columns, as far as the footer tells. */
  get memoryEstimate(): number {
    let bytes = 0;
    for (const [k, chunk] of this.group.chunks.entries()) {
      const run = this.columns[k]!;
      const rows = Math.max(1, Math.min(run.spec.windowRows, this.group.numRows));
      const window = (chunk.uncompressed / Math.max(1, this.group.numRows)) * rows + rows / 8;
      bytes += Math.min(chunk.compressed, 2 * chunk.segmentBytes) + Math.min(chunk.uncompressed, PAGE_BYTES_GUESS);
      bytes += 2 * window + FLOW_BYTES;
    }
    return Math.max(bytes * 1.25, 2 * this.memoryShort);
  }

  /** True while something is on its way that will change its state: a request, or a running decoder. */
  get isBusy(): boolean {
    return this.#fetching > 0 || this.columns.some((run) => run.isRunning);
  }

  /** Every row has been taken and every slab that was its own has gone back or will without help. */
  get isDone(): boolean {
    if (this.columns.length === 0) return this.#rowsTaken >= this.group.numRows;
    return this.#waiting.length === 0 && this.#fetching === 0 && this.columns.every((run) => run.isOver);
  }

  /** After `close`: nothing of it is in memory any more. */
  get isGone(): boolean {
    return this.#fetching === 0 && this.columns.every((run) => run.ended);
  }

  /** Enters its bytes in the scan's ledger; when it is done or gone. */
  settleInto(ledger: ByteLedger): void {
    mergeLedger(ledger, this.#ledger, this.#rowsTaken === 0 ? this.#closed : undefined);
  }

  get memoryShort(): number {
    return Math.max(this.fetchShort, ...this.columns.map((run) => run.memoryShort));
  }

  /**
   * Starts what can be started. `mayFetch(bytes)` says whether a request of that size is welcome now; `mayDecode`
   * whether decoders may run.
   */
  advance(mayFetch: (bytes: number) => boolean, mayDecode: boolean): void {
    if (this.#closed !== undefined || this.failure !== undefined) return;
    this.#startFetches(mayFetch);
    if (mayDecode) for (const run of this.columns) run.runIfUseful();
  }

  /** Lets columns that were short of memory try again at the next `advance`. */
  retry(): void {
    for (const run of this.columns) run.retry();
  }

  #startFetches(mayFetch: (bytes: number) => boolean): void {
    this.fetchShort = 0;
    if (this.#waiting.length === 0) return;
    const left: PlannedFetch[] = [];
    let welcome = true;
    for (const range of this.#waiting) {
      const runs = range.parts.map((part) => this.#byColumn.get(part.column)!);
      welcome &&= mayFetch(range.end - range.start);
      if (!welcome || !runs.every((run) => run.wantsPiece)) {
        left.push(range);
        continue;
      }
      if (this.#start(range, runs)) continue;
      this.fetchShort = range.end - range.start;
      welcome = false;
      left.push(range);
    }
    this.#waiting = left;
  }

  #start(range: PlannedFetch, runs: readonly ColumnRun[]): boolean {
    const { pool, transport, file, changed, onFetch } = this.#context;
    const ledger = this.#ledger;
    const parts = range.parts.map((part, k) =>
      runs[k]!.part(part.chunkStart, part.chunkStart + (part.end - part.start), part.start),
    );
    const began = performance.now();
    const signal = this.#cancel.signal;
    const fetch = RangeFetch.start({ pool, ledger, transport, file, range, parts, signal, onFreed: changed });
    if (fetch === undefined) {
      for (const [k, part] of parts.entries()) runs[k]!.detach(part);
      return false;
    }
    for (const [k, part] of parts.entries()) runs[k]!.attach(part, fetch);
    this.#fetching++;
    void fetch.done.then((error) => {
      this.#fetching--;
      onFetch(range.end - range.start, performance.now() - began);
      if (error !== undefined && this.#closed === undefined) this.#fail(error);
      changed();
    });
    return true;
  }

  #fail(error: Error): void {
    this.failure ??= error;
    this.#context.changed();
  }

  /** Told by a column: decoding failed. */
  columnFailed(run: ColumnRun, error: Error): void {
    const located =
      error instanceof DecodeError
        ? error.located({ file: this.#context.file.path, column: run.column.name, rowGroup: this.group.ordinal })
        : error;
    this.#fail(located);
  }

  /** The next rows that all columns have, at most `rowsMax`; undefined when there are none now. */
  takeBatch(rowsMax: number, onReleased: () => void): Batch | undefined {
    if (this.columns.length === 0) return this.#takeBareRows(rowsMax, onReleased);
    this.#skip();
    const rows = this.#skipRows > 0 ? 0 : this.#rowsReady(rowsMax);
    if (rows === 0) {
      this.#checkEnd();
      return undefined;
    }
    const slices: ColumnSlice[] = [];
    const shared: SharedSegment[] = [];
    for (const run of this.columns) {
      const taken = run.take(rows);
      shared.push(taken.shared);
      slices.push({ column: run.column, segment: taken.shared.segment, start: taken.start, rows });
    }
    this.#rowsTaken += rows;
    return new Batch(rows, slices, shared, onReleased);
  }

  /** Rows of no columns: there is nothing but the footer's count of them. */
  #takeBareRows(rowsMax: number, onReleased: () => void): Batch | undefined {
    const rows = Math.min(rowsMax, this.group.numRows - this.#rowsTaken);
    if (rows <= 0) return undefined;
    this.#rowsTaken += rows;
    return new Batch(rows, [], [], onReleased);
  }

  #rowsReady(rowsMax: number): number {
    let rows = rowsMax;
    for (const run of this.columns) rows = Math.min(rows, run.frontRows);
    return rows;
  }

  #skip(): void {
    while (this.#skipRows > 0) {
      const rows = this.#rowsReady(this.#skipRows);
      if (rows === 0) return;
      for (const run of this.columns) run.take(rows).shared.release();
      this.#skipRows -= rows;
      this.#rowsTaken += rows;
    }
  }

  /** When some column has ended and its rows are taken, no other may have rows left: the file contradicts itself. */
  #checkEnd(): void {
    if (!this.columns.some((run) => run.isOver)) return;
    const longer = this.columns.find((run) => run.frontRows > 0);
    if (longer === undefined) return;
    const shorter = this.columns.find((run) => run.isOver)!;
    this.#fail(
      new DecodeError('METADATA', `has ${longer.rowsDecoded} rows or more`, {
        file: this.#context.file.path,
        column: longer.column.name,
        rowGroup: this.group.ordinal,
        expected: `${shorter.rowsDecoded}, as in column ${JSON.stringify(shorter.column.name)}`,
      }),
    );
  }

  /** Stops its requests and gives its memory back; bytes that were not consumed are entered under `reason`. */
  close(reason: WasteReason): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    this.#waiting = [];
    this.#cancel.abort();
    for (const run of this.columns) run.close(reason);
  }

  /** Rows given out, or skipped because an earlier run gave them out. */
  get rowsTaken(): number {
    return this.#rowsTaken + this.#skipRows;
  }

  /** True while none of its rows have been taken: it can be given up and run again from its start. */
  get isUntouched(): boolean {
    return this.rowsTaken === 0;
  }
}
