/**
 * Which blocks a cache has, as far as this process knows: by version, in the order of their places in the file, and all
 * of them in the order of their last use. Pure bookkeeping; the files are the truth, and one that is not there after all
 * is forgotten when somebody finds that out.
 */
import type { BlockName } from './block-format.ts';
import { ALLOCATED_BYTES, BLOCK_BYTES_MAX, HEADER_BYTES } from './limits.ts';

export interface Block extends BlockName {
  /** Last use, milliseconds since 1970, as it stands on disk; 0 when nobody has looked. */
  touchedMs: number;
  /** Number of the look at the folder before which it came in. */
  readonly look: number;
}

/** A part of a range: in a block, or in none. */
export interface Segment {
  readonly start: number;
  readonly end: number;
  readonly block: Block | undefined;
}

/** Bytes that a block takes on disk. */
export function allocatedBytes(length: number): number {
  return Math.ceil((HEADER_BYTES + length) / ALLOCATED_BYTES) * ALLOCATED_BYTES;
}

export class BlockIndex {
  /** In the order of their places; may overlap. */
  readonly #versions = new Map<string, Block[]>();
  /** The least recently used first. */
  #order = new Set<Block>();
  #bytes = 0;

  /** Bytes that they take on disk. */
  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#order.size;
  }

  get(name: BlockName): Block | undefined {
    const blocks = this.#versions.get(name.version) ?? [];
    for (let k = firstFrom(blocks, name.start); blocks[k]?.start === name.start; k++) {
      if (blocks[k]!.length === name.length) return blocks[k];
    }
    return undefined;
  }

  /** Adds a block that it does not have, as the one used last. */
  add(name: BlockName, touchedMs: number, look: number): Block {
    const block: Block = { ...name, touchedMs, look };
    const blocks = this.#versions.get(block.version);
    if (blocks === undefined) this.#versions.set(block.version, [block]);
    else blocks.splice(firstFrom(blocks, block.start), 0, block);
    this.#order.add(block);
    this.#bytes += allocatedBytes(block.length);
    return block;
  }

  remove(block: Block): void {
    if (!this.#order.delete(block)) return;
    this.#bytes -= allocatedBytes(block.length);
    const blocks = this.#versions.get(block.version)!;
    blocks.splice(blocks.indexOf(block, firstFrom(blocks, block.start)), 1);
    if (blocks.length === 0) this.#versions.delete(block.version);
  }

  has(block: Block): boolean {
    return this.#order.has(block);
  }

  /** It is the one used last. */
  touch(block: Block): void {
    if (this.#order.delete(block)) this.#order.add(block);
  }

  /** The one that has not been used for longest. */
  oldest(): Block | undefined {
    return this.#order.values().next().value;
  }

  all(): IterableIterator<Block> {
    return this.#order.values();
  }

  /** Puts blocks whose times have just been learnt where these say, among those that stand in the order of their use. */
  sortIn(learnt: ReadonlySet<Block>): void {
    const sorted = [...learnt].filter((block) => this.#order.has(block)).sort((a, b) => a.touchedMs - b.touchedMs);
    const order = new Set<Block>();
    let next = 0;
    for (const block of this.#order) {
      if (learnt.has(block)) continue;
      while (next < sorted.length && sorted[next]!.touchedMs < block.touchedMs) order.add(sorted[next++]!);
      order.add(block);
    }
    while (next < sorted.length) order.add(sorted[next++]!);
    this.#order = order;
  }

  /** Those of a version that lie in [start, end) as a whole. */
  within(version: string, start: number, end: number): Block[] {
    const blocks = this.#versions.get(version) ?? [];
    const inside: Block[] = [];
    for (let k = firstFrom(blocks, start); k < blocks.length && blocks[k]!.start < end; k++) {
      if (blocks[k]!.start + blocks[k]!.length <= end) inside.push(blocks[k]!);
    }
    return inside;
  }

  /** The range as parts that blocks have and parts that none has, in order. */
  segments(version: string, start: number, end: number): Segment[] {
    const blocks = this.#versions.get(version) ?? [];
    const segments: Segment[] = [];
    let at = start;
    while (at < end) {
      const block = reachingFarthest(blocks, at);
      const next = block === undefined ? (blocks[firstFrom(blocks, at)]?.start ?? end) : block.start + block.length;
      const stop = Math.min(end, next);
      segments.push({ start: at, end: stop, block });
      at = stop;
    }
    return segments;
  }
}

/** The first block that starts at `at` or behind it. */
function firstFrom(blocks: readonly Block[], at: number): number {
  let low = 0;
  let high = blocks.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (blocks[middle]!.start < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Of the blocks that have the byte `at` the one that goes on for longest. */
function reachingFarthest(blocks: readonly Block[], at: number): Block | undefined {
  let best: Block | undefined;
  for (let k = firstFrom(blocks, at + 1) - 1; k >= 0 && blocks[k]!.start > at - BLOCK_BYTES_MAX; k--) {
    const { start, length } = blocks[k]!;
    if (start + length > at && (best === undefined || start + length > best.start + best.length)) best = blocks[k];
  }
  return best;
}
