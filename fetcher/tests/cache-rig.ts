/** Sources in memory that count as transports do, and a folder for a disk cache with what it takes to look into it. */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { DiskCache } from '../disk-cache/disk-cache.ts';
import { ALLOCATED_BYTES } from '../disk-cache/limits.ts';
import { FetchError } from '../errors.ts';
import {
  type FileVersion,
  newTransportCounters,
  type ReadOptions,
  type Transport,
  type TransportCounters,
} from '../transport/transport.ts';
import { withDiskCache } from '../transport/with-disk-cache.ts';

/** Files in memory; each read takes a turn of the event loop, and comes in two pieces. */
export class CountedTransport implements Transport {
  readonly files = new Map<string, { version: FileVersion; bytes: Buffer }>();
  readonly counters: TransportCounters = newTransportCounters();
  /** Ranges that were read. */
  readonly log: [path: string, start: number, end: number][] = [];
  /** Thrown behind the first piece while it is set. */
  failure: FetchError | undefined;
  #closed = false;

  put(path: string, bytes: Buffer, etag: string): FileVersion {
    const version = { path, length: bytes.byteLength, etag, modifiedMs: 1 };
    this.files.set(path, { version, bytes });
    return version;
  }

  async list(): Promise<readonly FileVersion[]> {
    return [...this.files.values()].map(({ version }) => version);
  }

  async read(file: FileVersion, start: number, into: Uint8Array, options: ReadOptions = {}): Promise<void> {
    if (this.#closed) throw new FetchError('CLOSED', 'closed');
    this.log.push([file.path, start, start + into.byteLength]);
    this.counters.requests++;
    const half = into.byteLength >> 1;
    for (const [from, to] of [
      [0, half],
      [half, into.byteLength],
    ] as const) {
      await new Promise((resolve) => setImmediate(resolve));
      if (options.signal?.aborted) throw new FetchError('CANCELLED', 'cancelled');
      if (from > 0 && this.failure !== undefined) throw this.failure;
      const stored = this.files.get(file.path);
      if (stored === undefined || stored.version.etag !== file.etag) throw new FetchError('STALE', file.path);
      into.set(stored.bytes.subarray(start + from, start + to), from);
      this.counters.bytesOnWire += to - from;
      if (to > 0) options.onArrived?.(to);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
  }
}

export class CacheRig {
  readonly folder: string;
  readonly blockFolder: string;
  readonly source = new CountedTransport();
  readonly troubles: string[] = [];
  cache!: DiskCache;
  transport!: Transport;
  /** Sum of the last arrivals of all reads. */
  told = 0;
  readonly #bytes: number;

  private constructor(folder: string, bytes: number) {
    this.folder = folder;
    this.blockFolder = join(folder, 'blocks-1');
    this.#bytes = bytes;
  }

  static async open(t: TestContext, bytes = 2 ** 28, folder = newFolder(t)): Promise<CacheRig> {
    const rig = new CacheRig(folder, bytes);
    t.after(() => rig.cache.close());
    await rig.reopen();
    return rig;
  }

  /** What another process would find. */
  async reopen(): Promise<void> {
    await this.cache?.close();
    const onTrouble = (reason: string): void => void this.troubles.push(reason);
    this.cache = await DiskCache.open({ folder: this.folder, bytes: this.#bytes, onTrouble });
    this.transport = withDiskCache(this.source, this.cache, 'memory://host', this.source.counters);
  }

  /** The bytes that a read gives. */
  async read(file: FileVersion, start: number, end: number, options: ReadOptions = {}): Promise<Buffer> {
    const into = Buffer.alloc(end - start, 0xee);
    let arrived = 0;
    const onArrived = (bytes: number): void => {
      this.told += bytes - arrived;
      arrived = bytes;
      options.onArrived?.(bytes);
    };
    await this.transport.read(file, start, into, { ...options, onArrived });
    return into;
  }

  /** Reads, and waits until what is kept of it is on disk. */
  async readAndKeep(file: FileVersion, start: number, end: number): Promise<Buffer> {
    const bytes = await this.read(file, start, end);
    await this.cache.settled();
    return bytes;
  }

  /** Paths of all block files. */
  blockFiles(): string[] {
    return blockFiles(this.blockFolder);
  }

  /** Bytes that the block files take. */
  diskBytes(): number {
    return bytesOfFiles(this.blockFolder);
  }
}

export function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'qanat-test-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function blockFiles(blockFolder: string): string[] {
  return readdirSync(blockFolder)
    .filter((shelf) => shelf.length === 2)
    .flatMap((shelf) => readdirSync(join(blockFolder, shelf)).map((name) => join(blockFolder, shelf, name)));
}

/** Bytes that all block files take; they may come and go meanwhile. */
export function bytesOfFiles(blockFolder: string): number {
  return blockFiles(blockFolder).reduce((sum, path) => sum + bytesOnDisk(path), 0);
}

function bytesOnDisk(path: string): number {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  return Math.ceil(size / ALLOCATED_BYTES) * ALLOCATED_BYTES;
}
