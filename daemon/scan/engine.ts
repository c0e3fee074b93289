/**
 * What scans of a process share: the pool, capped at `memoryBytes`, and the decoder streams on it. Made once,
 * closed once.
 */
import { availableParallelism } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import { Pool } from '../../decode/index.ts';
import { DecoderStreams } from './streams.ts';

export interface EngineOptions {
  /** Hard cap in bytes on everything in flight, buffered, decoded and delivered but not released. */
  readonly memoryBytes?: number;
  /** Decoder threads. */
  readonly decoders?: number;
  readonly verifyChecksums?: boolean;
}

/** Bytes: --memory. */
export const MEMORY_BYTES_DEFAULT = 512 << 20;

/** Decoder threads when nothing is said: one core is left for the network and the consumer. */
export function defaultDecoders(): number {
  return Math.max(1, availableParallelism() - 1);
}

export class ScanEngine {
  readonly pool: Pool;
  readonly streams: DecoderStreams;
  /** Scans that are open. */
  scans = 0;
  /** Grows whenever a scan gives out rows or leaves memory: a scan that is short of memory watches the others by it. */
  progress = 0;

  constructor(options: EngineOptions = {}) {
    this.pool = Pool.create(options.memoryBytes ?? MEMORY_BYTES_DEFAULT);
    const decoders = options.decoders ?? defaultDecoders();
    this.streams = new DecoderStreams(this.pool, decoders, options.verifyChecksums ?? true);
  }

  /** A turn of the event loop, in which messages of decoder streams and sockets are taken in. */
  async tick(): Promise<void> {
    await setImmediate();
  }

  async close(): Promise<void> {
    await this.streams.close();
  }
}
