/** Bounds and defaults of vfs/: each with its unit and the reason for its value. */

/** Characters of a location or glob: more is no name a person or a program means. */
export const LOCATION_CHARACTERS_MAX = 4096;

/** Nested braces of a glob: the parser recurses for each. */
export const GLOB_NESTING_MAX = 16;

/** Footers kept per source, by version, the least recently used dropped first. */
export const FOOTERS_KEPT_MAX = 64;

/** Bytes of a read that brings no buffer of its own. */
export const READ_BYTES_MAX = 1024 * 1024 * 1024;
