/**
 * What the reads of a handle tell of whoever reads. They come from the kernel, which reads ahead: in windows that double
 * up to some size, the next one as soon as the program comes to the beginning of the last. So a read that goes on where
 * another one ended says that the program came to where that one began, and no more: what lies behind may be bytes that
 * nobody will ever want. A read elsewhere is the program's own wish, but for the rest of the page that it begins in.
 * Pure. Threads that share a handle have a run each.
 */
import type { Range } from '../../decode/index.ts';
import { PAGE_BYTES } from '../fuse/limits.ts';
import { READ_AHEAD_BYTES_MAX, READ_AHEAD_BYTES_MIN } from '../limits.ts';

/** Runs that a handle has at a time: threads that scan different columns. */
const RUNS_MAX = 16;

/** Reads one after the other. */
export interface Run {
  /** Where it began, and where the last read ended. */
  readonly start: number;
  readonly next: number;
  /** It begins with this read. */
  readonly isNew: boolean;
  /** Bytes that are to be fetched ahead if it just goes on. */
  readonly ahead: number;
  /** The end of what was asked to be fetched ahead of it: whoever asks sets it. */
  askedTo: number;
  /** Bytes that the program is known to have come to by this read, and was not before: may be none. */
  readonly reached: Range;
}

interface Known extends Run {
  /** Where the last read began. */
  readonly lastStart: number;
}

export class ReadRuns {
  /** The least recently used first. */
  readonly #runs: Known[] = [];

  /** The run that a read goes on with, from at most `skip` bytes away, or begins. */
  note(offset: number, end: number, skip = 0): Run {
    const exact = this.#runs.findIndex(({ next }) => next === offset);
    const at = exact >= 0 ? exact : this.#runs.findLastIndex(({ next }) => Math.abs(offset - next) < skip);
    const run = at < 0 ? begun(offset, end) : goneOn(this.#runs.splice(at, 1)[0]!, offset, end);
    this.#runs.push(run);
    if (this.#runs.length > RUNS_MAX) this.#runs.shift();
    return run;
  }
}

function begun(offset: number, end: number): Known {
  const reached = { start: offset, end: Math.min(end, offset + PAGE_BYTES) };
  const ahead = offset === 0 ? READ_AHEAD_BYTES_MIN : 0;
  return { start: offset, next: end, isNew: true, ahead, askedTo: offset, reached, lastStart: offset };
}

function goneOn({ start, ahead, askedTo, reached, lastStart }: Known, offset: number, end: number): Known {
  const to = Math.max(reached.end, lastStart + 1);
  return {
    start,
    next: end,
    isNew: false,
    ahead: Math.min(2 * Math.max(ahead, READ_AHEAD_BYTES_MIN), READ_AHEAD_BYTES_MAX),
    askedTo,
    reached: { start: reached.end, end: to },
    lastStart: offset,
  };
}
