/**
 * Figures of another thread: collectors that run there add to a recorder in place of a registry, what they added is
 * plain data that can be posted, and on this side it is added to the samples of a scrape as if it came from here.
 */
import { BucketCounts } from './bucket-counts.ts';
import { DEFINITIONS } from './definitions.ts';
import type { MetricDefinition } from './metric.ts';
import type { Collector, CollectorHost, Samples } from './registry.ts';

/** What a collector added: of a counter or gauge, or of a histogram. */
export type RecordedSample =
  | {
      readonly name: string;
      readonly value: number;
      readonly labels: Readonly<Record<string, string | number>> | undefined;
    }
  | { readonly name: string; readonly counts: Float64Array; readonly sum: number };

export class SampleRecorder implements CollectorHost {
  readonly #collectors = new Set<Collector>();

  addCollector(collect: Collector): () => void {
    this.#collectors.add(collect);
    return () => void this.#collectors.delete(collect);
  }

  /** What the collectors say now. */
  record(): RecordedSample[] {
    const recorded: RecordedSample[] = [];
    const samples: Samples = {
      add: ({ name }, value, ...[labels]) => void recorded.push({ name, value, labels }),
      addCounts: ({ name }, { counts, sum }) => void recorded.push({ name, counts: counts.slice(), sum }),
    };
    for (const collect of this.#collectors) collect(samples);
    return recorded;
  }
}

const byName = new Map<string, MetricDefinition>(DEFINITIONS.map((definition) => [definition.name, definition]));

/** Adds what was recorded. Throws MetricsError LABEL for labels that the definitions do not allow. */
export function addRecorded(recorded: readonly RecordedSample[], samples: Samples): void {
  for (const sample of recorded) {
    const definition = byName.get(sample.name);
    if (definition === undefined) continue;
    if ('counts' in sample) {
      const counts = new BucketCounts(definition.buckets ?? []);
      counts.counts.set(sample.counts);
      counts.sum = sample.sum;
      samples.addCounts(definition as MetricDefinition & { kind: 'histogram' }, counts);
    } else {
      const metric = definition as MetricDefinition & { kind: 'counter' };
      samples.add(metric, sample.value, sample.labels ?? {});
    }
  }
}
