/** Bounds of the S3 API, each with its unit and its reason. */

/** Keys in one answer to a listing: what S3 gives at most, and what clients page by. */
export const LIST_KEYS_MAX = 1000;

/** Difference between a signer's clock and ours, milliseconds: that of S3. */
export const CLOCK_SKEW_MS = 15 * 60 * 1000;

/** Time that a presigned address may be good for, seconds: that of S3. */
export const PRESIGNED_SECONDS_MAX = 7 * 24 * 3600;

/** Parameters of a query that are looked at: a listing has ten, a presigned address seven more. */
export const PARAMETERS_MAX = 64;

/** Shortest and longest name of a bucket, characters: what clients take. */
export const BUCKET_NAME_MIN = 3;
export const BUCKET_NAME_MAX = 63;
