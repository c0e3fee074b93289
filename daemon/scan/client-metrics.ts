/**
 * A client's figures for the metrics registry: what sources, the engine's scans, its memory and its decoders have counted.
 * Read at a scrape, and only then. Totals of a source that is closed are kept, so that no total ever falls.
 */
import { type ByteLedger, type DiskCache, ledgerTotal, type WasteReason } from '../../fetcher/index.ts';
import { type CollectorHost, METRICS, type Samples, type StreamProfile } from '../../metrics/index.ts';
import { statusName } from '../../storage-server/protocol/index.ts';
import type { Source } from '../../vfs/index.ts';
import { collectDiskCache } from './disk-cache-metrics.ts';
import type { ScanEngine } from './engine.ts';
import type { EngineProfile } from './engine-profile.ts';
import {
  addResilience,
  collectBounds,
  collectResilience,
  newResilienceSums,
  type ResilienceCounters,
} from './resilience-metrics.ts';

interface SourceSums {
  requests: number;
  onWire: number;
  cached: number;
  metadata: number;
  discarded: number;
  retries: number;
  reconnects: number;
  readonly completions: Map<number, number>;
  readonly rdmaCompletions: Map<number, number>;
  readonly resilience: ResilienceCounters;
}

const WASTE_REASONS: readonly WasteReason[] = ['gap', 'speculation', 'cancelled', 'evicted'];

export class ClientMetrics {
  readonly #sources = new Set<Source>();
  readonly #caches = new Set<DiskCache>();
  readonly #engines = new Set<ScanEngine>();
  readonly #ledgers = new Set<Readonly<ByteLedger>>();
  /** Totals of sources that are closed. */
  readonly #past = newSums();

