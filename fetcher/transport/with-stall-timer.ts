/**
 * Ends reads that make no progress: a timer on arriving bytes, not on the whole transfer, so that slow is not stalled. How
 * long it waits follows from what reads of the source take (progress-limit.ts). A source that drips makes no progress
 * either: in each stretch of the cap some bytes have to come. Where reads share a connection, progress is that of the
 * source: reads that wait behind others do not stall while those move.
 */
import { FetchError } from '../errors.ts';
import type { Tell } from './events.ts';
import { passFind } from './find-file.ts';
import { LATE_TIMER_MS, PACE_BYTES_PER_SECOND } from './limits.ts';
import type { ProgressLimit } from './progress-limit.ts';
import type { FileVersion, ReadOptions, Transport } from './transport.ts';

export interface StallRules {
  readonly limit: ProgressLimit;
  /** Reads go over connections of their own: the progress of others says nothing of theirs. */
  readonly isApart: boolean;
  /** Bytes per second below which a source drips; 0 for none. */
  readonly paceBytesPerSecond?: number;
  readonly tell?: Tell;
}

/** What moves, or does not: a read, or all reads of a source. */
interface Motion {
  /** When bytes came last. */
  progressMs: number;
  /** Bytes since a moment, for the pace. */
  paceSinceMs: number;
  paceBytes: number;
}

interface Watched {
  readonly controller: AbortController;
  readonly motion: Motion;
  readonly sinceMs: number;
  /** Why it was ended. */
  stalled: string | undefined;
}

/** Wraps a transport so that a read without progress fails with STALLED, retryable. */
export function withStallTimer(inner: Transport, rules: StallRules): Transport {
  const { limit, isApart, paceBytesPerSecond = PACE_BYTES_PER_SECOND, tell } = rules;
  const watched = new Set<Watched>();
  const ofSource: Motion = { progressMs: 0, paceSinceMs: 0, paceBytes: 0 };
  let timer: NodeJS.Timeout | undefined;
  let dueMs = 0;
  let isGrace = false;

  function arm(milliseconds: number): void {
    clearTimeout(timer);
    dueMs = performance.now() + milliseconds;
    timer = setTimeout(check, Math.ceil(milliseconds));
  }

  /** One timer for all reads, and none while there is no read. */
  function check(): void {
    // a process that was kept from running has not looked at its sockets: what they have comes first
    const nowMs = performance.now();
    isGrace = !isGrace && nowMs - dueMs > LATE_TIMER_MS;
    if (isGrace) {
      arm(LATE_TIMER_MS);
      return;
    }
    const limitMs = limit.milliseconds;
    let waitMs = Number.POSITIVE_INFINITY;
    for (const read of watched) {
      if (read.stalled !== undefined) continue;
      const quietMs = nowMs - Math.max(read.sinceMs, read.motion.progressMs);
      if (quietMs >= limitMs) end(read, `no bytes for ${Math.round(limitMs)} ms`);
      else if (drips(read, nowMs)) end(read, `fewer than ${paceBytesPerSecond} bytes a second`);
      else waitMs = Math.min(waitMs, limitMs - quietMs, read.motion.paceSinceMs + limit.capMs - nowMs);
    }
    for (const { motion } of watched) {
      if (nowMs - motion.paceSinceMs < limit.capMs) continue;
      motion.paceSinceMs = nowMs;
      motion.paceBytes = 0;
    }
    timer = undefined;
    if (Number.isFinite(waitMs)) arm(Math.max(1, waitMs));

    function end(read: Watched, stalled: string): void {
      read.stalled = stalled;
      limit.stalled(limitMs);
      // told apart from a caller that gives up: the connection may be worth nothing any more
      read.controller.abort(new FetchError('STALLED', stalled));
    }
  }

  function drips({ motion, sinceMs }: Watched, nowMs: number): boolean {
    const { capMs } = limit;
    if (nowMs - motion.paceSinceMs < capMs || nowMs - sinceMs < capMs) return false;
    return motion.paceBytes * 1000 < paceBytesPerSecond * (nowMs - motion.paceSinceMs);
  }

  return {
    list: (prefix) => inner.list(prefix),
    ...passFind(inner),
    async read(file: FileVersion, start: number, into: Uint8Array, options: ReadOptions = {}): Promise<void> {
      const controller = new AbortController();
      const sinceMs = performance.now();
      if (watched.size === 0) ofSource.paceSinceMs = sinceMs;
      if (watched.size === 0) ofSource.paceBytes = 0;
      const motion = isApart ? { progressMs: 0, paceSinceMs: sinceMs, paceBytes: 0 } : ofSource;
      const entry: Watched = { controller, motion, sinceMs, stalled: undefined };
      const cancel = (): void => controller.abort();
      if (options.signal?.aborted) cancel();
      options.signal?.addEventListener('abort', cancel, { once: true });
      watched.add(entry);
      const limitMs = limit.milliseconds;
      // it was longer when the timer was set
      if (timer === undefined || dueMs > sinceMs + limitMs) arm(limitMs);
      let landed = 0;
      try {
        await inner.read(file, start, into, {
          signal: controller.signal,
          onArrived: (bytes) => {
            const nowMs = performance.now();
            if (landed === 0) limit.arrived(nowMs - sinceMs);
            motion.progressMs = nowMs;
            motion.paceBytes += bytes - landed;
            landed = bytes;
            options.onArrived?.(bytes);
          },
        });
      } catch (error) {
        const { stalled } = entry;
        const isStall = stalled !== undefined && options.signal?.aborted !== true;
        if (!isStall || !(error instanceof FetchError) || error.code !== 'CANCELLED') throw error;
        tell?.({ kind: 'stall', path: file.path, reason: stalled });
        throw new FetchError('STALLED', `${file.path}: ${stalled}`, { retryable: true, cause: error });
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
