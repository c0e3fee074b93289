/**
 * The one error class of fetcher/: a source that can't be reached, does not answer, or answers with something else
 * than what was asked. `retryable` is decided where the error is made, by who knows what happened.
 */
export type FetchErrorCode =
  | 'BAD_URL' // not a location we can open
  | 'NOT_FOUND' // no such file in the source
  | 'COLUMN' // the file has no such column
  | 'OPTION' // an option's value is outside its bounds
  | 'HOST' // the host's name has no address
  | 'REFUSED' // the connection or the handshake was refused
  | 'ACCESS' // the rkey of a generation that was replaced, unknown rkey, or range outside the region
  | 'STALE' // the file changed, or went away, since it was opened: open it again
  | 'SERVER' // the server could not read its storage
  | 'DENIED' // this user may not read a local file or folder
  | 'PACKED' // a packed region is not what it says, or is damaged
  | 'STORAGE' // a local file or folder can't be read
  | 'PROTOCOL' // the answer does not match the request
  | 'LOST' // the connection ended in the middle
  | 'STALLED' // no progress for longer than the stall timer allows
  | 'RDMA' // READs were to go over RDMA, and can't
  | 'OUT_OF_RANGE' // asked for bytes outside the file
  | 'MEMORY' // needs more than the memory cap
  | 'CANCELLED' // the caller gave up
  | 'CLOSED'; // used after close

export class FetchError extends Error {
  override readonly name = 'FetchError';
  readonly code: FetchErrorCode;
  readonly retryable: boolean;
  /** Another attempt need not wait: the source is well, and only what it serves has changed. */
  readonly immediate: boolean;
  /** The source is there and asks to be spared for so long, milliseconds; 0 when it does not say. Undefined otherwise. */
  readonly busyMs: number | undefined;
  /** The message without its prefix. */
  readonly reason: string;

  constructor(
    code: FetchErrorCode,
    reason: string,
    options: { retryable?: boolean; immediate?: boolean; busyMs?: number; cause?: unknown } = {},
  ) {
    super(`fetch ${code}: ${reason}`, options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.immediate = options.immediate ?? false;
    this.busyMs = options.busyMs;
    this.retryable = options.retryable ?? (this.immediate || this.busyMs !== undefined);
    this.reason = reason;
  }

  /** The same error with the file that it is about in front. */
  located(file: string): FetchError {
    return new FetchError(this.code, `${file}: ${this.reason}`, { retryable: this.retryable, cause: this });
  }
}
