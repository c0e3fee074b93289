/** What a local file system's errors mean: gone, kept from this user, or not to be read at all. In words for people. */
import { FetchError } from '../errors.ts';

/** What is not there (any more). */
export function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

function isDenied(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'EACCES' || code === 'EPERM';
}

/**
 * Whether the fault is that of one entry of a folder, which stays what it is: a listing can do without it. Not so when
 * descriptors or memory are short or the disk fails: then a listing without it would be luck.
 */
export function isOfEntry(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return isGone(error) || isDenied(error) || code === 'ELOOP' || code === 'ENAMETOOLONG';
}

/** In words; they go behind a path and a colon. */
export function localReason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (isGone(error)) return 'it does not exist';
  if (isDenied(error)) return `this user may not read it (${code})`;
  if (code === 'ELOOP') return 'the link leads round in a circle (ELOOP)';
  return message;
}

/** STALE for what is gone, DENIED for what this user may not read, else STORAGE. */
export function asFetchError(error: unknown, path: string): FetchError {
  if (error instanceof FetchError) return error;
  const code = isGone(error) ? 'STALE' : isDenied(error) ? 'DENIED' : 'STORAGE';
  return new FetchError(code, `${path}: ${localReason(error)}`, { cause: error });
}
