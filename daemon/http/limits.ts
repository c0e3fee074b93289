/** The bounds of http/, each with its unit and its reason. */

/** Scans at a time: each has a client, a batch on its way and a share of the memory. */
export const SCANS_DEFAULT = 16;

/** Scans at a time at most: beyond, no scan has a share of the memory that is worth having. */
export const SCANS_MAX = 1024;

/** Milliseconds in which a client takes nothing: a step of somebody's program may take a minute, not a pause for lunch. */
export const CLIENT_MS_DEFAULT = 60_000;

/** Bytes of a request's body: ten thousand names of columns. */
export const BODY_BYTES_MAX = 1 << 20;

/** Bytes of a request's line and headers. */
export const HEADER_BYTES_MAX = 16 * 1024;

/** Milliseconds for a request to be there with its body. */
export const REQUEST_MS = 10_000;

/** Milliseconds between two looks at whether a connection has used up its time. */
export const CHECK_MS = 1_000;

/** Milliseconds that an idle connection is kept for its next request. */
export const KEEP_ALIVE_MS = 30_000;

/** Connections at a time beside those of scans: listings, idle ones, refusals. */
export const CONNECTIONS_SPARE = 64;

/** Bytes that may wait in a response before a scan waits for its client. */
export const RESPONSE_BYTES_AHEAD = 256 * 1024;

/** Names of columns that a request may have: as many as the flows of an engine. */
export const COLUMNS_MAX = 65536;

/** Characters of a name or a location in a request. */
export const TEXT_CHARACTERS_MAX = 4096;

/** Files of a listing that are written at once. */
export const FILES_AT_ONCE = 500;

/** Rows that a request may ask for in a batch, as on the command line. */
export const BATCH_ROWS_MAX = 1 << 20;

/** Seconds after which whom a busy daemon sent away may come again. */
export const RETRY_AFTER_S = 1;
