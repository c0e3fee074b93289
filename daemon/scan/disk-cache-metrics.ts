/** A disk cache's figures for the metrics registry. */
import type { DiskCache } from '../../fetcher/index.ts';
import { METRICS, type Samples } from '../../metrics/index.ts';

/** Adds all but the bytes that it served: those are counted by the sources. */
export function collectDiskCache(
  samples: Samples,
  { counters, bytes, limitBytes, blocks, queuedBytes }: DiskCache,
): void {
  samples.add(METRICS.cacheReads, counters.hits, { outcome: 'hit' });
  samples.add(METRICS.cacheReads, counters.partial, { outcome: 'partial' });
  samples.add(METRICS.cacheReads, counters.misses, { outcome: 'miss' });
  samples.add(METRICS.cacheWrites, counters.writes);
  samples.add(METRICS.cacheWrittenBytes, counters.writtenBytes);
  samples.add(METRICS.cacheEvictions, counters.evictions);
  samples.add(METRICS.cacheDamaged, counters.damaged);
  samples.add(METRICS.cacheDropped, counters.dropped);
  samples.add(METRICS.cacheBytes, bytes);
  samples.add(METRICS.cacheLimit, limitBytes);
  samples.add(METRICS.cacheBlocks, blocks);
  samples.add(METRICS.cacheQueuedBytes, queuedBytes);
}
