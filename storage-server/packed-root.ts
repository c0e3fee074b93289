/**
 * The files of a packed region (`qanat pack`) as files to serve: parts of the packed file, under the paths and etags that
 * they were packed with. Nothing in it is trusted before it is checked; contents are not read here.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { ServeError } from './errors.ts';
import {
  checkPackedLength,
  DIRECTORY_SIZE_BYTES,
  type Directory,
  isProtocolError,
  ProtocolError,
  packedFault,
  parseDirectory,
  parseDirectorySize,
  sameVersion,
} from './protocol/index.ts';
import type { ServedFile } from './served-file.ts';

/** Packed files that have been read, by their paths on this machine: one that has not changed is not read again. */
export type KnownPacks = Map<string, readonly ServedFile[]>;

/** Reads the directory of a packed file. `shown` is what people call it, `name` what it is known by as a root. Throws ServeError PACKED, CHANGED or ROOT. */
export async function readPackedRoot(
  localPath: string,
  shown: string,
  name: string,
  known: KnownPacks = new Map(),
): Promise<readonly ServedFile[]> {
  const handle = await open(localPath, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (cause) => {
      throw new ServeError('ROOT', `${shown} can't be opened: ${(cause as Error).message}`, { cause });
    },
  );
  try {
    const version = await handle.stat({ bigint: true });
    const before = known.get(localPath);
    if (before?.[0] !== undefined && sameVersion(before[0].store.version, version)) return before;
    const directory = await readDirectory(handle, Number(version.size));
    if (!sameVersion(version, await handle.stat({ bigint: true }))) {
      throw new ServeError('CHANGED', `${shown} changed while it was read`);
    }
    const store = { localPath, version };
    const root = { name, prefix: '' };
    const files = directory.entries.map(({ path, offset, length, etag, modifiedMs }) => {
      return { path, length, etag, modifiedMs, store, root, start: directory.dataStart + offset };
    });
    known.set(localPath, files);
    return files;
  } catch (cause) {
    if (isProtocolError(cause)) throw new ServeError('PACKED', `${shown}: ${packedFault(cause)}`, { cause });
    if (cause instanceof ServeError) throw cause;
    throw new ServeError('ROOT', `${shown} can't be read: ${(cause as Error).message}`, { cause });
  } finally {
    await handle.close();
  }
}

async function readDirectory(handle: FileHandle, fileBytes: number): Promise<Directory> {
  if (fileBytes < DIRECTORY_SIZE_BYTES) throw new ProtocolError('LENGTH', `a file of ${fileBytes} bytes`, 0);
  const size = parseDirectorySize(await readAt(handle, 0, DIRECTORY_SIZE_BYTES), fileBytes);
  const directory = parseDirectory(await readAt(handle, DIRECTORY_SIZE_BYTES, size), fileBytes);
  checkPackedLength(directory);
  return directory;
}

/** Exactly `length` bytes. Throws ProtocolError LENGTH. */
async function readAt(handle: FileHandle, start: number, length: number): Promise<Uint8Array> {
  const bytes = Buffer.allocUnsafe(length);
  for (let done = 0; done < length; ) {
    const { bytesRead } = await handle.read(bytes, done, length - done, start + done);
    if (bytesRead === 0) throw new ProtocolError('LENGTH', 'the file ends in its directory', start + done);
    done += bytesRead;
  }
  return bytes;
}
