/** Bounds and defaults of fetcher/: each with its unit and the reason for its value. */

/** Bytes of the first read of a file's end: the footers of tables of a few hundred columns and row groups fit. */
export const FOOTER_TAIL_BYTES = 64 * 1024;

/** Bytes of a segment of a large column chunk, at least: below that a request costs more than its bytes. */
export const SEGMENT_BYTES_MIN = 256 * 1024;

/** A segment of every column takes at most one part in so many of the memory: one lands while others are decoded. */
export const SEGMENT_MEMORY_SHARE = 4;

/** A request takes at most one part in so many of the memory, so that it fits beside what is held already. */
export const REQUEST_MEMORY_SHARE = 4;

/** Bytes of a line, the grain of decoding; segments end at lines. */
export const LINE_BYTES = 64;

/** Requests of a plan: memory for about 200 bytes each. At 256 KiB that is a file of 256 GiB. */
export const PLAN_REQUESTS_MAX = 1 << 20;

/** Rows of a batch. Fewer make the cost of a batch felt, more fit no cache. */
export const BATCH_ROWS_MIN = 1024;
export const BATCH_ROWS_MAX = 128 * 1024;

/** A batch of all columns takes at most one part in so many of the memory: several are under way at once. */
export const BATCH_MEMORY_SHARE = 16;

/** Bytes of gap that `auto` chooses at least and at most: a page of a disk, and what no round trip is worth. */
export const GAP_BYTES_MIN = 4 * 1024;
export const GAP_BYTES_MAX = 8 * 1024 * 1024;

/** Bytes of a merged request at most: the loss of one stays small, and its first parts are not kept waiting. */
export const REQUEST_BYTES_MAX = 16 * 1024 * 1024;

/** Bytes read for each byte needed, at most, in a merged request. */
export const AMPLIFICATION_MAX = 4;

/** Row groups in flight: the default is one ahead of the one being read, as in the paper. */
export const PREFETCH_DEPTH_DEFAULT = 2;

/** Row groups in flight at most: more never helped in any peer's measurements and only holds memory. */
export const PREFETCH_DEPTH_MAX = 64;
