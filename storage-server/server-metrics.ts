/** A server's figures for the metrics registry: its counters, and what is under way. Read at a scrape, and only then. */
import { type Collector, METRICS, type Samples } from '../metrics/index.ts';
import type { ServerCounters } from './counters.ts';
import { statusName } from './protocol/index.ts';
import type { Region } from './region.ts';
import type { VerbsService } from './verbs-service.ts';

/** What of a server is under way now. */
export interface ServerActivity {
  readonly queuePairs: Readonly<Record<'handshake' | 'serving' | 'closing' | 'ended', number>>;
  /** Queue pairs that wait for their turn. */
  readonly waiting: number;
  /** READs accepted and not planned into a burst. */
  readonly readsQueued: number;
  readonly burstsReading: number;
  readonly burstsSending: number;
  readonly slabsSmall: number;
  readonly slabsLarge: number;
  readonly slabsMax: number;
  readonly openFiles: number;
}

/** A collector of everything that a server has to tell. */
export function serverCollector(
  server: { activity(): ServerActivity },
  regions: { readonly current: Region },
  counters: Readonly<ServerCounters>,
  verbs?: VerbsService,
): Collector {
  let known: RegionFigures | undefined;
  return (samples) => {
    collectCounters(samples, counters);
    collectActivity(samples, server.activity());
    const region = regions.current;
    if (known?.region !== region) known = figuresOf(region);
    collectRegion(samples, known);
    if (verbs !== undefined) collectRdma(samples, verbs);
    samples.add(METRICS.serveGeneration, counters.generations);
    samples.add(METRICS.serveGenerationAge, Math.max(0, (Date.now() - counters.publishedMs) / 1000));
  };
}

/** What a region has, summed once: there may be a hundred thousand files. */
interface RegionFigures {
  readonly region: Region;
  readonly files: number;
  readonly fileBytes: number;
}

function figuresOf(region: Region): RegionFigures {
  const { entries } = region.directory;
  return { region, files: entries.length, fileBytes: entries.reduce((sum, { length }) => sum + length, 0) };
}

function collectRegion(samples: Samples, { region, files, fileBytes }: RegionFigures): void {
  samples.add(METRICS.serveFiles, files);
  samples.add(METRICS.serveFileBytes, fileBytes);
  samples.add(METRICS.serveRegionBytes, region.length);
  samples.add(METRICS.servePinnedBytes, region.pinned?.bytes ?? 0);
}

function collectCounters(samples: Samples, counters: Readonly<ServerCounters>): void {
  samples.add(METRICS.serveConnections, counters.connectionsTotal);
  for (const reason of ['refused', 'garbage', 'stalled'] as const) {
    samples.add(METRICS.serveRejected, counters[reason], { reason });
  }
  for (const [status, count] of counters.completions) {
    samples.add(METRICS.serveCompletions, count, { status: statusName(status) ?? 'other' });
  }
  samples.addCounts(METRICS.serveReadSeconds, counters.readSeconds);
  samples.addCounts(METRICS.serveReadBytes, counters.readBytes);
  samples.add(METRICS.servePayload, counters.payloadBytes);
  samples.add(METRICS.serveSent, counters.bytesSent);
  samples.add(METRICS.servePublishFailures, counters.publishFailures);
  samples.add(METRICS.serveStaleRefusals, counters.staleRefusals);
}

function collectActivity(samples: Samples, activity: ServerActivity): void {
  for (const state of ['handshake', 'serving', 'closing', 'ended'] as const) {
    samples.add(METRICS.serveQueuePairs, activity.queuePairs[state], { state });
  }
  samples.add(METRICS.serveQueuePairsWaiting, activity.waiting);
  samples.add(METRICS.serveReadsQueued, activity.readsQueued);
  samples.add(METRICS.serveBursts, activity.burstsReading, { stage: 'reading' });
  samples.add(METRICS.serveBursts, activity.burstsSending, { stage: 'sending' });
  samples.add(METRICS.serveSlabs, activity.slabsSmall, { size: 'small' });
  samples.add(METRICS.serveSlabs, activity.slabsLarge, { size: 'large' });
  samples.add(METRICS.serveSlabsLimit, activity.slabsMax);
  samples.add(METRICS.serveOpenFiles, activity.openFiles);
}

function collectRdma(samples: Samples, { device, figures }: VerbsService): void {
  const { name, gid } = device.facts;
  samples.add(METRICS.rdmaInfo, 1, { device: name, gid });
  samples.add(METRICS.rdmaRegisteredBytes, figures.registeredBytes);
  samples.add(METRICS.rdmaQueuePairs, figures.queuePairs);
  samples.add(METRICS.rdmaSetups, figures.accepted, { outcome: 'accepted' });
  samples.add(METRICS.rdmaSetups, figures.refused, { outcome: 'refused' });
}
