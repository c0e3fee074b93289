/**
 * The folder that a cache lies in, and how much of it is filled:
 *
 *     <folder>/blocks-1/<first two digits of the version>/<name of the block>
 *     <folder>/blocks-1/drafts/<what is being written>
 *
 * Any number of processes may use it at once without knowing of each other: blocks come whole, by rename, and what one of
 * them has evicted is for the others just not there. A process sees what others wrote when it looks, which it does
 * whenever it has written a sixteenth of the size: by so much each can overshoot the size for the others. Before a block
 * is evicted its time on disk is asked for, so that one which another process uses stays.
 */
import { randomBytes } from 'node:crypto';
import type { Dirent } from 'node:fs';
import { lstat, mkdir, readdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { BLOCK_FOLDER, type BlockName, formatName, parseName } from './block-format.ts';
import { allocatedBytes, type Block, BlockIndex } from './block-index.ts';
import { ABANDONED_MS, BLOCKS_MAX, LOOK_SHARE, STATS_AT_ONCE } from './limits.ts';

/** Milliseconds by which clocks of file systems and of processes may differ without meaning anything. */
const CLOCK_SLACK_MS = 2_000;

export class CacheFolder {
  readonly index = new BlockIndex();
  evictions = 0;
  readonly #folder: string;
  readonly #limitBytes: number;
  /** Blocks that are being written or unlinked, in bytes on disk. */
  #movingBytes = 0;
  /** Bytes written since the last look. */
  #unseenBytes = 0;
  #look = 0;
  #looking: Promise<void> | undefined;
  /** Settles when the blocks that were found are in the order of their times. */
  #sorted: Promise<void> = Promise.resolve();
  readonly #writer = `${process.pid}-${randomBytes(6).toString('hex')}`;
  #drafts = 0;

  constructor(folder: string, limitBytes: number) {
    this.#folder = join(folder, BLOCK_FOLDER);
    this.#limitBytes = limitBytes;
  }

  /** Makes the folder if it is not there, and looks at what it has. Throws what the system says, or Error. */
  async open(): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const { uid, mode } = await lstat(this.#folder);
    // a checksum tells damage, not malice: nobody else may put blocks there
    if (uid !== (process.geteuid?.() ?? uid)) throw new Error(`${this.#folder} belongs to another user`);
    if ((mode & 0o022) !== 0) throw new Error(`others may write to ${this.#folder}`);
    await this.#lookNow();
    // the size may have been larger when they were written
    this.#trim().catch(() => {});
  }

  pathOf(name: BlockName): string {
    return join(this.#folder, name.version.slice(0, 2), formatName(name));
  }

  /** A path that nobody else writes to. */
  newDraft(): string {
    return join(this.#folder, 'drafts', `${this.#writer}-${this.#drafts++}`);
  }

  /**
   * Takes room for a block of `length` bytes, evicting others for it; false when there can be none. When it is true,
   * `filled` or `failed` must follow. Throws what the system says.
   */
  async reserve(length: number): Promise<boolean> {
    this.#movingBytes += allocatedBytes(length);
    let reserved = false;
    try {
      if (this.#unseenBytes >= this.#limitBytes / LOOK_SHARE) await this.#lookOnce();
      reserved = await this.#trim();
      return reserved;
    } finally {
      if (!reserved) this.failed(length);
    }
  }

  /** Evicts blocks until all fit; false when they can't. */
  async #trim(): Promise<boolean> {
    while (this.index.bytes + this.#movingBytes > this.#limitBytes || this.index.count >= BLOCKS_MAX) {
      if (!(await this.#evictOne())) return false;
    }
    return true;
  }

  /** The block has been written. */
  async filled(name: BlockName): Promise<void> {
    const { index } = this;
    this.failed(name.length);
    this.#unseenBytes += allocatedBytes(name.length);
    const block = index.get(name) ?? index.add(name, Date.now(), this.#look);
    // smaller ones that have the same bytes are of no use any more
    for (const other of index.within(name.version, name.start, name.start + name.length)) {
      if (other !== block) await this.remove(other).catch(() => {});
    }
  }

  /** The block has not been written. */
  failed(length: number): void {
    this.#movingBytes -= allocatedBytes(length);
  }

  /** Deletes a block. Throws what the system says, but not that it is gone. */
  async remove(block: Block): Promise<void> {
    const bytes = allocatedBytes(block.length);
    this.index.remove(block);
    this.#movingBytes += bytes;
    try {
      await unlink(this.pathOf(block)).catch(ignoreGone);
    } finally {
      this.#movingBytes -= bytes;
    }
  }

  /** Deletes the block that was not used for longest; false when there is none. Throws what the system says. */
  async #evictOne(): Promise<boolean> {
    await this.#sorted;
    const block = this.index.oldest();
    if (block === undefined) return false;
    // nobody else takes it meanwhile
    this.index.touch(block);
    const found = await stat(this.pathOf(block)).catch(ignoreGone);
    if (!this.index.has(block)) return true;
    if (found === undefined) {
      this.index.remove(block);
    } else if (found.mtimeMs > block.touchedMs + CLOCK_SLACK_MS) {
      block.touchedMs = found.mtimeMs;
    } else {
      await this.remove(block);
      this.evictions++;
    }
    return true;
  }

  #lookOnce(): Promise<void> {
    this.#looking ??= this.#lookNow().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** Learns what others have written and deleted. */
  async #lookNow(): Promise<void> {
    this.#unseenBytes = 0;
    const look = ++this.#look;
    const there = new Set<Block>();
    const found = new Set<Block>();
    for (const shelf of await entriesOf(this.#folder)) {
      if (!shelf.isDirectory()) continue;
      const folder = join(this.#folder, shelf.name);
      if (shelf.name === 'drafts') await removeAbandoned(folder);
      if (!/^[0-9a-f]{2}$/.test(shelf.name)) continue;
      for (const entry of await entriesOf(folder)) {
        const name = entry.isFile() ? parseName(entry.name) : undefined;
        if (name === undefined || !name.version.startsWith(shelf.name)) continue;
        const known = this.index.get(name);
        if (known !== undefined) there.add(known);
        else if (this.index.count < BLOCKS_MAX) found.add(this.index.add(name, 0, look));
        else await unlink(join(folder, entry.name)).catch(() => {});
      }
    }
    for (const block of [...this.index.all()]) {
      if (block.look < look && !there.has(block)) this.index.remove(block);
    }
    this.#sorted = this.#sorted.then(() => this.#sort(found));
  }

  /** Asks for the times of blocks that were found, and puts them where they belong. */
  async #sort(found: ReadonlySet<Block>): Promise<void> {
    const left = found.values();
    const learnt = new Set<Block>();
    const ask = async (): Promise<void> => {
      for (const block of left) {
        const { mtimeMs } = (await stat(this.pathOf(block)).catch(() => undefined)) ?? {};
        if (mtimeMs === undefined) this.index.remove(block);
        // one that has been used meanwhile stands where it belongs
        if (mtimeMs === undefined || block.touchedMs > 0) continue;
        block.touchedMs = mtimeMs;
        learnt.add(block);
      }
    };
    await Promise.all(Array.from({ length: STATS_AT_ONCE }, ask));
    this.index.sortIn(learnt);
  }
}

function ignoreGone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  return (await readdir(folder, { withFileTypes: true }).catch(ignoreGone)) ?? [];
}

/** Deletes what processes that were killed had not finished. */
async function removeAbandoned(folder: string): Promise<void> {
  for (const { name } of await entriesOf(folder)) {
    const path = join(folder, name);
    const draft = await lstat(path).catch(() => undefined);
    if (draft?.isFile() && draft.mtimeMs < Date.now() - ABANDONED_MS) await unlink(path).catch(() => {});
  }
}
