/**
 * The files of a packed region (`qanat pack`) as a source, over any transport that can read the one file it lies in: a
 * local one, and whatever else reads ranges. Its directory is fetched when it is first needed and again when a listing
 * finds another version of the file. A file's etag is the one that it was packed with; each read is of the version of the
 * packed file whose directory said where to look, which the transport below checks. When that is replaced underneath, a
 * read goes on in the new one exactly if the file is there with the same etag, and is a STALE error otherwise: never
 * bytes of two versions.
 *
 * Nothing in a packed file is trusted before it is checked. Contents are not: they are whatever they are, as everywhere.
 */
import {
  checkPackedLength,
  DIRECTORY_SIZE_BYTES,
  isProtocolError,
  ProtocolError,
  packedFault,
  parseDirectory,
  parseDirectorySize,
  sortedByPath,
} from '../../storage-server/protocol/index.ts';
import { FetchError } from '../errors.ts';
import { findFile } from './find-file.ts';
import { PACKED_FIRST_READ_BYTES, PACKED_VERSIONS_MAX } from './limits.ts';
import { checkRange } from './range.ts';
import type { FileVersion, Transport, TransportCounters } from './transport.ts';

interface Packed {
  /** The packed file itself. */
  readonly file: FileVersion;
  /** In byte order of their paths. */
  readonly files: readonly FileVersion[];
  readonly byPath: ReadonlyMap<string, { readonly file: FileVersion; readonly address: number }>;
}

/** Wraps a transport that has the packed file `path`. `counters` are those of that transport. */
export function withPackedRegion(inner: Transport, path: string, counters: TransportCounters): Transport {
  /** The newest one, being fetched or there. */
  let newest: { readonly etag: string; readonly packed: Promise<Packed> } | undefined;

  async function look(): Promise<Packed> {
    const file = await findFile(inner, path);
    if (file === undefined) throw new FetchError('NOT_FOUND', `there is no packed file ${path}`);
    if (newest?.etag === file.etag) return newest.packed;
    const packed = fetchPacked(inner, file, counters);
    const mine = { etag: file.etag, packed };
    newest = mine;
    // The next one who asks tries again.
    packed.catch(() => {
      if (newest === mine) newest = undefined;
    });
    return packed;
  }

  /** Where a file is now. Throws STALE unless it is the version that the caller holds. */
  function find(packed: Packed, file: FileVersion): { readonly file: FileVersion; readonly address: number } {
    const found = packed.byPath.get(file.path);
    if (found?.file.etag === file.etag && found.file.length === file.length) return found;
    throw new FetchError('STALE', `${file.path} has changed in ${path} since it was opened`);
  }

  return {
    async list(prefix) {
      const { files } = await look();
      return prefix === '' ? files : files.filter((file) => file.path.startsWith(prefix));
    },
    async read(file, start, into, options = {}) {
      checkRange(file, start, into.byteLength);
      let packed = await (newest?.packed ?? look());
      let arrived = 0;
      for (let round = 1; ; round++) {
        const { address } = find(packed, file);
        // All bytes may have come without the word that they are good: the last one is read again for it.
        const from = Math.min(arrived, Math.max(0, into.byteLength - 1));
        let twice = arrived - from;
        const onArrived = (bytes: number): void => {
          counters.bytesDiscarded += twice;
          twice = 0;
          if (from + bytes <= arrived) return;
          arrived = from + bytes;
          options.onArrived?.(arrived);
        };
        try {
          return await inner.read(packed.file, address + start + from, into.subarray(from), { ...options, onArrived });
        } catch (error) {
          const before = packed;
          if (!(error instanceof FetchError) || error.code !== 'STALE' || round === PACKED_VERSIONS_MAX) throw error;
          packed = await look();
          if (packed === before) throw error;
        }
      }
    },
    close: () => inner.close(),
  };
}

async function fetchPacked(inner: Transport, file: FileVersion, counters: TransportCounters): Promise<Packed> {
  try {
    const directory = parseDirectory(await fetchDirectory(inner, file, counters), file.length);
    checkPackedLength(directory);
    const byPath = new Map<string, { file: FileVersion; address: number }>();
    for (const { path, offset, length, etag, modifiedMs } of directory.entries) {
      byPath.set(path, { file: { path, length, etag, modifiedMs }, address: directory.dataStart + offset });
    }
    const files = Array.from(byPath.values(), (entry) => entry.file);
    return { file, files: sortedByPath(files), byPath };
  } catch (cause) {
    if (!isProtocolError(cause)) throw cause;
    throw new FetchError('PACKED', `${file.path}: ${packedFault(cause)}`, { cause });
  }
}

/** The bytes of the directory: in one read where it is small, in two where it is not. */
async function fetchDirectory(inner: Transport, file: FileVersion, counters: TransportCounters): Promise<Uint8Array> {
  const first = new Uint8Array(Math.min(PACKED_FIRST_READ_BYTES, file.length));
  if (first.byteLength < DIRECTORY_SIZE_BYTES) throw new ProtocolError('LENGTH', `a file of ${file.length} bytes`, 0);
  await readCounted(inner, file, 0, first, counters);
  const size = parseDirectorySize(first.subarray(0, DIRECTORY_SIZE_BYTES), file.length);
  const end = DIRECTORY_SIZE_BYTES + size;
  if (end <= first.byteLength) return first.subarray(DIRECTORY_SIZE_BYTES, end);
  const whole = new Uint8Array(end);
  whole.set(first);
  await readCounted(inner, file, first.byteLength, whole.subarray(first.byteLength), counters);
  return whole.subarray(DIRECTORY_SIZE_BYTES);
}

/** What arrives for nobody's read is what it took to know the files. */
async function readCounted(
  inner: Transport,
  file: FileVersion,
  start: number,
  into: Uint8Array,
  counters: TransportCounters,
): Promise<void> {
  let arrived = 0;
  const onArrived = (bytes: number): void => {
    counters.bytesDirectory += bytes - arrived;
    arrived = bytes;
  };
  await inner.read(file, start, into, { onArrived });
}
