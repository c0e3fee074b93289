/**
 * Blocks on their way to disk: copies of bytes whose reads have been answered. The queue is short; what finds no place in
 * it is dropped and comes again with the next read that misses it. When the disk is full or can't be written to, nothing is
 * written for a minute, and that is told once for each kind of trouble.
 */

import { writeBlock } from './block-file.ts';
import { formatName, versionName, writeHeader } from './block-format.ts';
import type { CacheFolder } from './cache-folder.ts';
import { BLOCK_BYTES_MAX, HEADER_BYTES, PAUSE_MS, QUEUED_BLOCKS_MAX, QUEUED_BYTES_MAX, WRITERS } from './limits.ts';

interface QueuedBlock {
  readonly key: Buffer;
  readonly start: number;
  /** Room for the header, and the data. */
  readonly file: Buffer;
}

export class BlockWriter {
  /** Blocks written, and their bytes of data. */
  writes = 0;
  writtenBytes = 0;
  /** Blocks that were not written: no place in the queue, no room, or trouble. */
  dropped = 0;
  readonly #folder: CacheFolder;
  readonly #onTrouble: (reason: string) => void;
  readonly #queue: QueuedBlock[] = [];
  /** Names of blocks in the queue and of those being written. */
  readonly #names = new Set<string>();
  #queuedBytes = 0;
  #writing = 0;
  #pausedUntilMs = 0;
  #closed = false;
  readonly #told = new Set<string>();
  /** Memory of full blocks, to be used again: new memory costs as much as filling it. */
  readonly #spare: Buffer[] = [];
  #onIdle: (() => void)[] = [];

  constructor(folder: CacheFolder, onTrouble: (reason: string) => void) {
    this.#folder = folder;
    this.#onTrouble = onTrouble;
  }

  /** Bytes in memory that are to be written. */
  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  /** Takes a copy of `bytes`, at most a block, which are those at `start` of the version with this key. */
  add(key: Buffer, start: number, bytes: Uint8Array): void {
    const name = formatName({ version: versionName(key), start, length: bytes.byteLength });
    if (this.#names.has(name)) return;
    const isFull = this.#queuedBytes + bytes.byteLength > QUEUED_BYTES_MAX || this.#names.size >= QUEUED_BLOCKS_MAX;
    if (isFull || this.#closed || Date.now() < this.#pausedUntilMs) {
      this.dropped++;
      return;
    }
    const file = this.#newFile(HEADER_BYTES + bytes.byteLength);
    file.set(bytes, HEADER_BYTES);
    this.#names.add(name);
    this.#queuedBytes += bytes.byteLength;
    this.#queue.push({ key, start, file });
    if (this.#writing < WRITERS) void this.#writeAll();
  }

  /** Resolves when nothing waits to be written. */
  settled(): Promise<void> {
    if (this.#names.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onIdle.push(resolve));
  }

  /** Takes no more blocks. */
  close(): void {
    this.#closed = true;
  }

  /** Gives up what has not been begun. */
  clear(): void {
    for (const block of this.#queue.splice(0)) {
      this.dropped++;
      this.#done(block);
    }
  }

  async #writeAll(): Promise<void> {
    this.#writing++;
    for (let block = this.#queue.shift(); block !== undefined; block = this.#queue.shift()) {
      try {
        await this.#write(block);
      } catch (error) {
        this.dropped++;
        this.#pause(error as NodeJS.ErrnoException);
      }
      this.#done(block);
    }
    this.#writing--;
  }

  async #write({ key, start, file }: QueuedBlock): Promise<void> {
    const name = { version: versionName(key), start, length: file.byteLength - HEADER_BYTES };
    if (this.#folder.index.get(name) !== undefined) return;
    if (!(await this.#folder.reserve(name.length))) {
      this.dropped++;
      return;
    }
    try {
      writeHeader(file, key, start);
      await writeBlock(this.#folder.newDraft(), this.#folder.pathOf(name), file);
    } catch (error) {
      this.#folder.failed(name.length);
      throw error;
    }
    this.writes++;
    this.writtenBytes += name.length;
    await this.#folder.filled(name);
  }

  #done({ key, start, file }: QueuedBlock): void {
    const length = file.byteLength - HEADER_BYTES;
    this.#queuedBytes -= length;
    this.#names.delete(formatName({ version: versionName(key), start, length }));
    if (length > BLOCK_BYTES_MAX / 2 && this.#spare.length < 2 * WRITERS) this.#spare.push(file);
    if (this.#names.size > 0) return;
    for (const resolve of this.#onIdle.splice(0)) resolve();
  }

  #pause(error: NodeJS.ErrnoException): void {
    this.#pausedUntilMs = Date.now() + PAUSE_MS;
    this.clear();
    const { code = 'unknown', message } = error;
    if (this.#told.has(code)) return;
    this.#told.add(code);
    this.#onTrouble(`nothing is kept for now: ${code === 'ENOSPC' ? 'the disk is full' : message}`);
  }

  #newFile(bytes: number): Buffer {
    const whole = bytes > BLOCK_BYTES_MAX / 2 ? this.#spare.pop() : undefined;
    if (whole !== undefined) return Buffer.from(whole.buffer, 0, bytes);
    return Buffer.from(new ArrayBuffer(bytes > BLOCK_BYTES_MAX / 2 ? HEADER_BYTES + BLOCK_BYTES_MAX : bytes), 0, bytes);
  }
}
