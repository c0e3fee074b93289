/** Bounds of the wire format and of the directory. Both ends hold themselves and the other to them. */

/** Version of handshake and frames. A peer of another version is refused with BAD_VERSION. */
export const PROTOCOL_VERSION = 1;

/** Version of the directory's structure. */
export const DIRECTORY_VERSION = 1;

/** Bytes of the client's hello before the authentication bytes. */
export const HELLO_BYTES = 32;

/** Bytes of the server's welcome before the reason text. */
export const WELCOME_BYTES = 64;

/** Bytes of a frame from the client. */
export const REQUEST_BYTES = 32;

/** Bytes of a frame header from the server; a small fixed size so that a payload can land in its place directly. */
export const FRAME_HEADER_BYTES = 32;

/** Largest authentication text, bytes: a signed token with room to spare. */
export const AUTH_BYTES_MAX = 4096;

/** Largest reason text, bytes: one line for a person. */
export const REASON_BYTES_MAX = 512;

/** Largest payload of one frame, bytes: bounds how long one request can hold the connection. */
export const PAYLOAD_BYTES_MAX = 1024 * 1024;

/** Largest payload of an asynchronous event, bytes: what a client has to be able to skip. */
export const EVENT_BYTES_MAX = 4096;

/** Bytes of the payload of the event of a new generation. */
export const GENERATION_EVENT_BYTES = 32;

/** Bytes of one end of a queue pair of RDMA in a message. */
export const VERBS_ENDPOINT_BYTES = 28;

/** Bytes of a GID: the address of a port of an RDMA device. */
export const GID_BYTES = 16;

/** Bytes of a region's place for READs over RDMA in a message. */
export const VERBS_REGION_BYTES = 40;

/** Bytes of the answer to a VERBS request in front of its reason. */
export const VERBS_ANSWER_BYTES = 4 + VERBS_ENDPOINT_BYTES + VERBS_REGION_BYTES;

/** Largest READ that may ever be granted, bytes: lengths stay far from the sign bit of 32-bit numbers. */
export const READ_BYTES_CEILING = 1024 * 1024 * 1024;

/** Largest queue depth and number of outstanding reads that may be granted. */
export const QUEUE_DEPTH_CEILING = 65_536;

/** Bytes in front of the directory: its size. */
export const DIRECTORY_SIZE_BYTES = 8;

/** Bytes of the checksum behind the directory's structure. */
export const DIRECTORY_CRC_BYTES = 4;

/** Largest directory, bytes: about half a million files with long names. */
export const DIRECTORY_BYTES_MAX = 64 * 1024 * 1024;

/** Most files in one region. */
export const DIRECTORY_ENTRIES_MAX = 1_000_000;

/** Bytes of a generation: 128 random bits, never used twice. */
export const GENERATION_BYTES = 16;

/** Longest path in the directory, UTF-8 bytes: PATH_MAX of Linux. */
export const PATH_BYTES_MAX = 4096;

/** Longest etag, UTF-8 bytes. */
export const ETAG_BYTES_MAX = 256;

/** Alignment of files in the region, bytes: a cache line at least, a huge page at most, and a power of two. */
export const ALIGN_BYTES_MIN = 64;
export const ALIGN_BYTES_MAX = 2 * 1024 * 1024;

/** Deepest nesting of a Thrift structure, levels. Parquet footers need 7. */
export const THRIFT_DEPTH_MAX = 24;

/** Name of the protocol in the TLS handshake (ALPN): a server of something else is found out there. */
export const QUEUE_PAIR_ALPN = 'qanat/1';
