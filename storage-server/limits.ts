/**
 * Bounds of the server and their reasons. Memory for payloads is at most
 * `slabsMax` x 1 MiB + `connectionsMax` x 128 KiB.
 */
import { FRAME_HEADER_BYTES, PAYLOAD_BYTES_MAX } from './protocol/index.ts';

/** A large slab, bytes: one frame of the largest payload. Also the longest burst of one queue pair. */
export const LARGE_SLAB_BYTES = FRAME_HEADER_BYTES + PAYLOAD_BYTES_MAX;

/** A small slab, bytes: what every connection can always have, so that slow readers can't starve the others. */
export const SMALL_SLAB_BYTES = FRAME_HEADER_BYTES + 128 * 1024;

/** Burst of one queue pair while others wait, bytes: a third of a millisecond at 1 GB/s. */
export const SHARED_BURST_BYTES = FRAME_HEADER_BYTES + 256 * 1024;

/** Smallest piece that a READ is cut into to fill up a slab, bytes: below it a frame costs more than it brings. */
export const PIECE_BYTES_MIN = 32 * 1024;

/**
 * Payloads of pinned files up to this are copied behind their headers, bytes: below it a part of its own in a write
 * costs more than a copy.
 */
export const COPIED_PAYLOAD_BYTES_MAX = 16 * 1024;

/** One piece of the memory that files are pinned in, bytes: large ones are few, and none asks for more at once than this. */
export const PINNED_CHUNK_BYTES = 1024 * 1024 * 1024;

/** Bytes read at a time to pin or to pack files: keeps storage busy, and a step of progress is soon done. */
export const LOAD_BYTES = 8 * 1024 * 1024;

/** Stored files that one burst or load reads at a time: more than libuv's threads, far fewer than descriptors. */
export const STORES_READING_MAX = 32;

/** Files looked at (stat, access) at a time: between two such batches the thread does what else there is to do. */
export const LOOKS_AT_A_TIME = 64;

/** Time of one batch from which on storage counts as slow, milliseconds: from memory it is a third of one. */
export const SLOW_LOOKS_MS = 4;

/** Files that are looked at off the thread behind a batch that was slow. */
export const SLOW_LOOKS = 1024;

/** Zeros from this on are left out of a packed file, which has a hole there, bytes. */
export const HOLE_BYTES_MIN = 64 * 1024;

/** Free slabs that are kept for the next burst rather than left to the collector. */
export const FREE_SLABS_KEPT = 16;

/** Descriptors of served files kept open at a time. */
export const OPEN_FILES_MAX = 256;

/** Bursts being read from storage at a time over all connections: libuv has four threads; more would only queue. */
export const BURSTS_READING_MAX = 4;

/** Skipped files that one look at the roots names one by one: of more, people want the number. */
export const SKIPPED_TOLD_MAX = 20;

/**
 * Time for which the key of a replaced region still works over RDMA, milliseconds: what is under way ends well, and who
 * goes on reading is a client that has not heard of the new one.
 */
export const VERBS_OLD_KEY_MS = 2_000;

/** Keys of replaced regions that are remembered: more publications than a client that is alive can have missed. */
export const RKEYS_REMEMBERED = 1024;

/**
 * Quiet time of the roots before their changes are published, milliseconds: a file that is copied is not published at
 * each of its pieces. And the longest that changes without a pause put it off.
 */
export const WATCH_QUIET_MS = 200;
export const WATCH_PATIENCE_MS = 5_000;

/**
 * Time between two looks at watched roots, milliseconds: where the system tells of changes, which it does not for
 * everything (other machines' changes of a network file system, links outside a root), and where it does not.
 */
export const WATCH_LOOK_MS = 60_000;
export const WATCH_POLL_MS = 2_000;

/**
 * Connections that have not shaken hands, beyond the limit on those that have: newcomers that say hello in a moment, and
 * those that are being told that they are refused. A socket each and no slab.
 */
export const UNGREETED_MAX = 256;

/**
 * Part of the limit on connections that those which have not said hello may make up for longer than `SILENT_MS`, and
 * how many they may be in any case; the oldest go first. Time enough for a hello over any network, and little enough
 * that a burst of honest newcomers is never cut for being one.
 */
export const SILENT_SHARE = 4;
export const SILENT_MIN = 16;
export const SILENT_MS = 500;

export interface ServerLimits {
  /** Connections that have shaken hands, at a time; more are refused with NO_RESOURCES. */
  readonly connectionsMax: number;
  /** Queue depth granted at most. */
  readonly queueDepthMax: number;
  /** Outstanding READs granted at most, per connection. */
  readonly outstandingMax: number;
  /** Largest READ granted, bytes. */
  readonly readBytesMax: number;
  /** Bursts read or being sent at a time, per connection: 1 MiB each, so that a slow peer holds at most this much. */
  readonly burstsMax: number;
  /** Large slabs at a time over all connections, 1 MiB each. */
  readonly slabsMax: number;
  /** Time for a complete hello, milliseconds. */
  readonly handshakeMs: number;
  /** Time without progress after which a peer that does not take its bytes is dropped, milliseconds. */
  readonly stallMs: number;
  /** Time that closing may drain, milliseconds. */
  readonly drainMs: number;
}

/** For a server with some hundred clients on one machine. */
export const DEFAULT_LIMITS: ServerLimits = {
  connectionsMax: 1024,
  queueDepthMax: 128,
  outstandingMax: 16,
  readBytesMax: 8 * 1024 * 1024,
  burstsMax: 4,
  slabsMax: 128,
  handshakeMs: 5_000,
  stallMs: 30_000,
  drainMs: 5_000,
};
