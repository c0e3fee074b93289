/**
 * Where a stream's time goes: the accounting of a profiler that sits on one side of a worker, its input or its output,
 * in nine 64-bit registers of shared memory. At any moment the stream is in one state: busy, starved, stalled or idle.
 * The word `since` holds the state and the nanosecond from which on it has not been accounted for; whoever moves that
 * word by compare-and-exchange owns the time in between and enters it once: the worker in a register when its state
 * changes, a reader in what it takes away. So the four times add up to the wall time exactly, whoever reads when, and
 * a worker that sleeps for an hour needs not be woken to be read.
 *
 * It owns no memory and reads no clock of its own: words and clock (monotonic nanoseconds, the same in all threads) are
 * handed in. What the states mean is decided by the worker. A beat is a cache line of 64 bytes, what an interface of
 * hardware hands over in one cycle.
 */

export const StreamState = {
  /** Working: beats move, or are made ready. */
  BUSY: 0,
  /** Wants input, and none is there. */
  STARVED: 1,
  /** Has or could make output, and nobody takes it. */
  STALLED: 2,
  /** Has nothing to do. */
  IDLE: 3,
} as const;
export type StreamState = (typeof StreamState)[keyof typeof StreamState];

/** Registers of a profiler: 64-bit words from its start on. Times and beats are indexed by state. */
const SINCE = 0;
const TIMES = 1;
const BEATS = 5; // of BUSY: all of them
const REGISTERS = 9;

/** Bytes that a profiler takes: its registers, filled up to whole cache lines. */
export const PROFILER_BYTES = Math.ceil((REGISTERS * 8) / 64) * 64;

/** `since`: two bits of state, one that says whether others may change it, then nanoseconds. */
const STATE_BITS = 3n;
const STATE_MASK = 3n;
const FREE_BIT = 4n;

/** Nanoseconds; the same clock in every thread of a process. */
export type Clock = () => bigint;

/** What one side of a worker did. Sums of profiles are profiles. */
export interface StreamProfile {
  /** Beats of 64 bytes that were handed over. */
  handshakeBeats: number;
  /** Those of them that the stream was starved before, one for each time that it was. */
  starvedBeats: number;
  /** Those that it was stalled before. */
  stalledBeats: number;
  /** Those that it was idle before. */
  idleBeats: number;
  /** Nanoseconds in each state; together the wall time. */
  busyNs: number;
  starvedNs: number;
  stalledNs: number;
  idleNs: number;
}

export function newStreamProfile(): StreamProfile {
  return {
    handshakeBeats: 0,
    starvedBeats: 0,
    stalledBeats: 0,
    idleBeats: 0,
    busyNs: 0,
    starvedNs: 0,
    stalledNs: 0,
    idleNs: 0,
  };
}

/** Adds `taken` to `total`. */
export function addStreamProfile(total: StreamProfile, taken: Readonly<StreamProfile>): void {
  for (const name of Object.keys(total) as (keyof StreamProfile)[]) total[name] += taken[name];
}

/** `now` minus `before`, two totals of the same stream. */
export function streamProfileSince(now: Readonly<StreamProfile>, before: Readonly<StreamProfile>): StreamProfile {
  const difference = newStreamProfile();
  for (const name of Object.keys(difference) as (keyof StreamProfile)[]) difference[name] = now[name] - before[name];
  return difference;
}

/** Nanoseconds in all four states. */
export function wallNs({ busyNs, starvedNs, stalledNs, idleNs }: Readonly<StreamProfile>): number {
  return busyNs + starvedNs + stalledNs + idleNs;
}

/** Share of the time in which it was busy; 0 when no time has passed. */
export function utilisation(profile: Readonly<StreamProfile>): number {
  const wall = wallNs(profile);
  return wall === 0 ? 0 : profile.busyNs / wall;
}

export class StreamProfiler {
  readonly #words: BigInt64Array<SharedArrayBuffer>;
  readonly #at: number;
  readonly #clock: Clock;
  /** The state that the next beat was waited for in. */
  #waited: StreamState = StreamState.BUSY;

