/**
 * Tries again what failed with a retryable error: after a random part of a growing wait (full jitter), resuming behind
 * the bytes that have arrived, with the same version of the file. Attempts count since the last progress; over all reads
 * of a source a budget bounds them, and reads that succeed refill it, so that a source that is down is not stormed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { FetchError } from '../errors.ts';
import { RETRY_ATTEMPTS, RETRY_BASE_MS, RETRY_BUDGET, RETRY_CAP_MS } from './limits.ts';
import type { FileVersion, ReadOptions, Transport, TransportCounters } from './transport.ts';

export interface RetryPolicy {
  /** Attempts without progress in between, the first one included. */
  readonly attempts: number;
  readonly baseMs: number;
  readonly capMs: number;
  /** Retries in a row over all reads. */
  readonly budget: number;
  /** A number in [0, 1): tests make it predictable. */
  readonly random: () => number;
}

const DEFAULT_POLICY: RetryPolicy = {
  attempts: RETRY_ATTEMPTS,
  baseMs: RETRY_BASE_MS,
  capMs: RETRY_CAP_MS,
  budget: RETRY_BUDGET,
  random: Math.random,
};

/** Wraps a transport so that retryable failures are tried again. */
export function withRetry(inner: Transport, counters: TransportCounters, policy: Partial<RetryPolicy> = {}): Transport {
  const rules = { ...DEFAULT_POLICY, ...policy };
  let tokens = rules.budget;
  let closed = false;

  /** Waits before attempt number `failures` + 1, or throws the error if there is to be none. */
  async function backOff(error: unknown, failures: number, signal: AbortSignal | undefined): Promise<void> {
    if (!(error instanceof FetchError) || !error.retryable || closed) throw error;
    if (failures >= rules.attempts || tokens < 1) {
      const why = failures >= rules.attempts ? `gave up after ${failures} attempts` : 'the retry budget is used up';
      throw new FetchError(error.code, `${error.reason} (${why})`, { cause: error });
    }
    tokens--;
    counters.retries++;
    const waitMs = rules.random() * Math.min(rules.capMs, rules.baseMs * 2 ** (failures - 1));
    try {
      await sleep(waitMs, undefined, signal === undefined ? {} : { signal });
    } catch {
      throw new FetchError('CANCELLED', 'cancelled while waiting to try again', { cause: error });
    }
    if (closed) throw new FetchError('CLOSED', 'the transport is closed');
  }

  async function read(file: FileVersion, start: number, into: Uint8Array, options: ReadOptions = {}): Promise<void> {
    let arrived = 0;
    let failures = 0;
    for (;;) {
      // All bytes may have come without the word that they are good: the last one is read again for it.
      const from = Math.min(arrived, Math.max(0, into.byteLength - 1));
      let twice = arrived - from;
      const before = arrived;
      try {
        await inner.read(file, start + from, into.subarray(from), {
          ...(options.signal === undefined ? {} : { signal: options.signal }),
          onArrived: (bytes) => {
            counters.bytesDiscarded += twice;
            twice = 0;
            if (from + bytes <= arrived) return;
            arrived = from + bytes;
            options.onArrived?.(arrived);
          },
        });
        tokens = Math.min(rules.budget, tokens + 1);
        return;
      } catch (error) {
        failures = arrived > before ? 1 : failures + 1;
        await backOff(error, failures, options.signal);
      }
    }
  }

  return {
    async list(prefix) {
      for (let failures = 1; ; failures++) {
        try {
          return await inner.list(prefix);
        } catch (error) {
          await backOff(error, failures, undefined);
        }
      }
    },
    read,
    close() {
      closed = true;
      return inner.close();
    },
  };
}
