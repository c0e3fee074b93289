/** The values that labels of metrics may have, where they are many or several metrics share them. */
import { DECODERS_MAX } from './limits.ts';

/** Completion statuses of the wire protocol. */
export const STATUSES = [
  'SUCCESS',
  'LOC_LEN_ERR',
  'LOC_QP_OP_ERR',
  'LOC_PROT_ERR',
  'WR_FLUSH_ERR',
  'BAD_RESP_ERR',
  'REM_INV_REQ_ERR',
  'REM_ACCESS_ERR',
  'REM_OP_ERR',
  'RETRY_EXC_ERR',
  'RNR_RETRY_EXC_ERR',
  'FATAL_ERR',
  'RESP_TIMEOUT_ERR',
  'other',
] as const;

/** Encodings and codecs of Parquet. */
export const ENCODINGS = [
  'PLAIN',
  'PLAIN_DICTIONARY',
  'RLE',
  'BIT_PACKED',
  'DELTA_BINARY_PACKED',
  'DELTA_LENGTH_BYTE_ARRAY',
  'DELTA_BYTE_ARRAY',
  'RLE_DICTIONARY',
  'BYTE_STREAM_SPLIT',
  'other',
] as const;
export const CODECS = ['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'LZO', 'BROTLI', 'LZ4', 'ZSTD', 'LZ4_RAW', 'other'] as const;

/** What a FUSE kernel asks for, as the session names it. */
export const MOUNT_REQUESTS = [
  'LOOKUP',
  'GETATTR',
  'STATX',
  'OPEN',
  'READ',
  'RELEASE',
  'OPENDIR',
  'READDIR',
  'READDIRPLUS',
  'RELEASEDIR',
  'FORGET',
  'GETXATTR',
  'LISTXATTR',
  'STATFS',
  'ACCESS',
  'INTERRUPT',
  'other',
] as const;

/** Errors that programs see when they read a mount. */
export const MOUNT_ERRORS = [
  'EIO',
  'ESTALE',
  'ETIMEDOUT',
  'EINTR',
  'ENOMEM',
  'EACCES',
  'ENOENT',
  'ENOTCONN',
  'EROFS',
  'ENODATA',
  'ENOSYS',
  'other',
] as const;

export const SERVED = ['cached', 'direct', 'passthrough'] as const;

export const DECODER = { below: DECODERS_MAX } as const;

/** Listeners of a server. */
export const DOORS = ['queue_pair', 'http', 's3'] as const;

/** What requests over HTTP and S3 are about, and how they are answered. */
export const DOOR_KINDS = [
  'files',
  'region',
  's3_list_buckets',
  's3_list_objects',
  's3_bucket',
  's3_object',
  's3_other',
] as const;
export const DOOR_CODES = ['2xx', '3xx', '4xx', '5xx'] as const;

/** What goes wrong with reads and listings, as the fetcher names it. */
export const FETCH_FAILURES = [
  'HOST',
  'REFUSED',
  'ACCESS',
  'STALE',
  'SERVER',
  'DENIED',
  'STORAGE',
  'PROTOCOL',
  'LOST',
  'STALLED',
  'NOT_FOUND',
  'other',
] as const;