  /** The registers are `words` from index `at` on. */
  constructor(words: BigInt64Array<SharedArrayBuffer>, at: number, clock: Clock) {
    this.#words = words;
    this.#at = at;
    this.#clock = clock;
  }

  /** Zeroes the registers: idle from now on, and free for `redirect`. */
  reset(): void {
    const { IDLE } = StreamState;
    for (let k = TIMES; k < REGISTERS; k++) Atomics.store(this.#words, this.#at + k, 0n);
    Atomics.store(this.#words, this.#at + SINCE, sinceWord(this.#clock(), IDLE, true));
  }

  /** The worker: changes its state. `free`: it has nothing of its own to wait for, so that others know why it waits. */
  enter(state: StreamState, free = false): void {
    for (;;) {
      const seen = Atomics.load(this.#words, this.#at + SINCE);
      const old = stateOf(seen);
      if (!this.#move(seen, state, free)) continue;
      if (state === StreamState.BUSY && old !== StreamState.BUSY) this.#waited = old;
      return;
    }
  }

  /** Anyone: changes the state of a worker that is free. */
  redirect(state: StreamState): void {
    for (;;) {
      const seen = Atomics.load(this.#words, this.#at + SINCE);
      if ((seen & FREE_BIT) === 0n || stateOf(seen) === state || this.#move(seen, state, true)) return;
    }
  }

  #move(seen: bigint, state: StreamState, free: boolean): boolean {
    const now = this.#clock(); // after `seen`: never before what it says
    if (Atomics.compareExchange(this.#words, this.#at + SINCE, seen, sinceWord(now, state, free)) !== seen)
      return false;
    Atomics.add(this.#words, this.#at + TIMES + stateOf(seen), now - (seen >> STATE_BITS));
    return true;
  }

  /** The worker: `beats` were handed over. */
  handOver(beats: number): void {
    if (beats === 0) return;
    Atomics.add(this.#words, this.#at + BEATS, BigInt(beats));
    if (this.#waited === StreamState.BUSY) return;
    Atomics.add(this.#words, this.#at + BEATS + this.#waited, 1n);
    this.#waited = StreamState.BUSY;
  }
}

/**
 * Takes what the registers at `words[at]` have counted since they were last taken, time up to now included, and leaves
 * zeroes: what was taken is counted nowhere else, so that whoever reads adds it up.
 */
export function takeStreamProfile(words: BigInt64Array<SharedArrayBuffer>, at: number, clock: Clock): StreamProfile {
  const times = [0n, 0n, 0n, 0n];
  for (;;) {
    const seen = Atomics.load(words, at + SINCE);
    const now = clock();
    const moved = (now << STATE_BITS) | (seen & (STATE_MASK | FREE_BIT));
    if (Atomics.compareExchange(words, at + SINCE, seen, moved) !== seen) continue;
    times[stateOf(seen)] = now - (seen >> STATE_BITS);
    break;
  }
  const take = (register: number): bigint => Atomics.exchange(words, at + register, 0n);
  const ns = (state: StreamState): number => Number(times[state]! + take(TIMES + state));
  const beats = (state: StreamState): number => Number(take(BEATS + state));
  const { BUSY, STARVED, STALLED, IDLE } = StreamState;
  return {
    handshakeBeats: beats(BUSY),
    starvedBeats: beats(STARVED),
    stalledBeats: beats(STALLED),
    idleBeats: beats(IDLE),
    busyNs: ns(BUSY),
    starvedNs: ns(STARVED),
    stalledNs: ns(STALLED),
    idleNs: ns(IDLE),
  };
}

function sinceWord(now: bigint, state: StreamState, free: boolean): bigint {
  return (now << STATE_BITS) | (free ? FREE_BIT : 0n) | BigInt(state);
}

function stateOf(word: bigint): StreamState {
  return Number(word & STATE_MASK) as StreamState;
}
