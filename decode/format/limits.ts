/**
 * Bounds of decode/format/: each with its unit and the reason for its value. A file beyond one of them fails with a typed
 * error that says so.
 */

/** Levels of Thrift structs, lists and maps. The deepest that parquet.thrift describes is 8; unknown fields may nest. */
export const THRIFT_DEPTH_MAX = 64;

/** Bytes of a Thrift footer. The largest in the field are tens of MiB; parsing takes several times its size in memory. */
export const FOOTER_BYTES_MAX = 256 * 1024 * 1024;

/** Row groups of a file. Their ordinals are 16 bits wide in the format. */
export const ROW_GROUPS_MAX = 1 << 17;

/** Column chunks of a file, each a few hundred bytes of memory once it is read but perhaps one byte of a hostile footer. */
export const CHUNKS_MAX = 1 << 21;

/** Key-value pairs of a file. */
export const KEY_VALUES_MAX = 1 << 16;

/** Encodings listed by a column chunk. The format has ten, old writers repeat them. */
export const ENCODINGS_MAX = 1024;

/** Items of a list that are made at once: above it a scan of a few must not pay for all. */
export const EAGER_ITEMS_MAX = 64;

/** Elements of the schema list. Tables of 100,000 columns exist. */
export const SCHEMA_ELEMENTS_MAX = 1 << 20;

/** Levels of nesting in the schema; definition and repetition levels then fit a byte. */
export const SCHEMA_DEPTH_MAX = 250;

/** Path segments and characters of all dotted names together: deep and wide at once grows faster than the footer. */
export const SCHEMA_PATHS_MAX = 64 * 1024 * 1024;

/** Bytes of a page header. Statistics of long strings make large ones; other readers stop at 16 MiB too. */
export const PAGE_HEADER_BYTES_MAX = 16 * 1024 * 1024;

/** Fields and list elements of a page header: it is parsed again whenever it was cut, so the work has to be small. */
export const PAGE_HEADER_FIELDS_MAX = 4096;
