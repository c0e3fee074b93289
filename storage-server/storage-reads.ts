/**
 * Pieces of files from storage into memory, for whoever needs bytes of a region: bursts, packing, pinning. Pieces that
 * follow each other in a stored file are read in one go; when all bytes are there, each stored file is checked once.
 * A file that can't be read or has changed is told as a fault, and none of its bytes may be used.
 */
import { readv } from 'node:fs';
import { FILE_CHANGED, type OpenFile, type OpenFiles, type StorageFault } from './open-files.ts';
import type { ServedFile, StoredFile } from './region.ts';

/** Consecutive bytes of one stored file, into one or more places. */
interface Fetch {
  readonly store: StoredFile;
  readonly start: number;
  end: number;
  readonly into: Uint8Array[];
}

/** Why files could not be read, in words that do not tell their place on this machine. */
export type StorageFaults = ReadonlyMap<StoredFile, StorageFault>;

export class StorageReads {
  readonly #fetches: Fetch[] = [];
  readonly #faults = new Map<StoredFile, StorageFault>();
  readonly #opened: OpenFile[] = [];
  #pending = 0;

  /** Adds bytes from `offset` of a file; `into` is filled by `run`. */
  add({ store, start }: ServedFile, offset: number, into: Uint8Array): void {
    const from = start + offset;
    const previous = this.#fetches.at(-1);
    if (previous !== undefined && previous.store === store && previous.end === from) {
      previous.into.push(into);
      previous.end += into.byteLength;
    } else {
      this.#fetches.push({ store, start: from, end: from + into.byteLength, into: [into] });
    }
  }

  /** Reads what was added, checks it, then calls back; never fails. On the spot when nothing was added. */
  run(openFiles: OpenFiles, done: (faults: StorageFaults) => void): void {
    this.#pending = 1;
    const settle = (): void => {
      this.#pending--;
      if (this.#pending > 0) return;
      for (const file of new Set(this.#opened)) {
        if (!openFiles.unchanged(file)) this.#faults.set(file.file, FILE_CHANGED);
      }
      for (const file of this.#opened) openFiles.release(file);
      done(this.#faults);
    };
    for (const fetch of this.#fetches) {
      this.#pending++;
      this.#start(fetch, openFiles, settle);
    }
    settle();
  }

  #start({ store, start, into }: Fetch, openFiles: OpenFiles, settle: () => void): void {
    openFiles.acquire(store, (error, file) => {
      if (file === undefined) {
        this.#faults.set(store, error ?? { reason: 'it could not be opened', stale: false });
        settle();
        return;
      }
      this.#opened.push(file);
      readFully(file.fd, into, start, (fault) => {
        if (fault !== undefined) this.#faults.set(store, fault);
        settle();
      });
    });
  }
}

/** Reads until every place is full; calls back with what went wrong, or nothing. */
function readFully(fd: number, into: Uint8Array[], position: number, done: (fault: StorageFault | undefined) => void): void {
  readv(fd, into, position, (error, bytesRead) => {
    if (error !== null) return done({ reason: error.message, stale: false });
    let left = bytesRead;
    let rest = into;
    while (rest.length > 0 && left >= rest[0]!.byteLength) {
      left -= rest[0]!.byteLength;
      rest = rest.slice(1);
    }
    if (rest.length === 0) return done(undefined);
    if (bytesRead === 0) return done(FILE_CHANGED);
    readFully(fd, [rest[0]!.subarray(left), ...rest.slice(1)], position + bytesRead, done);
  });
}
