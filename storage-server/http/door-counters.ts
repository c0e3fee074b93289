/** What is counted of answers over HTTP and S3; totals since the start. Plain numbers: metrics read them at a scrape. */
import { type Collector, METRICS } from '../../metrics/index.ts';

/** What a request is about. */
export type RequestKind =
  | 'files'
  | 'region'
  | 's3_list_buckets'
  | 's3_list_objects'
  | 's3_bucket'
  | 's3_object'
  | 's3_other';

/** Why an answer was ended before its last byte. */
export type CutReason = 'changed' | 'stalled' | 'closed' | 'stopped';

type StatusClass = '2xx' | '3xx' | '4xx' | '5xx';
const CLASSES: readonly (StatusClass | undefined)[] = [undefined, undefined, '2xx', '3xx', '4xx', '5xx'];

interface KindCounters {
  readonly byClass: Map<StatusClass, number>;
  bytes: number;
}

export class DoorCounters {
  readonly #kinds = new Map<RequestKind, KindCounters>();
  readonly #cuts = new Map<CutReason, number>();
  /** Answers under way. */
  active = 0;

  count(kind: RequestKind, status: number): void {
    const { byClass } = this.#of(kind);
    const name = CLASSES[Math.floor(status / 100)] ?? '5xx';
    byClass.set(name, (byClass.get(name) ?? 0) + 1);
  }

  /** Bytes of files handed to sockets. */
  sent(kind: RequestKind, bytes: number): void {
    this.#of(kind).bytes += bytes;
  }

  cut(reason: CutReason): void {
    this.#cuts.set(reason, (this.#cuts.get(reason) ?? 0) + 1);
  }

  /** For the registry of a server's metrics. */
  readonly collect: Collector = (samples) => {
    for (const [kind, { byClass, bytes }] of this.#kinds) {
      for (const [code, times] of byClass) samples.add(METRICS.serveHttpRequests, times, { kind, code });
      samples.add(METRICS.serveHttpBytes, bytes, { kind });
    }
    for (const [reason, times] of this.#cuts) samples.add(METRICS.serveHttpCuts, times, { reason });
    samples.add(METRICS.serveHttpActive, this.active);
  };

  #of(kind: RequestKind): KindCounters {
    let counters = this.#kinds.get(kind);
    if (counters === undefined) {
      counters = { byClass: new Map(), bytes: 0 };
      this.#kinds.set(kind, counters);
    }
    return counters;
  }
}
