/** Bounds of the disk cache, each with its unit and the reason for its value. */

/**
 * Bytes of a block at most, as many as a mount's unit: opening and closing a file is then a tenth of reading it, and
 * what is evicted at a time is little. The folder's name changes when this does.
 */
export const BLOCK_BYTES_MAX = 2 * 1024 * 1024;

/**
 * Bytes that have a checksum of their own: a read of part of a block reads and checks so much more of it at either end,
 * and a block's table of checksums takes 128 bytes.
 */
export const PIECE_BYTES = 64 * 1024;

/** Bytes of a block file in front of its data: 64 of fixed fields and the table. */
export const HEADER_BYTES = 256;

/** Reads of fewer bytes are not kept: a file takes a page and an inode however little is in it. */
export const KEPT_READ_BYTES_MIN = 512;

/** Bytes between two missing ranges that are fetched again rather than asked around: less than a round trip's worth. */
export const REFETCHED_BYTES_MAX = 64 * 1024;

/** Bytes that a file takes on disk are counted in these, as file systems allocate them. */
export const ALLOCATED_BYTES = 4096;

/** Bytes of the smallest cache: a few blocks. */
export const CACHE_BYTES_MIN = 16 * 1024 * 1024;

/** Bytes of a cache that says nothing else: a working set of a few tables on most machines' disks. */
export const CACHE_BYTES_DEFAULT = 10 * 1024 * 1024 * 1024;

/** Blocks of a cache: each takes about 200 bytes of memory. Full ones are 1 TiB. */
export const BLOCKS_MAX = 512 * 1024;

/** Bytes that wait to be written: what a fast network brings while a disk is busy for some tens of milliseconds. */
export const QUEUED_BYTES_MAX = 32 * 1024 * 1024;

/** Blocks that wait to be written. */
export const QUEUED_BLOCKS_MAX = 1024;

/** Blocks written at a time: half of the threads that Node has for files, so that reads find one. */
export const WRITERS = 2;

/** Blocks of one read that are read at a time: as many as Node has threads for files. */
export const READERS = 4;

/** A block that is used says so on disk when it has not for so long, milliseconds: other processes see who is in use. */
export const TOUCH_MS = 5 * 60_000;

/** A process looks what others have written whenever it has written one part in so many of the size. */
export const LOOK_SHARE = 16;

/** Files looked at together for their times, at start. */
export const STATS_AT_ONCE = 64;

/** Age from which on a file that is being written counts as left behind by a process that is gone, milliseconds. */
export const ABANDONED_MS = 10 * 60_000;

/** How long nothing is written after the disk was full or could not be written, milliseconds. */
export const PAUSE_MS = 60_000;

/** How long closing waits for blocks that are to be written, milliseconds. */
export const CLOSE_MS = 2_000;
