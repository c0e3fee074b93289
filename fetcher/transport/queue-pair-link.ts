/**
 * A live queue pair with the region that it serves: posts pieces of reads, keeps count of what is on the wire, and reads
 * the directory of a region that is new, when it connects and when the server speaks of another one. When the connection ends every piece has had its completion.
 */
import {
  DIRECTORY_SIZE_BYTES,
  type Directory,
  type DirectoryEntry,
  isProtocolError,
  parseDirectory,
  parseDirectorySize,
  type ServedGeneration,
  sortedEntries,
  WC,
} from '../../storage-server/protocol/index.ts';
import { FetchError } from '../errors.ts';
import { DIRECTORIES_IN_A_ROW_MAX } from './limits.ts';
import { type ConnectOptions, connectQueuePair, type QueuePairConnection } from './queue-pair-connection.ts';
import { completionError, isAnswer } from './queue-pair-errors.ts';
import type { Piece, ReadTask } from './read-task.ts';
import type { Completion, PostResult, QueuePairState } from './requester.ts';
import type { TransportActivity, TransportCounters } from './transport.ts';

/** One generation as the client knows it. */
export interface RemoteRegion {
  readonly generation: string;
  readonly rkey: number;
  readonly directory: Directory;
  /** In the order of their paths' bytes. */
  readonly entries: readonly DirectoryEntry[];
  readonly byPath: ReadonlyMap<string, DirectoryEntry>;
}

export interface LinkHost {
  readonly counters: TransportCounters;
  readonly activity: TransportActivity;
  /** A READ has completed: there may be room for another. */
  onCompletion(): void;
  /** A piece of the read failed: the others are to be given up. */
  onFailed(task: ReadTask): void;
  onEnd(link: QueuePairLink): void;
  /** The region of this generation and key, if it is known already. */
  knownRegion(generation: string, rkey: number): RemoteRegion | undefined;
  /** A link has the region that its server spoke of last. */
  onRegion(region: RemoteRegion): void;
}

/** What a server says of its region. */
interface Served {
  /** Hexadecimal. */
  readonly generation: string;
  readonly rkey: number;
  readonly regionLength: number;
}

interface Posted {
  readonly length: number;
  readonly done: (completion: Completion) => void;
}

export class QueuePairLink {
  readonly #host: LinkHost;
  #connection: QueuePairConnection | undefined;
  #region: RemoteRegion | undefined;
  /** The region that the server spoke of last, in the welcome or in an event. */
  #served: Served | undefined;
  #catchingUp: Promise<void> | undefined;
  #alive = true;
  /** It ends, or has ended, with an answer of the server or because of it; nobody is lost. */
  #answered = false;
  #nextWrId = 1;
  readonly #posted = new Map<number, Posted>();
  /** wr_id of each piece that is out and wanted. */
  readonly #pieces = new Map<Piece, number>();
  /** Pieces that were given up and whose destination the socket may still write to. */
  readonly #held = new Set<Piece>();
  #bytesOut = 0;

  private constructor(host: LinkHost) {
    this.#host = host;
  }

