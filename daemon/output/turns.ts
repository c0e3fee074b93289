/**
 * Turns of the event loop between pieces of synchronous work: sockets, decoders' messages and the metrics endpoint are
 * served by the same thread that makes texts of rows, and should not wait for a whole batch.
 */
import { setImmediate } from 'node:timers/promises';
import { WORK_SLICE_MS } from './limits.ts';

export class Turns {
  #since = performance.now();

  /** Lets others have a turn if the last one was long enough ago. */
  async give(): Promise<void> {
    if (performance.now() - this.#since < WORK_SLICE_MS) return;
    await setImmediate();
    this.#since = performance.now();
  }
}
