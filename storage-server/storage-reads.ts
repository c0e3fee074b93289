/**
 * Pieces of files from storage into memory, for whoever needs bytes of a region: bursts, packing, pinning. Pieces that
 * follow each other in a stored file are read in one go; when all bytes of it are there, each stored file is checked
 * once. One that can't be read or has changed is told as a fault, and none of its bytes may be used. Few files are open
 * at a time, however many pieces there are.
 */
import { readv } from 'node:fs';
import { ServeError } from './errors.ts';
import { STORES_READING_MAX } from './limits.ts';
import { FILE_CHANGED, type OpenFile, type OpenFiles, type StorageFault } from './open-files.ts';
import type { ServedFile, StoredFile } from './served-file.ts';

/** Consecutive bytes of one stored file, into one or more places. */
interface Fetch {
  readonly store: StoredFile;
  readonly start: number;
  end: number;
  readonly into: Uint8Array[];
}

/** Why files could not be read. */
export type StorageFaults = ReadonlyMap<StoredFile, StorageFault>;

/** Reads what was added to `reads`. Throws ServeError CHANGED for the first of `files` that has changed or can't be read. */
export async function readOrThrow(
  reads: StorageReads,
  openFiles: OpenFiles,
  files: readonly ServedFile[],
): Promise<void> {
  const faults = await new Promise<StorageFaults>((resolve) => reads.run(openFiles, resolve));
  if (faults.size === 0) return;
  const faulty = files.find(({ store }) => faults.has(store));
  if (faulty === undefined) throw new Error('a fault of a file that was not read');
  const { reason, stale } = faults.get(faulty.store)!;
  throw new ServeError(
    'CHANGED',
    `${faulty.path} ${stale ? 'changed since it was found' : `can't be read: ${reason}`}`,
  );
}

export class StorageReads {
  readonly #byStore = new Map<StoredFile, Fetch[]>();
  #last: Fetch | undefined;
  readonly #faults = new Map<StoredFile, StorageFault>();

  /** Adds bytes from `offset` of a file; `into` is filled by `run`. */
  add({ store, start }: ServedFile, offset: number, into: Uint8Array): void {
    const from = start + offset;
    const last = this.#last;
    if (last !== undefined && last.store === store && last.end === from) {
      last.into.push(into);
      last.end += into.byteLength;
      return;
    }
    this.#last = { store, start: from, end: from + into.byteLength, into: [into] };
    const fetches = this.#byStore.get(store);
    if (fetches === undefined) this.#byStore.set(store, [this.#last]);
    else fetches.push(this.#last);
  }

  /** Reads what was added, checks it, then calls back; never fails. On the spot when nothing was added. */
  run(openFiles: OpenFiles, done: (faults: StorageFaults) => void): void {
    const waiting = this.#byStore.entries();
    let pending = 1;
    const startNext = (): void => {
      const next = waiting.next();
      if (next.done) return;
      pending++;
      this.#read(openFiles, next.value[0], next.value[1], () => {
        startNext();
        settle();
      });
    };
    const settle = (): void => {
      pending--;
      if (pending === 0) done(this.#faults);
    };
    for (let n = Math.min(this.#byStore.size, STORES_READING_MAX); n > 0; n--) startNext();
    settle();
  }

  #read(openFiles: OpenFiles, store: StoredFile, fetches: readonly Fetch[], done: () => void): void {
    openFiles.acquire(store, (error, opened) => {
      if (opened === undefined) {
        this.#faults.set(store, error ?? { reason: 'it could not be opened', stale: false });
        done();
        return;
      }
      let pending = fetches.length;
      for (const { into, start } of fetches) {
        readFully(opened.fd, into, start, (fault) => {
          if (fault !== undefined) this.#faults.set(store, fault);
          if (--pending === 0) this.#check(openFiles, opened, done);
        });
      }
    });
  }

  #check(openFiles: OpenFiles, opened: OpenFile, done: () => void): void {
    if (!openFiles.unchanged(opened)) this.#faults.set(opened.file, FILE_CHANGED);
    openFiles.release(opened);
    done();
  }
}

/** Reads until every place is full; calls back with what went wrong, or nothing. */
function readFully(
  fd: number,
  into: Uint8Array[],
  position: number,
  done: (fault: StorageFault | undefined) => void,
): void {
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
