/**
 * Serves regions over RDMA beside the queue pairs over TCP: one device, a copy of the region of now (and for a few seconds
 * of the one before) that it reads by itself, and a queue pair for each peer that asks. What can't be served so is refused
 * with a reason, and the peer goes on over its connection.
 */
import { ServeError } from './errors.ts';
import { VERBS_OLD_KEY_MS } from './limits.ts';
import {
  isProtocolError,
  type VerbsAccepted,
  type VerbsEndpoint,
  type VerbsRefused,
  type VerbsRegion,
} from './protocol/index.ts';
import type { Region } from './region.ts';
import { type VerbsDevice, VerbsError, type VerbsQueuePair } from './verbs/index.ts';
import { VerbsCopy } from './verbs-copy.ts';

type Log = (event: string, peer: string, detail: string) => void;

export interface VerbsServiceOptions {
  /** The service's from now on. */
  readonly device: VerbsDevice;
  /** Bytes of memory that a region may take. */
  readonly budgetBytes: number;
  readonly log: Log;
  /** Time for which the key of a region that was replaced still works. */
  readonly oldKeyMs?: number;
}

/** What a service has counted, and has now. */
export interface VerbsFigures {
  readonly queuePairs: number;
  readonly registeredBytes: number;
  readonly accepted: number;
  readonly refused: number;
}

export class VerbsService {
  readonly device: VerbsDevice;
  readonly #options: VerbsServiceOptions;
  readonly #copies = new Map<Region, VerbsCopy>();
  /** Why a region has no copy. */
  readonly #failures = new WeakMap<Region, string>();
  readonly #pairs = new Set<VerbsQueuePair>();
  readonly #timers = new Map<Region, NodeJS.Timeout>();
  /** What the device is needed for. */
  readonly #underWay = new Set<Promise<unknown>>();
  #accepted = 0;
  #refused = 0;
  #closed = false;

  constructor(options: VerbsServiceOptions) {
    this.device = options.device;
    this.#options = options;
  }

  get figures(): VerbsFigures {
    let registeredBytes = 0;
    for (const { bytes } of this.#copies.values()) registeredBytes += bytes;
    return { queuePairs: this.#pairs.size, registeredBytes, accepted: this.#accepted, refused: this.#refused };
  }

  /** Makes the copy of a region that is about to be served. Throws VerbsError or ServeError when there can't be one. */
  prepare(region: Region, signal?: AbortSignal): Promise<void> {
    return this.#awaited(this.#prepare(region, signal));
  }

  async #prepare(region: Region, signal: AbortSignal | undefined): Promise<void> {
    if (this.#closed || this.#copies.has(region)) return;
    try {
      const copy = await VerbsCopy.load(region, this.device, this.#options.budgetBytes, signal);
      if (this.#closed) await this.#release(copy);
      else this.#copies.set(region, copy);
    } catch (error) {
      this.#failures.set(region, reasonOf(error));
      throw error;
    }
  }

  /** Closing waits for it. */
  #awaited<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work);
    const over = (): void => void this.#underWay.delete(work);
    work.then(over, over);
    return work;
  }

  /** The same for a region that is served in any case: what goes wrong is logged. */
  async prepareOrLog(region: Region): Promise<void> {
    await this.prepare(region).catch((error: unknown) => {
      this.#options.log('warning', '', `not served over RDMA: ${reasonOf(error)}`);
    });
  }

  /** A region takes the place of all others: their keys go after a while. */
  published(region: Region): void {
    const { oldKeyMs = VERBS_OLD_KEY_MS } = this.#options;
    for (const [old, copy] of this.#copies) {
      if (old === region || this.#timers.has(old)) continue;
      const timer = setTimeout(() => {
        this.#timers.delete(old);
        this.#copies.delete(old);
        void this.#awaited(this.#release(copy));
      }, oldKeyMs);
      this.#timers.set(old, timer.unref());
    }
  }

  placeOf(region: Region): VerbsRegion | undefined {
    return this.#copies.get(region)?.place;
  }

  /** Makes a queue pair that answers the client's end; `onPair` gets at once what is to be given back with `end`. */
  async accept(
    client: VerbsEndpoint,
    region: () => Region,
    onPair: (pair: VerbsQueuePair) => void,
  ): Promise<VerbsAccepted | VerbsRefused> {
    if (this.placeOf(region()) === undefined || this.#closed) return this.#refuseRegion(region());
    let pair: VerbsQueuePair | undefined;
    try {
      pair = this.device.createQueuePair(0);
      this.#pairs.add(pair);
      onPair(pair);
      await pair.connect(client);
    } catch (error) {
      if (pair !== undefined) this.end(pair);
      if (!(error instanceof VerbsError)) throw error;
      return this.refuse(error.reason);
    }
    // Another one may have been published meanwhile.
    const place = this.placeOf(region());
    if (place === undefined) {
      this.end(pair);
      return this.#refuseRegion(region());
    }
    this.#accepted++;
    return { endpoint: pair.endpoint, region: place };
  }

  #refuseRegion(region: Region): VerbsRefused {
    return this.refuse(this.#failures.get(region) ?? 'what this client may read is not registered with the device');
  }

  refuse(reason: string): VerbsRefused {
    this.#refused++;
    return { reason };
  }

  /** The other end has gone. */
  end(pair: VerbsQueuePair): void {
    if (this.#pairs.delete(pair)) pair.destroy();
  }

  /** Ends all pairs, then gives the memory and the device back. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    for (const timer of this.#timers.values()) clearTimeout(timer);
    for (const pair of this.#pairs) pair.destroy();
    this.#pairs.clear();
    for (const copy of this.#copies.values()) void this.#awaited(this.#release(copy));
    this.#copies.clear();
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
    this.device.close();
  }

  async #release(copy: VerbsCopy): Promise<void> {
    try {
      await copy.release();
    } catch (error) {
      // The device still has it: it stays mapped, and its key stays good for who knows it.
      this.#options.log('warning', '', `an old generation is still registered for RDMA: ${reasonOf(error)}`);
    }
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof VerbsError || error instanceof ServeError || isProtocolError(error)) return error.reason;
  return String(error);
}
