/**
 * Blocks of file versions on local disk (`--cache-dir`), for any number of sources: which parts of a range are there, to
 * read those, and to keep what a source has brought. A cache is never the reason for an error: what can't be read comes
 * from the source, what can't be written is not kept. A block is believed when its header names exactly what is looked
 * for and every piece that was read has its checksum; else it is deleted.
 */
import { readBlock } from './block-file.ts';
import { versionKey, versionName } from './block-format.ts';
import type { Block, Segment } from './block-index.ts';
import { BlockWriter } from './block-writer.ts';
import { CacheFolder } from './cache-folder.ts';
import {
  BLOCK_BYTES_MAX,
  CLOSE_MS,
  KEPT_READ_BYTES_MIN,
  PIECE_BYTES,
  REFETCHED_BYTES_MAX,
  TOUCH_MS,
} from './limits.ts';

export interface DiskCacheOptions {
  /** Made if it is not there; may be shared with other processes. */
  readonly folder: string;
  /** Bytes on disk at most. */
  readonly bytes: number;
  /** Told, in words and once for each kind, why nothing is kept. */
  readonly onTrouble?: (reason: string) => void;
}

/** Totals since the cache was opened. The bytes that it served are counted by the sources: TransportCounters. */
export interface DiskCacheCounters {
  /** Reads of which everything, some, nothing was there. */
  readonly hits: number;
  readonly partial: number;
  readonly misses: number;
  /** Blocks written, and their bytes. */
  readonly writes: number;
  readonly writtenBytes: number;
  /** Blocks deleted to make room. */
  readonly evictions: number;
  /** Blocks deleted because they were not what they should be. */
  readonly damaged: number;
  /** Blocks not written: the disk was too slow, full, or not to be written to. */
  readonly dropped: number;
}

export class DiskCache {
  readonly limitBytes: number;
  readonly #folder: CacheFolder;
  readonly #writer: BlockWriter;
  readonly #reads = { hits: 0, partial: 0, misses: 0 };
  #damaged = 0;
  #isOff = false;

  private constructor({ folder, bytes, onTrouble }: DiskCacheOptions) {
    this.limitBytes = bytes;
    this.#folder = new CacheFolder(folder, bytes);
    this.#writer = new BlockWriter(this.#folder, (reason) => onTrouble?.(`disk cache ${folder}: ${reason}`));
  }

  /** Opens a cache. One whose folder can't be used keeps nothing and says why; that is no error. */
  static async open(options: DiskCacheOptions): Promise<DiskCache> {
    const cache = new DiskCache(options);
    try {
      await cache.#folder.open();
    } catch (error) {
      cache.#isOff = true;
      options.onTrouble?.(`disk cache ${options.folder}: it is not used: ${(error as Error).message}`);
    }
    return cache;
  }

  get counters(): DiskCacheCounters {
    const { writes, writtenBytes, dropped } = this.#writer;
    const { evictions } = this.#folder;
    return { ...this.#reads, writes, writtenBytes, evictions, damaged: this.#damaged, dropped };
  }

  /** Bytes that the blocks take on disk, as far as this process knows. */
  get bytes(): number {
    return this.#folder.index.bytes;
  }

  get blocks(): number {
    return this.#folder.index.count;
  }

  /** Bytes in memory that wait to be written. */
  get queuedBytes(): number {
    return this.#writer.queuedBytes;
  }

  /**
   * The key of a version; undefined when it is not cached, because its etag is weak or missing: then equal etags need not
   * mean equal bytes.
   */
  keyOf(location: string, etag: string, length: number): Buffer | undefined {
    if (this.#isOff || etag === '' || /^w\//i.test(etag)) return undefined;
    return versionKey(location, etag, length);
  }

  /** What of [start, end) is there, as parts in order; small parts that are there between missing ones count as missing. */
  plan(key: Buffer, start: number, end: number): Segment[] {
    const segments = joinMissing(this.#folder.index.segments(versionName(key), start, end));
    const there = segments.filter(({ block }) => block !== undefined).length;
    this.#reads[there === 0 ? 'misses' : there === segments.length ? 'hits' : 'partial']++;
    return segments;
  }

  /**
   * Reads what a planned part has in its block. When it is false, what `into` holds is undefined, and the block is not
   * there any more.
   */
  async read(key: Buffer, { start, block }: Segment & { readonly block: Block }, into: Uint8Array): Promise<boolean> {
    const { index } = this.#folder;
    const nowMs = Date.now();
    const touch = nowMs - block.touchedMs >= TOUCH_MS ? nowMs : undefined;
    if (touch !== undefined) block.touchedMs = touch;
    index.touch(block);
    const result = await readBlock(this.#folder.pathOf(block), key, block, start - block.start, into, touch);
    if (result === 'right') return true;
    // others may have found it out, and written it anew, meanwhile
    if (!index.has(block)) return false;
    if (result === 'unreadable') {
      index.remove(block);
      return false;
    }
    this.#damaged++;
    await this.#folder.remove(block).catch(() => {});
    return false;
  }

  /** Keeps a copy of `bytes`, which begin at `start` of the version, as soon as the disk has time for it. */
  keep(key: Buffer, start: number, bytes: Uint8Array): void {
    const parts = Math.ceil(bytes.byteLength / BLOCK_BYTES_MAX);
    const partBytes = Math.ceil(bytes.byteLength / parts / PIECE_BYTES) * PIECE_BYTES;
    for (let at = 0; at < bytes.byteLength; at += partBytes) {
      this.#writer.add(key, start + at, bytes.subarray(at, at + partBytes));
    }
  }

  /** Resolves when what was to be kept has been written or dropped. */
  settled(): Promise<void> {
    return this.#writer.settled();
  }

  /** Writes what waits to be written, but no longer than some seconds. What is read then still is read. */
  async close(): Promise<void> {
    this.#writer.close();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, CLOSE_MS);
    });
    await Promise.race([this.#writer.settled(), late]);
    clearTimeout(timer);
    this.#writer.clear();
  }
}

/** Whether a read of so many bytes is worth a place in the cache. */
export function isKept(bytes: number): boolean {
  return bytes >= KEPT_READ_BYTES_MIN;
}

/** Missing parts with little between them as one. */
function joinMissing(segments: readonly Segment[]): Segment[] {
  const joined: Segment[] = [];
  for (const segment of segments) {
    joined.push(segment);
    if (segment.block !== undefined) continue;
    const [before, between] = joined.slice(-3);
    if (joined.length < 3 || before!.block !== undefined || between!.block === undefined) continue;
    if (between!.end - between!.start > REFETCHED_BYTES_MAX) continue;
    joined.splice(-3, 3, { start: before!.start, end: segment.end, block: undefined });
  }
  return joined;
}
