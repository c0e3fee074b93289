/**
 * Local files (`file://`) as a source: pread into the destination. A file's version is checked when it is opened for
 * reading and again after each read's last byte; since it is compared with the version that the caller holds, a file that
 * stat knows to have changed is never read without an error. Links are followed where the user's own shell would.
 * Entries that can't be looked at are left out of a listing and told, once each, unless they are what was asked for.
 */
import { constants, type Dirent } from 'node:fs';
import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { sortedByPath, type VersionStat, versionEtag } from '../../storage-server/protocol/index.ts';
import { FetchError } from '../errors.ts';
import { FILE_READ_BYTES, OPEN_FILES_MAX } from './limits.ts';
import { asFetchError, isGone, isOfEntry, localReason } from './local-errors.ts';
import { checkRange, throwIfCancelled } from './range.ts';
import type { FileVersion, ReadOptions, Transport, TransportCounters } from './transport.ts';

interface OpenHandle {
  readonly opening: Promise<FileHandle>;
  users: number;
}

/** Told of an entry that a listing leaves out: its absolute path, and why. */
export type OnSkipped = (path: string, reason: string) => void;

interface Walk {
  readonly prefix: string;
  readonly found: FileVersion[];
  /** Entries that were left out, each with its error. */
  readonly faults: { readonly path: string; readonly cause: unknown }[];
}

export class FileTransport implements Transport {
  readonly #root: string;
  readonly #onSkipped: OnSkipped;
  readonly #skipped = new Set<string>();
  readonly #counters: TransportCounters;
  /** By path and etag, the least recently used first. */
  readonly #handles = new Map<string, OpenHandle>();
  #closed = false;

  /** Serves the files below `root`, an absolute path of a folder. */
  constructor(root: string, counters: TransportCounters, onSkipped: OnSkipped = () => {}) {
    this.#root = root;
    this.#counters = counters;
    this.#onSkipped = onSkipped;
  }

  async list(prefix: string): Promise<readonly FileVersion[]> {
    this.#throwIfClosed();
    const slash = prefix.lastIndexOf('/');
    const folder = slash < 0 ? '' : prefix.slice(0, slash);
    if (folder.split('/').includes('..')) throw new FetchError('NOT_FOUND', `${prefix} leaves the source`);
    const walk: Walk = { prefix, found: [], faults: [] };
    await this.#walk(folder, walk);
    // nothing is there because what was asked for is, or lies below, one of them
    const asked = walk.faults.find(({ path }) => path === prefix || prefix.startsWith(`${path}/`));
    if (walk.found.length === 0 && asked !== undefined) throw asFetchError(asked.cause, join(this.#root, asked.path));
    for (const { path, cause } of walk.faults) this.#tell(path, localReason(cause));
    return sortedByPath(walk.found);
  }

  async read(file: FileVersion, start: number, into: Uint8Array, options: ReadOptions = {}): Promise<void> {
    checkRange(file, start, into.byteLength);
    throwIfCancelled(file, options.signal);
    this.#throwIfClosed();
    const key = `${file.etag} ${file.path}`;
    const handle = this.#acquire(key, file);
    let arrived = 0;
    let landed = 0;
    try {
      const opened = await handle.opening;
      while (landed < into.byteLength) {
        throwIfCancelled(file, options.signal);
        this.#throwIfClosed();
        const piece = into.subarray(landed, landed + FILE_READ_BYTES);
        const { bytesRead } = await opened.read(piece, 0, piece.byteLength, start + landed);
        this.#counters.requests++;
        this.#counters.bytesOnWire += bytesRead;
        landed += bytesRead;
        await checkVersion(opened, file);
        if (bytesRead === 0) throw new FetchError('STALE', `${file.path} is shorter than it was`);
        throwIfCancelled(file, options.signal);
        arrived = landed;
        options.onArrived?.(arrived);
      }
    } catch (error) {
      throw asFetchError(error, file.path);
    } finally {
      this.#counters.bytesDiscarded += landed - arrived;
      handle.users--;
      this.#evict();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#evict();
  }

  #acquire(key: string, file: FileVersion): OpenHandle {
    const known = this.#handles.get(key);
    const handle = known ?? { opening: openVersion(join(this.#root, file.path), file), users: 0 };
    this.#handles.delete(key);
    this.#handles.set(key, handle);
    handle.users++;
    // One that failed to open, or whose file has changed, is not kept.
    if (known === undefined) handle.opening.catch(() => this.#handles.delete(key));
    return handle;
  }

  #evict(): void {
    const max = this.#closed ? 0 : OPEN_FILES_MAX;
    for (const [key, handle] of this.#handles) {
      if (this.#handles.size <= max) return;
      if (handle.users > 0) continue;
      this.#handles.delete(key);
      handle.opening.then((opened) => opened.close()).catch(() => {});
    }
  }

  #throwIfClosed(): void {
    if (this.#closed) throw new FetchError('CLOSED', 'the transport is closed');
  }

  async #walk(folder: string, walk: Walk): Promise<void> {
    const { prefix } = walk;
    let entries: Dirent[];
    try {
      entries = await readdir(join(this.#root, folder), { withFileTypes: true });
    } catch (error) {
      if (folder !== '') this.#skip(folder, error, walk);
      else if (!isGone(error)) throw asFetchError(error, this.#root);
      return;
    }
    for (const entry of entries) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (!path.startsWith(prefix) && !prefix.startsWith(`${path}/`)) continue;
      if (entry.isDirectory()) await this.#walk(path, walk);
      else if (entry.isFile() || entry.isSymbolicLink()) await this.#found(path, entry.isSymbolicLink(), walk);
    }
  }

  async #found(path: string, isLink: boolean, walk: Walk): Promise<void> {
    try {
      const version = await stat(join(this.#root, path), { bigint: true });
      // A link to a folder is not followed: it may lead back to where it lies.
      if (version.isFile()) walk.found.push(fileVersion(path, version));
    } catch (error) {
      this.#skip(path, error, walk, isLink);
    }
  }

  /** Leaves an entry out. Throws when its fault is not its own. */
  #skip(path: string, cause: unknown, walk: Walk, isLink = false): void {
    const gone = isGone(cause);
    if (gone && path.includes(REPLACEMENT)) this.#tell(path, 'its name is not UTF-8');
    else if (gone && isLink) this.#tell(path, 'the link leads to nothing');
    // deleted since its folder was read: that is no news
    else if (gone) return;
    else if (isOfEntry(cause)) walk.faults.push({ path, cause });
    else throw asFetchError(cause, path);
  }

  #tell(path: string, reason: string): void {
    if (this.#skipped.has(path)) return;
    this.#skipped.add(path);
    this.#onSkipped(join(this.#root, path), reason);
  }
}

/** What stands for bytes of a name that are not UTF-8. */
const REPLACEMENT = '\ufffd';

function fileVersion(path: string, version: VersionStat): FileVersion {
  return {
    path,
    length: Number(version.size),
    etag: versionEtag(version),
    modifiedMs: Number(version.mtimeNs / 1_000_000n),
  };
}

async function openVersion(localPath: string, file: FileVersion): Promise<FileHandle> {
  const opened = await open(localPath, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    await checkVersion(opened, file);
    return opened;
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function checkVersion(opened: FileHandle, file: FileVersion): Promise<void> {
  if (versionEtag(await opened.stat({ bigint: true })) !== file.etag) {
    throw new FetchError('STALE', `${file.path} has changed since it was opened`);
  }
}
