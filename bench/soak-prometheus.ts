/**
 * What Prometheus makes of a soak run: at rest each of its series has to have the value that the process itself gives,
 * and its own sums have to add up, over the whole run where they hold at any moment.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { METRICS } from '../metrics/index.ts';
import { keyOf, SHARED_STATUSES } from './soak-figures.ts';
import type { SoakWatch, Watched } from './soak-watch.ts';

/** Milliseconds until it has scraped all once more: a few of its intervals. */
const SCRAPED_MS = 15_000;

/** Of the process or the endpoint itself, or of time: these never rest. */
const RESTLESS = new RegExp(
  `^(process_|nodejs_|qanat_http_|qanat_metrics_|${METRICS.serveGenerationAge.name}|${METRICS.decodeSeconds.name}|${METRICS.decodeUtilization.name})`,
);

interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [at: number, value: string];
}

export interface SoakQuery {
  readonly query: string;
  readonly found: number;
  readonly expected: string;
}

export interface PrometheusVerdict {
  /** Series that were compared, and that are equal. */
  readonly compared: number;
  readonly queries: readonly SoakQuery[];
  readonly complaints: readonly string[];
}

/** `seconds`: how long the run took. The processes are at rest. */
export async function judgePrometheus(url: string, watch: SoakWatch, seconds: number): Promise<PrometheusVerdict> {
  const complaints: string[] = [];
  let compared = 0;
  for (const watched of watch.all) {
    const { equal, different } = await compareSeries(url, watched);
    compared += equal;
    complaints.push(...different.slice(0, 5).map((one) => `Prometheus, ${watched.name}: ${one}`));
  }
  const queries: SoakQuery[] = [];
  for (const [query, least, most] of expectations(watch, Math.ceil(seconds))) {
    const [series] = await ask(url, query);
    const found = series === undefined ? Number.NaN : Number(series.value[1]);
    const expected = least === most ? `${least}` : `${least} to ${most}`;
    queries.push({ query, found, expected });
    if (!(found >= least && found <= most)) complaints.push(`Prometheus: ${query} is ${found}, expected ${expected}`);
  }
  return { compared, queries, complaints };
}

/** Asks until it has the values that the process has now. */
async function compareSeries(url: string, { name, last }: Watched): Promise<{ equal: number; different: string[] }> {
  const own = last!.samples.filter((sample) => !RESTLESS.test(sample.name));
  const until = performance.now() + SCRAPED_MS;
  for (;;) {
    const theirs = new Map<string, number>();
    for (const { metric, value } of await ask(url, `{job="${name}"}`)) {
      const { __name__, job: _, instance: __, ...labels } = metric;
      theirs.set(keyOf({ name: __name__!, labels }), Number(value[1]));
    }
    const different = own
      .filter((sample) => theirs.get(keyOf(sample)) !== sample.value)
      .map((sample) => `${keyOf(sample)} is ${theirs.get(keyOf(sample))}, the process says ${sample.value}`);
    if (different.length === 0 || performance.now() > until) return { equal: own.length - different.length, different };
    await sleep(250);
  }
}

/** Queries, each with the least and the most that it may be. */
function expectations(watch: SoakWatch, seconds: number): [query: string, least: number, most: number][] {
  const { fetchUsedBytes, fetchWastedBytes, fetchUndecidedBytes, fetchWireBytes, servePayload } = METRICS;
  const total = ({ name }: { readonly name: string }, by = ''): string => `sum${by}(${name})`;
  const bytesLeft = (by = ''): string =>
    [fetchUsedBytes, fetchWastedBytes, fetchUndecidedBytes].map((metric) => total(metric, by)).join(' + ') +
    ` - ${total(fetchWireBytes, by)}`;
  const past = watch.pastTraffic;
  const left = watch.lost.bytes + past.bytes;
  const range = `[${seconds}s:1s]`;
  const exactly = (query: string, value: number): [string, number, number] => [query, value, value];
  return [
    exactly(bytesLeft(), 0),
    // at each of its scrapes
    exactly(`max(max_over_time(abs(${bytesLeft(' by (job)')})${range}))`, 0),
    // what those who were killed were sent is in no client's figures any more
    exactly(`${total(servePayload)} - ${total(fetchWireBytes)}`, left),
    ...SHARED_STATUSES.map((status) => {
      const of = ({ name }: { readonly name: string }): string => `sum(${name}{status="${status}"})`;
      const query = `${of(METRICS.serveCompletions)} - ${of(METRICS.fetchCompletions)}`;
      return exactly(query, (watch.lost.reads[status] ?? 0) + (past.reads[status] ?? 0));
    }),
    exactly(`${total(METRICS.serveCompletions)} - sum(${METRICS.serveReadSeconds.name}_count)`, watch.readErrors),
    exactly(`${total(METRICS.serveQueuePairs)} - ${total(METRICS.fetchQueuePairs)}`, 0),
    exactly(`max_over_time(${METRICS.servePublishFailures.name}[${seconds}s])`, 0),
    [`max(max_over_time(${METRICS.decodeUtilization.name}[${seconds}s]))`, 0.001, 1],
    // a process that was killed begins again with nothing; ends between two scrapes are one, or none in a short run
    [`sum(resets(${fetchWireBytes.name}[${seconds}s]))`, watch.kills === 0 || seconds < 60 ? 0 : 1, watch.kills],
  ];
}

async function ask(url: string, query: string): Promise<Series[]> {
  const answer = await fetch(`${url}/api/v1/query?query=${encodeURIComponent(query)}`);
  const { status, error, data } = (await answer.json()) as {
    status: string;
    error?: string;
    data: { result: Series[] };
  };
  if (status !== 'success') throw new Error(`${query}: ${error}`);
  return data.result;
}
