/**
 * What the soak run reads off the processes' own `/metrics`: scrapes, which have to add up whenever they are taken;
 * whether a process is at rest; what it holds then; and what has gone over the wire, as either end counts it.
 */
import { get } from 'node:http';
import { METRICS } from '../metrics/index.ts';
import { parseExposition, type Sample, sampleValue } from '../metrics/tests/exposition.ts';

/** Milliseconds for an answer: a machine with one busy core. */
const ANSWER_MS = 20_000;

export type Side = 'server' | 'client';

/** What a process holds; at rest as much as at the start. */
export interface Holdings {
  readonly rssBytes: number;
  /** JavaScript's heap, and buffers outside it: both with what is not collected yet. */
  readonly heapBytes: number;
  readonly externalBytes: number;
  /** Those of queue pairs and of served files not counted: they are counted for themselves. */
  readonly descriptors: number;
  readonly queuePairs: number;
  readonly openFiles: number;
  readonly poolBytes: number;
}

/** Bytes and READs over the wire, by status. */
export interface Traffic {
  readonly bytes: number;
  readonly reads: Readonly<Record<string, number>>;
}

/** Statuses that both ends count; of the others only the client knows. */
export const SHARED_STATUSES = ['SUCCESS', 'REM_ACCESS_ERR', 'REM_OP_ERR', 'REM_INV_REQ_ERR'] as const;

export class Scrape {
  readonly side: Side;
  readonly samples: readonly Sample[];
  /** Milliseconds that the answer took. */
  readonly ms: number;

  constructor(side: Side, samples: readonly Sample[], ms: number) {
    this.side = side;
    this.samples = samples;
    this.ms = ms;
  }

  static async of(side: Side, address: string): Promise<Scrape> {
    const began = performance.now();
    const text = await fetchText(`http://${address}/metrics`);
    return new Scrape(side, parseExposition(text), performance.now() - began);
  }

  value({ name }: { readonly name: string }, labels: Readonly<Record<string, string>> = {}): number {
    return sampleValue(this.samples, name, labels);
  }

  get holdings(): Holdings {
    const isServer = this.side === 'server';
    const queuePairs = this.value(isServer ? METRICS.serveQueuePairs : METRICS.fetchQueuePairs);
    const openFiles = isServer ? this.value(METRICS.serveOpenFiles) : 0;
    return {
      rssBytes: this.value(METRICS.processResident),
      heapBytes: this.value(METRICS.heapUsed),
      externalBytes: this.value(METRICS.external),
      descriptors: this.value(METRICS.processOpenFds) - queuePairs - openFiles,
      queuePairs,
      openFiles,
      poolBytes: isServer ? 0 : this.value(METRICS.poolUsed),
    };
  }

  get traffic(): Traffic {
    const isServer = this.side === 'server';
    const completions = isServer ? METRICS.serveCompletions : METRICS.fetchCompletions;
    const { status: statuses } = completions.labels;
    return {
      bytes: this.value(isServer ? METRICS.servePayload : METRICS.fetchWireBytes),
      reads: Object.fromEntries(statuses.map((status) => [status, this.value(completions, { status })])),
    };
  }

  /** That a server has published. */
  get generations(): number {
    return this.value(METRICS.serveGeneration);
  }

