/** The bounds of decode/, each with its unit and its reason. Those of the parsers stand in format/limits.ts. */

/** Bytes of the pool's allocation unit: a memory page, so that freed slabs tile without waste for typical chunks. */
export const BLOCK_BYTES = 4096;

/** Bytes: below this not even one row group of a small file fits beside its output. */
export const MEMORY_BYTES_MIN = 8 << 20;

/** Bytes: a wasm32 memory ends at 4 GiB; its last pages hold nothing. */
export const MEMORY_BYTES_MAX = 4 * 2 ** 30 - (1 << 20);

/** Bytes of a cache line: the unit of the producer's mark and of the stream profiler's beat. */
export const LINE_BYTES = 64;

/** Bytes of readable room after dictionary string data: the gather kernel copies whole 16-byte vectors. */
export const DICTIONARY_SLACK_BYTES = 64;

/** Ratio: Snappy's densest token makes 64 bytes out of 3; more than this is a lie, seen before anything is allocated. */
export const SNAPPY_RATIO_MAX = 22;

/** Ratio: DEFLATE's densest block makes 1032 bytes out of one. */
export const GZIP_RATIO_MAX = 1040;

/** Ratio: an LZ4 length byte adds at most 255 bytes. */
export const LZ4_RATIO_MAX = 256;

/** Frames of a zstd page: writers make one, some one for each 128 KiB they were given; each costs a library call. */
export const ZSTD_FRAMES_MAX = 16384;

/** Power of two: the window that a thread's zstd decompressor may keep, 8 MiB, which RFC 8878 wants of all. */
export const ZSTD_WINDOW_LOG_KEPT = 23;

/** Bytes of data in a segment of expanded dictionary strings: long strings in few entries would fill any memory. */
export const EXPANDED_BYTES_MAX = 16 << 20;

/** Slabs of more than one part in so many of the pool are large ones: pages and requests, not windows. */
export const LARGE_SLAB_SHARE = 64;

/** Bytes: levels of at most this size may lie before values that are decompressed in place; windows leave the room. */
export const PLACED_PREFIX_BYTES_MAX = 64;

/** Entries of a nested column whose levels are decoded at a time: 8 KiB of each kind, in L1. */
export const LEVEL_CHUNK_ENTRIES = 8192;

/** Entries of a window of a nested column, after which it ends at the next row. */
export const NESTED_ENTRIES_MAX = 1 << 20;

/** A definition or repetition level at most: levels are bytes. */
export const LEVEL_MAX = 254;

/** Bytes before and after the place of a window's values that a decoder may write, and put back, while it fills it. */
export const WINDOW_SLACK_BYTES = 64;
