/**
 * Asks a second time for what is missing of a read that is late, and takes what comes first; the other one is cancelled.
 * Late is what takes longer than nearly all reads of the source do. A budget bounds the second requests to a small part of
 * all, and the memory they take beside that of their readers. The second one lands in memory of its own: two that write
 * to the same place could undo each other. What came twice is counted as discarded.
 */
import { FetchError } from '../errors.ts';
import type { HedgeOutcome, Tell } from './events.ts';
import { passFind } from './find-file.ts';
import type { LatencyWindow } from './latency-window.ts';
import { HEDGE_BURST, HEDGE_BYTES_MAX, HEDGE_FLOOR_MS, HEDGE_QUANTILE, HEDGE_SHARE, HEDGES_MAX } from './limits.ts';
import type { FileVersion, ReadOptions, Transport, TransportCounters } from './transport.ts';

export interface HedgeRules {
  /** Time without a byte after which a read is late; undefined while that is not known. */
  readonly afterMs: () => number | undefined;
  /** Second requests for each read, from 0 to 1. */
  readonly share: number;
  readonly burst: number;
}

/** The rules of a source, from the latencies of its reads. */
export function hedgeRules(latencies: LatencyWindow): HedgeRules {
  const afterMs = (): number | undefined => {
    const usual = latencies.quantile(HEDGE_QUANTILE);
    return usual === undefined ? undefined : Math.max(HEDGE_FLOOR_MS, usual);
  };
  return { afterMs, share: HEDGE_SHARE, burst: HEDGE_BURST };
}

/** Wraps a transport so that late reads are asked for twice. */
export function withHedge(inner: Transport, rules: HedgeRules, counters: TransportCounters, tell?: Tell): Transport {
  let tokens = 0;
  let underWay = 0;

  function mayHedge(bytes: number): boolean {
    return tokens >= 1 && underWay < HEDGES_MAX && bytes > 0 && bytes <= HEDGE_BYTES_MAX;
  }

  async function read(file: FileVersion, start: number, into: Uint8Array, options: ReadOptions = {}): Promise<void> {
    tokens = Math.min(rules.burst, tokens + rules.share);
    const afterMs = rules.afterMs();
    if (afterMs === undefined || into.byteLength === 0) return inner.read(file, start, into, options);
    const race = new Race(inner, file, start, into, options);
    let timer: NodeJS.Timeout | undefined;
    const arm = (): void => {
      clearTimeout(timer);
      timer = setTimeout(hedge, afterMs);
    };
    const hedge = (): void => {
      const bytes = race.missing;
      if (!mayHedge(bytes)) return;
      tokens--;
      underWay++;
      counters.hedges++;
      tell?.({ kind: 'hedge', path: file.path, bytes, afterMs });
      race.hedge((outcome, twice) => {
        underWay--;
        if (outcome === 'won') counters.hedgesWon++;
        counters.bytesDiscarded += twice;
        counters.bytesHedged += twice;
        tell?.({ kind: 'hedge-ended', path: file.path, outcome, bytes: twice });
      });
    };
    arm();
    try {
      await race.run(() => {
        if (race.isHedged) clearTimeout(timer);
        else arm();
      });
    } finally {
      clearTimeout(timer);
    }
  }

  return { list: (prefix) => inner.list(prefix), ...passFind(inner), read, close: () => inner.close() };
}

/** A read, and the second one for what is missing of it. */
class Race {
  readonly #inner: Transport;
  readonly #file: FileVersion;
  readonly #start: number;
  readonly #into: Uint8Array;
  readonly #options: ReadOptions;
  readonly #first = new AbortController();
  readonly #second = new AbortController();
  /** Bytes that the first has brought, that the second has, and that were told. */
  #firstBytes = 0;
  #secondBytes = 0;
  #told = 0;
  #hedged: Promise<Uint8Array> | undefined;
  #hedgedFrom = 0;
  #onHedged: (() => void) | undefined;
  #isOver = Promise.withResolvers<HedgeOutcome>();

  constructor(inner: Transport, file: FileVersion, start: number, into: Uint8Array, options: ReadOptions) {
    this.#inner = inner;
    this.#file = file;
    this.#start = start;
    this.#into = into;
    this.#options = options;
  }

  get missing(): number {
    return this.#into.byteLength - this.#firstBytes;
  }

  get isHedged(): boolean {
    return this.#hedged !== undefined;
  }

  /** Resolves or rejects as a read does; nobody writes to its memory any more then. */
  async run(onBytes: () => void): Promise<void> {
    const { signal } = this.#options;
    const cancel = (): void => {
      this.#first.abort();
      this.#second.abort();
    };
    if (signal?.aborted) cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    const first = this.#inner.read(this.#file, this.#start, this.#into, {
      signal: this.#first.signal,
      onArrived: (bytes) => {
        this.#firstBytes = bytes;
        onBytes();
        this.#tell(bytes);
      },
    });
    try {
      await this.#decide(first);
    } catch (error) {
      this.#isOver.resolve('failed');
      throw error;
    } finally {
      signal?.removeEventListener('abort', cancel);
      this.#second.abort();
    }
  }

  /** Begins the second read. `ended` is told the outcome and how many bytes came for nothing, when both are over. */
  hedge(ended: (outcome: HedgeOutcome, twice: number) => void): void {
    this.#hedgedFrom = this.#firstBytes;
    const scratch = new Uint8Array(this.missing);
    const second = this.#inner.read(this.#file, this.#start + this.#hedgedFrom, scratch, {
      signal: this.#second.signal,
      onArrived: (bytes) => {
        this.#secondBytes = bytes;
      },
    });
    this.#hedged = second.then(() => scratch);
    void Promise.allSettled([second, this.#isOver.promise])
      .then(() => this.#isOver.promise)
      .then((outcome) => ended(outcome, this.#firstBytes + this.#secondBytes - this.#told));
    this.#hedged.catch(() => {});
    this.#onHedged?.();
  }

  async #decide(first: Promise<void>): Promise<void> {
    let firstError: unknown;
    const settled = first.then(
      () => true,
      (error: unknown) => {
        firstError = error;
        return false;
      },
    );
    const late = new Promise<void>((resolve) => {
      this.#onHedged = resolve;
    });
    await Promise.race([settled, late]);
    if (this.#hedged === undefined) {
      if (!(await settled)) throw firstError;
      return;
    }
    const scratch = this.#hedged.catch(() => undefined);
    const firstIsGood = await Promise.race([settled, scratch.then((bytes) => (bytes === undefined ? settled : false))]);
    if (firstIsGood) {
      this.#isOver.resolve('lost');
      return;
    }
    // the first has failed, or the second was first: who is behind writes no more when it has settled
    const bytes = await scratch;
    this.#first.abort();
    if (await settled) {
      this.#isOver.resolve('lost');
      return;
    }
    if (bytes === undefined) throw firstError;
    if (this.#options.signal?.aborted) throw new FetchError('CANCELLED', `${this.#file.path}: cancelled`);
    this.#into.set(bytes, this.#hedgedFrom);
    this.#tell(this.#into.byteLength);
    this.#isOver.resolve('won');
  }

  #tell(bytes: number): void {
    if (bytes <= this.#told) return;
    this.#told = bytes;
    this.#options.onArrived?.(bytes);
  }
}
