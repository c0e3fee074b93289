/** Bounds how many reads of one source are under way; the others wait in the order they came, and can be cancelled. */
import PQueue from 'p-queue';
import { FetchError } from '../errors.ts';
import { passFind } from './find-file.ts';
import { newTransportActivity, type Transport, type TransportActivity } from './transport.ts';

/** Wraps a transport so that at most `concurrency` reads are under way; `activity` tells how many are. */
export function withLimit(
  inner: Transport,
  concurrency: number,
  activity: TransportActivity = newTransportActivity(),
): Transport {
  const queue = new PQueue({ concurrency });
  let closed = false;
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
          try {
            await inner.read(file, start, into, options);
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
