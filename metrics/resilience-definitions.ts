/** Metrics of what a client does when sources are slow, busy or broken: a part of the definitions. */
import { forSides } from './definition-makers.ts';
import { FETCH_FAILURES } from './label-values.ts';

const client = forSides('client');

export const RESILIENCE_METRICS = {
  fetchFailures: client.counter(
    'qanat_fetch_failures_total',
    'count',
    'Attempts of reads and listings that failed, by what was wrong; those that were tried again are in qanat_fetch_retries_total too.',
    { labels: { code: FETCH_FAILURES } },
  ),
  fetchResumes: client.counter(
    'qanat_fetch_resumes_total',
    'count',
    'Of the retries, reads that went on behind the bytes that had come.',
  ),
  fetchRetriesDenied: client.counter(
    'qanat_fetch_retries_denied_total',
    'count',
    'Attempts that were not made because their source had used up its budget of retries.',
  ),
  fetchHedges: client.counter(
    'qanat_fetch_hedges_total',
    'count',
    'Late reads that were asked for a second time (--hedge).',
  ),
  fetchHedgesWon: client.counter(
    'qanat_fetch_hedges_won_total',
    'count',
    'Of these, where the second answer was first.',
  ),
  fetchHedgeBytes: client.counter(
    'qanat_fetch_hedge_bytes_total',
    'bytes',
    'Bytes that came twice for them; they are among those wasted as discarded.',
  ),
  fetchRenewals: client.counter(
    'qanat_fetch_credential_renewals_total',
    'count',
    'Times that credentials of a store had expired and were renewed.',
  ),
  fetchConnections: client.counter('qanat_fetch_connections_total', 'count', 'Connections made to sources.'),
  fetchReusing: client.counter(
    'qanat_fetch_reused_connections_total',
    'count',
    'Requests to web servers and stores over connections that were there.',
  ),
  fetchConcurrency: client.gauge(
    'qanat_fetch_concurrency',
    'count',
    'Reads that may be under way, summed over the sources: it follows how fast and how often these answer.',
  ),
  fetchConcurrencyChanges: client.counter(
    'qanat_fetch_concurrency_changes_total',
    'count',
    'Changes of it: raised because reads wait, lowered because a source is busy, silent or slow.',
    { labels: { direction: ['raised', 'lowered'] } },
  ),
  fetchProgressLimit: client.gauge(
    'qanat_fetch_progress_limit_seconds',
    'seconds',
    'Time without a byte after which a read is given up and tried again; the shortest of the sources.',
  ),
};
