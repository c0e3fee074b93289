/**
 * METRICS.md, from the definitions. `node metrics/catalogue.ts` writes it; a test fails when it was forgotten.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEFINITIONS } from './definitions.ts';
import { ZERO_SERIES_MAX } from './limits.ts';
import { type LabelValues, listedSeries, type MetricDefinition, type Side, seriesMax } from './metric.ts';

export const CATALOGUE = join(import.meta.dirname, 'METRICS.md');

const SIDES: Readonly<Record<Side, string>> = {
  server: '`qanat serve`, by default on `http://127.0.0.1:7480/metrics`',
  client: 'clients: `qanat scan` and `qanat mount` with `--metrics host:port`, `qanat daemon`',
};

/** Sections by the first words of the names, in this order. */
const SECTIONS: ReadonlyArray<readonly [title: string, prefix: RegExp]> = [
  ['serve: the storage server', /^qanat_serve_/],
  ['fetch: requests of clients', /^qanat_fetch_/],
  ['rdma: READs over RDMA, both sides', /^qanat_rdma_/],
  ['cache: what is kept on disk', /^qanat_cache_/],
  ['prefetch: row groups ahead', /^qanat_prefetch_/],
  ['pool: the memory budget', /^qanat_pool_/],
  ['scan: what consumers get', /^qanat_scan_/],
  ['decode: decoder threads', /^qanat_decode_/],
  ['mount: the file system', /^qanat_mount_/],
  ['The endpoint and the process', /^(qanat_(http|metrics|build)_|process_|nodejs_)/],
];

export function catalogueText(): string {
  const sections = SECTIONS.map(([title, prefix]) => {
    const metrics = DEFINITIONS.filter(({ name }) => prefix.test(name));
    return `## ${title}\n\n${metrics.map(metricText).join('\n')}`;
  });
  return `${head()}\n${sections.join('\n')}`;
}

function head(): string {
  return `# Metrics

Made by \`node metrics/catalogue.ts\` from \`metrics/definitions.ts\`, where every metric is defined once.

- server: ${SIDES.server}
- client: ${SIDES.client}

Stable metrics keep their name, labels and meaning within a major version; experimental ones may change with any. No
label holds anything that a peer, a file or a path says: its values are the listed ones (\`other\` stands for all else),
or numbers below a bound. Series whose labels are all listed are there with zero before anything happened, up to
${ZERO_SERIES_MAX} of a metric. Totals are those of the process.

Always true at a scrape:

    sum(qanat_fetch_used_bytes_total) + sum(qanat_fetch_wasted_bytes_total) + qanat_fetch_undecided_bytes
      = qanat_fetch_wire_bytes_total + qanat_cache_read_bytes_total
    sum by (decoder, side) (qanat_decode_seconds_total) = the time since the decoder was started

Queries:

    # utilisation of each decoder
    rate(qanat_decode_seconds_total{side="input",state="busy"}[1m])
      / ignoring(state) sum without(state) (rate(qanat_decode_seconds_total{side="input"}[1m]))
    # what holds decoding up: starved waits for the network, stalled for the consumer or for memory
    sum by (state) (rate(qanat_decode_seconds_total{side="input"}[1m]))
    # bytes over the wire for each byte used
    sum(rate(qanat_fetch_wire_bytes_total[5m])) / sum(rate(qanat_fetch_used_bytes_total[5m]))
    # 99th percentile of a server's READs
    histogram_quantile(0.99, sum by (le) (rate(qanat_serve_read_seconds_bucket[5m])))
`;
}

function metricText(metric: MetricDefinition): string {
  const { name, kind, unit, help, stability, sides, labels, buckets } = metric;
  const facts = [kind, unit, sides.join(' and '), stability, `${seriesCount(metric)} series`].join(', ');
  const lines = [`- **\`${name}\`** (${facts})`, `  ${help}`];
  for (const [label, rule] of Object.entries(labels)) lines.push(`  - \`${label}\`: ${valuesText(rule)}`);
  if (buckets !== undefined) lines.push(`  - \`le\`: ${buckets.map((bound) => `\`${bound}\``).join(', ')}, \`+Inf\``);
  return `${lines.join('\n')}\n`;
}

function seriesCount(metric: MetricDefinition): string {
  const series = seriesMax(metric) * (metric.buckets === undefined ? 1 : metric.buckets.length + 3);
  return listedSeries(metric).length > 0 ? String(series) : `at most ${series}`;
}

function valuesText(rule: LabelValues): string {
  if (rule === 'text') return 'a text of this program';
  if ('below' in rule) return `0 to ${rule.below - 1}`;
  return rule.map((value) => `\`${value}\``).join(', ');
}

if (process.argv[1] === import.meta.filename) writeFileSync(CATALOGUE, catalogueText());
