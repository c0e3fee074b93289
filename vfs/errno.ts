/**
 * The one place that turns errors into the numbers a program sees when it reads the mount. What a reader can do decides:
 * ESTALE, open it again; ENOENT, it is gone; ETIMEDOUT, the source does not answer; EINTR, it was interrupted; ENOMEM, the
 * memory cap is too small; EACCES, this user may not; everything else is EIO. Only error classes of ours are told apart:
 * the text of an error decides nothing.
 */
import { constants } from 'node:os';
import type { FetchErrorCode } from '../fetcher/index.ts';
import { FetchError } from '../fetcher/index.ts';
import type { MountErrorCode } from './errors.ts';
import { MountError } from './errors.ts';

/** Numbers of this system, positive. */
export const Errno = {
  EPERM: constants.errno.EPERM,
  ENOENT: constants.errno.ENOENT,
  EINTR: constants.errno.EINTR,
  EIO: constants.errno.EIO,
  EBADF: constants.errno.EBADF,
  EAGAIN: constants.errno.EAGAIN,
  ENOMEM: constants.errno.ENOMEM,
  EACCES: constants.errno.EACCES,
  EBUSY: constants.errno.EBUSY,
  ENODEV: constants.errno.ENODEV,
  ENOTDIR: constants.errno.ENOTDIR,
  EISDIR: constants.errno.EISDIR,
  EINVAL: constants.errno.EINVAL,
  ENOTTY: constants.errno.ENOTTY,
  EROFS: constants.errno.EROFS,
  ERANGE: constants.errno.ERANGE,
  ENOSYS: constants.errno.ENOSYS,
  ENODATA: constants.errno.ENODATA,
  EPROTO: constants.errno.EPROTO,
  ECONNABORTED: constants.errno.ECONNABORTED,
  ENOTCONN: constants.errno.ENOTCONN,
  ETIMEDOUT: constants.errno.ETIMEDOUT,
  ESTALE: constants.errno.ESTALE,
} as const;

/** `satisfies` makes a new code of these classes an error here, until somebody has thought about it. */
const OF_FETCH = {
  BAD_URL: Errno.EINVAL,
  NOT_FOUND: Errno.ENOENT,
  COLUMN: Errno.EIO,
  OPTION: Errno.EIO,
  HOST: Errno.EIO,
  REFUSED: Errno.EIO,
  ACCESS: Errno.ESTALE,
  STALE: Errno.ESTALE,
  SERVER: Errno.EIO,
  DENIED: Errno.EACCES,
  PACKED: Errno.EIO,
  STORAGE: Errno.EIO,
  PROTOCOL: Errno.EIO,
  LOST: Errno.EIO,
  RDMA: Errno.EIO,
  STALLED: Errno.ETIMEDOUT,
  OUT_OF_RANGE: Errno.EIO,
  MEMORY: Errno.ENOMEM,
  CANCELLED: Errno.EINTR,
  CLOSED: Errno.EIO,
} satisfies Record<FetchErrorCode, number>;

const OF_MOUNT = {
  PLATFORM: Errno.ENOSYS,
  NO_DEVICE: Errno.ENODEV,
  NOT_PERMITTED: Errno.EPERM,
  NO_FUSERMOUNT: Errno.EPERM,
  NO_LIBC: Errno.ENOSYS,
  NOT_FOUND: Errno.ENOENT,
  NOT_A_FOLDER: Errno.ENOTDIR,
  NOT_EMPTY: Errno.EBUSY,
  MOUNTED: Errno.EBUSY,
  BUSY: Errno.EBUSY,
  NOT_MOUNTED: Errno.EINVAL,
  REFUSED: Errno.EIO,
  PROTOCOL: Errno.EINVAL,
  VERSION: Errno.EPROTO,
  TREE: Errno.EIO,
  TIMEOUT: Errno.ETIMEDOUT,
  STALE: Errno.ESTALE,
  INTERRUPTED: Errno.EINTR,
  CROWDED: Errno.EAGAIN,
  STOPPED: Errno.ENOTCONN,
} satisfies Record<MountErrorCode, number>;

/** What a program is told of `error`, as a positive number. */
export function errnoOf(error: unknown): number {
  if (error instanceof FetchError) return OF_FETCH[error.code];
  if (error instanceof MountError) return OF_MOUNT[error.code];
  const name = error instanceof Error ? error.name : '';
  if (name === 'AbortError') return Errno.EINTR;
  if (name === 'TimeoutError') return Errno.ETIMEDOUT;
  return Errno.EIO;
}

const names = new Map<number, string>(Object.entries(Errno).map(([name, value]) => [value, name]));

/** The name of a number, for people. */
export function errnoName(errno: number): string {
  const known = names.get(errno);
  if (known !== undefined) return known;
  return Object.entries(constants.errno).find(([, value]) => value === errno)?.[0] ?? `errno ${errno}`;
}
