/**
 * A file that is written beside its name and gets it when it is complete, by renaming. Until then its name tells who
 * writes it: `.NAME.HOST-PID-RANDOM.partial`. It goes when writing is given up and when the process ends; what a crash
 * has left is recognised by its name and removed by the next one that writes the same file.
 */
import { createHash, randomBytes } from 'node:crypto';
import { unlinkSync } from 'node:fs';
import { type FileHandle, open, readdir, realpath, rename, stat, statfs, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { ServeError } from './errors.ts';

/** Those of this process that are being written. */
const active = new Set<string>();

function hostTag(): string {
  return createHash('sha256').update(hostname()).digest('hex').slice(0, 8);
}

/** Removes what processes of this machine that have ended left of the file, and returns its names. */
async function removeLeftovers(path: string): Promise<string[]> {
  const folder = dirname(path);
  const lead = `.${basename(path)}.`;
  const removed: string[] = [];
  for (const name of await readdir(folder)) {
    if (!name.startsWith(lead)) continue;
    const [, host, pid] = /^([\da-f]{8})-(\d{1,10})-[\da-f]{8}\.partial$/.exec(name.slice(lead.length)) ?? [];
    if (host !== hostTag() || active.has(join(folder, name)) || isRunning(Number(pid))) continue;
    await unlink(join(folder, name));
    removed.push(name);
  }
  return removed;
}

/** Whether another process of this number runs. */
function isRunning(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function fault(path: string, cause: unknown): ServeError {
  if (cause instanceof ServeError) return cause;
  const { code, message } = cause as NodeJS.ErrnoException;
  const why: Readonly<Record<string, string>> = {
    ENOENT: `the folder ${dirname(path)} does not exist`,
    ENOTDIR: `${dirname(path)} is no folder`,
    EACCES: `the folder ${dirname(path)} may not be written to`,
    EPERM: `the folder ${dirname(path)} may not be written to`,
    EROFS: `the folder ${dirname(path)} is read-only`,
    ENOSPC: 'the disk is full',
    EDQUOT: 'the quota is used up',
    EFBIG: 'the file system has no room for a file of that size',
  };
  return new ServeError('OUTPUT', `can't write ${path}: ${why[code ?? ''] ?? message}`, { cause });
}

export class PartialFile {
  readonly #shown: string;
  readonly #path: string;
  readonly #temporary: string;
  readonly #handle: FileHandle;
  #done = false;

  private constructor(shown: string, path: string, temporary: string, handle: FileHandle) {
    this.#shown = shown;
    this.#path = path;
    this.#temporary = temporary;
    this.#handle = handle;
    active.add(temporary);
    process.on('exit', this.#onExit);
  }

  /**
   * Begins to write `path`, of which `bytes` will take room. A link's target is replaced, not the link. `onLeftover` is
   * told of what was removed. Throws ServeError OUTPUT, at once where there is no room.
   */
  static async create(path: string, bytes: number, onLeftover: (name: string) => void): Promise<PartialFile> {
    try {
      const resolved = await realpath(path).catch(() => resolve(path));
      const existing = await stat(resolved).catch(() => undefined);
      if (existing !== undefined && !existing.isFile()) {
        throw new ServeError(
          'OUTPUT',
          `can't write ${path}: ${existing.isDirectory() ? 'it is a folder' : 'it is no file'}`,
        );
      }
      for (const name of await removeLeftovers(resolved)) onLeftover(name);
      const { bavail, bsize } = await statfs(dirname(resolved));
      if (bytes > bavail * bsize) {
        throw new ServeError(
          'OUTPUT',
          `can't write ${path}: it takes ${bytes} bytes, the disk has ${bavail * bsize} free`,
        );
      }
      const name = `.${basename(resolved)}.${hostTag()}-${process.pid}-${randomBytes(4).toString('hex')}.partial`;
      const temporary = join(dirname(resolved), name);
      return new PartialFile(path, resolved, temporary, await open(temporary, 'wx'));
    } catch (cause) {
      throw fault(path, cause);
    }
  }

  /** The process ends without having come to `finish` or `discard`. */
  readonly #onExit = (): void => {
    try {
      unlinkSync(this.#temporary);
    } catch {
      // the next run will find it
    }
  };

  /** Writes at a place; several may be under way. Throws ServeError OUTPUT. */
  async write(bytes: Uint8Array, position: number): Promise<void> {
    try {
      for (let done = 0; done < bytes.byteLength; ) {
        done += (await this.#handle.write(bytes, done, bytes.byteLength - done, position + done)).bytesWritten;
      }
    } catch (cause) {
      throw fault(this.#shown, cause);
    }
  }

  /** Gives it its length and its name, safely on disk. Throws ServeError OUTPUT. */
  async finish(length: number): Promise<void> {
    try {
      await this.#handle.truncate(length);
      await this.#handle.sync();
      await this.#handle.close();
      await rename(this.#temporary, this.#path);
      this.#end();
      await syncFolder(dirname(this.#path));
    } catch (cause) {
      throw fault(this.#shown, cause);
    }
  }

  /** It will not be finished: nothing is left. Does nothing behind `finish`. */
  async discard(): Promise<void> {
    if (this.#done) return;
    await this.#handle.close().catch(() => {});
    await unlink(this.#temporary).catch(() => {});
    this.#end();
  }

  #end(): void {
    this.#done = true;
    active.delete(this.#temporary);
    process.off('exit', this.#onExit);
  }
}

/** The new name is on disk too. Not every file system knows how; the file itself is safe. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r').catch(() => undefined);
  await handle?.sync().catch(() => {});
  await handle?.close();
}
