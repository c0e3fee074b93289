/**
 * Tries again what failed with a retryable error: after a random part of a growing wait (full jitter), resuming behind
 * the bytes that have arrived, with the same version of the file. Attempts count since the last progress. A source that
 * is away may be restarting: it is tried for `patienceMs` however many attempts that takes, by all reads together. One that
 * says that it is busy is tried for as long, and not before the time that it asks for.
 * What is wrong with nobody, because the source only has another generation, is tried again at once.
 * Over all reads of a source a budget bounds the retries, and reads that succeed refill it: a source that is down is not
 * stormed.
 */
import { FetchError } from '../errors.ts';
import type { Tell } from './events.ts';
import {
  IMMEDIATE_RETRIES_MAX,
  PROGRESS_BYTES_MIN,
  RETRY_AFTER_MAX_MS,
  RETRY_ATTEMPTS,
  RETRY_BASE_MS,
  RETRY_BUDGET,
  RETRY_CAP_MS,
  STALL_MS,
} from './limits.ts';
import type { FileVersion, FindOptions, ReadOptions, Transport, TransportCounters } from './transport.ts';

export interface RetryPolicy {
  /** Attempts without progress in between, the first one included. */
  readonly attempts: number;
  readonly baseMs: number;
  readonly capMs: number;
  /** Time for which a source that refuses or loses its connections is tried; 0 when only `attempts` are given. */
  readonly patienceMs: number;
  /** Retries in a row over all reads. */
  readonly budget: number;
  /** Bytes of a read between two failures that count as progress, where not all that was missing came. */
  readonly progressBytes: number;
  /** A number in [0, 1): tests make it predictable. */
  readonly random: () => number;
  /** Told of every failure that is tried again. */
  readonly onRetry: (error: FetchError) => void;
}

const DEFAULT_POLICY: RetryPolicy = {
  attempts: RETRY_ATTEMPTS,
  baseMs: RETRY_BASE_MS,
  capMs: RETRY_CAP_MS,
  patienceMs: STALL_MS,
  budget: RETRY_BUDGET,
  progressBytes: PROGRESS_BYTES_MIN,
  random: Math.random,
  onRetry: () => {},
};

/** Failures of one read, or of one listing, since it last made progress. */
interface Failures {
  count: number;
  /** Those that needed no waiting. */
  immediate: number;
  sinceMs: number;
}

