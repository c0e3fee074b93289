/**
 * Files of a region held in memory (`serve --pin`), packed one behind the other into one buffer, or a few where it is
 * larger than a buffer should be. Loaded once, each file checked to be the version that the region promises; from then
 * on nothing that happens to the files on disk matters. Unchanged files keep their memory from one generation to the
 * next; what is only kept alive by them counts too, and everything moves together when that would exceed the budget.
 * While a generation takes the place of another one, memory holds both.
 */
import { setImmediate } from 'node:timers/promises';
import { ServeError } from './errors.ts';
import { LOAD_BYTES, PINNED_CHUNK_BYTES } from './limits.ts';
import type { OpenFiles } from './open-files.ts';
import { versionEtag } from './protocol/index.ts';
import type { ServedFile } from './served-file.ts';
import { readOrThrow, StorageReads } from './storage-reads.ts';

export interface PinOptions {
  /** Bytes of memory at most. */
  readonly budgetBytes: number;
  readonly openFiles: OpenFiles;
  /** Those of the generation before. */
  readonly previous?: PinnedFiles | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((bytes: number, bytesTotal: number) => void) | undefined;
}

/** Memory that is allocated at once, and freed when no file is in it. */
class Arena {
  readonly bytes: number;
  readonly #chunks: Uint8Array[];
  readonly #chunkBytes: number;

  constructor(bytes: number, chunkBytes: number) {
    this.bytes = bytes;
    this.#chunkBytes = chunkBytes;
    this.#chunks = [];
    // Left as they come: every byte is written before it is read.
    for (let left = bytes; left > 0; left -= chunkBytes) {
      this.#chunks.push(Buffer.allocUnsafeSlow(Math.min(left, chunkBytes)));
    }
  }

  /** Visits the pieces of [at, at + length). */
  visit(at: number, length: number, take: (piece: Uint8Array) => void): void {
    const end = at + length;
    for (let from = at; from < end; ) {
      const chunk = this.#chunks[Math.floor(from / this.#chunkBytes)]!;
      const start = from % this.#chunkBytes;
      const bytes = Math.min(end - from, chunk.byteLength - start);
      take(chunk.subarray(start, start + bytes));
      from += bytes;
    }
  }
}

interface Place {
  readonly arena: Arena;
  readonly at: number;
}

/** The same bytes have the same key, in whichever generation. */
function keyOf({ store, start, length }: ServedFile): string {
  return `${start} ${length} ${versionEtag(store.version)} ${store.localPath}`;
}

export class PinnedFiles {
  /** Bytes of memory that it takes. */
  readonly bytes: number;
  readonly #byKey: Map<string, Place>;
  readonly #byFile = new Map<ServedFile, Place>();

  private constructor(files: readonly ServedFile[], places: Map<string, Place>) {
    this.#byKey = places;
    for (const file of files) this.#byFile.set(file, places.get(keyOf(file))!);
    let bytes = 0;
    for (const arena of new Set([...places.values()].map((place) => place.arena))) bytes += arena.bytes;
    this.bytes = bytes;
  }

  /**
   * Reads `files` into memory. Throws ServeError PIN when they do not fit the budget or the machine, CHANGED when a file
   * is not what it was, and the signal's reason.
   */
  static async load(files: readonly ServedFile[], options: PinOptions, chunkBytes = PINNED_CHUNK_BYTES) {
    const wanted = new Map(files.map((file) => [keyOf(file), file]));
    const needed = bytesOf(wanted.values());
    if (needed > options.budgetBytes) {
      throw new ServeError(
        'PIN',
        `to pin ${wanted.size} files needs ${inWords(needed)} of memory, the budget is ${inWords(options.budgetBytes)}`,
      );
    }
    const places = new Map<string, Place>();
    const before = options.previous === undefined ? undefined : options.previous.#byKey;
    for (const key of wanted.keys()) {
      const place = before?.get(key);
      if (place !== undefined) places.set(key, place);
    }
    let missing = [...wanted].filter(([key]) => !places.has(key));
    let kept = 0;
    for (const arena of new Set([...places.values()].map((place) => place.arena))) kept += arena.bytes;
    // What is kept would hold on to too much that nobody reads any more: all of it moves to a place of its own.
    const moved = kept + bytesOf(missing.map(([, file]) => file)) > options.budgetBytes ? new Map(places) : undefined;
    if (moved !== undefined) {
      missing = [...wanted];
      places.clear();
    }
    const arena = allocate(bytesOf(missing.map(([, file]) => file)), chunkBytes);
    const loads: { file: ServedFile; at: number }[] = [];
    let end = 0;
    for (const [key, file] of missing) {
      const old = moved?.get(key);
      if (old === undefined) loads.push({ file, at: end });
      else await copyPlace(old, { arena, at: end }, file.length);
      places.set(key, { arena, at: end });
      end += file.length;
    }
    await loadInto(arena, loads, options);
    return new PinnedFiles(files, places);
  }

  /** Visits the bytes of [offset, offset + length) of a file. */
  visit(file: ServedFile, offset: number, length: number, visitor: { bytes(piece: Uint8Array): void }): void {
    const { arena, at } = this.#byFile.get(file)!;
    arena.visit(at + offset, length, (piece) => visitor.bytes(piece));
  }
}

function inWords(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB (${bytes} bytes)`;
}

function bytesOf(files: Iterable<ServedFile>): number {
  let bytes = 0;
  for (const { length } of files) bytes += length;
  return bytes;
}

function allocate(bytes: number, chunkBytes: number): Arena {
  try {
    return new Arena(bytes, chunkBytes);
  } catch (cause) {
    throw new ServeError('PIN', `this machine does not give ${inWords(bytes)} of memory to pin files`, { cause });
  }
}

/** Copies a file a step at a time, so that whoever is served meanwhile does not wait for all of it. */
async function copyPlace(from: Place, to: Place, length: number): Promise<void> {
  for (let done = 0; done < length; done += LOAD_BYTES) {
    let at = to.at + done;
    from.arena.visit(from.at + done, Math.min(LOAD_BYTES, length - done), (source) => {
      let taken = 0;
      to.arena.visit(at, source.byteLength, (target) => {
        target.set(source.subarray(taken, taken + target.byteLength));
        taken += target.byteLength;
      });
      at += source.byteLength;
    });
    await setImmediate();
  }
}

/** Reads whole files to their places, a batch at a time. */
async function loadInto(
  arena: Arena,
  loads: readonly { readonly file: ServedFile; readonly at: number }[],
  { openFiles, signal, onProgress }: PinOptions,
): Promise<void> {
  const bytesTotal = bytesOf(loads.map(({ file }) => file));
  let done = 0;
  let batch = { reads: new StorageReads(), files: [] as ServedFile[], bytes: 0 };
  const flush = async (): Promise<void> => {
    const { reads, files, bytes } = batch;
    batch = { reads: new StorageReads(), files: [], bytes: 0 };
    await readOrThrow(reads, openFiles, files);
    signal?.throwIfAborted();
    done += bytes;
    onProgress?.(done, bytesTotal);
  };
  for (const { file, at } of loads) {
    for (let offset = 0; offset < file.length; ) {
      const length = Math.min(file.length - offset, LOAD_BYTES - batch.bytes);
      let from = offset;
      arena.visit(at + offset, length, (piece) => {
        batch.reads.add(file, from, piece);
        from += piece.byteLength;
      });
      batch.files.push(file);
      batch.bytes += length;
      offset += length;
      if (batch.bytes >= LOAD_BYTES) await flush();
    }
  }
  if (batch.files.length > 0) await flush();
}
