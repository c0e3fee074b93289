/**
 * Files of a storage server over queue pairs (`rdma://host:port/`). Connects when first used and again after a pair has
 * failed. A connection is only used with the directory of the generation that the server spoke of last on it; when that is
 * a new one, or after a restart of the server, reads go on exactly if the file's etag is the same. A read is cut into READs, first come first served, as many on the wire as
 * the window allows. A failed read rejects: attempts are the business of with-retry.ts.
 */
import { isProtocolError, regionAddress } from '../../storage-server/protocol/index.ts';
import { FetchError } from '../errors.ts';
import type { Tell } from './events.ts';
import { CANCEL_GRACE_MS, CLOSE_GRACE_MS } from './limits.ts';
import type { ConnectOptions } from './queue-pair-connection.ts';
import { type LinkHost, QueuePairLink, type RemoteRegion } from './queue-pair-link.ts';
import { checkRange, throwIfCancelled } from './range.ts';
import { ReadTask } from './read-task.ts';
import type { FileVersion, ReadOptions, Transport, TransportActivity, TransportCounters } from './transport.ts';
import type { VerbsChoice } from './verbs-choice.ts';

export interface QueuePairTransportOptions extends ConnectOptions {
  /** Queue pairs at most. */
  readonly connections: number;
  /** Bytes of READs on the wire per queue pair; one READ is always allowed. */
  readonly windowBytes: number;
  readonly counters: TransportCounters;
  readonly activity: TransportActivity;
  readonly onGeneration?: (generation: string) => void;
  /** Told of connections that are made. */
  readonly tell?: Tell;
  /** READs over RDMA; over TCP without. */
  readonly rdmaChoice?: VerbsChoice | undefined;
}

export class QueuePairTransport implements Transport, LinkHost {
  readonly counters: TransportCounters;
  readonly activity: TransportActivity;
  readonly #options: QueuePairTransportOptions;
  readonly #links = new Set<QueuePairLink>();
  readonly #tasks = new Set<ReadTask>();
  #region: RemoteRegion | undefined;
  #connecting: Promise<QueuePairLink> | undefined;
  /** Ends what is connecting. */
  #attempt: AbortController | undefined;
  #connected = false;
  #closed = false;

