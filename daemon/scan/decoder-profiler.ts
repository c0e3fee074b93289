/**
 * The profilers of one decoder, on its input and on its output. The thread that drives the decoder says what it does;
 * the clock is here, since decode has none. At each of the two sides a decoder that sleeps is
 *
 *            some flow waits for input    else some waits for room    no flow is on it
 *   input    starved                      stalled                     as the fetcher says: starved, stalled or idle
 *   output   stalled when any flow        starved otherwise           the same
 *            waits for room
 *
 * A flow waits for input when it was asked for its next segment and has used up the lines that arrived. It waits for
 * room when it is not asked, since nobody took the segments it has made, or when the pool had no slab for it.
 */
import type { Pool } from '../../decode/index.ts';
import { StreamProfiler, StreamState } from '../../metrics/index.ts';
import type { Bounds, DecoderBounds } from './control-block.ts';
import type { FetcherRegisters } from './fetcher-registers.ts';

/** Nanoseconds since the machine started: the same in every thread. */
export const clock = (): bigint => process.hrtime.bigint();

export class DecoderProfiler {
  readonly #input: StreamProfiler | undefined;
  readonly #output: StreamProfiler | undefined;
  readonly #fetcher: FetcherRegisters;

  /** Profilers that the control block does not have are passed over. */
  constructor(words: BigInt64Array<SharedArrayBuffer>, { input, output }: DecoderBounds, fetcher: FetcherRegisters) {
    const open = (bounds: Bounds | undefined): StreamProfiler | undefined =>
      bounds === undefined ? undefined : new StreamProfiler(words, bounds.start >>> 3, clock);
    this.#input = open(input);
    this.#output = open(output);
    this.#fetcher = fetcher;
  }

  get isThere(): boolean {
    return this.#input !== undefined || this.#output !== undefined;
  }

  /** Before the thread is started: idle. */
  reset(): void {
    this.#input?.reset();
    this.#output?.reset();
  }

  /** The thread is awake. */
  work(): void {
    this.#input?.enter(StreamState.BUSY);
    this.#output?.enter(StreamState.BUSY);
  }

  /** The thread goes to sleep; `forInput` flows wait for input, `forRoom` for room. */
  rest(forInput: number, forRoom: number): void {
    if (!this.isThere) return;
    if (forInput > 0 || forRoom > 0) {
      this.#input?.enter(forInput > 0 ? StreamState.STARVED : StreamState.STALLED);
      this.#output?.enter(forRoom > 0 ? StreamState.STALLED : StreamState.STARVED);
      return;
    }
    for (let reason = this.#fetcher.reason; ; ) {
      this.#input?.enter(reason, true);
      this.#output?.enter(reason, true);
      // the fetch side sets the reason, then looks for decoders that are free: one of the two sees the other
      const again = this.#fetcher.reason;
      if (again === reason) return;
      reason = again;
    }
  }

  /** Lines that were taken in and put out. */
  handOver(input: number, output: number): void {
    this.#input?.handOver(input);
    this.#output?.handOver(output);
  }

  /** The fetch side: why decoders without a flow have none has changed. */
  redirect(reason: StreamState): void {
    this.#input?.redirect(reason);
    this.#output?.redirect(reason);
  }
}

/** The pool's memory as 64-bit registers. */
export function registerWords(pool: Pool): BigInt64Array<SharedArrayBuffer> {
  return new BigInt64Array(pool.u8.buffer);
}
