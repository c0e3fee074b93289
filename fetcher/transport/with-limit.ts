/** Bounds how many reads of one source are under way; the others wait in the order they came, and can be cancelled. */
import PQueue from 'p-queue';
import { FetchError } from '../errors.ts';
import type { Transport } from './transport.ts';

/** Wraps a transport so that at most `concurrency` reads are under way. */
export function withLimit(inner: Transport, concurrency: number): Transport {
  const queue = new PQueue({ concurrency });
  let closed = false;
  return {
    list: (prefix) => inner.list(prefix),
    read(file, start, into, options = {}) {
      const { signal } = options;
      // The queue's own signal is no use: it would reject while the read still writes to its destination.
      return new Promise<void>((resolve, reject) => {
        let waiting = true;
        const cancel = (): void => {
          if (waiting) reject(new FetchError('CANCELLED', `${file.path}: cancelled before it began`));
          waiting = false;
        };
        signal?.addEventListener('abort', cancel, { once: true });
        const begin = async (): Promise<void> => {
          signal?.removeEventListener('abort', cancel);
          if (!waiting) return;
          waiting = false;
          if (closed) throw new FetchError('CLOSED', 'the transport is closed');
          await inner.read(file, start, into, options);
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
