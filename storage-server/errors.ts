/** The one error class of storage-server/: what keeps a server from starting. Peers' errors only end their connection. */
export type ServeErrorCode =
  | 'ROOT' // a root does not exist, can't be read or has no usable name
  | 'NAMES' // two roots would appear under the same name
  | 'LIMIT' // more files than a region may hold, or a limit that makes no sense
  | 'PIN' // files do not fit in the memory that they may be pinned in
  | 'CHANGED' // a file changed while it was being pinned or packed
  | 'PACKED' // a packed file is not what it says, or is damaged
  | 'OUTPUT' // a packed file can't be written
  | 'KEYS' // a file of signing keys can't be read or is none
  | 'TOKENS' // a file of tokens can't be read or is none
  | 'TLS' // a certificate, its key or its authorities can't be used
  | 'RDMA' // the RDMA device that is asked for can't be used
  | 'LISTEN' // the address can't be listened on
  | 'LISTEN_S3'; // that of the S3 API can't be

export class ServeError extends Error {
  override readonly name = 'ServeError';
  readonly code: ServeErrorCode;
  /** The message without its prefix. */
  readonly reason: string;

  constructor(code: ServeErrorCode, reason: string, options: { cause?: unknown } = {}) {
    super(`serve ${code}: ${reason}`, options);
    this.code = code;
    this.reason = reason;
  }
}
