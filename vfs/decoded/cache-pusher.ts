/**
 * Puts decoded chunks into the kernel's page cache when nobody reads: what one process has had decoded, the next reads
 * from memory without asking us. Chunk by chunk, in the order in which they became whole, in pieces; whole pages only,
 * for the kernel does not take half a page for read. A chunk stays in the pool while it is copied. The copying itself is
 * `push`'s, in another thread than the one that answers the kernel: a store waits for locks that a read may hold.
 */
import type { DecodedChunk } from './decoded-chunk.ts';
import type { DecodedContent } from './decoded-content.ts';
import { PAGE_BYTES } from './layout.ts';

/** Stores bytes of a file at `offset`; false when the kernel does not know the file (any more). */
export type PagePush = (path: string, offset: number, bytes: Uint8Array) => Promise<boolean>;

export interface CachePusherOptions {
  readonly push: PagePush;
  readonly u8: Uint8Array;
  /** Milliseconds without a read before the copying begins. */
  readonly idleMs: number;
  readonly pieceBytes: number;
}

interface Work {
  readonly path: string;
  readonly content: DecodedContent;
  readonly chunk: DecodedChunk;
  readonly start: number;
}

export class CachePusher {
  /** Chunks and bytes in the kernel's cache by our doing. */
  readonly counts = { chunks: 0, bytes: 0, refused: 0 };
  readonly #options: CachePusherOptions;
  readonly #queue: Work[] = [];
  #lastRead = 0;
  #running = false;
  #closed = false;

  constructor(options: CachePusherOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#queue.length;
  }

  /** Somebody reads: later. */
  read(): void {
    this.#lastRead = performance.now();
  }

  add(work: Work): void {
    this.#queue.push(work);
    if (!this.#running && !this.#closed) void this.#run();
  }

  close(): void {
    this.#closed = true;
    this.#queue.length = 0;
  }

  async #run(): Promise<void> {
    this.#running = true;
    while (this.#queue.length > 0 && !this.#closed) {
      await this.#idle();
      const work = this.#queue.shift();
      if (work !== undefined && !this.#closed) await this.#push(work);
    }
    this.#running = false;
  }

  async #idle(): Promise<void> {
    for (;;) {
      const wait = this.#lastRead + this.#options.idleMs - performance.now();
      if (wait <= 0 || this.#closed) return;
      await new Promise<void>((resolve) => setTimeout(resolve, wait).unref());
    }
  }

  async #push({ path, content, chunk, start }: Work): Promise<void> {
    const address = chunk.pin();
    if (address === undefined) return; // it has left already
    try {
      const { u8, pieceBytes, push } = this.#options;
      const length = Math.ceil(chunk.source.pages.length / PAGE_BYTES) * PAGE_BYTES;
      if (!content.isInCache) {
        for (const { offset, bytes } of content.ends()) await push(path, offset, bytes);
      }
      for (let at = 0; at < length && !this.#closed; at += pieceBytes) {
        const bytes = u8.subarray(address + at, address + Math.min(length, at + pieceBytes));
        if (!(await push(path, start + at, bytes))) {
          this.counts.refused++;
          return;
        }
        this.counts.bytes += bytes.length;
      }
      content.isInCache = true;
      chunk.isElsewhere = true;
      this.counts.chunks++;
    } finally {
      chunk.unpin();
    }
  }
}
