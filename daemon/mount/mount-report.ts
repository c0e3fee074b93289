/** What a mount did, as plain data: for `--stats`, `--json` and tests. */
import type { WasteReason } from '../../fetcher/index.ts';
import type { Served } from '../../vfs/fuse/index.ts';
import type { View } from './view.ts';

/** Reads of a store by what was in memory: all of it, on its way, nothing asked for yet. */
export interface StoreReads {
  readonly there: number;
  readonly late: number;
  readonly absent: number;
}

export interface MountReport {
  readonly view: View;
  readonly mountedMs: number;
  readonly files: number;
  readonly bytesOfFiles: number;
  /** Times that what is mounted was replaced. */
  readonly generations: number;
  /** Of the kernel, by operation. */
  readonly requests: Readonly<Record<string, number>>;
  /** Requests answered with an error, by its name. */
  readonly errors: Readonly<Record<string, number>>;
  readonly timeouts: number;
  readonly interrupts: number;
  /** Requests that waited at a time, at most. */
  readonly pendingMost: number;
  readonly opens: Readonly<Record<Served, number>>;
  readonly reads: Readonly<Record<Served, number>>;
  readonly readBytes: number;
  readonly raw: StoreReads & {
    readonly requests: number;
    readonly evicted: number;
    readonly heldBytes: number;
  };
  /** Of the decoded view. */
  readonly decoded:
    | (StoreReads & {
        readonly chunks: number;
        readonly failed: number;
        readonly evicted: number;
        readonly heldBytes: number;
        /** Bytes put into the kernel's page cache. */
        readonly pushedBytes: number;
      })
    | undefined;
  readonly footerRequests: number;
  readonly bytes: {
    /** Payload that came over the wire, as the transport counted it. */
    readonly onWire: number;
    /** Bytes that came from the disk cache instead. */
    readonly cached: number;
    /** Directory and footers. */
    readonly metadata: number;
    /** Bytes that readers or decoders took. */
    readonly used: number;
    readonly wasted: Readonly<Record<WasteReason | 'discarded', number>>;
    /** Still in memory and not entered yet. */
    readonly undecided: number;
  };
  readonly retries: number;
  readonly reconnects: number;
  readonly prefetchDepth: number;
  readonly peakMemoryBytes: number;
}
