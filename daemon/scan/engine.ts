/**
 * What scans of a process share: the pool, capped at `memoryBytes`, and the decoder streams on it, described by a
 * control block in it. Made once, closed once.
 */
import { availableParallelism } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import { Pool } from '../../decode/index.ts';
import { FetchError } from '../../fetcher/index.ts';
import { DECODERS_MAX } from '../limits.ts';
import { type Bounds, layControlBlock, planControlBlock, type SubConfiguration } from './control-block.ts';
import { EngineActivity } from './engine-activity.ts';
import { type EngineProfile, ProfileReader } from './engine-profile.ts';
import { DecoderStreams } from './streams.ts';

export interface EngineOptions {
  /** Hard cap in bytes on everything in flight, buffered, decoded and delivered but not released. */
  readonly memoryBytes?: number;
  /** Decoder threads. */
  readonly decoders?: number;
  readonly verifyChecksums?: boolean;
  /** Profile the decoders and count their pages (default). */
  readonly profiler?: boolean;
}

/** Bytes: --memory. */
export const MEMORY_BYTES_DEFAULT = 512 << 20;

/** Decoder threads when nothing is said: one core is left for the network and the consumer. */
export function defaultDecoders(): number {
  return Math.max(1, availableParallelism() - 1);
}

/** What an engine has to know of a scan. */
export interface OpenScan {
  /** Something of it is in memory. */
  readonly holdsMemory: boolean;
  /** It waits for memory. */
  readonly isShort: boolean;
  /** It has given its memory to others, and its consumer has not asked for rows since. */
  readonly isAside: boolean;
  /** Gives its memory to others if its consumer has not asked for rows for a while. Says whether it did. */
  stepAside(): boolean;
  fail(error: Error): void;
  close(): Promise<void>;
}

export class ScanEngine {
  readonly pool: Pool;
  readonly streams: DecoderStreams;
  readonly activity = new EngineActivity();
  /** Scans that are open, the oldest first. */
  readonly scans = new Set<OpenScan>();
  /** The scan that has the pool to itself, because it found no room beside others. */
  reservedFor: OpenScan | undefined;
  /** Grows whenever a scan gives out rows or leaves memory: a scan that is short of memory watches the others by it. */
  progress = 0;

  readonly #control: Bounds;
  readonly #profile: ProfileReader;
  #closing: Promise<void> | undefined;

  /**
   * Throws RangeError for a memory or a number of decoders outside the bounds. `plan` makes the control block from the
   * number of decoders; whatever decoders, profilers and order it has, the engine works with.
   */
  constructor(options: EngineOptions = {}, plan?: (decoders: number) => readonly SubConfiguration[]) {
    this.pool = Pool.create(options.memoryBytes ?? MEMORY_BYTES_DEFAULT);
    const decoders = options.decoders ?? defaultDecoders();
    if (!Number.isInteger(decoders) || decoders < 1 || decoders > DECODERS_MAX) {
      throw new RangeError(`${decoders} decoders; expected a whole number from 1 to ${DECODERS_MAX}`);
    }
    this.#control = layControlBlock(
      this.pool,
      plan?.(decoders) ?? planControlBlock(decoders, options.profiler ?? true),
    );
    this.streams = new DecoderStreams(this.pool, this.#control.start, options.verifyChecksums ?? true);
    this.#profile = new ProfileReader(this.pool, this.#control.start);
  }

  /** What the decoders did since the engine was made: totals, which any number of readers may ask for. */
  readProfile(): EngineProfile {
    return this.#profile.read(this.streams.load());
  }

  /** Forgets what the decoders did up to now: it was no scan. */
  resetProfile(): void {
    this.#profile.reset();
  }

  /** A turn of the event loop, in which messages of decoder streams and sockets are taken in. */
  async tick(): Promise<void> {
    await setImmediate();
  }

  get isClosed(): boolean {
    return this.#closing !== undefined;
  }

  /** Ends the scans that are open (they fail as CLOSED) and the decoder threads. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    for (const scan of [...this.scans]) {
      scan.fail(new FetchError('CLOSED', 'the engine was closed'));
      await scan.close();
    }
    await this.streams.close();
    this.#profile.close();
    this.pool.free(this.#control.start, this.#control.end - this.#control.start);
  }
}
