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

/** Reads of one source that may be under way: at the beginning, and all the time where the source does not adapt it. */
export const CONCURRENCY = 32;

/**
 * Where it does (HTTP, S3): at least, when the server is busy; at least, when it is only slow, which may be the network
 * alone and costs time; at most, which is what one client should want of a server.
 */
export const CONCURRENCY_MIN = 1;
export const CONCURRENCY_SLOW_MIN = 8;
export const CONCURRENCY_MAX = 64;

/** What is left of the reads under way when the server is busy or silent, and when it has become slow. */
export const CONCURRENCY_BUSY_FACTOR = 0.5;
export const CONCURRENCY_SLOW_FACTOR = 0.9;

/**
 * Reads have become slow when their first bytes take this many times what they took at best, and these milliseconds more:
 * reads that share a link always take somewhat longer together.
 */
export const SLOW_FACTOR = 4;
export const SLOW_MS = 20;

/** What the best of earlier times grows by with each round of reads, so that another network is accepted as it is. */
export const BEST_GROWTH = 1.02;

/** Latencies of one source that are remembered: a few rounds of reads. */
export const LATENCIES_KEPT = 128;

/** Latencies before which nothing is concluded from them. */
export const LATENCIES_MIN = 16;

/** Time to connect, shake hands, milliseconds. */
export const CONNECT_MS = 5_000;

/** Time without any progress after which a source counts as stalled, milliseconds. */
export const STALL_MS = 10_000;

/**
 * The same once latencies are known: so many times what this part of the reads took to their first byte at most, and no
 * less than the floor: disks that wake up, or a server that collects its garbage, are no stall.
 */
export const STALL_FACTOR = 8;
export const STALL_QUANTILE = 0.99;
export const STALL_FLOOR_MS = 2_000;

/**
 * Bytes a second, over the longest time without progress, that are none. Reads that are this slow because many share a
 * line are tried again, fewer at a time.
 */
export const PACE_BYTES_PER_SECOND = 1024;

/** A timer that is this late says that the process was kept from running, and from its sockets; milliseconds. */
export const LATE_TIMER_MS = 100;

/** A read is asked for again when it takes longer than this part of the reads to its next byte, and no less than that. */
export const HEDGE_QUANTILE = 0.95;
export const HEDGE_FLOOR_MS = 10;

/** Second requests for each read, and how many of them may be saved up for bad moments: a twentieth more requests. */
export const HEDGE_SHARE = 0.05;
export const HEDGE_BURST = 8;

/** Second requests of a source under way: each has memory beside the budget, of these bytes at most. */
export const HEDGES_MAX = 4;
export const HEDGE_BYTES_MAX = 4 * 1024 * 1024;

/** How long a cancelled read waits for bytes that are about to land, before its connection is cut, milliseconds. */
export const CANCEL_GRACE_MS = 1_000;

/** How long closing waits for the server's goodbye, milliseconds. */
export const CLOSE_GRACE_MS = 1_000;

/** Attempts of one read without progress in between; a source that is away is tried for `STALL_MS` in any case. */
export const RETRY_ATTEMPTS = 6;

/**
 * Bytes between two failures of a read that count as progress, where not all that was missing came: more than a source
 * that drips brings before it counts as stalled, so that it is not tried for ever.
 */
export const PROGRESS_BYTES_MIN = 32 * 1024;

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

/**
 * One READ over RDMA, bytes: decoding starts when the first of a request's has come, so small; large enough that posting it
 * (about a microsecond) costs little beside the 20 us that it takes at 100 Gbit/s.
 */
export const VERBS_READ_BYTES = 256 * 1024;

/** Shared memory from this size on is registered with an RDMA device, bytes: what is smaller is copied to sooner. */
export const REGISTERED_BYTES_MIN = 1024 * 1024;

/** Buffers that are registered with one device: a process has one pool, rarely two. */
export const REGISTERED_BUFFERS_MAX = 8;

/** Times that completions are taken, 16 each, before the event loop gets a turn. */
export const POLLS_IN_A_ROW_MAX = 16;
