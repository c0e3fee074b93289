/** A mount's own figures, for metrics and for its report: read when somebody asks, from what the parts count. */
import type { Pool } from '../../decode/index.ts';
import { ledgerTotal } from '../../fetcher/index.ts';
import { type Collector, METRICS, type Samples } from '../../metrics/index.ts';
import type { FuseSession, Served } from '../../vfs/fuse/index.ts';
import { errnoName, type Source } from '../../vfs/index.ts';
import type { ScanEngine } from '../scan/engine.ts';
import type { MountContents } from './mount-contents.ts';
import type { MountReport } from './mount-report.ts';
import type { SourceTree } from './source-tree.ts';
import type { View } from './view.ts';

/** The parts of a mount that count. */
export interface MountParts {
  readonly view: View;
  readonly sinceMs: number;
  readonly session: FuseSession;
  readonly tree: SourceTree;
  readonly contents: MountContents;
  readonly source: Source;
  readonly pool: Pool;
  readonly engine: ScanEngine | undefined;
}

const SERVED: readonly Served[] = ['cached', 'direct', 'passthrough'];
const OUTCOMES = ['there', 'late', 'absent'] as const;

/** Adds what `ClientMetrics` does not know of. */
export function mountCollector(parts: MountParts): Collector {
  return (samples) => {
    collectSession(samples, parts.session);
    collectContents(samples, parts.contents);
    samples.add(METRICS.mountFiles, parts.tree.files);
    samples.add(METRICS.mountGenerations, parts.tree.generations);
    if (parts.engine !== undefined) return;
    // with an engine these are its own
    samples.add(METRICS.poolCapacity, parts.pool.capacityBytes);
    samples.add(METRICS.poolUsed, parts.pool.usedBytes);
    samples.add(METRICS.poolPeak, parts.pool.peakBytes);
  };
}

function collectSession(samples: Samples, { counters, activity }: FuseSession): void {
  for (const [operation, count] of counters.requests) samples.add(METRICS.mountRequests, count, { operation });
  for (const [errno, count] of activity.errors) samples.add(METRICS.mountErrors, count, { errno: errnoName(errno) });
  for (const serving of SERVED) {
    samples.add(METRICS.mountOpens, counters.opens[serving], { serving });
    samples.add(METRICS.mountReads, counters.reads[serving], { serving });
  }
  samples.add(METRICS.mountReadBytes, counters.readBytes);
  samples.add(METRICS.mountTimeouts, activity.timeouts);
  samples.add(METRICS.mountInterrupts, activity.interrupts);
  samples.add(METRICS.mountPending, activity.pending);
  samples.add(METRICS.mountHandles, activity.handles);
  samples.add(METRICS.mountNodes, activity.nodes);
}

function collectContents(
  samples: Samples,
  { store, chunks, pusher, depth, fetchSeconds, fetchBytes }: MountContents,
): void {
  samples.addCounts(METRICS.fetchSeconds, fetchSeconds);
  samples.addCounts(METRICS.fetchBytes, fetchBytes);
  samples.add(METRICS.prefetchDepth, depth.current);
  for (const outcome of OUTCOMES) samples.add(METRICS.mountStoreReads, store.reads[outcome], { store: 'raw', outcome });
  samples.add(METRICS.mountHeldBytes, store.heldBytes, { store: 'raw' });
  samples.add(METRICS.mountEvictions, store.evictions, { store: 'raw' });
  if (chunks === undefined) return;
  const { counts } = chunks;
  for (const outcome of OUTCOMES) samples.add(METRICS.mountStoreReads, counts[outcome], { store: 'decoded', outcome });
  samples.add(METRICS.mountHeldBytes, chunks.heldBytes, { store: 'decoded' });
  samples.add(METRICS.mountEvictions, counts.evicted, { store: 'decoded' });
  samples.add(METRICS.mountChunks, counts.decoded, { outcome: 'decoded' });
  samples.add(METRICS.mountChunks, counts.failed, { outcome: 'failed' });
  samples.add(METRICS.mountPushedBytes, pusher?.counts.bytes ?? 0);
}

/** The report of now. */
export function reportOf({ view, sinceMs, session, tree, contents, source, pool }: MountParts): MountReport {
  const { counters, activity } = session;
  const { store, chunks, pusher, depth } = contents;
  const { ledger } = store;
  const metadata = source.footers.bytes + source.counters.bytesDirectory;
  const discarded = source.counters.bytesDiscarded;
  return {
    view,
    mountedMs: performance.now() - sinceMs,
    files: tree.files,
    bytesOfFiles: tree.bytes,
    generations: tree.generations,
    requests: Object.fromEntries(counters.requests),
    errors: Object.fromEntries([...activity.errors].map(([errno, count]) => [errnoName(errno), count])),
    timeouts: activity.timeouts,
    interrupts: activity.interrupts,
    pendingMost: activity.pendingMost,
    opens: { ...counters.opens },
    reads: { ...counters.reads },
    readBytes: counters.readBytes,
    raw: { ...store.reads, requests: store.requests, evicted: store.evictions, heldBytes: store.heldBytes },
    decoded:
      chunks === undefined
        ? undefined
        : {
            there: chunks.counts.there,
            late: chunks.counts.late,
            absent: chunks.counts.absent,
            chunks: chunks.counts.decoded,
            failed: chunks.counts.failed,
            evicted: chunks.counts.evicted,
            heldBytes: chunks.heldBytes,
            pushedBytes: pusher?.counts.bytes ?? 0,
          },
    footerRequests: source.footers.requests,
    bytes: {
      onWire: source.counters.bytesOnWire,
      cached: source.counters.bytesCached,
      metadata,
      used: ledger.used,
      wasted: { ...ledger.wasted, discarded },
      undecided: source.counters.bytesOnWire + source.counters.bytesCached - metadata - discarded - ledgerTotal(ledger),
    },
    retries: source.counters.retries,
    reconnects: source.counters.reconnects,
    prefetchDepth: depth.current,
    peakMemoryBytes: pool.peakBytes,
  };
}