/** Wraps a transport so that retryable failures are tried again. */
export function withRetry(
  inner: Transport,
  counters: TransportCounters,
  policy: Partial<RetryPolicy> = {},
  tell: Tell = () => {},
): Transport {
  const rules = { ...DEFAULT_POLICY, ...(policy.attempts === undefined ? {} : { patienceMs: 0 }), ...policy };
  const closing = new AbortController();
  let tokens = rules.budget;
  /** The source can't be reached: who finds that out waits with the others, for one attempt of all. */
  let away: { rounds: number; waiting: Promise<void> | undefined } | undefined;

  /** Waits before the next attempt, or throws the error if there is to be none. */
  async function backOff(error: unknown, failures: Failures, signal: AbortSignal | undefined): Promise<void> {
    if (!(error instanceof FetchError)) throw error;
    const { code } = error;
    if (code !== 'CANCELLED' && code !== 'CLOSED') counters.failures.set(code, (counters.failures.get(code) ?? 0) + 1);
    if (!error.retryable || closing.signal.aborted) throw error;
    if (error.immediate && ++failures.immediate <= IMMEDIATE_RETRIES_MAX) {
      again(error, failures.immediate);
      return;
    }
    if (++failures.count === 1) failures.sinceMs = performance.now();
    const patient = error.code === 'REFUSED' || error.code === 'LOST' || error.busyMs !== undefined;
    const leftMs = patient ? failures.sinceMs + rules.patienceMs - performance.now() : 0;
    if (failures.count >= rules.attempts && leftMs <= 0) {
      const seconds = ((performance.now() - failures.sinceMs) / 1000).toFixed(1);
      throw given(error, `gave up after ${failures.count} attempts in ${seconds} s`);
    }
    const joins = error.code === 'REFUSED' && away?.waiting !== undefined;
    if (!joins && tokens < 1) {
      counters.retriesDenied++;
      tell({ kind: 'retry-denied', code, reason: error.reason });
      throw given(error, 'the retry budget is used up');
    }
    if (!joins) tokens--;
    again(error, failures.count);
    // the last attempt of those that patience allows is made at its end
    const mostMs = failures.count >= rules.attempts ? leftMs : Number.POSITIVE_INFINITY;
    if (error.code === 'REFUSED') await waitTogether(mostMs, signal);
    else await wait(Math.min(mostMs, jitter(failures.count) + Math.min(error.busyMs ?? 0, RETRY_AFTER_MAX_MS)), signal);
    if (signal?.aborted) throw new FetchError('CANCELLED', 'cancelled while waiting to try again', { cause: error });
    if (closing.signal.aborted) throw new FetchError('CLOSED', 'the transport is closed');
  }

  function again(error: FetchError, attempt: number): void {
    counters.retries++;
    rules.onRetry(error);
    tell({ kind: 'retry', code: error.code, reason: error.reason, attempt });
  }

  function jitter(failures: number): number {
    return rules.random() * Math.min(rules.capMs, rules.baseMs * 2 ** (failures - 1));
  }

  async function waitTogether(mostMs: number, signal: AbortSignal | undefined): Promise<void> {
    away ??= { rounds: 0, waiting: undefined };
    const { waiting } = away;
    if (waiting !== undefined) return ended(waiting, signal);
    const round = away;
    round.rounds++;
    round.waiting = wait(Math.min(mostMs, jitter(round.rounds)), undefined).finally(() => {
      round.waiting = undefined;
    });
    return ended(round.waiting, signal);
  }

  /** Resolves after a time, on the signal or when the transport is closed. */
  function wait(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const time = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, milliseconds);
    });
    return ended(ended(time, closing.signal), signal).finally(() => clearTimeout(timer));
  }

  async function read(file: FileVersion, start: number, into: Uint8Array, options: ReadOptions = {}): Promise<void> {
    let arrived = 0;
    let isRetry = false;
    const failures: Failures = { count: 0, immediate: 0, sinceMs: 0 };
    for (;;) {
      // All bytes may have come without the word that they are good: the last one is read again for it.
      const from = Math.min(arrived, Math.max(0, into.byteLength - 1));
      let twice = arrived - from;
      const before = arrived;
      if (isRetry && from > 0) {
        counters.resumes++;
        tell({ kind: 'resume', path: file.path, behindBytes: from });
      }
      isRetry = true;
      try {
        await inner.read(file, start + from, into.subarray(from), {
          ...(options.signal === undefined ? {} : { signal: options.signal }),
          onArrived: (bytes) => {
            counters.bytesDiscarded += twice;
            twice = 0;
            if (from + bytes <= arrived) return;
            arrived = from + bytes;
            away = undefined;
            options.onArrived?.(arrived);
          },
        });
        tokens = Math.min(rules.budget, tokens + 1);
        away = undefined;
        return;
      } catch (error) {
        const progress = Math.min(rules.progressBytes, into.byteLength - before);
        if (arrived > before && arrived - before >= progress) failures.count = failures.immediate = 0;
        await backOff(error, failures, options.signal);
      }
    }
  }

  async function look<T>(act: () => Promise<T>): Promise<T> {
    const failures: Failures = { count: 0, immediate: 0, sinceMs: 0 };
    for (;;) {
      try {
        const found = await act();
        away = undefined;
        return found;
      } catch (error) {
        await backOff(error, failures, undefined);
      }
    }
  }

  return {
    list: (prefix) => look(() => inner.list(prefix)),
    ...(inner.find === undefined
      ? {}
      : { find: (path: string, options?: FindOptions) => look(async () => inner.find!(path, options)) }),
    read,
    close() {
      closing.abort();
      return inner.close();
    },
  };
}

function given(error: FetchError, why: string): FetchError {
  return new FetchError(error.code, `${error.reason} (${why})`, { cause: error });
}

/** Resolves when the promise does or the signal comes. */
function ended(promise: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal === undefined) return promise;
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve();
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
