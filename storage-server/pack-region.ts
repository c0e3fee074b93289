/**
 * `qanat pack`: the region that a server would serve, as one file that any place which serves ranges can hold. The same
 * bytes at the same addresses: u64 directory size, directory, aligned files. Read through the same extents as a server
 * reads, so that a file that is not what it was when it was found is an error that names it, and never half of one version.
 */
import { stat } from 'node:fs/promises';
import { ServeError } from './errors.ts';
import { HOLE_BYTES_MIN, LOAD_BYTES, OPEN_FILES_MAX } from './limits.ts';
import { OpenFiles } from './open-files.ts';
import { PartialFile } from './partial-file.ts';
import { ALIGN_BYTES_MIN, isPackedPath } from './protocol/index.ts';
import { makeRegion, type Region } from './region.ts';
import { type Skipped, scanRoots } from './scan-roots.ts';
import type { ServedFile } from './served-file.ts';
import { readOrThrow, StorageReads } from './storage-reads.ts';

export interface PackOptions {
  /** Folders, files and packed files, as for a server. */
  readonly roots: readonly string[];
  /** File to write; its name ends in .qanat. */
  readonly output: string;
  /** Alignment of files, bytes: a power of two from 64 (default) to 2 MiB. */
  readonly alignBytes?: number;
  /** Pack files that are not named as Parquet too. */
  readonly all?: boolean;
  readonly signal?: AbortSignal;
  /** Bytes of the packed file that are written. */
  readonly onProgress?: (bytes: number, bytesTotal: number) => void;
  /** Told of the leftover of a run that crashed, which was removed. */
  readonly onLeftover?: (name: string) => void;
}

export interface PackedRegion {
  /** Hexadecimal. */
  readonly generation: string;
  readonly files: number;
  /** Bytes of all files. */
  readonly fileBytes: number;
  /** Bytes of the packed file. */
  readonly regionBytes: number;
  readonly skipped: readonly Skipped[];
}

/**
 * Writes the packed file; under its name it is complete or not there. Throws ServeError ROOT, NAMES, LIMIT, PACKED,
 * CHANGED or OUTPUT, and the signal's reason; nothing is left behind then.
 */
export async function packRegion(options: PackOptions): Promise<PackedRegion> {
  const { roots, output, alignBytes = ALIGN_BYTES_MIN, all = false } = options;
  if (!isPackedPath(output)) throw new ServeError('OUTPUT', `${output}: the name of a packed file ends in .qanat`);
  const scanned = await scanRoots(roots, { all });
  const { files, skipped } = await withoutOutput(scanned.files, output);
  const region = makeRegion(files, alignBytes);
  const fileBytes = files.reduce((sum, { length }) => sum + length, 0);
  const partial = await PartialFile.create(output, fileBytes, options.onLeftover ?? (() => {}));
  try {
    await writeRegion(region, partial, options);
    await partial.finish(region.length);
  } finally {
    await partial.discard();
  }
  return {
    generation: Buffer.from(region.generation).toString('hex'),
    files: files.length,
    fileBytes,
    regionBytes: region.length,
    skipped: [...scanned.skipped, ...skipped],
  };
}

/** Leaves out the packed file of an earlier run that lies among what is packed. */
async function withoutOutput(
  files: readonly ServedFile[],
  output: string,
): Promise<{ files: ServedFile[]; skipped: Skipped[] }> {
  const existing = await stat(output, { bigint: true }).catch(() => undefined);
  const isOutput = ({ store, start }: ServedFile): boolean =>
    existing !== undefined && start === 0 && store.version.ino === existing.ino && store.version.dev === existing.dev;
  return {
    files: files.filter((file) => !isOutput(file)),
    skipped: files.filter(isOutput).map(({ path }) => ({ path, reason: 'it is what is written' })),
  };
}

/** Bytes of the region that are not one long run of zeros: the rest is a hole. */
interface Span {
  readonly start: number;
  end: number;
}

/** Reads the region a window at a time and writes each while the next one is read. */
async function writeRegion(region: Region, partial: PartialFile, { signal, onProgress }: PackOptions): Promise<void> {
  const openFiles = new OpenFiles(OPEN_FILES_MAX);
  const buffers = [Buffer.allocUnsafe(LOAD_BYTES), Buffer.allocUnsafe(LOAD_BYTES)];
  let writing: Promise<void> = Promise.resolve();
  try {
    for (let at = 0, turn = 0; at < region.length; at += LOAD_BYTES, turn++) {
      const window = buffers[turn % 2]!.subarray(0, Math.min(LOAD_BYTES, region.length - at));
      const spans = await readWindow(region, at, window, openFiles);
      await writing;
      signal?.throwIfAborted();
      onProgress?.(at, region.length);
      writing = writeSpans(partial, at, window, spans);
      writing.catch(() => {}); // told at the next turn
    }
    await writing;
    signal?.throwIfAborted();
    onProgress?.(region.length, region.length);
  } finally {
    await writing.catch(() => {});
    openFiles.close();
  }
}

/** Fills `window` with the bytes of the region at `address`. Throws ServeError CHANGED. */
async function readWindow(region: Region, address: number, window: Uint8Array, openFiles: OpenFiles): Promise<Span[]> {
  const reads = new StorageReads();
  const files: ServedFile[] = [];
  const spans: Span[] = [];
  let at = 0;
  const cover = (length: number): Uint8Array => {
    const last = spans.at(-1);
    if (last !== undefined && last.end === at) last.end += length;
    else spans.push({ start: at, end: at + length });
    at += length;
    return window.subarray(at - length, at);
  };
  region.visit(address, window.byteLength, {
    bytes: (piece) => cover(piece.byteLength).set(piece),
    zeros: (length) => {
      if (length < HOLE_BYTES_MIN) cover(length).fill(0);
      else at += length;
    },
    file: (file, offset, length) => {
      files.push(file);
      reads.add(file, offset, cover(length));
    },
  });
  await readOrThrow(reads, openFiles, files);
  return spans;
}

async function writeSpans(partial: PartialFile, address: number, window: Uint8Array, spans: Span[]): Promise<void> {
  for (const { start, end } of spans) await partial.write(window.subarray(start, end), address + start);
}
