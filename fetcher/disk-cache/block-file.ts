/**
 * One block file: read straight into the reader's memory and checked there, written under a name of its own and moved to
 * the right one when it is whole, so that nobody ever sees half of one. Of a block only the pieces that are asked for are
 * read; what a piece has beside them goes to scratch memory, for its checksum.
 */
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { type BlockName, isHeaderOf, pieceCrc } from './block-format.ts';
import { HEADER_BYTES, PIECE_BYTES } from './limits.ts';

/**
 * What became of a read: the bytes are there and right; the file is gone, or can't be read; or it is not what its name
 * says. In the last two cases what the memory holds is undefined.
 */
export type BlockRead = 'right' | 'unreadable' | 'damaged';

/**
 * Bytes [from, from + into.byteLength) of a block's data, which lie within it. With `touch` the file is marked as used
 * at that time, milliseconds since 1970.
 */
export async function readBlock(
  path: string,
  key: Buffer,
  name: BlockName,
  from: number,
  into: Uint8Array,
  touch: number | undefined,
): Promise<BlockRead> {
  let handle: FileHandle;
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return 'unreadable';
  }
  try {
    const right = await readChecked(handle, key, name, from, into);
    // one that belongs to somebody else is read all the same
    if (right && touch !== undefined) await handle.utimes(touch / 1000, touch / 1000).catch(() => {});
    return right ? 'right' : 'damaged';
  } catch {
    return 'unreadable';
  } finally {
    await handle.close().catch(() => {});
  }
}

async function readChecked(
  handle: FileHandle,
  key: Buffer,
  name: BlockName,
  from: number,
  into: Uint8Array,
): Promise<boolean> {
  const end = from + into.byteLength;
  const first = Math.floor(from / PIECE_BYTES);
  const last = Math.ceil(end / PIECE_BYTES);
  const header = Buffer.allocUnsafe(HEADER_BYTES);
  const front = Buffer.allocUnsafe(from - first * PIECE_BYTES);
  const back = Buffer.allocUnsafe(Math.min(last * PIECE_BYTES, name.length) - end);
  const data = [front, into, back].filter((part) => part.byteLength > 0);
  if (first === 0) {
    if (!(await isFilled(handle, [header, ...data], 0))) return false;
  } else {
    const at = HEADER_BYTES + first * PIECE_BYTES;
    const both = await Promise.all([isFilled(handle, [header], 0), isFilled(handle, data, at)]);
    if (!both.every(Boolean)) return false;
  }
  if (!isHeaderOf(header, key, name)) return false;
  for (let k = first; k < last; k++) {
    // where the piece lies, counted from the first byte of `into`
    const start = k * PIECE_BYTES - from;
    const stop = Math.min(start + PIECE_BYTES, name.length - from);
    let crc = start < 0 ? crc32(front) : 0;
    crc = crc32(into.subarray(Math.max(0, start), stop), crc);
    if (stop > into.byteLength) crc = crc32(back, crc);
    if (crc !== pieceCrc(header, k)) return false;
  }
  return true;
}

/** Fills the parts one after the other with what lies at `position`; false when the file ends before. */
async function isFilled(handle: FileHandle, parts: readonly Uint8Array[], position: number): Promise<boolean> {
  const bytes = parts.reduce((sum, part) => sum + part.byteLength, 0);
  const { bytesRead } = await handle.readv(parts, position);
  return bytesRead === bytes;
}

/** Writes `bytes` at `draft`, a name that nobody else uses, and moves it to `path`. Throws what the system says. */
export async function writeBlock(draft: string, path: string, bytes: Uint8Array): Promise<void> {
  const handle = await withFolder(draft, () => open(draft, 'wx', 0o600));
  try {
    try {
      for (let at = 0; at < bytes.byteLength; ) {
        const { bytesWritten } = await handle.write(bytes, at, bytes.byteLength - at, at);
        at += bytesWritten;
      }
    } finally {
      await handle.close();
    }
    await withFolder(path, () => rename(draft, path));
  } catch (error) {
    await unlink(draft).catch(() => {});
    throw error;
  }
}

/** Tries again with the folder of `path`, if that is what was missing: somebody may have cleared the cache away. */
async function withFolder<T>(path: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    return act();
  }
}
