/**
 * A region as a device reads it: all of it, byte for byte, in memory of its own that peers may read and do nothing else
 * with. Loaded once, each file checked to be the version that the region promises; what happens to the files afterwards
 * does not matter. The memory goes when nobody can name it any more.
 */
import { setImmediate } from 'node:timers/promises';
import { ServeError } from './errors.ts';
import { LOAD_BYTES, STORES_READING_MAX } from './limits.ts';
import { OpenFiles } from './open-files.ts';
import type { VerbsRegion } from './protocol/index.ts';
import type { Region } from './region.ts';
import type { ServedFile } from './served-file.ts';
import { readOrThrow, StorageReads } from './storage-reads.ts';
import type { NativeMemory, Registration, VerbsDevice } from './verbs/index.ts';

export class VerbsCopy {
  /** Where peers find it. */
  readonly place: VerbsRegion;
  readonly #memory: NativeMemory;
  readonly #registration: Registration;

  private constructor(region: Region, memory: NativeMemory, registration: Registration) {
    this.#memory = memory;
    this.#registration = registration;
    const { address, rkey } = registration;
    this.place = { generation: region.generation, rkey, address, length: region.length };
  }

  /** Throws VerbsError MEMORY, ServeError CHANGED or PIN, and the signal's reason. */
  static async load(
    region: Region,
    device: VerbsDevice,
    budgetBytes: number,
    signal?: AbortSignal,
  ): Promise<VerbsCopy> {
    if (region.length > budgetBytes) {
      throw new ServeError(
        'PIN',
        `a region of ${region.length} bytes does not fit in memory: ${budgetBytes} bytes may be used`,
      );
    }
    const memory = device.allocate(region.length);
    try {
      await fill(region, memory, signal);
      return new VerbsCopy(region, memory, await device.registerForPeers(memory));
    } catch (error) {
      memory.free();
      throw error;
    }
  }

  get bytes(): number {
    return this.#memory.length;
  }

  /** From now on peers are refused. Rejects with VerbsError when the device does not let go: then the memory stays. */
  async release(): Promise<void> {
    await this.#registration.releaseAside();
    await this.#memory.freeAside();
  }
}

/** Copies a region, a batch at a time, so that whoever is served meanwhile does not wait for all of it. */
async function fill(region: Region, memory: NativeMemory, signal: AbortSignal | undefined): Promise<void> {
  const openFiles = new OpenFiles(STORES_READING_MAX);
  try {
    for (let start = 0; start < region.length; start += LOAD_BYTES) {
      const reads = new StorageReads();
      const files: ServedFile[] = [];
      let at = start;
      const take = (length: number): Uint8Array => {
        at += length;
        return memory.view(at - length, length);
      };
      region.visit(start, Math.min(LOAD_BYTES, region.length - start), {
        bytes: (piece) => take(piece.byteLength).set(piece),
        // It comes as zeros.
        zeros: (length) => {
          at += length;
        },
        file: (file, offset, length) => {
          reads.add(file, offset, take(length));
          files.push(file);
        },
      });
      await readOrThrow(reads, openFiles, files);
      await setImmediate();
      signal?.throwIfAborted();
    }
  } finally {
    openFiles.close();
  }
}
