/** Bounds of daemon/arrow/: each with its unit and the reason for its value. */

/** Characters of base64 of an `ARROW:schema` value: a schema of 100,000 columns; more is not looked at. */
export const HINT_CHARACTERS_MAX = 32 * 1024 * 1024;

/** Bytes of a name in it: many fields of a hostile one may share one long name. */
export const NAME_BYTES_MAX = 4096;

/** Bytes of a time zone's name: the longest in the tz database have 32. */
export const ZONE_BYTES_MAX = 64;

/** Characters of a file's key-values that go into the Arrow schema: they go out with every stream. */
export const KEY_VALUE_CHARACTERS_MAX = 1024 * 1024;

/** A file's key-values that go into the Arrow schema. */
export const KEY_VALUES_KEPT_MAX = 1024;
