/**
 * Decoded chunks of a mount: images in the pool, made by decoder threads from the units of the raw store, kept until
 * room is needed. A reader waits until the pages it wants are there, not for the whole chunk. Readers' chunks are
 * decoded at once, those fetched ahead as decoders and memory allow. An image that is read, or being copied somewhere,
 * never leaves; of the others those that have been read through go first, then the least recently used.
 */
import { AHEAD_SHARE } from '../limits.ts';
import type { ChunkKeeper, ChunkStoreOptions, DecodedChunk } from './decoded-chunk.ts';

export class ChunkStore implements ChunkKeeper {
  readonly options: ChunkStoreOptions;
  /** Chunks decoded, given up whole and again asked for, and reads by whether their pages were there. */
  readonly counts = { decoded: 0, evicted: 0, failed: 0, there: 0, late: 0, absent: 0 };
  /** Chunks in memory or on their way, the least recently used first. */
  readonly #chunks = new Set<DecodedChunk>();
  #ahead: DecodedChunk[] = [];
  #running = 0;
  #closed: Error | undefined;

  constructor(options: ChunkStoreOptions) {
    this.options = options;
  }

  get closedBy(): Error | undefined {
    return this.#closed;
  }

  /** Bytes of images in memory. */
  get heldBytes(): number {
    let bytes = 0;
    for (const chunk of this.#chunks) bytes += chunk.slabBytes;
    return bytes;
  }

  touch(chunk: DecodedChunk): void {
    if (this.#chunks.delete(chunk)) this.#chunks.add(chunk);
  }

  /** A place for an image, at the expense of what nobody reads; 0 when there is none now. */
  allocate(bytes: number): number {
    const { pool, makeRoom } = this.options;
    for (;;) {
      const address = pool.allocate(bytes);
      if (address !== 0) return address;
      if (!makeRoom() && !this.giveUpOne()) return 0;
    }
  }

  /** Gives up one chunk that nobody needs. */
  giveUpOne(): boolean {
    return this.#evict(true) || this.#evict(false);
  }

  #evict(readOnly: boolean): boolean {
    for (const chunk of this.#chunks) {
      if (!chunk.isIdle || (readOnly && !chunk.isReadThrough)) continue;
      this.counts.evicted++;
      chunk.giveUp();
      return true;
    }
    return false;
  }

  /** Decodes chunks that nobody waits for yet. */
  prefetch(chunks: readonly DecodedChunk[]): void {
    const waiting = new Set(this.#ahead);
    this.#ahead.push(...chunks.filter((chunk) => chunk.isAbsent && !waiting.has(chunk)));
    this.startAhead();
  }

  startAhead(): void {
    const { pool, decoding } = this.options;
    while (this.#ahead.length > 0 && this.#running < decoding.count + 3) {
      const chunk = this.#ahead[0]!;
      const bytes = chunk.slabBytes + chunk.source.spec.byteLength;
      if (chunk.isAbsent && chunk.isOpen) {
        while (pool.usedBytes + bytes > pool.capacityBytes * AHEAD_SHARE) if (!this.#evict(true)) return;
      }
      this.#ahead.shift();
      if (chunk.isAbsent && chunk.isOpen) chunk.start();
    }
  }

  /** A chunk's decoding began or ended. */
  began(chunk: DecodedChunk): void {
    this.#running++;
    this.#chunks.add(chunk);
  }

  ended(chunk: DecodedChunk, isKept: boolean): void {
    this.#running--;
    if (!isKept) this.#chunks.delete(chunk);
    queueMicrotask(() => {
      for (const other of this.#chunks) other.retry();
      this.startAhead();
    });
  }

  left(chunk: DecodedChunk): void {
    this.#chunks.delete(chunk);
    this.options.onFreed();
  }

  /** Memory came back that is not the store's. */
  roomAgain(): void {
    for (const chunk of this.#chunks) chunk.retry();
    this.startAhead();
  }

  /** Whether something is being decoded or read, so that memory will come back without help. */
  hasOthers(than: DecodedChunk): boolean {
    for (const chunk of this.#chunks) if (chunk !== than && !chunk.isIdle) return true;
    return false;
  }

  close(error: Error): void {
    this.#closed = error;
    this.#ahead = [];
    for (const chunk of [...this.#chunks]) chunk.close(error);
  }
}
