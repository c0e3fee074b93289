/** Bounds and defaults of the transports, with their reasons. Options of `openTransport` override the defaults. */

/** Port of a storage server when the URL names none. */
export const DEFAULT_PORT = 7400;

/** Characters of a token: with what stands in front of it, it fits into a hello. */
export const TOKEN_CHARACTERS_MAX = 2048;

/** Work requests of one queue pair that may be posted and not completed. */
export const QUEUE_DEPTH = 128;

/** READs of one queue pair that may be on the wire. */
export const OUTSTANDING_MAX = 16;

/** Largest READ, bytes: what a cancelled read may still have to take is a few of these, and a frame is as large. */
export const READ_BYTES_MAX = 1024 * 1024;

/**
 * Bytes of READs on the wire per queue pair. More than latency x bandwidth of a fast link (10 Gbit/s x 5 ms = 6 MiB),
 * little enough that an urgent read does not wait long behind it.
 */
export const WINDOW_BYTES = 8 * 1024 * 1024;

/** Queue pairs per source. */
export const CONNECTIONS = 1;

/** Reads of one source that may be under way. */
export const CONCURRENCY = 32;

/** Time to connect, shake hands, milliseconds. */
export const CONNECT_MS = 5_000;

/** Time without any progress after which a source counts as stalled, milliseconds. */
export const STALL_MS = 10_000;

/** How long a cancelled read waits for bytes that are about to land, before its connection is cut, milliseconds. */
export const CANCEL_GRACE_MS = 1_000;

/** How long closing waits for the server's goodbye, milliseconds. */
export const CLOSE_GRACE_MS = 1_000;

/** Attempts of one read without progress in between; a source that is away is tried for `STALL_MS` in any case. */
export const RETRY_ATTEMPTS = 6;

/**
 * First and largest backoff, milliseconds; the wait is a random part of it (full jitter). A server that is back after a
 * restart is noticed within the largest, and a thousand clients of it are two thousand connections a second.
 */
export const RETRY_BASE_MS = 50;
export const RETRY_CAP_MS = 1_000;

/** Time that a busy source may ask for before the next attempt, milliseconds: a scan rather fails than waits for longer. */
export const RETRY_AFTER_MAX_MS = 30_000;

/**
 * Retries that a source may have in a row over all its reads; a token comes back with every read that succeeds. Keeps a
 * source that is down from being stormed.
 */
export const RETRY_BUDGET = 100;

/**
 * Attempts of one read without progress in between that need no waiting, because the source is well and only has
 * another generation. More than republications that one read can meet; a server that says so for ever is not believed.
 */
export const IMMEDIATE_RETRIES_MAX = 64;

/** Directories that one connection reads in a row without getting to the generation that the server speaks of. */
export const DIRECTORIES_IN_A_ROW_MAX = 16;

/** Buffer that frames of small READs are received into, bytes; a copy is cheaper than a system call for each part. */
export const STAGING_BYTES = 64 * 1024;

/** A READ with less than this left to come is received through the staging buffer, bytes. */
export const STAGED_READ_BYTES_MAX = 16 * 1024;

/** One pread of a local file, bytes: the steps in which arrival is told and cancellation is noticed. */
export const FILE_READ_BYTES = 1024 * 1024;

/**
 * First read of a packed region, bytes: its directory at once where it has a few hundred files, and no more than a round
 * trip costs where it has more.
 */
export const PACKED_FIRST_READ_BYTES = 64 * 1024;

/** Versions of a packed file that one read may meet: one that is replaced faster than it is read is not waited for. */
export const PACKED_VERSIONS_MAX = 8;

/** Descriptors of local files kept open. */
export const OPEN_FILES_MAX = 128;
