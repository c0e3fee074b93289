/**
 * Serves what a disk cache has of a version from there, and keeps what it has not. What is missing of a read is asked for
 * at once, one request for each run of missing bytes, while the blocks are read into the reader's memory; arrival is told
 * from the front. A block that turns out wrong or gone is fetched like what was missing.
 *
 * A version's bytes are those bytes for ever, so that what the cache has of it is served whether or not the source still
 * has that version: whoever must not read old versions asks the source which one is current, as ever. Bytes from the disk
 * are counted as `bytesCached`, not as bytes on the wire.
 */

import type { Segment } from '../disk-cache/block-index.ts';
import { type DiskCache, isKept } from '../disk-cache/disk-cache.ts';
import { READERS } from '../disk-cache/limits.ts';
import { FetchError } from '../errors.ts';
import { passFind } from './find-file.ts';
import { checkRange, throwIfCancelled } from './range.ts';
import type { FileVersion, ReadOptions, Transport, TransportCounters } from './transport.ts';

/**
 * Wraps a transport. `source` names it among all sources that share the cache, a URL whose path goes on with that of a
 * file; `counters` are those of the transport.
 */
export function withDiskCache(
  inner: Transport,
  cache: DiskCache,
  source: string,
  counters: TransportCounters,
): Transport {
  const closing = new AbortController();
  const base = source.endsWith('/') ? source : `${source}/`;
  return {
    list: (prefix) => inner.list(prefix),
    ...passFind(inner),
    async read(file, start, into, options = {}) {
      checkRange(file, start, into.byteLength);
      throwIfCancelled(file, options.signal);
      const key = closing.signal.aborted ? undefined : cache.keyOf(base + file.path, file.etag, file.length);
      if (key === undefined || into.byteLength === 0) return inner.read(file, start, into, options);
      const read = new CachedRead({ inner, cache, counters, key, file, start, into, options, closed: closing.signal });
      await read.run(cache.plan(key, start, start + into.byteLength));
    },
    close() {
      closing.abort();
      return inner.close();
    },
  };
}

interface ReadTask {
  readonly inner: Transport;
  readonly cache: DiskCache;
  readonly counters: TransportCounters;
  readonly key: Buffer;
  readonly file: FileVersion;
  readonly start: number;
  readonly into: Uint8Array;
  readonly options: ReadOptions;
  /** Aborted when the transport is closed. */
  readonly closed: AbortSignal;
}

interface Part extends Segment {
  /** Bytes from its start that are there, and those of them that have been told. */
  landed: number;
  told: number;
  isFromDisk: boolean;
}

/** One read: its parts land side by side and are told in order. */
class CachedRead {
  readonly #task: ReadTask;
  readonly #stop = new AbortController();
  #parts: readonly Part[] = [];
  /** The part that is being told. */
  #front = 0;
  #failure: unknown;

  constructor(task: ReadTask) {
    this.#task = task;
  }

  async run(segments: readonly Segment[]): Promise<void> {
    const { options, closed } = this.#task;
    this.#parts = segments.map((segment) => {
      return { ...segment, landed: 0, told: 0, isFromDisk: segment.block !== undefined };
    });
    const stop = (): void => this.#stop.abort();
    options.signal?.addEventListener('abort', stop, { once: true });
    try {
      const blocks = this.#parts.filter(({ block }) => block !== undefined).values();
      const missing = this.#parts.filter(({ block }) => block === undefined);
      // every one of these settles only when nothing lands any more
      await Promise.all([
        ...missing.map((part) => this.#guarded(() => this.#fetch(part))),
        ...Array.from({ length: READERS }, async () => {
          for (const part of blocks) await this.#guarded(() => this.#readBlock(part));
        }),
      ]);
    } finally {
      options.signal?.removeEventListener('abort', stop);
    }
    this.#settle(closed);
  }

  /** Throws what went wrong. */
  #settle(closed: AbortSignal): void {
    const { counters, file, options } = this.#task;
    for (const { isFromDisk, landed, told } of this.#parts) {
      if (!isFromDisk) counters.bytesDiscarded += landed - told;
    }
    throwIfCancelled(file, options.signal);
    if (this.#failure !== undefined) throw this.#failure;
    if (closed.aborted) throw new FetchError('CLOSED', 'the transport is closed');
  }

  /** The first failure ends the other parts. */
  async #guarded(act: () => Promise<void>): Promise<void> {
    try {
      if (!this.#stop.signal.aborted) await act();
    } catch (error) {
      this.#failure ??= error;
      this.#stop.abort();
    }
  }

  async #readBlock(part: Part): Promise<void> {
    const { cache, key, closed } = this.#task;
    const { start, end, block } = part;
    if (closed.aborted) throw new FetchError('CLOSED', 'the transport is closed');
    if (await cache.read(key, { start, end, block: block! }, this.#memoryOf(part))) {
      this.#arrive(part, end - start);
    } else if (!this.#stop.signal.aborted) {
      part.isFromDisk = false;
      await this.#fetch(part);
    }
  }

  async #fetch(part: Part): Promise<void> {
    const { inner, cache, key, file, into } = this.#task;
    const memory = this.#memoryOf(part);
    const onArrived = (bytes: number): void => this.#arrive(part, bytes);
    await inner.read(file, part.start, memory, { signal: this.#stop.signal, onArrived });
    // from now on they are known to be good, and until the read has settled nobody changes them
    if (isKept(into.byteLength)) cache.keep(key, part.start, memory);
  }

  #memoryOf({ start, end }: Segment): Uint8Array {
    const { into, start: first } = this.#task;
    return into.subarray(start - first, end - first);
  }

  /** The first `landed` bytes of a part are there: tells what is there from the front of the read. */
  #arrive(part: Part, landed: number): void {
    part.landed = landed;
    const { counters, options, start } = this.#task;
    let told = 0;
    while (this.#front < this.#parts.length && !this.#stop.signal.aborted) {
      const front = this.#parts[this.#front]!;
      if (front.isFromDisk) counters.bytesCached += front.landed - front.told;
      front.told = front.landed;
      told = front.start + front.landed - start;
      if (front.landed < front.end - front.start) break;
      this.#front++;
    }
    if (told > this.#told) {
      this.#told = told;
      options.onArrived?.(told);
    }
  }

  #told = 0;
}
