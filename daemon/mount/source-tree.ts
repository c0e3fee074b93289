/**
 * What of a source is mounted: all of its files, those that are no Parquet too, by their paths within the location. The
 * source is looked at again when it tells of a new generation, when reads find that a file has changed, and from time
 * to time; what a look finds replaces what is mounted if it differs. A look that fails changes nothing.
 */
import { createHash } from 'node:crypto';
import { FetchError, type FileVersion, passFind, type Transport } from '../../fetcher/index.ts';
import { isOnDevice, isParquetPath } from '../../storage-server/protocol/index.ts';
import type { FileTree, TreeFile } from '../../vfs/fuse/index.ts';
import type { Source } from '../../vfs/index.ts';
import { LOOK_GAP_MS } from './limits.ts';
import type { View } from './view.ts';

export interface TreeEvents {
  /** The files are others than before, or another generation. Throws what makes them no tree. */
  changed(tree: FileTree): void;
  /** A look failed, the first of a row; what is mounted stays. */
  failed(error: Error): void;
  /** Looks succeed again. */
  recovered(): void;
}

export class SourceTree {
  /** Replacements of what is mounted. */
  generations = 0;
  /** Of the tree that is mounted. */
  files = 0;
  bytes = 0;
  generation = '';
  /** Files on this device are our own mount's, by whatever path the source came to them. */
  ownDevice: bigint | undefined;
  readonly #source: Source;
  readonly #view: View;
  readonly #versions = new WeakMap<TreeFile, FileVersion>();
  #fingerprint = '';
  #isMounted = true;
  #isFailing = false;
  #wake: (() => void) | undefined;
  #isDue = false;
  #closed = false;

  constructor(source: Source, view: View) {
    this.#source = source;
    this.#view = view;
  }

  /** The version of the source's file that a file of the tree is. */
  versionOf(file: TreeFile): FileVersion {
    return this.#versions.get(file)!;
  }

  /** Looks for the first time. Throws FetchError. */
  async begin(): Promise<FileTree> {
    const { tree } = await this.#look();
    return tree;
  }

  /** Looks again at each `lookMs`, and whenever `look` is called, until `close`. */
  follow(lookMs: number, events: TreeEvents): void {
    void this.#follow(lookMs, events);
  }

  /** Something may have changed: look soon. */
  look(): void {
    this.#isDue = true;
    this.#wake?.();
  }

  close(): void {
    this.#closed = true;
    this.#wake?.();
  }

  async #follow(lookMs: number, events: TreeEvents): Promise<void> {
    for (;;) {
      await this.#pause(LOOK_GAP_MS, false);
      await this.#pause(lookMs - LOOK_GAP_MS, true);
      if (this.#closed) return;
      this.#isDue = false;
      try {
        const { tree, isNew } = await this.#look();
        if (this.#closed) return;
        if (isNew) {
          this.#isMounted = false;
          events.changed(tree);
          this.#isMounted = true;
          this.generations++;
        }
        if (this.#isFailing) events.recovered();
        this.#isFailing = false;
      } catch (error) {
        if (this.#closed) return;
        if (!this.#isFailing) events.failed(error instanceof Error ? error : new Error(String(error)));
        this.#isFailing = true;
      }
    }
  }

  async #pause(milliseconds: number, wakes: boolean): Promise<void> {
    if (milliseconds <= 0 || this.#closed || (wakes && this.#isDue)) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.#wake = () => {
        if (!wakes && !this.#closed) return;
        clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = undefined;
  }

  async #look(): Promise<{ tree: FileTree; isNew: boolean }> {
    const listed = await this.#list();
    const own = this.ownDevice;
    const local = this.#source.location.scheme === 'file';
    const versions = local && own !== undefined ? listed.filter(({ etag }) => !isOnDevice(etag, own)) : listed;
    const hash = createHash('sha256');
    for (const { path, etag, length } of versions) hash.update(`${path}\0${etag}\0${length}\0`);
    const digest = hash.digest('hex').slice(0, 32);
    const generation = this.#source.activity?.generation ?? digest;
    const fingerprint = `${generation} ${digest}`;
    // what could not be mounted is tried again
    const isNew = fingerprint !== this.#fingerprint || !this.#isMounted;
    this.#fingerprint = fingerprint;
    const files = isNew ? versions.map((version) => this.#file(version)) : [];
    if (isNew) {
      this.files = versions.length;
      this.bytes = versions.reduce((sum, { length }) => sum + length, 0);
      this.generation = generation;
    }
    return { tree: { generation, files }, isNew };
  }

  /** A location that had files and has none any more is an empty one. */
  async #list(): Promise<readonly FileVersion[]> {
    try {
      return await this.#source.everything();
    } catch (error) {
      if (this.generation !== '' && error instanceof FetchError && error.code === 'NOT_FOUND') return [];
      throw error;
    }
  }

  #file(version: FileVersion): TreeFile {
    const { path, etag, length, modifiedMs } = version;
    const isDecoded = this.#view === 'decoded' && isParquetPath(path);
    const file: TreeFile = {
      path: this.#source.pathWithin(path),
      // the decoded view's length follows from the footer
      length: isDecoded ? undefined : length,
      etag,
      modifiedMs,
      attributes: { 'user.qanat.view': isDecoded ? 'decoded' : 'raw' },
    };
    this.#versions.set(file, version);
    return file;
  }
}

/** Calls back when a read finds that its file is another one by now, or gone. */
export function tellingOfChanges(inner: Transport, onChange: () => void): Transport {
  return {
    list: (prefix) => inner.list(prefix),
    ...passFind(inner),
    close: () => inner.close(),
    async read(file, start, into, options) {
      try {
        await inner.read(file, start, into, options);
      } catch (error) {
        if (error instanceof FetchError && (error.code === 'STALE' || error.code === 'NOT_FOUND')) onChange();
        throw error;
      }
    },
  };
}
