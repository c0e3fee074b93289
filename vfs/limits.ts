/** Bounds and defaults of vfs/: each with its unit and the reason for its value. */

/** Characters of a location or glob: more is no name a person or a program means. */
export const LOCATION_CHARACTERS_MAX = 4096;

/** Nested braces of a glob: the parser recurses for each. */
export const GLOB_NESTING_MAX = 16;

/** Footers kept per source, by version, the least recently used dropped first. */
export const FOOTERS_KEPT_MAX = 64;

/** Bytes of a read that brings no buffer of its own. */
export const READ_BYTES_MAX = 1024 * 1024 * 1024;

/** Bytes of a unit, in which a mount fetches and keeps a file: large enough for the network, small enough to be given up. */
export const UNIT_BYTES = 1024 * 1024;

/** Bytes of the first unit of a column chunk: what the kernel reads beyond the end of the chunk before is not to cost more. */
export const FIRST_UNIT_BYTES = 256 * 1024;

/** Column chunks of a file that a mount knows one by one; files with more are blocks to it. */
export const CHUNKS_KNOWN_MAX = 200_000;

/** Bytes of a request that takes neighbouring units together: what is in one request leaves memory together. */
export const STORE_REQUEST_BYTES_MAX = 4 * 1024 * 1024;

/**
 * Requests under way for bytes that nobody waits for yet, of the 16 that a server takes at a time, and their bytes: a
 * reader's own request must not queue behind many, and far away few are not enough.
 */
export const SPECULATIVE_REQUESTS_MAX = 12;
export const SPECULATIVE_BYTES_MAX = 24 * 1024 * 1024;

/**
 * Bytes that a raw mount keeps of what was read to its end: the kernel has it now, and memory that is used again soon is
 * in the processor's cache still, and costs no page faults, which were a quarter of the time of a copy.
 */
export const READ_KEPT_BYTES = 32 * 1024 * 1024;

/** Share of the memory that bytes fetched ahead may fill. */
export const AHEAD_SHARE = 0.75;

/** Bytes of read-ahead of a file that is read from its start on, and after many sequential reads. */
export const READ_AHEAD_BYTES_MIN = 256 * 1024;
export const READ_AHEAD_BYTES_MAX = 8 * 1024 * 1024;

/** Units of a chunk that its decoder holds at a time: one that it reads, and the next. */
export const DECODE_UNITS_AHEAD = 3;

/** Share of the memory that one decoded chunk may take: larger ones pass through undecoded. */
export const DECODED_CHUNK_SHARE = 0.125;

/** Share of the memory that one request may take. */
export const REQUEST_SHARE = 0.125;

/** Milliseconds between looks at who waits for memory, besides those when some comes back. */
export const SHORTAGE_LOOK_MS = 100;

/** Milliseconds without news of a running decoder after which it counts as one that waits for bytes that find no room. */
export const DECODER_QUIET_MS = 1000;

/**
 * Units, and decoded chunks, that may be wished for ahead: when memory is short wishes stay, of which each takes some 50
 * bytes. More than a reader of a very wide file has at a time; the oldest, which readers have passed, are dropped first.
 */
export const AHEAD_WISHES_MAX = 65_536;

/** Bytes of a copy that a reply waits with: a read of the kernel at most. */
export const COPY_BYTES = 1024 * 1024;

/** Copies' memory that is kept to be used again: as many readers seldom wait at the same moment. */
export const COPIES_KEPT_MAX = 4;
