/** Bounds of what is served over HTTP, to whoever can connect, each with its unit and its reason. */

/** Bytes read and sent at a time: large enough for storage, and a slow peer holds two of these at most. */
export const BLOCK_BYTES = 256 * 1024;

/** Blocks that are kept for the next answer rather than left to the collector. */
export const FREE_BLOCKS_KEPT = 32;

/** Of a listener that answers for files. */
export interface FilesLimits {
  readonly connectionsMax: number;
  readonly headerBytesMax: number;
  readonly requestMs: number;
  readonly keepAliveMs: number;
}

/** For an address that strangers can reach. */
export const FILES_LIMITS: FilesLimits = {
  /** Connections at a time; more are closed at once. Engines open a hundred each. */
  connectionsMax: 512,
  /** Bytes of a request's line and headers: the longest path, percent-encoded, and a signed request's headers. */
  headerBytesMax: 32 * 1024,
  /** Time for a request to be there, headers and all, milliseconds. */
  requestMs: 10_000,
  /** Time that a connection is kept for its next request, milliseconds: more than clients keep theirs. */
  keepAliveMs: 65_000,
};

/** Time between two looks at whether a connection has used up its time, milliseconds. */
export const CHECK_MS = 500;

/** Etags that a condition may name; a list that is longer matches nothing. Clients name one. */
export const ETAGS_MAX = 64;