  constructor(options: QueuePairTransportOptions) {
    this.#options = options;
    this.counters = options.counters;
    this.activity = options.activity;
    this.activity.rdma = () => options.rdmaChoice?.figures();
    this.activity.queuePairs = () => [
      ...[...this.#links].map((link) => link.state),
      ...(this.#connecting === undefined ? [] : ['INIT' as const]),
    ];
  }

  async list(prefix: string): Promise<readonly FileVersion[]> {
    const { region } = await this.#liveLink();
    return region.entries
      .filter(({ path }) => path.startsWith(prefix))
      .map(({ path, length, etag, modifiedMs }) => ({ path, length, etag, modifiedMs }));
  }

  async read(file: FileVersion, start: number, into: Uint8Array, options: ReadOptions = {}): Promise<void> {
    checkRange(file, start, into.byteLength);
    throwIfCancelled(file, options.signal);
    const { region } = await this.#liveLink();
    throwIfCancelled(file, options.signal);
    const address = translate(region, file, start, into.byteLength);
    if (into.byteLength === 0) return;
    await new Promise<void>((resolve, reject) => {
      const task = new ReadTask({ file, start, into, address }, options, (error, discarded) => {
        this.#tasks.delete(task);
        this.counters.bytesDiscarded += discarded;
        options.signal?.removeEventListener('abort', cancel);
        if (error === undefined) resolve();
        else reject(error);
      });
      const cancel = (): void => {
        const used = [...this.#links].filter((link) => link.isUsedBy(task));
        this.#fail(task, new FetchError('CANCELLED', file.path));
        // a connection that makes no progress is of no use to the next attempt either
        if (isStall(options.signal?.reason)) for (const link of used) link.destroy('no progress');
      };
      options.signal?.addEventListener('abort', cancel, { once: true });
      this.#tasks.add(task);
      this.#dispatch();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const task of this.#tasks) this.#fail(task, new FetchError('CLOSED', task.path));
    this.#attempt?.abort();
    await this.#connecting?.catch(() => {});
    await Promise.all([...this.#links].map((link) => link.close(CLOSE_GRACE_MS)));
    this.#options.rdmaChoice?.release();
  }

  onCompletion(): void {
    this.#dispatch();
  }

  onFailed(task: ReadTask): void {
    this.#giveUp(task);
  }

  onEnd(link: QueuePairLink): void {
    this.#links.delete(link);
    if (this.#links.size > 0) this.#dispatch();
    else for (const task of this.#tasks) this.#fail(task, lost(task.path, link.answered));
  }

  knownRegion(generation: string, rkey: number): RemoteRegion | undefined {
    return this.#region?.generation === generation && this.#region.rkey === rkey ? this.#region : undefined;
  }

  /** From now on this region is read: by reads that are under way too, if their file is the same in it. */
  onRegion(region: RemoteRegion): void {
    const previous = this.#region;
    if (region !== previous) {
      this.#region = region;
      this.activity.generation = region.generation;
      for (const task of this.#tasks) {
        try {
          task.address = translate(region, task.file, task.start, task.into.byteLength);
        } catch (error) {
          this.#fail(task, error as FetchError);
        }
      }
      if (previous !== undefined) {
        this.counters.generations++;
        this.#options.onGeneration?.(region.generation);
      }
    }
    this.#dispatch();
  }

  /** A link of the newest region, connected if there is none. */
  async #liveLink(): Promise<QueuePairLink> {
    for (;;) {
      if (this.#closed) throw new FetchError('CLOSED', 'the transport is closed');
      for (const link of this.#links) if (this.#isUsable(link)) return link;
      const late = [...this.#links].find((link) => link.alive && !link.isCurrent);
      if (late !== undefined) {
        await late.catchUp().catch(() => {});
        continue;
      }
      const link = await this.#connect();
      if (this.#isUsable(link)) return link;
      if (link.alive) continue;
      throw lost('the connection was lost right after the handshake', link.answered);
    }
  }

  #isUsable(link: QueuePairLink): boolean {
    return link.alive && link.isCurrent && link.region === this.#region;
  }

  /** Connects once for all who wait. */
  #connect(): Promise<QueuePairLink> {
    this.#connecting ??= this.#open().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  async #open(): Promise<QueuePairLink> {
    if (this.#connected && ![...this.#links].some((link) => link.alive)) this.counters.reconnects++;
    const attempt = new AbortController();
    this.#attempt = attempt;
    const rdma = await this.#options.rdmaChoice?.wish();
    const options = { ...this.#options, rdma, proven: this.#connected, signal: attempt.signal };
    const link = await QueuePairLink.open(this, options);
    this.#attempt = undefined;
    this.#connected = true;
    const { counters } = this;
    counters.connections++;
    const { host, port, tell } = this.#options;
    tell?.({ kind: 'connected', origin: `rdma://${host}:${port}`, connections: counters.connections, reused: 0 });
    if (!link.alive) return link;
    this.#links.add(link);
    // The server has moved on: what the others serve is over.
    if (this.#isUsable(link)) for (const old of this.#links) if (old.region !== link.region) old.supersede();
    if (this.#closed) link.destroy('the transport is closed');
    this.#dispatch();
    return link;
  }

  /** Posts what may be posted. */
  #dispatch(): void {
    for (const task of this.#tasks) {
      while (task.hasMore) {
        const link = this.#linkWithRoom();
        if (link === undefined) {
          this.#connectMore();
          return;
        }
        link.post(task.cut(Math.min(this.#options.readBytesMax, link.readBytesMax)));
      }
    }
  }

  #linkWithRoom(): QueuePairLink | undefined {
    let best: QueuePairLink | undefined;
    for (const link of this.#links) {
      if (!this.#isUsable(link) || link.readsOut >= link.outstandingMax) continue;
      if (link.bytesOut > 0 && link.bytesOut + this.#options.readBytesMax > this.#options.windowBytes) continue;
      if (best === undefined || link.bytesOut < best.bytesOut) best = link;
    }
    return best;
  }

  /** All pairs are busy: one more, if the options allow it. A failure here is not anybody's: the others go on. */
  #connectMore(): void {
    if (this.#closed || this.#links.size === 0 || this.#links.size >= this.#options.connections) return;
    // Those that are about to have the new directory are not full.
    for (const link of this.#links) if (!link.isCurrent) return;
    if (this.#connecting === undefined) this.#connect().catch(() => {});
  }

  #fail(task: ReadTask, error: FetchError): void {
    task.fail(error, 0);
    this.#giveUp(task);
  }

  /** Gives up what is out of a read that has failed; it settles when nothing lands in its destination any more. */
  #giveUp(task: ReadTask): void {
    this.#tasks.delete(task);
    const release = task.hold();
    for (const link of this.#links) link.abandon(task);
    release();
    if (task.settled) return;
    setTimeout(() => {
      if (!task.settled) for (const link of this.#links) link.destroyIfHeldBy(task);
    }, CANCEL_GRACE_MS).unref();
  }
}

function lost(what: string, immediate: boolean): FetchError {
  return new FetchError('LOST', what, { retryable: true, immediate });
}

function translate(region: RemoteRegion, file: FileVersion, start: number, length: number): number {
  const entry = region.byPath.get(file.path);
  if (entry === undefined) throw new FetchError('STALE', `${file.path} is not in the server's generation any more`);
  if (entry.etag !== file.etag || entry.length !== file.length) {
    throw new FetchError('STALE', `${file.path} has changed since it was opened`);
  }
  try {
    return regionAddress(region.directory, entry, start, length);
  } catch (error) {
    if (isProtocolError(error)) throw new FetchError('OUT_OF_RANGE', error.message, { cause: error });
    throw error;
  }
}

/** Why the progress timer ends a read. */
function isStall(reason: unknown): boolean {
  return reason instanceof FetchError && reason.code === 'STALLED';
}
