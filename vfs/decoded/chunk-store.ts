/**
 * Decoded chunks of a mount: images in the pool, made by decoder threads from the units of the raw store, kept until
 * room is needed. A reader waits until the pages it wants are there, not for the whole chunk. Readers' chunks are
 * decoded at once, those fetched ahead as decoders and memory allow. An image that is read, or being copied somewhere,
 * never leaves; of the others those that have been read through go first, then the least recently used.
 */
import { AHEAD_SHARE, AHEAD_WISHES_MAX } from '../limits.ts';
import type { Keeper, Need } from '../raw/memory-turns.ts';
import type { ChunkStoreOptions } from './chunk-decoding.ts';
import type { ChunkKeeper, DecodedChunk } from './decoded-chunk.ts';

export class ChunkStore implements ChunkKeeper, Keeper {
  readonly options: ChunkStoreOptions;
  /** Chunks decoded, given up whole and again asked for, and reads by whether their pages were there. */
  readonly counts = { decoded: 0, evicted: 0, failed: 0, there: 0, late: 0, absent: 0 };
  /** Chunks in memory or on their way, the least recently used first. */
  readonly #chunks = new Set<DecodedChunk>();
  readonly #ahead = new Set<DecodedChunk>();
  /** Chunks that wait for a flow. */
  readonly #flowless = new Set<DecodedChunk>();
  #running = 0;
  #closed: Error | undefined;

  constructor(options: ChunkStoreOptions) {
    this.options = options;
    options.turns.add(this);
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
    const { pool, turns } = this.options;
    for (;;) {
      const address = pool.allocate(bytes);
      if (address !== 0 || !turns.evict()) return address;
    }
  }

  evict(readOnly: boolean): boolean {
    for (const chunk of this.#chunks) {
      if (!chunk.isIdle || (readOnly && !chunk.isReadThrough)) continue;
      this.counts.evicted++;
      chunk.giveUp();
      return true;
    }
    return false;
  }

  isBusy(than: Need): boolean {
    for (const chunk of this.#chunks) if (chunk.turn === than.turn ? chunk.isAtWork : !chunk.isIdle) return true;
    return false;
  }

  /** Decodes chunks that nobody waits for yet. */
  prefetch(chunks: readonly DecodedChunk[]): void {
    for (const chunk of chunks) {
      if (!chunk.isAbsent) continue;
      this.#ahead.add(chunk);
      if (this.#ahead.size > AHEAD_WISHES_MAX) this.#ahead.delete(this.#ahead.values().next().value!);
    }
    this.#startAhead();
  }

  #startAhead(): void {
    const { pool, decoding, turns } = this.options;
    for (const chunk of this.#ahead) {
      if (this.#running >= decoding.count + 3 || turns.isShort) return;
      const bytes = chunk.slabBytes + chunk.source.spec.byteLength;
      if (chunk.isAbsent && chunk.isOpen) {
        while (pool.usedBytes + bytes > pool.capacityBytes * AHEAD_SHARE) if (!this.evict(true)) return;
      }
      this.#ahead.delete(chunk);
      chunk.startAhead();
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
    this.options.turns.freed();
  }

  awaitFlow(chunk: DecodedChunk): void {
    this.#flowless.add(chunk);
  }

  flowEnded(): void {
    if (this.#flowless.size === 0) return;
    queueMicrotask(() => {
      const waiting = [...this.#flowless].sort((a, b) => a.turn - b.turn);
      this.#flowless.clear();
      for (const chunk of waiting) chunk.retry();
    });
  }

  left(chunk: DecodedChunk): void {
    this.#chunks.delete(chunk);
    this.options.turns.freed();
  }

  roomAgain(): void {
    this.#startAhead();
  }

  close(error: Error): void {
    this.#closed = error;
    this.#ahead.clear();
    for (const chunk of [...this.#chunks]) chunk.close(error);
  }
}
