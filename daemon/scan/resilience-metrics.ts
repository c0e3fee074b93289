/** Figures of what sources do when they are slow, busy or broken: summed over sources, those that are closed too. */
import type { TransportActivity, TransportCounters } from '../../fetcher/index.ts';
import { METRICS, type Samples } from '../../metrics/index.ts';

const SUMMED = [
  'resumes',
  'retriesDenied',
  'hedges',
  'hedgesWon',
  'bytesHedged',
  'renewals',
  'connections',
  'requestsReusing',
  'concurrencyRaised',
  'concurrencyLowered',
] as const satisfies readonly (keyof TransportCounters)[];

export type ResilienceCounters = Pick<TransportCounters, (typeof SUMMED)[number] | 'failures'>;

export function newResilienceSums(): ResilienceCounters {
  const zeros = Object.fromEntries(SUMMED.map((name) => [name, 0])) as Record<(typeof SUMMED)[number], number>;
  return { ...zeros, failures: new Map() };
}

export function addResilience(sums: ResilienceCounters, more: Readonly<ResilienceCounters>): void {
  for (const name of SUMMED) sums[name] += more[name];
  for (const [code, count] of more.failures) sums.failures.set(code, (sums.failures.get(code) ?? 0) + count);
}

export function collectResilience(samples: Samples, sums: Readonly<ResilienceCounters>): void {
  for (const [code, count] of sums.failures) samples.add(METRICS.fetchFailures, count, { code });
  samples.add(METRICS.fetchResumes, sums.resumes);
  samples.add(METRICS.fetchRetriesDenied, sums.retriesDenied);
  samples.add(METRICS.fetchHedges, sums.hedges);
  samples.add(METRICS.fetchHedgesWon, sums.hedgesWon);
  samples.add(METRICS.fetchHedgeBytes, sums.bytesHedged);
  samples.add(METRICS.fetchRenewals, sums.renewals);
  samples.add(METRICS.fetchConnections, sums.connections);
  samples.add(METRICS.fetchReusing, sums.requestsReusing);
  samples.add(METRICS.fetchConcurrencyChanges, sums.concurrencyRaised, { direction: 'raised' });
  samples.add(METRICS.fetchConcurrencyChanges, sums.concurrencyLowered, { direction: 'lowered' });
}

/** Bounds that hold now, of sources that are open. */
export function collectBounds(samples: Samples, open: readonly Readonly<TransportActivity>[]): void {
  samples.add(
    METRICS.fetchConcurrency,
    open.reduce((sum, { concurrency }) => sum + concurrency, 0),
  );
  const limits = open.map(({ progressLimitMs }) => progressLimitMs());
  samples.add(METRICS.fetchProgressLimit, limits.length === 0 ? 0 : Math.min(...limits) / 1000);
}