  /** Connects, and gets to know the region. */
  static async open(host: LinkHost, options: ConnectOptions): Promise<QueuePairLink> {
    const link = new QueuePairLink(host);
    const connection = await connectQueuePair(options, {
      onCompletion: (completion) => link.#completed(completion),
      onPayload: (bytes, discarded) => {
        host.counters.bytesOnWire += bytes;
        host.counters.bytesDiscarded += discarded;
      },
      onGeneration: (served) => {
        link.#served = named(served);
        // Reads that need it find out by themselves if this fails.
        if (link.#region !== undefined) link.catchUp().catch(() => {});
      },
      onEnd: () => {
        link.#alive = false;
        host.onEnd(link);
      },
    });
    link.#connection = connection;
    link.#served ??= named(connection.welcome);
    await link.catchUp();
    return link;
  }

  get region(): RemoteRegion {
    return this.#region!;
  }

  /** Whether its region is the one that the server spoke of last: what is asked for with another key is refused. */
  get isCurrent(): boolean {
    const { generation, rkey } = this.#served!;
    return this.#region?.rkey === rkey && this.#region.generation === generation;
  }

  /** Whether it has ended with an answer of the server: what was lost with it may be tried again at once. */
  get answered(): boolean {
    return this.#answered;
  }

  /**
   * Gets the region that the server spoke of last, unless it is there already. When that fails the connection ends and
   * the error is thrown.
   */
  catchUp(): Promise<void> {
    this.#catchingUp ??= this.#catchUp().finally(() => {
      this.#catchingUp = undefined;
    });
    return this.#catchingUp;
  }

  async #catchUp(): Promise<void> {
    try {
      // The server may go on while its directory is read.
      for (let left = DIRECTORIES_IN_A_ROW_MAX; !this.isCurrent; left--) {
        const served = this.#served!;
        if (left === 0) throw new FetchError('ACCESS', 'one generation after the other', { retryable: true });
        const known = this.#host.knownRegion(served.generation, served.rkey);
        this.#region = known ?? (await this.#fetchRegion(served));
      }
      this.#host.onRegion(this.region);
    } catch (error) {
      this.#connection?.destroy('no directory');
      throw error;
    }
  }

  /** Whether READs can be posted. */
  get alive(): boolean {
    return this.#alive && this.#connection?.requester.state === 'RTS';
  }

  get state(): QueuePairState {
    return this.#connection?.requester.state ?? 'RESET';
  }

  /** Bytes of READs posted and not completed. */
  get bytesOut(): number {
    return this.#bytesOut;
  }

  /** READs posted and not completed. */
  get readsOut(): number {
    return this.#posted.size;
  }

  get outstandingMax(): number {
    const { outstandingMax, queueDepth } = this.#connection!.welcome;
    return Math.min(outstandingMax, queueDepth);
  }

  get readBytesMax(): number {
    return this.#connection!.welcome.readBytesMax;
  }

  /** Posts a piece of a read. */
  post(piece: Piece): void {
    const { task } = piece;
    const into = task.into.subarray(piece.start, piece.start + piece.length);
    const wrId = this.#post(
      this.region.rkey,
      task.address + piece.start,
      into,
      (completion) => {
        this.#pieces.delete(piece);
        if (completion.status === WC.SUCCESS) {
          task.complete(piece, completion.landed);
        } else {
          task.fail(completionError(completion, task.path, this.#answered), completion.landed);
          this.#host.onFailed(task);
        }
        this.#host.onCompletion();
      },
      (bytes) => task.progress(piece, bytes),
    );
    this.#pieces.set(piece, wrId);
  }

  /** Gives up all pieces of a read that has failed. */
  abandon(task: ReadTask): void {
    for (const [piece, wrId] of [...this.#pieces]) {
      if (piece.task !== task) continue;
      this.#pieces.delete(piece);
      this.#posted.set(wrId, { length: piece.length, done: () => this.#host.onCompletion() });
      const release = task.hold();
      this.#held.add(piece);
      const landed = this.#connection!.requester.abandon(wrId, () => {
        this.#held.delete(piece);
        release();
      });
      task.count(landed);
    }
  }

  /** Whether READs of it are posted and not completed. */
  isUsedBy(task: ReadTask): boolean {
    for (const piece of this.#pieces.keys()) if (piece.task === task) return true;
    return false;
  }

  /** Cuts the connection if bytes could still land in the destination of a read that was given up. */
  destroyIfHeldBy(task: ReadTask): void {
    for (const piece of this.#held) {
      if (piece.task === task) {
        this.destroy('bytes of a cancelled read did not come to an end');
        return;
      }
    }
  }

  destroy(reason: string): void {
    this.#connection?.destroy(reason);
  }

  /** Ends it because of a region that another connection to the server has found. */
  supersede(): void {
    this.#answered = true;
    this.destroy('the server has a new generation');
  }

  async close(graceMs: number): Promise<void> {
    await this.#connection?.close(graceMs);
  }

  #post(
    rkey: number,
    address: number,
    into: Uint8Array,
    done: (completion: Completion) => void,
    onLanded?: (bytes: number) => void,
  ): number {
    const wrId = this.#nextWrId++;
    const { requester } = this.#connection!;
    this.#posted.set(wrId, { length: into.byteLength, done });
    this.#bytesOut += into.byteLength;
    const request = { wrId, rkey, address, into, ...(onLanded === undefined ? {} : { onLanded }) };
    const result = requester.post(request);
    if (result === 'POSTED') this.#host.counters.requests++;
    else this.#refused(wrId, result);
    return wrId;
  }

  /** What was never posted is no completion. A pair that has failed meanwhile flushes, as it does what was posted before. */
  #refused(wrId: number, result: Exclude<PostResult, 'POSTED'>): void {
    const status = result === 'WRONG_STATE' ? WC.WR_FLUSH_ERR : WC.LOC_QP_OP_ERR;
    const reason = `the queue pair refused a READ: ${result}`;
    this.#take(wrId)!.done({ wrId, status, reason, stale: false, landed: 0 });
  }

  #completed(completion: Completion): void {
    const posted = this.#take(completion.wrId);
    if (posted === undefined) return;
    this.#answered ||= isAnswer(completion);
    const { completions } = this.#host.activity;
    completions.set(completion.status, (completions.get(completion.status) ?? 0) + 1);
    posted.done(completion);
  }

  #take(wrId: number): Posted | undefined {
    const posted = this.#posted.get(wrId);
    if (posted === undefined) return undefined;
    this.#posted.delete(wrId);
    this.#bytesOut -= posted.length;
    return posted;
  }

  async #fetchRegion({ generation, rkey, regionLength }: Served): Promise<RemoteRegion> {
    try {
      if (regionLength < DIRECTORY_SIZE_BYTES) throw new FetchError('PROTOCOL', `a region of ${regionLength} bytes`);
      const size = new Uint8Array(DIRECTORY_SIZE_BYTES);
      await this.#readDirectory(rkey, 0, size);
      const bytes = new Uint8Array(parseDirectorySize(size, regionLength));
      await this.#readDirectory(rkey, DIRECTORY_SIZE_BYTES, bytes);
      const directory = parseDirectory(bytes, regionLength);
      if (hex(directory.generation) !== generation) {
        throw new FetchError('PROTOCOL', 'the directory is of another generation than the server said');
      }
      const entries = sortedEntries(directory);
      return { generation, rkey, directory, entries, byPath: new Map(entries.map((entry) => [entry.path, entry])) };
    } catch (error) {
      if (isProtocolError(error)) throw new FetchError('PROTOCOL', error.message, { cause: error });
      throw error;
    }
  }

  /** Reads one READ after the other: a directory is small, and its size is not trusted with more. */
  async #readDirectory(rkey: number, address: number, into: Uint8Array): Promise<void> {
    for (let at = 0; at < into.byteLength; ) {
      const piece = into.subarray(at, at + this.readBytesMax);
      await new Promise<void>((resolve, reject) => {
        this.#post(rkey, address + at, piece, (completion) => {
          this.#host.counters.bytesDirectory += completion.landed;
          if (completion.status === WC.SUCCESS) resolve();
          else reject(completionError(completion, 'directory', this.#answered));
        });
      });
      at += piece.byteLength;
    }
  }
}

function named({ generation, rkey, regionLength }: ServedGeneration): Served {
  return { generation: hex(generation), rkey, regionLength };
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
