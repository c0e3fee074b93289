/**
 * The transport seam: how bytes of one version of one file get from a source into memory. Implementations:
 * queue pairs over TCP (`rdma://`), HTTP (`http://`, `https://`), S3 (`s3://`) and local files (`file://`). One conformance suite
 * (`tests/transport-conformance.ts`) runs over all of them; `with-*.ts` wrappers add behaviour.
 *
 * Contract of `read`, on every transport: the promise resolves when exactly the asked bytes of the version in `file`
 * are in `into`, or rejects with a FetchError. Never short, never mixed. Bytes are told
 * in order from the front: `onArrived(n)` says, before the promise settles, that the first n bytes have landed (n grows; a
 * retry resumes at the last n, it never goes back). After a rejection the content of `into` is undefined and must not be used. Until the
 * promise settles nobody else writes to `into`.
 */
import type { FetchErrorCode } from '../errors.ts';
import type { QueuePairState } from './requester.ts';

export interface FileVersion {
  /** Path within the source, UTF-8, no leading slash, segments separated by "/". */
  readonly path: string;
  readonly length: number;
  /** Opaque and strong: equal etags mean equal bytes. */
  readonly etag: string;
  /** Modification time in milliseconds since 1970, for people. */
  readonly modifiedMs: number;
}

export interface ReadOptions {
  /** Cancels the read: it stops using the network as soon as the transport can, and rejects with CANCELLED. */
  readonly signal?: AbortSignal;
  readonly onArrived?: (bytes: number) => void;
}

/** Who will read the end of a file next may have it with the look at the file, where that takes no further request. */
export interface FindOptions {
  /** Bytes of the end that are wanted. */
  readonly tailBytes?: number;
  /**
   * Told before `find` resolves, at most once and not by every transport: the end of the version that it resolves to, and
   * the time from the request to its answer without making the connection.
   */
  readonly onTail?: (tail: Uint8Array, latencyMs: number) => void;
}

export interface Transport {
  /** Every file of the source below `prefix` ('' for all), in byte order of the paths. */
  list(prefix: string): Promise<readonly FileVersion[]>;
  /** The file of just this path, where that takes less than a listing (find-file.ts). */
  find?(path: string, options?: FindOptions): Promise<FileVersion | undefined>;
  /** Bytes [start, start + into.byteLength) of `file`. `into` may be a view of shared memory. */
  read(file: FileVersion, start: number, into: Uint8Array, options?: ReadOptions): Promise<void>;
  close(): Promise<void>;
}

/**
 * What a transport counts; wrappers and reports read it. All are totals since it was opened. At rest `bytesOnWire` +
 * `bytesCached` = `bytesDirectory` + `bytesDiscarded` + the last `onArrived` of every read, failed and cancelled ones too.
 */
export interface TransportCounters {
  /** Requests sent: a large read takes several. */
  requests: number;
  /** Payload bytes that came over the wire, whether or not they could be used. */
  bytesOnWire: number;
  /** Of these, bytes of directories: what it took to know the files. */
  bytesDirectory: number;
  /** Of these, bytes that no read reported as arrived: they came for reads that had failed or been cancelled, or came twice. */
  bytesDiscarded: number;
  /** Bytes of reads that came from a disk cache and not over the wire. */
  bytesCached: number;
  retries: number;
  /** Of these, reads that went on behind bytes that had come. */
  resumes: number;
  /** Attempts that there would have been, had the source not used up its budget. */
  retriesDenied: number;
  /** Attempts that failed, tried again or not, by what was wrong. Reads that were cancelled are none. */
  readonly failures: Map<FetchErrorCode, number>;
  /** Reads that were asked for a second time, those where that was first, and bytes that came twice for them. */
  hedges: number;
  hedgesWon: number;
  bytesHedged: number;
  /** Times that credentials were renewed. */
  renewals: number;
  /** Connections made, and requests to web servers and stores over ones that were there. */
  connections: number;
  requestsReusing: number;
  /** Changes of how many reads may be under way. */
  concurrencyRaised: number;
  concurrencyLowered: number;
  reconnects: number;
  /** Generations of the source that took the place of an earlier one. */
  generations: number;
}

/** What a source has of RDMA. */
export interface QueuePairRdma {
  /** The device, which it may share with others, and what is registered with it for all of them. */
  readonly device: { readonly device: string; readonly gid: string; readonly registeredBytes: number } | undefined;
  /** READs that the device has to complete. */
  readonly readsOut: number;
  /** READs of the device by the status that they completed with: one that is posted may take several. */
  readonly completions: ReadonlyMap<number, number>;
}

/** What of a source is under way now, and how its READs ended; metrics look at it. */
export interface TransportActivity {
  /** Reads that wait for their turn. */
  readsWaiting: number;
  /** Reads that have begun. */
  readsActive: number;
  /** Reads that may be under way. */
  concurrency: number;
  /** Time without progress after which a read counts as stalled, milliseconds. */
  progressLimitMs(): number;
  /** READs over queue pairs by the status that they completed with, since the source was opened. */
  readonly completions: Map<number, number>;
  /** The state of each of its queue pairs. */
  queuePairs(): readonly QueuePairState[];
  /** What it has of RDMA; undefined for sources that are no queue pairs. */
  rdma(): QueuePairRdma | undefined;
  /** The generation that a server spoke of last; undefined before, and for sources without. */
  generation: string | undefined;
}

export function newTransportActivity(): TransportActivity {
  return {
    readsWaiting: 0,
    readsActive: 0,
    concurrency: 0,
    progressLimitMs: () => 0,
    completions: new Map(),
    queuePairs: () => [],
    rdma: () => undefined,
    generation: undefined,
  };
}

export function newTransportCounters(): TransportCounters {
  return {
    requests: 0,
    bytesOnWire: 0,
    bytesDirectory: 0,
    bytesDiscarded: 0,
    bytesCached: 0,
    retries: 0,
    resumes: 0,
    retriesDenied: 0,
    failures: new Map(),
    hedges: 0,
    hedgesWon: 0,
    bytesHedged: 0,
    renewals: 0,
    connections: 0,
    requestsReusing: 0,
    concurrencyRaised: 0,
    concurrencyLowered: 0,
    reconnects: 0,
    generations: 0,
  };
}
