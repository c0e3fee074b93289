/** Both views of files in memory, over a transport that answers late, in pieces, and fails when it is told to. */
import { loadKernels, Pool } from '../../decode/index.ts';
import { FetchError, type FileVersion, fetchFooter, type ReadOptions, type Transport } from '../../fetcher/index.ts';
import { ChunkStore } from '../decoded/chunk-store.ts';
import type { DecodedChunk } from '../decoded/decoded-chunk.ts';
import { DecodedContent } from '../decoded/decoded-content.ts';
import type { FileContent, RequestSignal } from '../fuse/content.ts';
import { RangeStore } from '../raw/range-store.ts';
import { RawContent } from '../raw/raw-content.ts';
import { FileUnits } from '../raw/units.ts';
import { InlineDecoding } from './inline-decoding.ts';

/** A source in memory. Each read takes a turn of the event loop, or many. */
export class MemoryTransport implements Transport {
  readonly files = new Map<string, Uint8Array>();
  /** Ranges that were read. */
  readonly log: { path: string; start: number; end: number }[] = [];
  /** Thrown by every read while it is set. */
  failure: FetchError | undefined;
  turns: () => number = () => 1;
  open = 0;

  add(path: string, bytes: Uint8Array): FileVersion {
    this.files.set(path, bytes);
    return { path, length: bytes.length, etag: `etag of ${path}`, modifiedMs: 1 };
  }

  async list(): Promise<readonly FileVersion[]> {
    return [];
  }

  async read(file: FileVersion, start: number, into: Uint8Array, options: ReadOptions = {}): Promise<void> {
    this.log.push({ path: file.path, start, end: start + into.byteLength });
    this.open++;
    try {
      const bytes = this.files.get(file.path)!;
      const half = into.byteLength >> 1;
      for (const [from, to] of [
        [0, half],
        [half, into.byteLength],
      ] as const) {
        for (let turn = this.turns(); turn > 0; turn--) await new Promise((resolve) => setImmediate(resolve));
        if (options.signal?.aborted) throw new FetchError('CANCELLED', 'cancelled');
        if (this.failure !== undefined) throw this.failure;
        into.set(bytes.subarray(start + from, start + to), from);
        options.onArrived?.(to);
      }
    } finally {
      this.open--;
    }
  }

  async close(): Promise<void> {}
}

export interface RigOptions {
  readonly memoryBytes?: number;
  readonly depth?: number;
  readonly chunkBytesMax?: number;
}

export class ViewRig {
  readonly transport = new MemoryTransport();
  readonly pool: Pool;
  readonly store: RangeStore;
  readonly chunks: ChunkStore;
  onDecoded: ((content: DecodedContent, chunk: DecodedChunk, start: number) => void) | undefined;
  readonly #options: RigOptions;

  constructor(options: RigOptions = {}) {
    this.#options = options;
    this.pool = Pool.create(options.memoryBytes ?? 64 << 20);
    const { pool } = this;
    const kernels = loadKernels(pool.memory);
    this.store = new RangeStore({
      pool,
      transport: this.transport,
      gapBytes: () => 4096,
    });
    this.chunks = new ChunkStore({
      pool,
      kernels,
      decoding: new InlineDecoding({ pool, kernels, verifyChecksums: true }),
      turns: this.store.turns,
    });
  }

  #stored(version: FileVersion) {
    return async () => {
      const units = await fetchFooter(this.transport, version).then(
        ({ metadata }) => FileUnits.parquet(metadata, version.length),
        () => FileUnits.blocks(version.length),
      );
      return this.store.open(version, units);
    };
  }

  raw(version: FileVersion): RawContent {
    const depth = (): number => this.#options.depth ?? 2;
    return new RawContent({ depth, opening: { serve: 'cached' }, stored: this.#stored(version) });
  }

  decoded(version: FileVersion): DecodedContent {
    const raw = this.raw(version);
    const content: DecodedContent = new DecodedContent({
      raw,
      chunks: this.chunks,
      footer: () => fetchFooter(this.transport, version),
      stored: () => raw.stored(),
      length: version.length,
      chunkBytesMax: this.#options.chunkBytesMax ?? 8 << 20,
      depth: () => this.#options.depth ?? 2,
      onDecoded: (chunk, start) => this.onDecoded?.(content, chunk, start),
    });
    return content;
  }
}

/** A signal that nobody aborts but the test. */
export function newSignal(handle = 1): RequestSignal & { abort(): void } {
  const signal = {
    aborted: false,
    handle,
    pid: 0,
    onAbort: undefined as (() => void) | undefined,
    get abortSignal(): AbortSignal {
      return new AbortController().signal;
    },
    abort(): void {
      signal.aborted = true;
      const told = signal.onAbort;
      signal.onAbort = undefined;
      told?.();
    },
  };
  return signal;
}

/** A copy of what a content answers. */
export function readContent(
  content: FileContent,
  offset: number,
  length: number,
  signal = newSignal(),
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    content.read(offset, length, signal, (error, views) => {
      if (error === undefined) resolve(Buffer.concat(views!));
      else reject(error);
      return true;
    });
  });
}

export function measure(content: FileContent): Promise<number> {
  return new Promise((resolve, reject) => {
    content.measure!(newSignal(), (error, length) => (error === undefined ? resolve(length!) : reject(error)));
  });
}
