/**
 * `--daemon`: the same command in a process of its own, in a session of its own, with its log in a file. This process
 * waits until that one is ready, or passes on why it is not. The background process knows itself by a variable and by
 * the channel that it was given; both are gone once it is ready.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { CommandError } from '../errors.ts';
import { BACKGROUND_END_MS } from './limits.ts';
import { type PostedError, postError, revivedError } from './posted-error.ts';

const VARIABLE = 'QANAT_INTERNAL_BACKGROUND';

type FromBackground =
  | { readonly kind: 'ready'; readonly line: Readonly<Record<string, unknown>> }
  | { readonly kind: 'failed'; readonly error: PostedError };

/** Whether this process is the one in the background. */
export function isBackground(): boolean {
  return process.env[VARIABLE] !== undefined && process.send !== undefined;
}

/** Tells the process in front that all is well, and lets go of it. */
export function tellReady(line: Readonly<Record<string, unknown>>): void {
  send({ kind: 'ready', line });
  // the folder that it was started in can be unmounted
  process.chdir('/');
}

/** Tells the process in front why there will be nothing. */
export function tellFailed(error: unknown): void {
  send({ kind: 'failed', error: postError(error) });
}

function send(message: FromBackground): void {
  process.send?.(message, undefined, undefined, () => {
    if (process.connected) process.disconnect();
  });
}

/**
 * Starts this process's own command in the background; standard error of that goes to `logFile`, or nowhere. Resolves to
 * what it says when it is ready. Throws its error, and CommandError INTERRUPTED when the signal is aborted before.
 */
export async function startBackground(
  logFile: string | undefined,
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  const log = logFile === undefined ? undefined : openLogFile(logFile);
  try {
    const args = [...process.execArgv, process.argv[1]!, ...process.argv.slice(2)];
    const child = spawn(process.execPath, args, {
      detached: true,
      stdio: ['ignore', 'ignore', log ?? 'ignore', 'ipc'],
      env: { ...process.env, [VARIABLE]: '1' },
    });
    return await readiness(child, logFile, signal);
  } finally {
    if (log !== undefined) closeSync(log);
  }
}

async function readiness(
  child: ChildProcess,
  logFile: string | undefined,
  signal: AbortSignal,
): Promise<Readonly<Record<string, unknown>>> {
  const { promise, resolve, reject } = Promise.withResolvers<Readonly<Record<string, unknown>>>();
  child.on('message', (message: FromBackground) => {
    if (message.kind === 'ready') resolve(message.line);
    else reject(revivedError(message.error));
  });
  child.on('error', reject);
  child.on('exit', (code, killed) => {
    const where = logFile === undefined ? 'with --log-file it tells why' : `${logFile} tells why`;
    reject(new CommandError('SERVER', `the background process ended with ${killed ?? code}: ${where}`));
  });
  const onAbort = (): void => {
    reject(new CommandError('INTERRUPTED', 'interrupted'));
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), BACKGROUND_END_MS).unref();
  };
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await promise;
  } finally {
    signal.removeEventListener('abort', onAbort);
    child.unref();
    if (child.connected) child.disconnect();
  }
}

/** For appending, readable by its owner and group. Throws CommandError OUTPUT. */
export function openLogFile(path: string): number {
  try {
    return openSync(path, 'a', 0o640);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CommandError('OUTPUT', `the log can not be written: ${reason}`, { cause });
  }
}
