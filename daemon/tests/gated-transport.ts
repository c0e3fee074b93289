/**
 * A transport over another one for tests: bytes arrive in small steps, and a gate may hold them back. It keeps the
 * contract of `Transport`: exact bytes, in order, and a cancelled read rejects.
 */
import { setImmediate } from 'node:timers/promises';
import { FetchError, type FileVersion, type ReadOptions, type Transport } from '../../fetcher/index.ts';

export class GatedTransport implements Transport {
  readonly inner: Transport;
  /** Bytes of a step. */
  readonly stepBytes: number;
  /** May file bytes up to `offset` arrive? Asked before each step, again every turn until it says yes. */
  gate: (file: FileVersion, offset: number) => boolean = () => true;
  /** Reads under way. */
  active = 0;
  cancelled = 0;

  constructor(inner: Transport, stepBytes = 1 << 16) {
    this.inner = inner;
    this.stepBytes = stepBytes;
  }

  list(prefix: string): Promise<readonly FileVersion[]> {
    return this.inner.list(prefix);
  }

  async read(file: FileVersion, start: number, into: Uint8Array, options: ReadOptions = {}): Promise<void> {
    this.active++;
    try {
      for (let at = 0; at < into.length; ) {
        const end = Math.min(into.length, at + this.stepBytes);
        while (!this.gate(file, start + end)) await this.#turn(options);
        await this.#turn(options);
        await this.inner.read(file, start + at, into.subarray(at, end));
        at = end;
        options.onArrived?.(at);
      }
    } finally {
      this.active--;
    }
  }

  async #turn(options: ReadOptions): Promise<void> {
    await setImmediate();
    if (!options.signal?.aborted) return;
    this.cancelled++;
    throw new FetchError('CANCELLED', 'the read was cancelled');
  }

  close(): Promise<void> {
    return this.inner.close();
  }
}
