/**
 * Ends reads that make no progress: a timer on arriving bytes, not on the whole transfer, so that slow is not stalled.
 * Progress is that of the source: reads that wait behind others on the same connection do not stall while those move.
 */
import { FetchError } from '../errors.ts';
import { passFind } from './find-file.ts';
import type { FileVersion, ReadOptions, Transport } from './transport.ts';

interface Watched {
  readonly controller: AbortController;
  sinceMs: number;
}

/** Wraps a transport so that a read fails with STALLED, retryable, after `stallMs` without progress of the source. */
export function withStallTimer(inner: Transport, stallMs: number): Transport {
  const watched = new Set<Watched>();
  let progressMs = 0;
  let timer: NodeJS.Timeout | undefined;

  /** One timer for all reads, and none while there is no read. */
  function check(): void {
    const nowMs = performance.now();
    let dueMs = Number.POSITIVE_INFINITY;
    for (const read of watched) {
      const quietMs = nowMs - Math.max(read.sinceMs, progressMs);
      if (quietMs >= stallMs) read.controller.abort();
      else dueMs = Math.min(dueMs, stallMs - quietMs);
    }
    timer = Number.isFinite(dueMs) ? setTimeout(check, Math.ceil(dueMs)) : undefined;
  }

  return {
    list: (prefix) => inner.list(prefix),
    ...passFind(inner),
    async read(file: FileVersion, start: number, into: Uint8Array, options: ReadOptions = {}): Promise<void> {
      const controller = new AbortController();
      const entry = { controller, sinceMs: performance.now() };
      const cancel = (): void => controller.abort();
      if (options.signal?.aborted) cancel();
      options.signal?.addEventListener('abort', cancel, { once: true });
      watched.add(entry);
      timer ??= setTimeout(check, stallMs);
      try {
        await inner.read(file, start, into, {
          signal: controller.signal,
          onArrived: (bytes) => {
            progressMs = performance.now();
            options.onArrived?.(bytes);
          },
        });
      } catch (error) {
        const stalled = controller.signal.aborted && options.signal?.aborted !== true;
        if (!stalled || !(error instanceof FetchError) || error.code !== 'CANCELLED') throw error;
        throw new FetchError('STALLED', `${file.path}: no bytes for ${stallMs} ms`, { retryable: true, cause: error });
      } finally {
        options.signal?.removeEventListener('abort', cancel);
        watched.delete(entry);
        if (watched.size === 0) {
          clearTimeout(timer);
          timer = undefined;
        }
      }
    },
    close: () => inner.close(),
  };
}