  /** READs that a client has sent, and that have come to an end. */
  get #requests(): number {
    return this.value(METRICS.fetchRequests);
  }

  get #completed(): number {
    return this.value(METRICS.fetchCompletions);
  }

  /** What keeps the process from being at rest. */
  get unrest(): string | undefined {
    const mustBeZero: (readonly [{ readonly name: string }, Record<string, string>?])[] =
      this.side === 'server'
        ? [
            [METRICS.serveQueuePairs, { state: 'handshake' }],
            [METRICS.serveQueuePairs, { state: 'closing' }],
            [METRICS.serveQueuePairs, { state: 'ended' }],
            [METRICS.serveReadsQueued],
            [METRICS.serveQueuePairsWaiting],
            [METRICS.serveBursts],
            [METRICS.serveSlabs],
          ]
        : [
            [METRICS.fetchReads],
            [METRICS.fetchUndecidedBytes],
            [METRICS.scanOpen],
            [METRICS.prefetchInFlight],
            [METRICS.decodeFlows],
            [METRICS.decodeOccupancy],
            [METRICS.decodeQueueLength],
          ];
    for (const [metric, labels] of mustBeZero) {
      const value = this.value(metric, labels);
      if (value !== 0) return `${metric.name}${labels === undefined ? '' : `{${labels.state}}`} is ${value}`;
    }
    // a directory that is read because there is a new one counts as no read
    return this.side === 'server' || this.#completed === this.#requests ? undefined : 'READs are under way';
  }

  /** Totals that do not add up, which they must at any moment. */
  get contradictions(): string[] {
    return this.side === 'server' ? this.#serverContradictions() : this.#clientContradictions();
  }

  #serverContradictions(): string[] {
    const { reads } = this.traffic;
    return [
      ...unequal('READs in the histogram of seconds', this.#histogramCount(METRICS.serveReadSeconds), reads.SUCCESS!),
      ...unequal('READs in the histogram of bytes', this.#histogramCount(METRICS.serveReadBytes), reads.SUCCESS!),
      ...unequal('READs refused as stale', this.value(METRICS.serveStaleRefusals), reads.REM_ACCESS_ERR!, 'at least'),
      ...unequal('failed publications', this.value(METRICS.servePublishFailures), 0),
      ...unequal('connections refused, garbage or stalled', this.value(METRICS.serveRejected), 0),
    ];
  }

  #clientContradictions(): string[] {
    const used = this.value(METRICS.fetchUsedBytes);
    const wasted = this.value(METRICS.fetchWastedBytes);
    const undecided = this.value(METRICS.fetchUndecidedBytes);
    const profiled = Math.max(...['input', 'output'].map((side) => this.value(METRICS.decodeSeconds, { side })));
    const lived = Date.now() / 1000 - this.value(METRICS.processStart);
    return [
      ...unequal('used + wasted + undecided bytes', used + wasted + undecided, this.value(METRICS.fetchWireBytes)),
      ...unequal('undecided bytes', undecided, 0, 'at least'),
      ...unequal('READs completed', this.#completed, this.#requests, 'at most'),
      // a decoder is profiled from its start, and until the scrape, which was a moment ago
      ...unequal('busy + starved + stalled + idle seconds', profiled, lived + 0.1, 'at most'),
    ];
  }

  #histogramCount({ name }: { readonly name: string }): number {
    return this.value({ name: `${name}_count` });
  }

  /** Counters that have fallen since an earlier scrape of the same process. */
  fallenSince(earlier: Scrape): string[] {
    const before = new Map(earlier.samples.map((sample) => [keyOf(sample), sample.value]));
    return this.samples.filter(isTotal).flatMap((sample) => {
      const was = before.get(keyOf(sample)) ?? 0;
      return sample.value < was ? [`${keyOf(sample)} fell from ${was} to ${sample.value}`] : [];
    });
  }
}

export function unequal(
  what: string,
  found: number,
  expected: number,
  how: 'exactly' | 'at least' | 'at most' = 'exactly',
): string[] {
  const holds = how === 'exactly' ? found === expected : how === 'at least' ? found >= expected : found <= expected;
  return holds ? [] : [`${what}: ${found}, expected ${how} ${expected}`];
}

const isTotal = ({ name }: Sample): boolean => /_(total|count|sum|bucket)$/.test(name);

export function keyOf({ name, labels }: Pick<Sample, 'name' | 'labels'>): string {
  const pairs = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${name}{${pairs.map(([label, value]) => `${label}="${value}"`).join()}}`;
}

/** What the server has sent and no client has received. */
export function trafficLeft(server: Traffic, clients: readonly Traffic[]): Traffic {
  const left = (of: (traffic: Traffic) => number): number =>
    of(server) - clients.reduce((sum, client) => sum + of(client), 0);
  return {
    bytes: left(({ bytes }) => bytes),
    reads: Object.fromEntries(SHARED_STATUSES.map((status) => [status, left(({ reads }) => reads[status] ?? 0)])),
  };
}

function fetchText(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = get(url, { agent: false, timeout: ANSWER_MS }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`${url}: ${response.statusCode}`));
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        text += part;
      });
      response.on('end', () => resolve(text));
      response.on('error', reject);
    });
    asked.on('timeout', () => asked.destroy(new Error(`${url} does not answer in ${ANSWER_MS} ms`)));
    asked.on('error', reject);
  });
}
