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

/** Bytes of a document that is read whole, such as a page of a listing: 1000 keys of 1024 bytes, each thrice as long. */
export const DOCUMENT_BYTES_MAX = 16 * 1024 * 1024;

/** Objects of one listing: a few hundred bytes of memory each, and minutes of requests. */
export const KEYS_MAX = 5_000_000;

/** Versions of objects whose ids are remembered. */
export const VERSIONS_KEPT_MAX = 100_000;

/** Times that one request is sent again because credentials, region or version id were not right. */
export const RECOVERIES_MAX = 4;

/** Stall times within which a look at a file, or a page of a listing, has come whole: it is small, and may be dripped. */
export const LOOK_STALLS = 3;
