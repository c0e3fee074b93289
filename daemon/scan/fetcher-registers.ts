/**
 * The fetcher's registers: what it has promised the decoders, and the marks. A mark is a word for each open flow: how
 * many 64-byte lines of its chunk have arrived. The counters say why a decoder that has no flow has none: because the
 * first bytes of a chunk are still on their way (starved), because scans have row groups left that nobody has made
 * room for (stalled), or because nothing is asked for (idle). The fetch side writes them, decoders read them.
 */
import type { Pool } from '../../decode/index.ts';
import { StreamState } from '../../metrics/index.ts';
import { type Bounds, FETCHER_REGISTERS_BYTES } from './control-block.ts';

/** Words from the fetcher's start. */
const AWAITED = 0;
const HELD = 1;
const REASON = 2;

export class FetcherRegisters {
  /** Index (of u32 words) of the first mark. */
  readonly firstMark: number;
  readonly marks: number;
  readonly #i32: Int32Array<SharedArrayBuffer>;
  readonly #at: number;

  constructor(pool: Pool, { start, end }: Bounds) {
    this.#i32 = pool.i32;
    this.#at = start >>> 2;
    this.firstMark = (start + FETCHER_REGISTERS_BYTES) >>> 2;
    this.marks = (end - start - FETCHER_REGISTERS_BYTES) >>> 2;
  }

  /** Fetch side: nobody has made room for anything, nothing is awaited. */
  reset(): void {
    Atomics.store(this.#i32, this.#at + REASON, StreamState.IDLE);
  }

  /** Why a decoder that has no flow has none. */
  get reason(): StreamState {
    return Atomics.load(this.#i32, this.#at + REASON) as StreamState;
  }

  /** Fetch side: so many more (or fewer) chunks and row groups are on their way. True when that changed the reason. */
  await(change: number): boolean {
    Atomics.add(this.#i32, this.#at + AWAITED, change);
    return this.#settle();
  }

  /** Fetch side: so many more (or fewer) scans have row groups left that wait for their consumer. The same. */
  hold(change: number): boolean {
    Atomics.add(this.#i32, this.#at + HELD, change);
    return this.#settle();
  }

  #settle(): boolean {
    const awaited = Atomics.load(this.#i32, this.#at + AWAITED) > 0;
    const held = Atomics.load(this.#i32, this.#at + HELD) > 0;
    const reason = awaited ? StreamState.STARVED : held ? StreamState.STALLED : StreamState.IDLE;
    return Atomics.exchange(this.#i32, this.#at + REASON, reason) !== reason;
  }
}
