/** A transport over files in memory that keeps the contract and records what is read, for tests of what uses one. */
import { FetchError } from '../errors.ts';
import type { FileVersion, ReadOptions, Transport } from '../transport/transport.ts';

export class MemoryTransport implements Transport {
  /** Every read so far: path, start, end. */
  readonly reads: [path: string, start: number, end: number][] = [];
  readonly #files: Map<string, { bytes: Uint8Array; etag: string }>;
  #closed = false;

  constructor(files: Readonly<Record<string, Uint8Array>>) {
    this.#files = new Map(Object.entries(files).map(([path, bytes]) => [path, { bytes, etag: 'v1' }]));
  }

  async list(prefix: string): Promise<readonly FileVersion[]> {
    if (this.#closed) throw new FetchError('CLOSED', 'the transport is closed');
    return [...this.#files]
      .filter(([path]) => path.startsWith(prefix))
      .sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
      .map(([path, { bytes, etag }]) => ({ path, length: bytes.length, etag, modifiedMs: 0 }));
  }

  async read(file: FileVersion, start: number, into: Uint8Array, options: ReadOptions = {}): Promise<void> {
    if (this.#closed) throw new FetchError('CLOSED', 'the transport is closed');
    if (options.signal?.aborted) throw new FetchError('CANCELLED', 'the read was cancelled');
    this.reads.push([file.path, start, start + into.byteLength]);
    const stored = this.#files.get(file.path);
    if (stored === undefined) throw new FetchError('NOT_FOUND', file.path);
    if (stored.etag !== file.etag) throw new FetchError('STALE', `${file.path} changed`);
    const end = start + into.byteLength;
    if (start < 0 || end > file.length) throw new FetchError('OUT_OF_RANGE', `${file.path} ${start} to ${end}`);
    into.set(stored.bytes.subarray(start, end));
    options.onArrived?.(into.byteLength);
  }

  /** Puts other bytes under the path, as a writer that replaces the file. */
  replace(path: string, bytes: Uint8Array, etag: string): void {
    this.#files.set(path, { bytes, etag });
  }

  async close(): Promise<void> {
    this.#closed = true;
  }
}
