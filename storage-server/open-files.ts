/**
 * Descriptors of stored files: opened when first read, kept while in use and for a while after. A descriptor is only
 * handed out for the version that the region promises, and `unchanged` tells after a read whether it still was.
 *
 * Why the check after suffices: the version is that of the scan, so if it still is the same after the read, then nothing
 * that stat can tell has changed since the scan, hence not during the read either. `fstat` on an open descriptor takes
 * under a microsecond, so it is done on the spot, once per file for all reads of a burst.
 */
import { close, constants, fstat, fstatSync, open } from 'node:fs';
import { sameVersion } from './protocol/index.ts';
import type { StoredFile } from './served-file.ts';

export interface OpenFile {
  readonly file: StoredFile;
  readonly fd: number;
  users: number;
  /** Of no region any more that is served. */
  retired: boolean;
}

/** Why a file can't be read, in words for a peer: the file's place on this machine is not its business. */
export interface StorageFault {
  readonly reason: string;
  /** It is not the version any more that the region promises. */
  readonly stale: boolean;
}

type OpenCallback = (error: StorageFault | undefined, opened: OpenFile | undefined) => void;

const HOW = 'a SIGHUP to qanat serve publishes what is there now, and so does its --watch by itself';

/** Why a read failed whose file is not what it was. */
export const FILE_CHANGED: StorageFault = {
  reason: `the file has changed since it was published: ${HOW}`,
  stale: true,
};

const FILE_GONE: StorageFault = { reason: `the file is gone since it was published: ${HOW}`, stale: true };

function openFault({ code }: NodeJS.ErrnoException): StorageFault {
  if (code === 'ENOENT' || code === 'ENOTDIR') return FILE_GONE;
  return code === 'ELOOP' ? FILE_CHANGED : { reason: `the server can't open it (${code})`, stale: false };
}

/** No link swapped in after the scan is followed, and a pipe swapped in does not block. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export class OpenFiles {
  readonly #opened = new Map<StoredFile, OpenFile>();
  readonly #opening = new Map<StoredFile, OpenCallback[]>();
  readonly #max: number;
  /** Those that are not retired; undefined for all. */
  #served: ReadonlySet<StoredFile> | undefined;
  #closed = false;

  constructor(max: number) {
    this.#max = max;
  }

  /** Hands out the open file, at once if it is open already. Each one is to be released. */
  acquire(file: StoredFile, callback: OpenCallback): void {
    const opened = this.#opened.get(file);
    if (opened !== undefined) {
      // To the back of the order in which idle ones are closed.
      this.#opened.delete(file);
      this.#opened.set(file, opened);
      opened.users++;
      callback(undefined, opened);
      return;
    }
    const waiting = this.#opening.get(file);
    if (waiting !== undefined) {
      waiting.push(callback);
      return;
    }
    this.#opening.set(file, [callback]);
    open(file.localPath, OPEN_FLAGS, (error, fd) => {
      if (error !== null) this.#settle(file, openFault(error), undefined);
      else this.#checkOpened(file, fd);
    });
  }

  /** Files that are open now. */
  get count(): number {
    return this.#opened.size;
  }

  release(opened: OpenFile): void {
    opened.users--;
    if (opened.retired && opened.users === 0) this.#close(opened);
    else this.#evict();
  }

  /** Only `served` are served from now on: descriptors of others keep the space of deleted files, so they go. */
  retire(served: ReadonlySet<StoredFile>): void {
    this.#served = served;
    for (const opened of [...this.#opened.values()]) {
      if (served.has(opened.file)) continue;
      opened.retired = true;
      if (opened.users === 0) this.#close(opened);
    }
  }

  /** Whether the file still is the version that the region promises. */
  unchanged(opened: OpenFile): boolean {
    try {
      return sameVersion(fstatSync(opened.fd, { bigint: true }), opened.file.version);
    } catch {
      return false;
    }
  }

  /** Closes what is idle now and the rest when it is released. */
  close(): void {
    this.#closed = true;
    this.#evict();
  }

  #checkOpened(file: StoredFile, fd: number): void {
    fstat(fd, { bigint: true }, (error, found) => {
      if (error === null && sameVersion(found, file.version)) {
        const retired = this.#served?.has(file) === false;
        const opened = { file, fd, users: 0, retired };
        this.#opened.set(file, opened);
        this.#settle(file, undefined, opened);
        this.#evict();
      } else {
        close(fd, () => {});
        this.#settle(file, error === null ? FILE_CHANGED : { reason: error.message, stale: false }, undefined);
      }
    });
  }

  #settle(file: StoredFile, error: StorageFault | undefined, opened: OpenFile | undefined): void {
    const waiting = this.#opening.get(file) ?? [];
    this.#opening.delete(file);
    if (opened !== undefined) opened.users += waiting.length;
    for (const callback of waiting) callback(error, opened);
  }

  #evict(): void {
    const max = this.#closed ? 0 : this.#max;
    if (this.#opened.size <= max) return;
    for (const opened of this.#opened.values()) {
      if (this.#opened.size <= max) break;
      if (opened.users === 0) this.#close(opened);
    }
  }

  #close(opened: OpenFile): void {
    this.#opened.delete(opened.file);
    close(opened.fd, () => {});
  }
}
