/** The bounds of output/, each with its unit and its reason. */

/** Bytes of text that are handed over at once; two such buffers are in use. */
export const TEXT_CHUNK_BYTES = 256 * 1024;

/** Bytes of a text above which its escaped length is counted instead of taken at its worst. */
export const COUNTED_TEXT_BYTES = 1024;

/** Rows that decide how wide a table's columns are. */
export const TABLE_SAMPLE_ROWS = 1000;

/** Characters of a cell that a table shows. */
export const TABLE_CELL_CHARACTERS = 60;

/** Milliseconds between two pictures of a progress bar. */
export const PROGRESS_MS = 100;

/** Row groups that a plan for people lists. */
export const PLAN_ROW_GROUPS_SHOWN_MAX = 20;

/** Milliseconds of making texts after which others get a turn: a request for metrics takes a few turns. */
export const WORK_SLICE_MS = 5;
