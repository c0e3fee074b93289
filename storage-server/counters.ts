/** What a server counts; totals since it started, except where said. Plain numbers: metrics read them at a scrape. */
import { BucketCounts, METRICS } from '../metrics/index.ts';
import type { Burst } from './burst.ts';
import { WC } from './protocol/index.ts';

export interface ServerCounters {
  /** Connections open now. */
  connections: number;
  connectionsTotal: number;
  /** Handshakes answered with a refusal. */
  refused: number;
  /** Connections that sent something else than the protocol, or no hello in time. */
  garbage: number;
  /** READs completed with success. */
  reads: number;
  /** READs completed with an error. */
  readErrors: number;
  /** READs completed, by status. */
  readonly completions: Map<number, number>;
  /** Seconds and bytes of READs completed with success. */
  readonly readSeconds: BucketCounts;
  readonly readBytes: BucketCounts;
  /** Bytes of the region handed to sockets. */
  payloadBytes: number;
  /** Bytes handed to sockets, headers included. */
  bytesSent: number;
  /** Peers dropped because they did not take their bytes. */
  stalled: number;
  /** Generations published, the first one included. */
  generations: number;
  /** Time of the last publication, milliseconds since 1970. */
  publishedMs: number;
  /** Looks at the roots that failed and left what was served as it was. */
  publishFailures: number;
  /** READs refused because their rkey was that of a generation that had been replaced. */
  staleRefusals: number;
}

export function newServerCounters(): ServerCounters {
  return {
    connections: 0,
    connectionsTotal: 0,
    refused: 0,
    garbage: 0,
    reads: 0,
    readErrors: 0,
    completions: new Map(),
    readSeconds: new BucketCounts(METRICS.serveReadSeconds.buckets),
    readBytes: new BucketCounts(METRICS.serveReadBytes.buckets),
    payloadBytes: 0,
    bytesSent: 0,
    stalled: 0,
    generations: 0,
    publishedMs: 0,
    publishFailures: 0,
    staleRefusals: 0,
  };
}

/** Counts a burst that is handed to its socket. */
export function countBurst(counters: ServerCounters, burst: Burst): void {
  const errors = burst.fatal ? 1 : 0;
  counters.reads += burst.completions - errors;
  counters.readErrors += errors;
  counters.bytesSent += burst.bytes;
  counters.payloadBytes += burst.payloadBytes;
  const now = performance.now();
  for (const { acceptedMs, length } of burst.succeeded) {
    counters.readSeconds.observe((now - acceptedMs) / 1000);
    counters.readBytes.observe(length);
  }
  countCompletions(counters, WC.SUCCESS, burst.succeeded.length);
  if (burst.failure !== undefined) countCompletions(counters, burst.failure.status, 1);
}

function countCompletions({ completions }: ServerCounters, status: number, count: number): void {
  completions.set(status, (completions.get(status) ?? 0) + count);
}
