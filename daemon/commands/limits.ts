/** The bounds of commands, each with its unit and its reason. */

/** Milliseconds that an interrupted command may take to end in order: what a person waits after Ctrl-C. */
export const INTERRUPTION_GRACE_MS = 2500;

/** Milliseconds within which a second signal is the first one passed on twice, not a second wish. */
export const SIGNAL_REPEAT_MS = 300;

/** Rows of a table when none are asked for: more than a screen is not read. */
export const TABLE_ROWS_DEFAULT = 40;

/** Footers read at a time to count rows. */
export const FOOTERS_AT_A_TIME = 8;

/** Bytes of one read of `cp`: a few frames. */
export const COPY_READ_BYTES = 4 * 1024 * 1024;

/** Reads of `cp` under way: hides the round trip, 16 MiB of memory. */
export const COPY_READS_AHEAD = 4;

/** Skipped files that a starting server, or a listing, names one by one. */
export const SKIPPED_SHOWN_MAX = 20;

/** Row groups that `inspect` lists without --json. */
export const ROW_GROUPS_SHOWN_MAX = 20;

/** Part of the memory that is free which `serve --pin` may take when it is not told how much: the rest is for others. */
export const PIN_MEMORY_SHARE = 0.75;

/** Milliseconds for a server that the demo starts to be ready: its Node has to start, too. */
export const COMMAND_READY_MS = 20_000;

/** Milliseconds in which those who use a mount may end before it is taken away, or stays: as a server drains. */
export const DRAIN_MS_DEFAULT = 5000;

/** `qanat verbs-check`: sizes of the ranges that are compared, bytes: within a packet, over several, over several READs. */
export const CHECK_SIZES = [1, 4096, 65_537, 1024 * 1024];

/** Files of which ranges are compared. */
export const CHECK_FILES_MAX = 3;

/** Reads that are timed: enough for a median, done in a second where a read takes 5 ms. */
export const CHECK_SMALL_READS = 101;
export const CHECK_LARGE_READS = 16;

/** Lines of one kind that a server logs about its peers in a while, and the while, milliseconds: enough to see what goes on. */
export const PEER_LINES_MAX = 100;
export const PEER_LINES_MS = 10_000;
