/**
 * A region: one generation of files as a flat address space. A list of extents, not a copy: addresses translate to
 * bytes of the directory, of files, or to zeros between them. Files lie in files of this machine, whole or as a part of
 * one (a packed region), or are pinned in memory. Does no I/O.
 */
import { randomBytes, randomInt } from 'node:crypto';
import { ServeError } from './errors.ts';
import type { PinnedFiles } from './pinned-files.ts';
import {
  type Directory,
  type DirectoryEntry,
  GENERATION_BYTES,
  ProtocolError,
  planDirectory,
} from './protocol/index.ts';
import type { ServedFile } from './served-file.ts';

/** Takes the pieces of a range in order; together they are exactly the range. */
export interface PieceVisitor {
  bytes(bytes: Uint8Array): void;
  zeros(length: number): void;
  file(file: ServedFile, offset: number, length: number): void;
}

/** A region of `files`, which `pinned` holds if it is given. Throws ServeError NAMES or LIMIT if they can't be one. */
export function makeRegion(files: readonly ServedFile[], alignBytes: number, pinned?: PinnedFiles): Region {
  try {
    return new Region(files, alignBytes, pinned);
  } catch (cause) {
    if (!(cause instanceof ProtocolError)) throw cause;
    throw new ServeError(cause.code === 'NAME' ? 'NAMES' : 'LIMIT', cause.reason, { cause });
  }
}

export class Region {
  readonly files: readonly ServedFile[];
  readonly directory: Directory;
  readonly generation: Uint8Array;
  readonly rkey: number;
  readonly length: number;
  readonly #prefix: Uint8Array;
  /** Files that have bytes, by address; starts are region addresses. */
  readonly #files: ServedFile[] = [];
  /** The memory that holds all files, when they are pinned; another one may take over that holds the same files. */
  pinned: PinnedFiles | undefined;
  readonly #entries: DirectoryEntry[] = [];
  readonly #starts: Float64Array;

  /** `pinned` holds all of the files. Throws ProtocolError if they can't share a directory. */
  constructor(files: readonly ServedFile[], alignBytes: number, pinned?: PinnedFiles) {
    this.generation = Uint8Array.from(randomBytes(GENERATION_BYTES));
    // Not 0: a client that never learnt its key fails instead of guessing right.
    this.rkey = randomInt(1, 2 ** 32);
    this.files = files;
    const byPath = new Map(files.map((file) => [file.path, file]));
    this.pinned = pinned;
    const { directory, prefix } = planDirectory(this.generation, alignBytes, files);
    this.directory = directory;
    this.length = directory.regionLength;
    this.#prefix = prefix;
    for (const entry of directory.entries) {
      const file = byPath.get(entry.path);
      if (file === undefined || entry.length === 0) continue;
      this.#files.push(file);
      this.#entries.push(entry);
    }
    this.#starts = Float64Array.from(this.#entries, (entry) => directory.dataStart + entry.offset);
  }

  /** Whether [address, address + length) lies inside. NaN, as addresses beyond 2^53 are read, does not. */
  holds(address: number, length: number): boolean {
    return address <= this.length && length <= this.length - address;
  }

  /** Whether no byte of it has to be read from storage. */
  get inMemory(): boolean {
    return this.pinned !== undefined;
  }

  /** Visits the pieces of a range that `holds` has accepted. */
  visit(address: number, length: number, visitor: PieceVisitor): void {
    const end = address + length;
    let at = address;
    if (at < this.#prefix.byteLength && at < end) {
      const stop = Math.min(end, this.#prefix.byteLength);
      visitor.bytes(this.#prefix.subarray(at, stop));
      at = stop;
    }
    for (let i = this.#lastAtOrBefore(at); at < end; i++) {
      const next = this.#starts[i + 1] ?? this.length;
      if (i >= 0) {
        const start = this.#starts[i]!;
        const stop = Math.min(end, start + this.#entries[i]!.length);
        if (at < stop) {
          if (this.pinned === undefined) visitor.file(this.#files[i]!, at - start, stop - at);
          else this.pinned.visit(this.#files[i]!, at - start, stop - at, visitor);
          at = stop;
        }
      }
      const stop = Math.min(end, next);
      if (at < stop) {
        visitor.zeros(stop - at);
        at = stop;
      }
    }
  }

  #lastAtOrBefore(address: number): number {
    let low = 0;
    let high = this.#starts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#starts[middle]! <= address) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}
