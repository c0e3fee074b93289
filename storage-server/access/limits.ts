/** Bounds of access to a server, each with its unit and its reason. */

/** Bytes of a file of tokens, keys or certificates: ten thousand tokens have two million. */
export const SECRET_FILE_BYTES_MAX = 4 * 1024 * 1024;

/** Tokens in one file: each is compared with at every attempt, a microsecond each. */
export const TOKENS_MAX = 10_000;

/** Characters of a token: fewer can be guessed, more do not fit beside the other headers of a request. */
export const TOKEN_CHARACTERS_MIN = 16;
export const TOKEN_CHARACTERS_MAX = 2048;

/** Prefixes of one token: more are a sign that folders should be laid out otherwise. */
export const PREFIXES_MAX = 256;

/** Time between two looks at files of certificates, where they are watched, milliseconds. */
export const CERTIFICATES_LOOK_MS = 10_000;

/** Time before the end of a certificate from which on it is told, milliseconds: two weeks. */
export const EXPIRY_WARNING_MS = 14 * 24 * 3600 * 1000;
