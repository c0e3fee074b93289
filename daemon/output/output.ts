/**
 * Where bytes go: standard output, or a file that appears under its name complete or not at all. A regular file is
 * written beside its name and renamed at the end; a device or a pipe is written as it is.
 * A write resolves when the bytes have been handed over, so whoever awaits it is slowed down to the reader's pace.
 */
import { randomBytes } from 'node:crypto';
import { unlinkSync } from 'node:fs';
import { type FileHandle, open, realpath, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { CommandError } from '../errors.ts';

export interface Output {
  /** Bytes written so far. */
  readonly bytes: number;
  /** Bytes may be reused when it resolves. Throws CommandError OUTPUT, or OUTPUT_CLOSED when the reader has gone. */
  write(bytes: Uint8Array): Promise<void>;
  /** All is written: a file gets its name. */
  finish(): Promise<void>;
  /** It will not be finished: nothing is left under the file's name. */
  discard(): Promise<void>;
}

/** Writes to standard output and waits until it is taken. */
export function writeStdout(data: Uint8Array | string, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(new CommandError('INTERRUPTED', 'interrupted'));
    if (signal?.aborted) return onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    process.stdout.write(data, (error) => {
      signal?.removeEventListener('abort', onAbort);
      if (!error) resolve();
      else reject(outputError(error, 'standard output'));
    });
  });
}

function outputError(error: Error, where: string): CommandError {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EPIPE' || code === 'ERR_STREAM_DESTROYED' || code === 'ECONNRESET') {
    return new CommandError('OUTPUT_CLOSED', `${where} was closed`, { cause: error });
  }
  return new CommandError('OUTPUT', `can't write to ${where}: ${error.message}`, { cause: error });
}

export function standardOutput(signal?: AbortSignal): Output {
  let bytes = 0;
  return {
    get bytes() {
      return bytes;
    },
    async write(data) {
      if (data.byteLength === 0) return;
      await writeStdout(data, signal);
      bytes += data.byteLength;
    },
    async finish() {},
    async discard() {},
  };
}

/** Opens a file for output. Throws CommandError OUTPUT. */
export async function fileOutput(path: string): Promise<Output> {
  const place = await target(path);
  try {
    const handle = await open(place.temporary ?? place.path, place.temporary === undefined ? 'w' : 'wx');
    return new FileOutput(path, place, handle);
  } catch (error) {
    throw openError(error as NodeJS.ErrnoException, path, place);
  }
}

/** A file that can't be begun. The name that it has until it is complete is nobody's business. */
function openError(error: NodeJS.ErrnoException, path: string, { temporary }: Place): CommandError {
  const folder = temporary === undefined ? undefined : dirname(path);
  const told = (why: string): CommandError => {
    return new CommandError('OUTPUT', `can't write to ${path}: ${why}`, { cause: error });
  };
  if (folder !== undefined && error.code === 'ENOENT') return told(`the folder ${folder} does not exist`);
  if (folder !== undefined && error.code === 'ENOTDIR') return told(`${folder} is not a folder`);
  if (folder !== undefined && ['EACCES', 'EPERM', 'EROFS'].includes(error.code ?? '')) {
    return told(`the folder ${folder} may not be written to`);
  }
  return told(`${error.code}: ${error.message.replace(/^\w+: |, open '.*$/gs, '')}`);
}

interface Place {
  readonly path: string;
  /** Written first, then renamed; absent where that makes no sense. */
  readonly temporary?: string;
}

async function target(path: string): Promise<Place> {
  // The file a link names is replaced, not the link.
  const resolved = await realpath(path).catch(() => path);
  const existing = await stat(resolved).catch(() => undefined);
  if (existing?.isDirectory()) throw new CommandError('OUTPUT', `${path} is a folder`);
  if (existing !== undefined && !existing.isFile()) return { path: resolved };
  const name = `.${basename(resolved)}.${process.pid}-${randomBytes(4).toString('hex')}.partial`;
  return { path: resolved, temporary: join(dirname(resolved), name) };
}

class FileOutput implements Output {
  bytes = 0;
  readonly #shown: string;
  readonly #place: Place;
  readonly #handle: FileHandle;
  #open = true;

  constructor(shown: string, place: Place, handle: FileHandle) {
    this.#shown = shown;
    this.#place = place;
    this.#handle = handle;
    process.on('exit', this.#onExit);
  }

  /** The process ends without having come to `finish` or `discard`. */
  readonly #onExit = (): void => {
    try {
      if (this.#place.temporary !== undefined) unlinkSync(this.#place.temporary);
    } catch {
      // nothing is left to do for it
    }
  };

  async write(data: Uint8Array): Promise<void> {
    await this.writeAt(data, undefined);
    this.bytes += data.byteLength;
  }

  /** Writes at a place in the file; several may be under way. */
  async writeAt(data: Uint8Array, position: number | undefined): Promise<void> {
    for (let done = 0; done < data.byteLength; ) {
      try {
        const at = position === undefined ? null : position + done;
        done += (await this.#handle.write(data, done, data.byteLength - done, at)).bytesWritten;
      } catch (error) {
        throw outputError(error as Error, this.#shown);
      }
    }
  }

  async finish(): Promise<void> {
    await this.#close();
    if (this.#place.temporary !== undefined) {
      try {
        await rename(this.#place.temporary, this.#place.path);
      } catch (error) {
        throw outputError(error as Error, this.#shown);
      }
    }
    process.off('exit', this.#onExit);
  }

  async discard(): Promise<void> {
    if (!this.#open) return;
    await this.#close();
    if (this.#place.temporary !== undefined) await unlink(this.#place.temporary).catch(() => {});
    process.off('exit', this.#onExit);
  }

  async #close(): Promise<void> {
    this.#open = false;
    try {
      await this.#handle.close();
    } catch (error) {
      throw outputError(error as Error, this.#shown);
    }
  }
}

/** Runs `work` with the output, finishes it when that ends well and discards it when it does not. */
export async function withOutput(
  path: string | undefined,
  signal: AbortSignal,
  work: (output: Output) => Promise<void>,
): Promise<number> {
  const output = path === undefined || path === '-' ? standardOutput(signal) : await fileOutput(path);
  try {
    await work(output);
    if (signal.aborted) throw new CommandError('INTERRUPTED', 'interrupted');
    await output.finish();
  } catch (error) {
    await output.discard();
    throw error;
  }
  return output.bytes;
}
