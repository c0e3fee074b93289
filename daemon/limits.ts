/** The bounds of daemon/, each with its unit and its reason. */

/** Flows (column chunks) that may be open at once: a mark each, 256 KiB of the pool. */
export const FLOWS_MAX = 65536;

/** Entries of a control block's table: a decoder with its profilers and counters takes four; room for kinds to come. */
export const CONTROL_ENTRIES_MAX = 4096;

/** Slots of a decoder stream's FIFO, as in the paper: enough to hide a message's way, few enough to stay fair. */
export const STREAM_FIFO_SLOTS = 64;

/** Segments of a column that may wait decoded before their rows are taken: one to be taken, one to be ready. */
export const SEGMENTS_AHEAD = 2;

/** Pieces of a chunk in memory at once: one being decoded, one on its way. */
export const PIECES_AHEAD = 2;

/** Share of the pool that row groups ahead of the first may fill: the rest is for the one that is waited for. */
export const AHEAD_MEMORY_SHARE = 0.75;

/** Milliseconds between two looks at whether other scans have made room. */
export const OTHERS_LOOK_MS = 20;

/** Milliseconds without any movement of other scans after which waiting for their memory is given up. */
export const OTHERS_STILL_MS = 10_000;

/**
 * Milliseconds in which a consumer asks for no rows, after which its scan gives its memory to others that are short of
 * it: what it had ahead is read again, so that one which is only slow should not be meant.
 */
export const CONSUMER_IDLE_MS = 2000;

/** Decoder threads at most: more than any machine has cores for is a mistake. */
export const DECODERS_MAX = 256;

/** Columns of a scan from which on it looks at them once for many messages. */
export const WIDE_COLUMNS = 64;

/** MiB of young JavaScript objects of a decoder thread: its values are in the pool, and V8's default fills 160 MiB more. */
export const DECODER_YOUNG_MEBIBYTES = 16;

/** MiB of old ones: some kilobytes for each of its flows, of which a very wide file has tens of thousands. */
export const DECODER_OLD_MEBIBYTES = 512;

/** Characters of a line of help where nobody says how wide a terminal is. */
export const HELP_COLUMNS_DEFAULT = 100;

/** Characters of a line of help at most: longer ones are hard to read. */
export const HELP_COLUMNS_MAX = 110;

/** Characters of a line of help at least: option names alone take about so much. */
export const HELP_COLUMNS_MIN = 50;
