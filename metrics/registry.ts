/**
 * The registry: what was counted, as text for Prometheus. The only file that knows prom-client. Nothing is kept between
 * scrapes: collectors read plain counters of the parts when a scrape asks, so that measuring costs the parts nothing.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { BucketCounts } from './bucket-counts.ts';
import { DEFINITIONS, METRICS } from './definitions.ts';
import { MetricsError } from './errors.ts';
import { ZERO_SERIES_MAX } from './limits.ts';
import { type LabelsOf, labelText, listedSeries, type MetricDefinition, type Side, seriesMax } from './metric.ts';

type LabelArguments<D extends MetricDefinition> = keyof D['labels'] extends never ? [] : [labels: LabelsOf<D>];
type Labels = Readonly<Record<string, string>>;

/** Where collectors put what they have read. */
export interface Samples {
  /** Adds to a series, which begins each scrape at zero: totals for counters, values of now for gauges. */
  add<D extends MetricDefinition & { kind: 'counter' | 'gauge' }>(
    metric: D,
    value: number,
    ...labels: LabelArguments<D>
  ): void;
  /** Adds the counts of a histogram. */
  addCounts(metric: MetricDefinition & { kind: 'histogram' }, counts: BucketCounts): void;
}

/** Reads counters and adds them to the samples; must not wait. */
export type Collector = (samples: Samples) => void;

/** What a collector may add to; recorders of samples are such, too. */
export type CollectorHost = Pick<MetricsRegistry, 'addCollector'>;

interface Family {
  readonly definition: MetricDefinition;
  readonly zeroes: readonly Labels[];
  readonly metric: Counter | Gauge | CollectedHistogram;
}

export class MetricsRegistry {
  readonly side: Side;
  readonly contentType: string;
  readonly #registry = new Registry();
  readonly #families = new Map<MetricDefinition, Family>();
  readonly #collectors = new Set<Collector>();
  readonly #preparations = new Set<() => Promise<void>>();
  #scraping: Promise<string> | undefined;
  #collectMs = 0;

  /** The metrics of one side; those that have no collector yet are there with zero. */
  constructor(side: Side) {
    this.side = side;
    this.contentType = this.#registry.contentType;
    for (const definition of DEFINITIONS) {
      if (definition.sides.includes(side)) this.#families.set(definition, makeFamily(definition, this.#registry));
    }
  }

  /** Asks `collect` at every scrape from now on; what is returned ends that. */
  addCollector(collect: Collector): () => void {
    this.#collectors.add(collect);
    return () => void this.#collectors.delete(collect);
  }

  /** Awaits `prepare` before each scrape, which fetches figures from elsewhere; its bound in time is its own. */
  addPreparation(prepare: () => Promise<void>): () => void {
    this.#preparations.add(prepare);
    return () => void this.#preparations.delete(prepare);
  }

  /** All metrics in Prometheus's text format. Who asks while a scrape is under way gets that one. */
  text(): Promise<string> {
    this.#scraping ??= this.#scrape().finally(() => {
      this.#scraping = undefined;
    });
    return this.#scraping;
  }

  async #scrape(): Promise<string> {
    const began = performance.now();
    await Promise.all([...this.#preparations].map((prepare) => prepare()));
    this.#collect();
    const text = await this.#registry.metrics();
    this.#collectMs = performance.now() - began;
    return text;
  }

  /** All in one go, so that sums over several metrics are of one moment. */
  #collect(): void {
    for (const { metric, zeroes } of this.#families.values()) {
      metric.reset();
      if (metric instanceof CollectedHistogram) continue;
      for (const labels of zeroes) metric.inc(labels, 0);
    }
    const samples: Samples = {
      add: (metric, value, ...[labels]) => this.#add(metric, value, labels ?? {}),
      addCounts: (metric, counts) => this.#histogram(metric).merge(counts),
    };
    samples.add(METRICS.collectSeconds, this.#collectMs / 1000);
    for (const collect of this.#collectors) collect(samples);
  }

  #add(definition: MetricDefinition, value: number, labels: Readonly<Record<string, string | number>>): void {
    const { metric } = this.#family(definition);
    if (metric instanceof CollectedHistogram) throw new MetricsError('LABEL', `${definition.name} is a histogram`);
    if (!Number.isFinite(value)) return;
    metric.inc(checkedLabels(definition, labels), value);
  }

  #histogram(definition: MetricDefinition): CollectedHistogram {
    const { metric } = this.#family(definition);
    if (metric instanceof CollectedHistogram) return metric;
    throw new MetricsError('LABEL', `${definition.name} is no histogram`);
  }

  #family(definition: MetricDefinition): Family {
    const family = this.#families.get(definition);
    if (family === undefined) throw new MetricsError('LABEL', `${definition.name} is none of a ${this.side}`);
    return family;
  }
}

function makeFamily(definition: MetricDefinition, registry: Registry): Family {
  const { kind, name, help, labels } = definition;
  const configuration = { name, help, labelNames: Object.keys(labels), registers: [registry] };
  const zeroes = seriesMax(definition) <= ZERO_SERIES_MAX ? listedSeries(definition) : [];
  if (kind === 'counter') return { definition, zeroes, metric: new Counter(configuration) };
  if (kind === 'gauge') return { definition, zeroes, metric: new Gauge(configuration) };
  return { definition, zeroes, metric: new CollectedHistogram(definition, registry) };
}

function checkedLabels(definition: MetricDefinition, labels: Readonly<Record<string, string | number>>): Labels {
  const checked: Record<string, string> = {};
  for (const [name, rule] of Object.entries(definition.labels)) {
    const value = labels[name];
    const text = value === undefined ? undefined : labelText(rule, value);
    if (text === undefined) throw new MetricsError('LABEL', `${definition.name}: ${name} is ${value}`);
    checked[name] = text;
  }
  return checked;
}

interface HistogramValue {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  readonly metricName: string;
}

/** A histogram whose counts come from elsewhere, all at once; prom-client's own takes single values only. */
class CollectedHistogram extends Histogram {
  readonly #definition: MetricDefinition & { readonly buckets: readonly number[] };
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(definition: MetricDefinition, registry: Registry) {
    const { name, help, buckets = [] } = definition;
    super({ name, help, buckets: [...buckets], registers: [registry] });
    this.#definition = { ...definition, buckets };
    this.#counts = new Float64Array(buckets.length + 1);
  }

  // The base's constructor calls it before there are fields of ours.
  override reset(): void {
    super.reset();
    if (!(#counts in this)) return;
    this.#counts.fill(0);
    this.#sum = 0;
  }

  merge({ bounds, counts, sum }: BucketCounts): void {
    const { buckets, name } = this.#definition;
    if (bounds.some((bound, k) => bound !== buckets[k])) throw new MetricsError('LABEL', `${name} has other buckets`);
    for (const [k, count] of counts.entries()) this.#counts[k]! += count;
    this.#sum += sum;
  }

  override async get() {
    const { name, help, buckets } = this.#definition;
    const values: HistogramValue[] = [];
    let total = 0;
    for (const [k, count] of this.#counts.entries()) {
      total += count;
      values.push({ labels: { le: buckets[k] ?? '+Inf' }, value: total, metricName: `${name}_bucket` });
    }
    values.push({ labels: {}, value: this.#sum, metricName: `${name}_sum` });
    values.push({ labels: {}, value: total, metricName: `${name}_count` });
    return { name, help, type: 'histogram', values, aggregator: 'sum' } as unknown as ReturnType<Histogram['get']>;
  }

  /** What the registry asks for, in place of `get` where there is one. */
  getForPromString() {
    return this.get();
  }
}
