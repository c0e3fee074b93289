/**
 * Blocks of a representation, read from the region that is served now. A version that is not served any more, or a file
 * that is not what it was, is an error: bytes of two versions never come from here. Memory is one block a read.
 */
import { FILE_CHANGED, type OpenFiles, type StorageFault } from '../open-files.ts';
import type { Region } from '../region.ts';
import { StorageReads } from '../storage-reads.ts';
import { BLOCK_BYTES, FREE_BLOCKS_KEPT } from './limits.ts';
import type { Representation } from './representation.ts';

/** Why a block can't be read. */
export class BlockFault extends Error {
  override readonly name = 'BlockFault';
  readonly stale: boolean;

  constructor({ reason, stale }: StorageFault) {
    super(reason);
    this.stale = stale;
  }
}

export interface Block {
  /** In order; together they are the block. */
  readonly parts: readonly Uint8Array[];
  readonly length: number;
  readonly buffer: Buffer | undefined;
}

export class RegionBlocks {
  readonly #files: OpenFiles;
  readonly #onStale: () => void;
  readonly #free: Buffer[] = [];

  constructor(files: OpenFiles, onStale: () => void) {
    this.#files = files;
    this.#onStale = onStale;
  }

  /** Reads at most one block at `start` of a representation. Throws BlockFault. */
  async read(representation: Representation, start: number, bytesMax: number): Promise<Block> {
    const place = representation.locate();
    if (place === undefined) throw new BlockFault(FILE_CHANGED);
    const length = Math.min(bytesMax, BLOCK_BYTES, representation.length - start);
    return this.#readAt(place.region, place.address + start, length);
  }

  /** Takes back a block that no socket needs any more. */
  give({ buffer }: Block): void {
    if (buffer?.byteLength === BLOCK_BYTES && this.#free.length < FREE_BLOCKS_KEPT) this.#free.push(buffer);
  }

  async #readAt(region: Region, address: number, length: number): Promise<Block> {
    const parts: Uint8Array[] = [];
    const reads = new StorageReads();
    let buffer: Buffer | undefined;
    let used = 0;
    const place = (bytes: number): Uint8Array => {
      buffer ??= this.#take(length);
      const part = buffer.subarray(used, used + bytes);
      used += bytes;
      parts.push(part);
      return part;
    };
    region.visit(address, length, {
      bytes: (bytes) => void parts.push(bytes),
      zeros: (bytes) => void place(bytes).fill(0),
      file: (file, offset, bytes) => reads.add(file, offset, place(bytes)),
    });
    const faults = await new Promise<ReadonlyMap<unknown, StorageFault>>((resolve) => reads.run(this.#files, resolve));
    const block = { parts, length, buffer };
    const [fault] = faults.values();
    if (fault === undefined) return block;
    this.give(block);
    if (fault.stale) this.#onStale();
    throw new BlockFault(fault);
  }

  #take(length: number): Buffer {
    // What is small is not kept: one byte would hold a block.
    if (length <= BLOCK_BYTES / 2) return Buffer.allocUnsafeSlow(length);
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
  }
}
