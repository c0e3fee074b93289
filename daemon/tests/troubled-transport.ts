/** A source that a test makes slow, silent or lost while it is read, seeded, and what it did. */
import { setTimeout as sleep } from 'node:timers/promises';
import { FetchError, type FileVersion, type ReadOptions, type Transport } from '../../fetcher/index.ts';
import type { SeededRandom } from '../../vfs/tests/seeded-random.ts';

export type Weather =
  | 'fair' // as fast as it can
  | 'slow' // reads are late and come in pieces
  | 'silent' // nothing comes, whoever waits
  | 'lost' // connections break, also in the middle of reads
  | 'away'; // connections are refused

export class TroubledTransport implements Transport {
  weather: Weather = 'fair';
  readonly #inner: Transport;
  readonly #random: SeededRandom;

  constructor(inner: Transport, random: SeededRandom) {
    this.#inner = inner;
    this.#random = random;
  }

  list(prefix: string): Promise<readonly FileVersion[]> {
    return this.#inner.list(prefix);
  }

  async read(file: FileVersion, start: number, into: Uint8Array, options: ReadOptions = {}): Promise<void> {
    // drawn in one go: how reads interleave does not change them
    const [wait, part] = [this.#random.below(12), this.#random.below(1000) / 1000];
    const { weather } = this;
    if (weather === 'slow') {
      await sleep(wait);
      const bytes = Math.floor(part * into.byteLength);
      if (bytes > 0) await this.#inner.read(file, start, into.subarray(0, bytes), options);
      await sleep(wait / 2);
      return this.#inner.read(file, start + bytes, into.subarray(bytes), {
        ...options,
        onArrived: (arrived) => options.onArrived?.(bytes + arrived),
      });
    }
    if (weather === 'silent') await silence(options.signal);
    if (weather === 'away') throw new FetchError('REFUSED', 'the source refuses connections', { retryable: true });
    if (weather === 'lost') {
      const bytes = Math.floor(part * into.byteLength);
      if (bytes > 0) await this.#inner.read(file, start, into.subarray(0, bytes), options);
      throw new FetchError('LOST', 'the connection broke', { retryable: true });
    }
    return this.#inner.read(file, start, into, options);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

/** Ends with the signal alone. */
function silence(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    const cancelled = (): void => reject(new FetchError('CANCELLED', 'the read was cancelled'));
    if (signal?.aborted) cancelled();
    else signal?.addEventListener('abort', cancelled, { once: true });
  });
}
