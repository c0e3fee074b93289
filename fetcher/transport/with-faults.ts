/**
 * Makes a transport fail, for tests: seeded, so that a run can be repeated. A fault hits a read before its first byte or
 * behind some of its bytes, and looks like what happens to real sources: connection lost, stalled, source busy.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { FetchError } from '../errors.ts';
import { passFind } from './find-file.ts';
import type { FileVersion, ReadOptions, Transport } from './transport.ts';

export interface FaultPlan {
  readonly seed: number;
  /** Part of the reads that fail, from 0 to 1. */
  readonly rate: number;
  /** Part of the reads that are late by up to `delayMs`. */
  readonly delayRate?: number;
  readonly delayMs?: number;
}

/** Wraps a transport so that reads fail or are late as `plan` says; what fails is retryable. */
export function withFaults(inner: Transport, plan: FaultPlan): Transport {
  let state = plan.seed >>> 0;
  const random = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    list: (prefix) => inner.list(prefix),
    ...passFind(inner),
    async read(file: FileVersion, start: number, into: Uint8Array, options: ReadOptions = {}): Promise<void> {
      // Drawn in one go, so that the faults do not depend on how reads interleave after this.
      const [fails, late, part, wait] = [random(), random(), random(), random()];
      if (late < (plan.delayRate ?? 0)) await sleep(wait * (plan.delayMs ?? 1));
      if (fails >= plan.rate) return inner.read(file, start, into, options);
      const bytes = Math.floor(part * (into.byteLength + 1));
      if (bytes > 0) await inner.read(file, start, into.subarray(0, bytes), options);
      throw new FetchError('LOST', `${file.path}: injected fault after ${bytes} bytes`, { retryable: true });
    },
    close: () => inner.close(),
  };
}