  /** Adds its figures to every scrape of `registry`. */
  constructor(registry: CollectorHost) {
    registry.addCollector((samples) => this.#collect(samples));
  }

  /** An engine lasts as long as the process; all of its scans are counted, those that have ended too. */
  addEngine(engine: ScanEngine): void {
    this.#engines.add(engine);
  }

  /** Bytes of the sources that no engine's scan has entered, but somebody else. */
  addLedger(ledger: Readonly<ByteLedger>): void {
    this.#ledgers.add(ledger);
  }

  /** Counts a source from now on. Call what is returned when it has been closed. */
  addSource(source: Source): () => void {
    this.#sources.add(source);
    if (source.diskCache !== undefined) this.#caches.add(source.diskCache);
    return () => {
      if (this.#sources.delete(source)) addSource(this.#past, source);
    };
  }

  #collect(samples: Samples): void {
    const sums = newSums();
    merge(sums, this.#past);
    for (const source of this.#sources) addSource(sums, source);
    let entered = sums.metadata + sums.discarded;
    for (const engine of this.#engines) {
      entered += ledgerTotal(engine.activity.totals().ledger);
      collectScans(samples, engine);
      collectMemory(samples, engine);
      samples.add(METRICS.decodeDecoders, engine.streams.count);
      collectDecoding(samples, engine.readProfile());
    }
    for (const ledger of this.#ledgers) {
      entered += ledgerTotal(ledger);
      collectLedger(samples, ledger);
    }
    samples.add(METRICS.fetchRequests, sums.requests);
    samples.add(METRICS.fetchWireBytes, sums.onWire);
    samples.add(METRICS.cacheReadBytes, sums.cached);
    for (const cache of this.#caches) collectDiskCache(samples, cache);
    samples.add(METRICS.fetchUsedBytes, sums.metadata, { use: 'metadata' });
    samples.add(METRICS.fetchWastedBytes, sums.discarded, { reason: 'discarded' });
    samples.add(METRICS.fetchUndecidedBytes, sums.onWire + sums.cached - entered);
    samples.add(METRICS.fetchRetries, sums.retries);
    samples.add(METRICS.fetchReconnects, sums.reconnects);
    collectResilience(samples, sums.resilience);
    for (const [status, count] of sums.completions) {
      samples.add(METRICS.fetchCompletions, count, { status: statusName(status) ?? 'other' });
    }
    for (const [status, count] of sums.rdmaCompletions) {
      samples.add(METRICS.rdmaCompletions, count, { status: statusName(status) ?? 'other' });
    }
    this.#collectActivity(samples);
    this.#collectRdma(samples);
  }

  /** A device that several sources share counts once. */
  #collectRdma(samples: Samples): void {
    const registered = new Map<string, number>();
    for (const { activity } of this.#sources) {
      const rdma = activity?.rdma();
      if (rdma === undefined) continue;
      samples.add(METRICS.rdmaReadsOut, rdma.readsOut);
      if (rdma.device === undefined || registered.has(rdma.device.device)) continue;
      const { device, gid, registeredBytes } = rdma.device;
      registered.set(device, registeredBytes);
      samples.add(METRICS.rdmaInfo, 1, { device, gid });
      samples.add(METRICS.rdmaRegisteredBytes, registeredBytes);
    }
  }

  #collectActivity(samples: Samples): void {
    samples.add(METRICS.fetchSources, this.#sources.size);
    collectBounds(
      samples,
      [...this.#sources].flatMap(({ activity }) => activity ?? []),
    );
    for (const { activity } of this.#sources) {
      if (activity === undefined) continue;
      samples.add(METRICS.fetchReads, activity.readsWaiting, { state: 'waiting' });
      samples.add(METRICS.fetchReads, activity.readsActive, { state: 'active' });
      for (const state of activity.queuePairs()) samples.add(METRICS.fetchQueuePairs, 1, { state });
    }
  }
}

function collectScans(samples: Samples, { activity }: ScanEngine): void {
  const { ledger, rows, batches, rowGroups, evictions, waitedMs } = activity.totals();
  collectLedger(samples, ledger);
  samples.addCounts(METRICS.fetchSeconds, activity.fetchSeconds);
  samples.addCounts(METRICS.fetchBytes, activity.fetchBytes);
  samples.add(METRICS.scanOpen, activity.scans.size);
  for (const outcome of ['complete', 'closed', 'failed'] as const) {
    samples.add(METRICS.scans, activity.ended[outcome], { outcome });
  }
  samples.add(METRICS.scanRows, rows);
  samples.add(METRICS.scanBatches, batches);
  samples.add(METRICS.scanRowGroups, rowGroups);
  samples.add(METRICS.scanWaited, waitedMs / 1000);
  samples.add(METRICS.prefetchEvictions, evictions);
  for (const outcome of ['hit', 'late', 'miss'] as const) {
    samples.add(METRICS.prefetchRowGroups, activity.turns[outcome], { outcome });
  }
  const open = [...activity.scans];
  samples.add(METRICS.prefetchDepth, Math.max(0, ...open.map(({ depth }) => depth)));
  samples.add(
    METRICS.prefetchInFlight,
    open.reduce((sum, { rowGroupsInFlight }) => sum + rowGroupsInFlight, 0),
  );
}

function collectLedger(samples: Samples, { used, wasted }: Readonly<ByteLedger>): void {
  samples.add(METRICS.fetchUsedBytes, used, { use: 'chunk' });
  for (const reason of WASTE_REASONS) samples.add(METRICS.fetchWastedBytes, wasted[reason], { reason });
}

function collectMemory(samples: Samples, { pool }: ScanEngine): void {
  samples.add(METRICS.poolCapacity, pool.capacityBytes);
  samples.add(METRICS.poolUsed, pool.usedBytes);
  samples.add(METRICS.poolPeak, pool.peakBytes);
}

const NANOSECONDS = 1e9;

/** What the profilers and the decoders' own counts say. */
function collectDecoding(samples: Samples, { decoders, encodings, codecs }: EngineProfile): void {
  for (const [decoder, profile] of decoders.entries()) {
    for (const side of ['input', 'output'] as const) collectStream(samples, { decoder, side }, profile[side]);
    const { busyNs, wallNs, flows, running, waiting } = profile;
    samples.add(METRICS.decodeUtilization, wallNs === 0 ? 0 : busyNs / wallNs, { decoder });
    samples.add(METRICS.decodeFlows, flows, { decoder });
    samples.add(METRICS.decodeOccupancy, running, { decoder });
    samples.add(METRICS.decodeQueueLength, waiting, { decoder });
  }
  for (const [encoding, { pages, values, bytes }] of Object.entries(encodings)) {
    samples.add(METRICS.decodeEncodingPages, pages, { encoding });
    samples.add(METRICS.decodeEncodingValues, values, { encoding });
    samples.add(METRICS.decodeEncodingBytes, bytes, { encoding });
  }
  for (const [codec, { values, compressedBytes, bytes }] of Object.entries(codecs)) {
    samples.add(METRICS.decodeCodecValues, values, { codec });
    samples.add(METRICS.decodeCompressedBytes, compressedBytes, { codec });
    samples.add(METRICS.decodeDecompressedBytes, bytes, { codec });
  }
}

function collectStream(
  samples: Samples,
  stream: { readonly decoder: number; readonly side: 'input' | 'output' },
  profile: StreamProfile,
): void {
  samples.add(METRICS.decodeSeconds, profile.busyNs / NANOSECONDS, { ...stream, state: 'busy' });
  samples.add(METRICS.decodeSeconds, profile.starvedNs / NANOSECONDS, { ...stream, state: 'starved' });
  samples.add(METRICS.decodeSeconds, profile.stalledNs / NANOSECONDS, { ...stream, state: 'stalled' });
  samples.add(METRICS.decodeSeconds, profile.idleNs / NANOSECONDS, { ...stream, state: 'idle' });
  samples.add(METRICS.decodeBeats, profile.handshakeBeats, stream);
  samples.add(METRICS.decodeWaits, profile.starvedBeats, { ...stream, state: 'starved' });
  samples.add(METRICS.decodeWaits, profile.stalledBeats, { ...stream, state: 'stalled' });
  samples.add(METRICS.decodeWaits, profile.idleBeats, { ...stream, state: 'idle' });
}

function newSums(): SourceSums {
  return {
    requests: 0,
    onWire: 0,
    cached: 0,
    metadata: 0,
    discarded: 0,
    retries: 0,
    reconnects: 0,
    completions: new Map(),
    rdmaCompletions: new Map(),
    resilience: newResilienceSums(),
  };
}

function addSource(sums: SourceSums, { counters, footers, activity }: Source): void {
  merge(sums, {
    requests: counters.requests,
    onWire: counters.bytesOnWire,
    cached: counters.bytesCached,
    metadata: counters.bytesDirectory + footers.bytes,
    discarded: counters.bytesDiscarded,
    retries: counters.retries,
    reconnects: counters.reconnects,
    completions: activity?.completions ?? new Map(),
    rdmaCompletions: new Map(activity?.rdma()?.completions),
    resilience: counters,
  });
}

function merge(sums: SourceSums, more: SourceSums): void {
  sums.requests += more.requests;
  sums.onWire += more.onWire;
  sums.cached += more.cached;
  sums.metadata += more.metadata;
  sums.discarded += more.discarded;
  sums.retries += more.retries;
  sums.reconnects += more.reconnects;
  addCounts(sums.completions, more.completions);
  addCounts(sums.rdmaCompletions, more.rdmaCompletions);
  addResilience(sums.resilience, more.resilience);
}

function addCounts(sums: Map<number, number>, more: ReadonlyMap<number, number>): void {
  for (const [status, count] of more) sums.set(status, (sums.get(status) ?? 0) + count);
}
