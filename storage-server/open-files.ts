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
import type { StoredFile } from './region.ts';

export interface OpenFile {
  readonly file: StoredFile;
  readonly fd: number;
  users: number;
}

type OpenCallback = (error: string | undefined, opened: OpenFile | undefined) => void;

const CHANGED = 'the file has changed since the server started: restart qanat serve to serve the new one';

/** What a peer is told; the file's place on this machine is not its business. */
function openFault({ code }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'the file is gone since the server started: restart qanat serve';
  return code === 'ELOOP' ? CHANGED : `the server can't open it (${code})`;
}

/** No link swapped in after the scan is followed, and a pipe swapped in does not block. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export class OpenFiles {
  readonly #opened = new Map<StoredFile, OpenFile>();
  readonly #opening = new Map<StoredFile, OpenCallback[]>();
  readonly #max: number;
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

  release(opened: OpenFile): void {
    opened.users--;
    this.#evict();
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
        const opened = { file, fd, users: 0 };
        this.#opened.set(file, opened);
        this.#settle(file, undefined, opened);
        this.#evict();
      } else {
        close(fd, () => {});
        this.#settle(file, error === null ? CHANGED : error.message, undefined);
      }
    });
  }

  #settle(file: StoredFile, error: string | undefined, opened: OpenFile | undefined): void {
    const waiting = this.#opening.get(file) ?? [];
    this.#opening.delete(file);
    if (opened !== undefined) opened.users += waiting.length;
    for (const callback of waiting) callback(error, opened);
  }

  #evict(): void {
    const max = this.#closed ? 0 : this.#max;
    if (this.#opened.size <= max) return;
    for (const [file, opened] of this.#opened) {
      if (this.#opened.size <= max) break;
      if (opened.users > 0) continue;
      this.#opened.delete(file);
      close(opened.fd, () => {});
    }
  }
}

/** Why a read failed whose file is not what it was. */
export const FILE_CHANGED = CHANGED;
