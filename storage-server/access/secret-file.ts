/** Reads small files that hold secrets, and says when others on this machine can read them too. */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { SECRET_FILE_BYTES_MAX } from './limits.ts';

export interface SecretFile {
  readonly text: string;
  /** What to tell about who can read it; undefined if only its owner can. */
  readonly exposure: string | undefined;
}

/** Reads a file of secrets. Throws an Error whose message says why that can't be done; it never holds the content. */
export async function readSecretFile(path: string): Promise<SecretFile> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(path, constants.O_RDONLY);
    const stat = await handle.stat();
    // also a pipe, as shells make them of what a command prints
    const bytes = stat.size > SECRET_FILE_BYTES_MAX ? undefined : await handle.readFile();
    if (bytes === undefined || bytes.byteLength > SECRET_FILE_BYTES_MAX) {
      throw new Error(`it has more than ${SECRET_FILE_BYTES_MAX} bytes`);
    }
    return { text: bytes.toString('utf8'), exposure: exposureOf(path, stat.mode) };
  } finally {
    await handle?.close();
  }
}

function exposureOf(path: string, mode: number): string | undefined {
  const readable = mode & 0o044;
  if (readable === 0) return undefined;
  const who = (readable & 0o004) === 0 ? 'its group' : 'every user of this machine';
  return `${path} holds secrets and can be read by ${who}: chmod 600 ${path}`;
}
