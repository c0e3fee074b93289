/**
 * Bounds how many reads of one source are under way; the others wait in the order they came, and can be cancelled. How many
 * that are follows from how reads go (concurrency.ts).
 */
import PQueue from 'p-queue';
import { FetchError } from '../errors.ts';
import type { ConcurrencyControl, ReadOutcome } from './concurrency.ts';
import { passFind } from './find-file.ts';
import { newTransportActivity, type Transport, type TransportActivity } from './transport.ts';

/** Wraps a transport so that no more reads are under way than `control` lets; `activity` tells how many are. */
export function withLimit(
  inner: Transport,
  control: ConcurrencyControl,
  activity: TransportActivity = newTransportActivity(),
): Transport {
  const queue = new PQueue({ concurrency: control.limit });
  activity.concurrency = control.limit;
  let closed = false;

  function learn(era: number, how: ReadOutcome['how'], latencyMs: number | undefined): void {
    control.ended(era, { how, latencyMs, othersWait: activity.readsWaiting > 0 });
    if (queue.concurrency === control.limit) return;
    activity.concurrency = control.limit;
    queue.concurrency = control.limit;
  }

  return {
    list: (prefix) => inner.list(prefix),
    ...passFind(inner),
    read(file, start, into, options = {}) {
      const { signal } = options;
      // The queue's own signal is no use: it would reject while the read still writes to its destination.
      return new Promise<void>((resolve, reject) => {
        let waiting = true;
        activity.readsWaiting++;
        const cancel = (): void => {
          if (!waiting) return;
          waiting = false;
          activity.readsWaiting--;
          reject(new FetchError('CANCELLED', `${file.path}: cancelled before it began`));
        };
        signal?.addEventListener('abort', cancel, { once: true });
        const begin = async (): Promise<void> => {
          signal?.removeEventListener('abort', cancel);
          if (!waiting) return;
          waiting = false;
          activity.readsWaiting--;
          if (closed) throw new FetchError('CLOSED', 'the transport is closed');
          activity.readsActive++;
          const era = control.began();
          const beganMs = performance.now();
          let latencyMs: number | undefined;
          try {
            await inner.read(file, start, into, {
              ...options,
              onArrived: (bytes) => {
                latencyMs ??= performance.now() - beganMs;
                options.onArrived?.(bytes);
              },
            });
            learn(era, 'good', latencyMs);
          } catch (error) {
            learn(era, howItFailed(error), latencyMs);
            throw error;
          } finally {
            activity.readsActive--;
          }
        };
        queue.add(begin).then(resolve, reject);
      });
    },
    close() {
      closed = true;
      return inner.close();
    },
  };
}

function howItFailed(error: unknown): ReadOutcome['how'] {
  if (!(error instanceof FetchError)) return 'other';
  if (error.busyMs !== undefined) return 'busy';
  return error.code === 'STALLED' ? 'stalled' : 'other';
}
