/**
 * A decoder's registers: a FIFO of the flows that are to run, a counter of the slots that are taken, and the bell that
 * the decoder sleeps on. The scheduler pushes, the decoder pops; a slot is taken from the push until the flow's run is
 * over, so that the FIFO never holds more than it has room for. Numbers only: what a flow is travels as a message,
 * which is posted before the flow is pushed and so is there when it is popped.
 */
import type { Pool } from '../../decode/index.ts';
import { type Bounds, DECODER_REGISTERS_BYTES } from './control-block.ts';

/** Words from the decoder's start. The first line is written by the scheduler, the second by the decoder too. */
const TAIL = 0;
const BELL = 1;
const HEAD = 16;
const OCCUPANCY = 17;

export class DecoderQueue {
  readonly slots: number;
  readonly #i32: Int32Array<SharedArrayBuffer>;
  readonly #at: number;
  readonly #fifo: number;

  constructor(pool: Pool, { start, end }: Bounds) {
    this.#i32 = pool.i32;
    this.#at = start >>> 2;
    this.#fifo = (start + DECODER_REGISTERS_BYTES) >>> 2;
    this.slots = (end - start - DECODER_REGISTERS_BYTES) / 4;
  }

  /** Slots that are taken. */
  get occupancy(): number {
    return Atomics.load(this.#i32, this.#at + OCCUPANCY);
  }

  /** Scheduler: `flow` is to run. False when no slot is free. */
  push(flow: number): boolean {
    if (this.occupancy >= this.slots) return false;
    Atomics.add(this.#i32, this.#at + OCCUPANCY, 1);
    const tail = Atomics.load(this.#i32, this.#at + TAIL);
    Atomics.store(this.#i32, this.#fifo + (tail & (this.slots - 1)), flow | 0);
    Atomics.store(this.#i32, this.#at + TAIL, (tail + 1) | 0);
    return true;
  }

  /** Scheduler: wakes the decoder. */
  ring(): void {
    Atomics.add(this.#i32, this.#at + BELL, 1);
    Atomics.notify(this.#i32, this.#at + BELL);
  }

  /** Decoder: the bell's count, to be handed to `sleep` after looking for work. */
  get bell(): number {
    return Atomics.load(this.#i32, this.#at + BELL);
  }

  /** Decoder: sleeps until the bell is rung, or has been since it was `bell`. */
  sleep(bell: number): void {
    Atomics.wait(this.#i32, this.#at + BELL, bell);
  }

  /** Decoder: where the FIFO ends now. */
  get tail(): number {
    return Atomics.load(this.#i32, this.#at + TAIL);
  }

  /** Decoder: the next flow before `tail`; undefined when there is none. */
  pop(tail: number): number | undefined {
    const head = Atomics.load(this.#i32, this.#at + HEAD);
    if (head === tail) return undefined;
    const flow = Atomics.load(this.#i32, this.#fifo + (head & (this.slots - 1))) >>> 0;
    Atomics.store(this.#i32, this.#at + HEAD, (head + 1) | 0);
    return flow;
  }

  /** Decoder: the run of a popped flow is over. */
  free(): void {
    Atomics.sub(this.#i32, this.#at + OCCUPANCY, 1);
  }
}
