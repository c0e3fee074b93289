/** Bounds of what is read over HTTP, with their reasons. */

/** Bytes before the asked ones that are taken and thrown away when a server answers with the whole file: about 100 ms. */
export const SKIPPED_BYTES_MAX = 8 * 1024 * 1024;

/** Redirects that one request follows: storage behind a portal takes two. */
export const REDIRECTS_MAX = 5;

/** Targets of redirects that are remembered, each for one file. */
export const TARGETS_KEPT_MAX = 1024;

/** Answers that one read may be made of: a server that gives less than was asked is asked for the rest. */
export const ANSWERS_MAX = 64;

/** Bytes of the body of a refusal that are read, for its code: those of S3 have a few hundred. */
export const REFUSAL_BYTES_MAX = 16 * 1024;

/** Bytes of the headers of an answer. */
export const HEADER_BYTES_MAX = 64 * 1024;

/** Time for which a connection that nobody uses is kept, milliseconds: less than most servers keep theirs. */
export const IDLE_MS = 4_000;

/** Characters of a server's words in an error. */
export const WORDS_MAX = 200;

/** A modification time this much older than the answer is one version's: a second is its grain. Milliseconds. */
export const SETTLED_MS = 2_000;
