/**
 * Mounting as an ordinary user: fusermount3, which is setuid root, opens /dev/fuse, mounts it, and sends the descriptor
 * back over a socket that _FUSE_COMMFD names. Its messages become errors that say what to do.
 */
import { spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { MountError } from '../errors.ts';
import type { Libc } from './libc.ts';
import { FUSERMOUNT_MS } from './limits.ts';

/** The newer name first. */
const PROGRAMS = ['fusermount3', 'fusermount'];

/** Mounts `folder`; the descriptor is non-blocking. Throws MountError. */
export async function fusermount(libc: Libc, folder: string, options: readonly string[]): Promise<number> {
  const [ours, theirs] = libc.socketPair();
  try {
    const { status, text } = await run(['-o', options.join(','), '--', folder], theirs);
    if (status !== 0) throw explain(text, status, folder);
    const descriptor = libc.receiveDescriptor(ours);
    if (descriptor < 0) throw new MountError('REFUSED', 'fusermount3 sent no descriptor');
    libc.setNonBlocking(descriptor);
    return descriptor;
  } finally {
    closeSync(ours);
    closeSync(theirs);
  }
}

/** Gives '' when it is done, else what the program says. */
export async function fuserUnmount(folder: string, lazy: boolean): Promise<string> {
  const { status, text } = await run(['-u', ...(lazy ? ['-z'] : []), '--', folder]);
  return status === 0 ? '' : text || `fusermount3 ended with ${status}`;
}

/** Options of a mount are separated by commas: those of a value need a backslash. */
export function escapeOption(value: string): string {
  return value.replace(/[\\,]/g, '\\$&').replace(/\n/g, ' ');
}

interface Ended {
  readonly status: number | null;
  readonly text: string;
}

async function run(args: readonly string[], socket?: number): Promise<Ended> {
  for (const program of PROGRAMS) {
    const ended = await runProgram(program, args, socket);
    if (ended !== undefined) return ended;
  }
  throw new MountError(
    'NO_FUSERMOUNT',
    'users other than root mount through fusermount3, which is not installed: apt install fuse3 (dnf, apk and pacman call it so too)',
  );
}

/** undefined when there is no such program. */
function runProgram(program: string, args: readonly string[], socket: number | undefined): Promise<Ended | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<Ended | undefined>();
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', 'pipe', ...(socket === undefined ? [] : [socket])],
    env: { ...process.env, LC_ALL: 'C', ...(socket === undefined ? {} : { _FUSE_COMMFD: '3' }) },
  });
  let text = '';
  child.stderr!.on('data', (chunk: Buffer) => {
    if (text.length < 4096) text += chunk.toString('utf8');
  });
  const timer = setTimeout(() => {
    child.kill('SIGKILL');
    child.unref();
    reject(new MountError('TIMEOUT', `${program} did not end within ${FUSERMOUNT_MS} ms`));
  }, FUSERMOUNT_MS);
  child.once('error', (error: NodeJS.ErrnoException) => {
    clearTimeout(timer);
    if (error.code === 'ENOENT') resolve(undefined);
    else reject(new MountError('REFUSED', `${program} can't be run: ${error.message}`, { cause: error }));
  });
  child.once('close', (status) => {
    clearTimeout(timer);
    resolve({ status, text: text.trim() });
  });
  return promise;
}

function explain(text: string, status: number | null, folder: string): MountError {
  const said = text || `fusermount3 ended with ${status}`;
  if (/allow_other/.test(text)) {
    return new MountError(
      'NOT_PERMITTED',
      `${said}: have root write the line user_allow_other there, or mount as root`,
    );
  }
  if (/device not found|modprobe/.test(text)) {
    return new MountError('NO_DEVICE', `${said}: load the kernel's module fuse as root`);
  }
  if (/\/dev\/fuse.*(denied|permitted)/i.test(text)) {
    return new MountError(
      'NOT_PERMITTED',
      `${said}: as root, chmod 0666 /dev/fuse (what distributions do), or mount as root`,
    );
  }
  if (/write access|not owned/.test(text)) {
    return new MountError('NOT_PERMITTED', `${said}: the folder ${folder} must be yours`);
  }
  if (/not permitted|denied/i.test(text)) {
    return new MountError(
      'NOT_PERMITTED',
      `${said}: in a container, run it with --device /dev/fuse --cap-add SYS_ADMIN`,
    );
  }
  return new MountError('REFUSED', said);
}
