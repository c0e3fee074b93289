/** Makes definitions of metrics: what all of a side, and all histograms of a unit, have alike. */
import type { LabelRules, MetricKind, Side, Stability, Unit } from './metric.ts';

/** From a read in memory over loopback to one that a stall timer ends. */
const SECONDS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30];

/** From a page header to the largest merged request; powers of four. */
const BYTES = [256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216];

interface Details<L extends LabelRules> {
  readonly labels?: L;
  readonly stability?: Stability;
}

/** Makes the definitions of one side. */
export function forSides(...sides: Side[]) {
  const make =
    <K extends MetricKind>(kind: K) =>
    <const L extends LabelRules = Record<never, never>>(
      name: string,
      unit: Unit,
      help: string,
      { labels, stability = 'stable' }: Details<L> = {},
    ) => ({ kind, name, unit, help, stability, sides, labels: labels ?? ({} as L) });
  const histogram = (name: string, unit: 'seconds' | 'bytes', help: string) => ({
    ...make('histogram')(name, unit, help),
    buckets: unit === 'seconds' ? SECONDS : BYTES,
  });
  return { counter: make('counter'), gauge: make('gauge'), histogram };
}
