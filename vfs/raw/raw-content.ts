/**
 * The raw view of one version of a file: exact bytes, fetched as somebody who knows Parquet would. A read inside a
 * column chunk fetches on in that chunk and begins the same column of the next row groups, whatever engine reads and
 * however it interleaves its columns: the cursors are the version's, one for each chunk, not a handle's. Other bytes
 * (no Parquet, footers that can't be read) get sequential read-ahead, and so does who copies a Parquet file: a handle
 * that has read a whole row group byte for byte will read the next one so too.
 */

import type { FileContent, Opening, ReadDone, RequestSignal } from '../fuse/content.ts';
import { READ_AHEAD_BYTES_MAX, READ_AHEAD_BYTES_MIN, UNIT_BYTES } from '../limits.ts';
import type { StoredFile } from './stored-file.ts';
import type { ChunkPlace } from './units.ts';

export interface RawContentOptions {
  /** Row groups in flight, the one being read included. */
  readonly depth: () => number;
  /** How handles are served by the kernel. */
  readonly opening: Opening;
  /** Opens the version in the store; called at its first use. */
  readonly stored: () => Promise<StoredFile>;
}

/** Where one column of the version has been read. */
interface Cursor {
  /** Units of the chunk from its start that were asked to be fetched ahead, by row group. */
  readonly ahead: Map<number, number>;
}

/** Bytes that a handle has read one after the other. */
interface Run {
  readonly start: number;
  /** Behind the last byte of the last read, and of all. */
  next: number;
  end: number;
  bytes: number;
  /** Bytes that are to be fetched ahead of it. */
  ahead: number;
}

export class RawContent implements FileContent {
  readonly #options: RawContentOptions;
  readonly #cursors = new Map<number, Cursor>();
  readonly #runs = new Map<number, Run>();
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
    const cancel = stored.read(offset, length, (error, views) => {
      signal.onAbort = undefined;
      done(error, views);
    });
    if (cancel !== undefined) signal.onAbort = cancel;
    this.#fetchAhead(stored, offset, length, signal.handle);
  }

  #fetchAhead(stored: StoredFile, offset: number, length: number, handle: number): void {
    const { units } = stored;
    const end = offset + length;
    const run = this.#runOf(handle, offset, end);
    const unit = units.find(end - 1);
    const chunk = units.chunkOf(unit);
    const isWhole = run.bytes >= run.end - run.start;
    if (chunk === undefined || (isWhole && run.bytes >= units.groupBytes(chunk.group))) this.#readOn(stored, run);
    else this.#followColumn(stored, chunk, unit);
  }

  /** The run that a read goes on with, or begins; what is to come ahead of it doubles while it goes on. */
  #runOf(handle: number, offset: number, end: number): Run {
    const known = this.#runs.get(handle);
    // the kernel's own read-ahead comes in pieces that may overtake each other
    if (known !== undefined && Math.abs(offset - known.next) <= UNIT_BYTES) {
      known.next = end;
      known.end = Math.max(known.end, end);
      known.bytes += end - offset;
      known.ahead = Math.min(2 * Math.max(known.ahead, READ_AHEAD_BYTES_MIN), READ_AHEAD_BYTES_MAX);
      return known;
    }
    const run = { start: offset, next: end, end, bytes: end - offset, ahead: offset === 0 ? READ_AHEAD_BYTES_MIN : 0 };
    this.#runs.set(handle, run);
    return run;
  }

  /** The rest of the chunk, then the same column of the next row groups: what was not asked for before. */
  #followColumn(stored: StoredFile, { group, column }: ChunkPlace, unit: number): void {
    const { units } = stored;
    let cursor = this.#cursors.get(column);
    if (cursor === undefined) {
      cursor = { ahead: new Map() };
      this.#cursors.set(column, cursor);
    }
    const wanted: number[] = [];
    const end = Math.min(units.rowGroups, group + Math.max(1, this.#options.depth()));
    for (let next = group; next < end; next++) {
      const { start, end: last } = units.unitsOf({ group: next, column });
      const from = next === group ? Math.max(unit + 1, cursor.ahead.get(next) ?? 0) : (cursor.ahead.get(next) ?? start);
      for (let number = from; number < last; number++) wanted.push(number);
      cursor.ahead.set(next, Math.max(from, last));
    }
    // what lies behind has been fetched or passed over; a second pass over the file begins anew
    for (const behind of cursor.ahead.keys()) if (behind < group || behind >= end) cursor.ahead.delete(behind);
    if (wanted.length > 0) stored.prefetch(wanted);
  }

  #readOn(stored: StoredFile, { next, ahead }: Run): void {
    const { units } = stored;
    if (ahead === 0 || next >= units.length) return;
    const wanted: number[] = [];
    const last = units.find(Math.min(units.length, next + ahead) - 1);
    for (let number = units.find(next); number <= last; number++) wanted.push(number);
    stored.prefetch(wanted);
  }
}
