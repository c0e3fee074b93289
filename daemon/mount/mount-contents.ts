/**
 * The contents of mounted files, in either view, over one store of bytes and one of decoded chunks in one pool, which
 * make room for each other. Decoded chunks go on into the kernel's page cache when nobody reads.
 */
import { DecodeError, loadKernels, type Pool } from '../../decode/index.ts';
import { type FileVersion, GapEstimator } from '../../fetcher/index.ts';
import { BucketCounts, METRICS } from '../../metrics/index.ts';
import { isParquetPath } from '../../storage-server/protocol/index.ts';
import { CachePusher, ChunkStore, DECODED_CHUNK_SHARE, DecodedContent } from '../../vfs/decoded/index.ts';
import { type FileContent, PAGE_BYTES, READ_AHEAD_BYTES, type TreeFile } from '../../vfs/fuse/index.ts';
import type { Source } from '../../vfs/index.ts';
import { FileUnits, RangeStore, RawContent, READ_KEPT_BYTES, type StoredFile } from '../../vfs/raw/index.ts';
import type { ScanEngine } from '../scan/engine.ts';
import { PUSH_IDLE_MS, PUSH_PIECE_BYTES } from './limits.ts';
import { PrefetchDepth } from './prefetch-depth.ts';
import type { View } from './view.ts';

/** Puts bytes of a version of a file into the kernel's page cache; false when it does not take them. */
export type PushPages = (file: TreeFile, offset: number, bytes: Uint8Array) => Promise<boolean>;

export interface ContentsOptions {
  readonly source: Source;
  readonly pool: Pool;
  /** Decodes; absent where nothing is decoded. */
  readonly engine: ScanEngine | undefined;
  readonly view: View;
  readonly prefetchDepth: number | 'auto';
  readonly maxGap: number | 'auto';
  readonly versionOf: (file: TreeFile) => FileVersion;
  /** Takes Parquet files for any others: sequential read-ahead only. For comparisons. */
  readonly plain?: boolean;
  readonly push: PushPages;
  readonly onDepth: (depth: number, reason: string) => void;
}

export class MountContents {
  readonly store: RangeStore;
  readonly chunks: ChunkStore | undefined;
  readonly pusher: CachePusher | undefined;
  readonly depth: PrefetchDepth;
  readonly fetchSeconds = new BucketCounts(METRICS.fetchSeconds.buckets);
  readonly fetchBytes = new BucketCounts(METRICS.fetchBytes.buckets);
  readonly #options: ContentsOptions;
  readonly #chunkBytesMax: number;
  /** What is being pushed, by the name that the pusher has for it. */
  readonly #pushed = new Map<string, TreeFile>();

  constructor(options: ContentsOptions) {
    const { source, pool, engine, maxGap, prefetchDepth, onDepth } = options;
    this.#options = options;
    this.#chunkBytesMax = Math.floor(pool.capacityBytes * DECODED_CHUNK_SHARE);
    const gap = new GapEstimator();
    this.store = new RangeStore({
      pool,
      transport: source.transport,
      gapBytes: () => (maxGap === 'auto' ? gap.gapBytes() : maxGap),
      onFetch: (bytes, milliseconds) => {
        gap.observe(bytes, milliseconds);
        this.fetchSeconds.observe(milliseconds / 1000);
        this.fetchBytes.observe(bytes);
      },
      // what the decoded view passes on, the kernel does not keep
      ...(options.view === 'raw' ? { readKeptBytes: READ_KEPT_BYTES } : {}),
    });
    this.depth = new PrefetchDepth(prefetchDepth, () => this.#totals(), onDepth);
    if (engine === undefined) return;
    this.chunks = new ChunkStore({
      pool,
      kernels: loadKernels(pool.memory),
      decoding: engine.streams,
      turns: this.store.turns,
    });
    this.pusher = new CachePusher({
      u8: pool.u8,
      idleMs: PUSH_IDLE_MS,
      pieceBytes: PUSH_PIECE_BYTES,
      push: (name, offset, bytes) => this.#push(name, offset, bytes),
    });
  }

  /** The content of one version of a file. */
  readonly contentOf = (file: TreeFile): FileContent => {
    const { view, versionOf } = this.#options;
    const version = versionOf(file);
    const raw = this.#rawContent(version);
    return view === 'decoded' && isParquetPath(version.path) ? this.#decodedContent(file, version, raw) : raw;
  };

  /** Everything that waits ends with `error`. */
  close(error: Error): void {
    this.pusher?.close();
    this.depth.close();
    this.chunks?.close(error);
    this.store.close(error);
  }

  #rawContent(version: FileVersion): RawContent {
    return new RawContent({
      depth: () => this.depth.current,
      opening: { serve: 'cached' },
      kernelAheadBytes: this.#options.view === 'raw' ? READ_AHEAD_BYTES : 0,
      stored: () => this.#stored(version),
    });
  }

  async #stored(version: FileVersion): Promise<StoredFile> {
    return this.store.open(version, await this.#units(version));
  }

  async #units(version: FileVersion): Promise<FileUnits> {
    if (this.#options.plain || !isParquetPath(version.path)) return FileUnits.blocks(version.length);
    try {
      const handle = await this.#options.source.open(version);
      return FileUnits.parquet(await handle.footer(), version.length, this.#options.view === 'raw' ? PAGE_BYTES : 1);
    } catch (error) {
      // named as Parquet and none, or a footer that is broken: bytes are bytes
      if (error instanceof DecodeError) return FileUnits.blocks(version.length);
      throw error;
    }
  }

  #decodedContent(file: TreeFile, version: FileVersion, raw: RawContent): FileContent {
    const name = `${version.etag}\0${version.path}`;
    const content: DecodedContent = new DecodedContent({
      raw,
      chunks: this.chunks!,
      footer: async () => (await this.#options.source.open(version)).fetchedFooter(),
      stored: () => raw.stored(),
      length: version.length,
      chunkBytesMax: this.#chunkBytesMax,
      depth: () => this.depth.current,
      onDecoded: (chunk, start) => {
        this.#pushed.set(name, file);
        this.pusher!.add({ path: name, content, chunk, start });
      },
    });
    return withReadsTold(content, {
      read: () => this.pusher!.read(),
      closed: () => this.#pushed.delete(name),
    });
  }

  #push(name: string, offset: number, bytes: Uint8Array): Promise<boolean> {
    const file = this.#pushed.get(name);
    return file === undefined ? Promise.resolve(false) : this.#options.push(file, offset, bytes);
  }

  #totals() {
    const { pool } = this.#options;
    const { reads, ledger } = this.store;
    const chunks = this.chunks?.counts;
    return {
      there: reads.there + (chunks?.there ?? 0),
      waited: reads.late + reads.absent + (chunks === undefined ? 0 : chunks.late + chunks.absent),
      evictedBytes: ledger.wasted.evicted,
      memoryShare: pool.usedBytes / pool.capacityBytes,
    };
  }
}

/** The same content, whose reads and whose end are told. */
function withReadsTold(content: DecodedContent, told: { read(): void; closed(): void }): FileContent {
  return {
    open: (signal, done) => content.open(signal, done),
    measure: (signal, done) => content.measure(signal, done),
    read(offset, length, signal, done) {
      told.read();
      content.read(offset, length, signal, done);
    },
    released: (handle) => content.released(handle),
    close() {
      told.closed();
      content.close();
    },
  };
}
