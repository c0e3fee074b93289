/**
 * What a metric's definition says, and what its labels may be. The values of a label are listed, or are whole numbers
 * below a bound, or a short text of our own making: nothing that a peer, a file or a path says can become a series.
 */
import { LABEL_TEXT_MAX } from './limits.ts';

export type MetricKind = 'counter' | 'gauge' | 'histogram';
export type Unit = 'seconds' | 'bytes' | 'ratio' | 'count' | 'info';

/** Stable ones keep name, labels and meaning within a major version; experimental ones may change with any. */
export type Stability = 'stable' | 'experimental';

/** Who exports it: `qanat serve`, and clients (`qanat scan` and `mount` with `--metrics`, `qanat daemon`). */
export type Side = 'server' | 'client';

/** A list that holds `other` takes any text: what is not in the list counts as `other`. */
export type LabelValues = readonly string[] | { readonly below: number } | 'text';
export type LabelRules = Readonly<Record<string, LabelValues>>;

export interface MetricDefinition {
  readonly kind: MetricKind;
  readonly name: string;
  readonly unit: Unit;
  readonly help: string;
  readonly stability: Stability;
  readonly sides: readonly Side[];
  readonly labels: LabelRules;
  /** Inclusive upper bounds of a histogram's buckets. */
  readonly buckets?: readonly number[];
}

type LabelValue<V> = V extends readonly string[]
  ? 'other' extends V[number]
    ? string
    : V[number]
  : V extends { readonly below: number }
    ? number
    : string;

/** The labels that a sample of the metric has to name. */
export type LabelsOf<D extends MetricDefinition> = { readonly [K in keyof D['labels']]: LabelValue<D['labels'][K]> };

/** The text of a label's value as its rule allows it; undefined when it is none. */
export function labelText(rule: LabelValues, value: string | number): string | undefined {
  if (rule === 'text') {
    return String(value)
      .replace(/[^\w.:+-]/g, '_')
      .slice(0, LABEL_TEXT_MAX);
  }
  if ('below' in rule) {
    return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < rule.below
      ? String(value)
      : undefined;
  }
  const text = String(value);
  if (rule.includes(text)) return text;
  return rule.includes('other') ? 'other' : undefined;
}

/** How many series a metric may have at most, a histogram's buckets not counted. */
export function seriesMax({ labels }: MetricDefinition): number {
  return Object.values(labels).reduce((product, rule) => product * valuesMax(rule), 1);
}

function valuesMax(rule: LabelValues): number {
  if (rule === 'text') return 1;
  return 'below' in rule ? rule.below : rule.length;
}

/** Every combination of the labels' listed values; none when some label has no list. */
export function listedSeries({ labels }: MetricDefinition): Record<string, string>[] {
  let series: Record<string, string>[] = [{}];
  for (const [name, rule] of Object.entries(labels)) {
    if (rule === 'text' || 'below' in rule) return [];
    series = series.flatMap((one) => rule.map((value) => ({ ...one, [name]: value })));
  }
  return series;
}
