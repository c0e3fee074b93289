/**
 * A live queue pair with the region that it serves: posts pieces of reads, keeps count of what is on the wire, and reads
 * the directory of a region that is new. When the connection ends every piece has had its completion.
 */
import {
  DIRECTORY_SIZE_BYTES,
  type Directory,
  type DirectoryEntry,
  isProtocolError,
  parseDirectory,
  parseDirectorySize,
  sortedEntries,
  WC,
} from '../../storage-server/protocol/index.ts';
import { FetchError } from '../errors.ts';
import type { Completion, QueuePairState } from './queue-pair.ts';
import { type ConnectOptions, connectQueuePair, type QueuePairConnection } from './queue-pair-connection.ts';
import { completionError } from './queue-pair-errors.ts';
import type { Piece, ReadTask } from './read-task.ts';
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
}

interface Posted {
  readonly length: number;
  readonly done: (completion: Completion) => void;
}

export class QueuePairLink {
  readonly #host: LinkHost;
  #connection: QueuePairConnection | undefined;
  #region: RemoteRegion | undefined;
  #alive = true;
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

  /** Connects; `known` is the region seen last, whose directory still holds if the generation is the same. */
  static async open(host: LinkHost, options: ConnectOptions, known: RemoteRegion | undefined): Promise<QueuePairLink> {
    const link = new QueuePairLink(host);
    const connection = await connectQueuePair(options, {
      onCompletion: (completion) => link.#completed(completion),
      onPayload: (bytes, discarded) => {
        host.counters.bytesOnWire += bytes;
        host.counters.bytesDiscarded += discarded;
      },
      onEnd: () => {
        link.#alive = false;
        host.onEnd(link);
      },
    });
    link.#connection = connection;
    const { generation, rkey } = connection.welcome;
    const name = Buffer.from(generation).toString('hex');
    if (known?.generation === name && known.rkey === rkey) {
      link.#region = known;
    } else {
      try {
        link.#region = await link.#fetchRegion(name);
      } catch (error) {
        connection.destroy('no directory');
        throw error;
      }
    }
    return link;
  }

  get region(): RemoteRegion {
    return this.#region!;
  }

  /** Whether READs can be posted. */
  get alive(): boolean {
    return this.#alive && this.#connection?.pair.state === 'RTS';
  }

  get state(): QueuePairState {
    return this.#connection?.pair.state ?? 'RESET';
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
      task.address + piece.start,
      into,
      (completion) => {
        this.#pieces.delete(piece);
        if (completion.status === WC.SUCCESS) {
          task.complete(piece, completion.landed);
        } else {
          task.fail(completionError(completion, task.path), completion.landed);
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
      const landed = this.#connection!.pair.abandon(wrId, () => {
        this.#held.delete(piece);
        release();
      });
      task.count(landed);
    }
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

  async close(graceMs: number): Promise<void> {
    await this.#connection?.close(graceMs);
  }

  #post(
    address: number,
    into: Uint8Array,
    done: (completion: Completion) => void,
    onLanded?: (bytes: number) => void,
  ): number {
    const wrId = this.#nextWrId++;
    const { pair, welcome } = this.#connection!;
    this.#posted.set(wrId, { length: into.byteLength, done });
    this.#bytesOut += into.byteLength;
    const request = { wrId, rkey: welcome.rkey, address, into, ...(onLanded === undefined ? {} : { onLanded }) };
    const result = pair.post(request);
    if (result === 'POSTED') this.#host.counters.requests++;
    else
      this.#completed({
        wrId,
        status: WC.LOC_QP_OP_ERR,
        reason: `the queue pair refused a READ: ${result}`,
        landed: 0,
      });
    return wrId;
  }

  #completed(completion: Completion): void {
    const posted = this.#posted.get(completion.wrId);
    if (posted === undefined) return;
    this.#posted.delete(completion.wrId);
    this.#bytesOut -= posted.length;
    const { completions } = this.#host.activity;
    completions.set(completion.status, (completions.get(completion.status) ?? 0) + 1);
    posted.done(completion);
  }

  async #fetchRegion(generation: string): Promise<RemoteRegion> {
    const { regionLength, rkey } = this.#connection!.welcome;
    try {
      if (regionLength < DIRECTORY_SIZE_BYTES) throw new FetchError('PROTOCOL', `a region of ${regionLength} bytes`);
      const size = new Uint8Array(DIRECTORY_SIZE_BYTES);
      await this.#readDirectory(0, size);
      const bytes = new Uint8Array(parseDirectorySize(size, regionLength));
      await this.#readDirectory(DIRECTORY_SIZE_BYTES, bytes);
      const directory = parseDirectory(bytes, regionLength);
      if (Buffer.from(directory.generation).toString('hex') !== generation) {
        throw new FetchError('PROTOCOL', 'the directory is of another generation than the handshake');
      }
      const entries = sortedEntries(directory);
      return { generation, rkey, directory, entries, byPath: new Map(entries.map((entry) => [entry.path, entry])) };
    } catch (error) {
      if (isProtocolError(error)) throw new FetchError('PROTOCOL', error.message, { cause: error });
      throw error;
    }
  }

  /** Reads one READ after the other: a directory is small, and its size is not trusted with more. */
  async #readDirectory(address: number, into: Uint8Array): Promise<void> {
    for (let at = 0; at < into.byteLength; ) {
      const piece = into.subarray(at, at + this.readBytesMax);
      await new Promise<void>((resolve, reject) => {
        this.#post(address + at, piece, (completion) => {
          this.#host.counters.bytesDirectory += completion.landed;
          if (completion.status === WC.SUCCESS) resolve();
          else reject(completionError(completion, 'directory'));
        });
      });
      at += piece.byteLength;
    }
  }
}
