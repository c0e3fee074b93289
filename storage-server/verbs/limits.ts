/** Bounds of what is asked of an RDMA device, and their reasons. */

/** READs of one queue pair under way at most: 16 of 256 KiB are more than latency x bandwidth of 400 Gbit/s within a rack. */
export const READS_UNDER_WAY_MAX = 16;

/**
 * Local acknowledge timeout, as exponent of 4.096 us: 268 ms, above what a switch or a software device delays a packet by;
 * with `RETRY_COUNT` repetitions a peer that is gone is noticed within about three seconds.
 */
export const ACK_TIMEOUT_EXPONENT = 16;

/**
 * Repetitions of a request that was not acknowledged. 7 would be the most that there are, but the kernel's software devices
 * take it for "without end", and a peer that is gone would never be noticed.
 */
export const RETRY_COUNT = 6;

/** Repetitions while the receiver is not ready, which a READ never meets; 7 is without end, so less. */
export const RNR_RETRY_COUNT = 3;

/** How long a receiver asks to be spared, as code of the specification: 0.64 ms. */
export const RNR_TIMER_CODE = 12;

/** Hops of a packet at most: between networks, as IP has it. */
export const HOP_LIMIT = 64;

/** Entries of a port's address table that are looked at. */
export const GID_ENTRIES_MAX = 256;

/** Completions taken at a time. */
export const COMPLETIONS_AT_A_TIME = 16;

/** Completion events taken before the event loop gets a turn. */
export const EVENTS_IN_A_ROW_MAX = 64;

/** How long completions of a queue pair that was moved to ERR are waited for, milliseconds; destroying it is the guarantee. */
export const FLUSH_MS = 20;
