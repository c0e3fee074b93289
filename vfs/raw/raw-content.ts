/**
 * The raw view of one version of a file: exact bytes, fetched as somebody who knows Parquet would. A read inside a
 * column chunk fetches on in that chunk and begins the same column of the next row groups, whatever engine reads and
 * however it interleaves its columns: the cursors are the version's, one for each chunk, not a handle's. Other bytes
 * (no Parquet, footers that can't be read) get sequential read-ahead, and so does who copies a Parquet file: a handle
 * that has read a whole row group byte for byte will read the next one so too.
 */

import type { FileContent, Opening, ReadDone, RequestSignal } from '../fuse/content.ts';
import { PAGE_BYTES } from '../fuse/limits.ts';
import { UNIT_BYTES } from '../limits.ts';
import { ReadRuns, type Run } from './read-runs.ts';
import type { StoredFile } from './stored-file.ts';
import type { ChunkPlace } from './units.ts';

export interface RawContentOptions {
  /** Row groups in flight, the one being read included. */
  readonly depth: () => number;
  /** How handles are served by the kernel. */
  readonly opening: Opening;
  /** Bytes that the kernel reads beyond the end of what a program reads, at most; none for direct handles. */
  readonly kernelAheadBytes?: number;
  /** Opens the version in the store; called at its first use. */
  readonly stored: () => Promise<StoredFile>;
}

export class RawContent implements FileContent {
  readonly #options: RawContentOptions;
  /** Of each column, the row groups whose chunks were asked to be fetched ahead. */
  readonly #cursors = new Map<number, Set<number>>();
  readonly #runs = new Map<number, ReadRuns>();
  #stored: StoredFile | undefined;
  #opening: Promise<StoredFile> | undefined;
  #closed = false;

  constructor(options: RawContentOptions) {
    this.#options = options;
  }

  open(_signal: RequestSignal, done: (error: unknown, opening?: Opening) => void): void {
    this.#whenStored(
      () => done(undefined, this.#options.opening),
      (error) => done(error),
    );
  }

  read(offset: number, length: number, signal: RequestSignal, done: ReadDone): void {
    this.#whenStored(
      (stored) => this.#read(stored, offset, length, signal, done),
      (error) => done(error),
    );
  }

  released(handle: number): void {
    this.#runs.delete(handle);
  }

  close(): void {
    this.#closed = true;
    this.#stored?.close();
  }

  /** The version in the store, for what shares its bytes. */
  async stored(): Promise<StoredFile> {
    return new Promise((resolve, reject) => this.#whenStored(resolve, reject));
  }

  #whenStored(use: (stored: StoredFile) => void, fail: (error: unknown) => void): void {
    if (this.#stored !== undefined) {
      use(this.#stored);
      return;
    }
    this.#opening ??= this.#options.stored().then(
      (stored) => {
        this.#stored = stored;
        if (this.#closed) stored.close();
        return stored;
      },
      (error: unknown) => {
        this.#opening = undefined;
        throw error;
      },
    );
    this.#opening.then(use).catch(fail);
  }

  #read(stored: StoredFile, offset: number, length: number, signal: RequestSignal, done: ReadDone): void {
    if (signal.aborted) return;
    // before the read itself, whose bytes then come in one request with those that follow them
    this.#fetchAhead(stored, offset, length, signal.handle);
    const cancel = stored.read(offset, length, (error, views) => {
      signal.onAbort = undefined;
      done(error, views);
    });
    if (cancel !== undefined) signal.onAbort = cancel;
  }

  #fetchAhead(stored: StoredFile, offset: number, length: number, handle: number): void {
    const { units } = stored;
    let runs = this.#runs.get(handle);
    if (runs === undefined) {
      runs = new ReadRuns();
      this.#runs.set(handle, runs);
    }
    // of a file that is just bytes, who skips some reads on
    const run = runs.note(offset, offset + length, units.rowGroups === 0 ? UNIT_BYTES : 0);
    const [last] = units.chunksIn({ start: run.next - 1, end: run.next });
    if (last === undefined || run.next - run.start >= units.groupBytes(last.group)) this.#readOn(stored, run, offset);
    // looking at the magic is no wish for the first column
    else if (!run.isNew || run.start > 0) {
      for (const chunk of units.chunksIn(run.reached)) this.#followColumn(stored, chunk, offset);
    }
  }

  /** The rest of the chunk, then the same column of the next row groups: what was not asked for before. */
  #followColumn(stored: StoredFile, { group, column }: ChunkPlace, offset: number): void {
    const { units } = stored;
    const { depth, kernelAheadBytes = 0 } = this.#options;
    let asked = this.#cursors.get(column);
    if (asked === undefined) {
      asked = new Set();
      this.#cursors.set(column, asked);
    }
    const wanted: number[] = [];
    const end = Math.min(units.rowGroups, group + Math.max(1, depth()));
    for (let next = group; next < end; next++) {
      const bytes = units.bytesOf({ group: next, column });
      if (bytes === undefined || asked.has(next)) continue;
      asked.add(next);
      // the kernel will ask for whole pages, and beyond the end for as much as its windows have grown to
      const rest = kernelAheadBytes > 0 ? bytes.start % PAGE_BYTES : 0;
      const from = next === group ? Math.max(offset, bytes.start) : bytes.start - rest;
      const beyond = Math.min(kernelAheadBytes, bytes.end - bytes.start);
      const to = Math.min(units.length, bytes.end + beyond);
      if (from >= to) continue;
      const last = units.find(to - 1);
      for (let number = units.find(from); number <= last; number++) wanted.push(number);
    }
    // what lies behind has been fetched or passed over; a second pass over the file begins anew
    for (const behind of asked) if (behind < group || behind >= end) asked.delete(behind);
    if (wanted.length > 0) stored.prefetch(wanted);
  }

  /** What follows, a good piece at a time: few large requests, and little to do for most reads. */
  #readOn(stored: StoredFile, run: Run, offset: number): void {
    const { units } = stored;
    const from = Math.max(offset, run.askedTo);
    const to = Math.min(units.length, run.next + run.ahead);
    if (run.ahead === 0 || from >= to || (to - from < run.ahead / 4 && to < units.length)) return;
    run.askedTo = to;
    const wanted: number[] = [];
    const last = units.find(to - 1);
    for (let number = units.find(from); number <= last; number++) wanted.push(number);
    stored.prefetch(wanted);
  }
}
