/**
 * The error class of the mount: what keeps a folder from being mounted or unmounted, with what to do about it, and
 * what a FUSE kernel must not send. Sources keep FetchError, which is what their callers know.
 */
export type MountErrorCode =
  | 'PLATFORM' // not Linux
  | 'NO_DEVICE' // /dev/fuse is missing
  | 'NOT_PERMITTED' // /dev/fuse, mount(2) or fusermount3 refuse this user
  | 'NO_FUSERMOUNT' // not root, and fusermount3 is not installed
  | 'NO_LIBC' // the C library can't be called
  | 'NOT_FOUND' // the folder does not exist
  | 'NOT_A_FOLDER'
  | 'NOT_EMPTY' // what is in the folder would be hidden
  | 'MOUNTED' // something is mounted there already
  | 'BUSY' // files of it are open
  | 'NOT_MOUNTED' // nothing of ours is mounted there
  | 'REFUSED' // the kernel refused for another reason
  | 'PROTOCOL' // the kernel sent what is not FUSE
  | 'VERSION' // the kernel's FUSE is too old
  | 'TREE' // the files to mount can't be a tree
  | 'TIMEOUT' // it did not happen in the time allowed
  | 'STALE' // the file of a handle was replaced or removed
  | 'INTERRUPTED' // a signal, before the answer
  | 'CROWDED' // too many requests wait already
  | 'STOPPED'; // the session has ended

export class MountError extends Error {
  override readonly name = 'MountError';
  readonly code: MountErrorCode;
  /** The message without its prefix. */
  readonly reason: string;
  /** Of PROTOCOL: the request's, where its header could be read. */
  readonly unique: number | undefined;

  constructor(code: MountErrorCode, reason: string, options: { cause?: unknown; unique?: number } = {}) {
    super(`mount ${code}: ${reason}`, options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.reason = reason;
    this.unique = options.unique;
  }
}
