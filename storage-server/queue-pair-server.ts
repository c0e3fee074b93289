/**
 * Listens for queue pairs and gives them turns: round robin over those that have work and room, one burst a turn, bursts
 * short while others wait. No input of a peer ends the process; what goes wrong on a connection ends that connection.
 */
import type { AddressInfo, Server, Socket } from 'node:net';
import type { Certificates } from './access/certificates.ts';
import type { Guard } from './access/guard.ts';
import type { ServerCounters } from './counters.ts';
import { ServeError } from './errors.ts';
import {
  BURSTS_READING_MAX,
  LARGE_SLAB_BYTES,
  OPEN_FILES_MAX,
  type ServerLimits,
  SHARED_BURST_BYTES,
  SILENT_MIN,
  SILENT_MS,
  SILENT_SHARE,
  UNGREETED_MAX,
} from './limits.ts';
import { OpenFiles } from './open-files.ts';
import { REFUSAL, type Refusal } from './protocol/index.ts';
import { createListener, type Handshake } from './queue-pair-listener.ts';
import { QueuePairResponder, type ResponderHost } from './queue-pair-responder.ts';
import type { RegionHolder } from './region-holder.ts';
import type { ServerActivity } from './server-metrics.ts';
import { SlabPool } from './slab-pool.ts';
import type { VerbsService } from './verbs-service.ts';

/** Backlog of connections that are not accepted yet: a burst of a thousand clients must not be reset. */
const BACKLOG = 1024;

export interface QueuePairServerOptions {
  /** All that there is; who sees what of it says the guard. */
  readonly regions: RegionHolder;
  readonly guard: Guard;
  /** Connections are plain TCP without. */
  readonly certificates?: Certificates | undefined;
  readonly limits: ServerLimits;
  readonly counters: ServerCounters;
  readonly log: ResponderHost['log'];
  /** READs over RDMA, if there are any. */
  readonly verbs?: VerbsService | undefined;
}

export class QueuePairServer implements ResponderHost {
  readonly guard: Guard;
  readonly limits: ServerLimits;
  readonly counters: ServerCounters;
  readonly files = new OpenFiles(OPEN_FILES_MAX);
  readonly slabs: SlabPool;
  readonly verbs: VerbsService | undefined;
  readonly log: (event: string, peer: string, detail: string) => void;
  /** Told when a file turns out not to be what it was. */
  onStale: () => void = () => {};
  readonly #server: Server;
  readonly #responders = new Set<QueuePairResponder>();
  /** Of these, those that have shaken hands: they alone take the slots. */
  readonly #greeted = new Set<QueuePairResponder>();
  /** And those that have not said hello, the oldest first, with the time they came. */
  readonly #silent = new Map<QueuePairResponder | Handshake, number>();
  /** Of the silent ones, those that are not done with TLS. */
  readonly #handshakes = new Set<Handshake>();
  readonly #waiting: QueuePairResponder[] = [];
  #reading = 0;
  #pumping = false;
  #closing = false;
  #idle: (() => void) | undefined;

  constructor({ regions, guard, certificates, limits, counters, log, verbs }: QueuePairServerOptions) {
    this.guard = guard;
    this.verbs = verbs;
    this.limits = limits;
    this.counters = counters;
    this.log = log;
    this.slabs = new SlabPool(limits.slabsMax);
    regions.onPublished((region) => {
      verbs?.published(region);
      for (const responder of this.#greeted) responder.published();
      this.files.retire(new Set(region.files.map(({ store }) => store)));
    });
    guard.onRevoked(() => {
      for (const responder of this.#greeted) responder.dropRevoked();
    });
    this.#server = createListener(certificates, limits.handshakeMs, {
      onHandshake: (handshake) => {
        if (!this.#makeRoom()) return false;
        this.#handshakes.add(handshake);
        this.#silent.set(handshake, performance.now());
        return true;
      },
      onHandshakeEnd: (handshake) => {
        this.#handshakes.delete(handshake);
        this.#silent.delete(handshake);
      },
      onConnection: (socket, handshake) => this.#respond(socket, handshake !== undefined),
      onFailure: (peer, reason) => {
        if (certificates !== undefined) certificates.failures.queue_pair++;
        log('dropped', peer, reason);
      },
    });
  }

  #respond(socket: Socket, hasRoom: boolean): void {
    if (!hasRoom && !this.#makeRoom()) {
      socket.on('error', () => {});
      socket.destroy();
      return;
    }
    this.counters.connectionsTotal++;
    const responder = new QueuePairResponder(socket, this);
    this.#responders.add(responder);
    this.#silent.set(responder, performance.now());
    this.counters.connections = this.#responders.size;
  }

  /**
   * Makes room for one more connection at the cost of those that say nothing: of more than their share those that had
   * time to speak, and the oldest of them when there is no room at all. False if there is none of those either.
   */
  #makeRoom(): boolean {
    const share = Math.max(SILENT_MIN, Math.floor(this.limits.connectionsMax / SILENT_SHARE));
    const open = this.#responders.size + this.#handshakes.size;
    const isFull = open >= this.limits.connectionsMax + UNGREETED_MAX;
    const [oldest] = this.#silent;
    if (oldest === undefined) {
      if (isFull) this.counters.refused++;
      return !isFull;
    }
    const [, since] = oldest;
    let excess = this.#silent.size + 1 - share;
    if (excess > 0 && performance.now() - since >= SILENT_MS) {
      for (const [responder, since] of this.#silent) {
        if (excess-- <= 0 || performance.now() - since < SILENT_MS) break;
        this.#dropSilent(responder);
      }
    } else if (isFull) {
      this.#dropSilent(oldest[0]);
    }
    return true;
  }

  #dropSilent(silent: QueuePairResponder | Handshake): void {
    silent.dropSilent();
    this.#silent.delete(silent);
    if (silent instanceof QueuePairResponder) this.ended(silent);
    else this.#handshakes.delete(silent);
  }

  /** Starts to listen. Throws ServeError LISTEN. */
  listen(host: string, port: number): Promise<AddressInfo> {
    return new Promise((resolve, reject) => {
      const failed = (cause: NodeJS.ErrnoException): void => {
        const why = cause.code === 'EADDRINUSE' ? 'the address is in use (EADDRINUSE)' : cause.message;
        reject(new ServeError('LISTEN', `${host}:${port}: ${why}`, { cause }));
      };
      this.#server.once('error', failed);
      this.#server.listen({ host, port, backlog: BACKLOG }, () => {
        this.#server.off('error', failed);
        this.#server.on('error', (error) => this.log('listener', '', error.message));
        resolve(this.#server.address() as AddressInfo);
      });
    });
  }

  /** Ends all pairs: completes what they have posted for at most `drainMs`, then cuts them. */
  async close(): Promise<void> {
    if (this.#closing) return;
    this.#closing = true;
    const stopped = new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    for (const responder of [...this.#responders]) responder.drain();
    for (const handshake of this.#handshakes) handshake.dropSilent();
    const timer = setTimeout(() => {
      for (const responder of this.#responders) responder.destroy();
    }, this.limits.drainMs);
    await stopped;
    clearTimeout(timer);
    if (this.#reading > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
    this.files.close();
  }

  refusal(): { number: Refusal; reason: string } | undefined {
    if (this.#closing) return { number: REFUSAL.CLOSING, reason: 'the server is shutting down' };
    if (this.#greeted.size >= this.limits.connectionsMax) {
      return { number: REFUSAL.NO_RESOURCES, reason: `${this.limits.connectionsMax} connections are open already` };
    }
    return undefined;
  }

  heard(responder: QueuePairResponder): void {
    this.#silent.delete(responder);
  }

  greeted(responder: QueuePairResponder): void {
    this.#greeted.add(responder);
  }

  ready(responder: QueuePairResponder): void {
    if (!responder.listed) {
      responder.listed = true;
      this.#waiting.push(responder);
    }
    this.#pump();
  }

  burstFilled(): void {
    this.#reading--;
    if (this.#reading === 0) this.#idle?.();
    this.#pump();
  }

  ended(responder: QueuePairResponder): void {
    this.#responders.delete(responder);
    this.#greeted.delete(responder);
    this.#silent.delete(responder);
    this.counters.connections = this.#responders.size;
  }

  /** What is under way now. */
  activity(): ServerActivity {
    const queuePairs = { handshake: 0, serving: 0, closing: 0, ended: 0 };
    let readsQueued = 0;
    let burstsSending = 0;
    for (const responder of this.#responders) {
      queuePairs[responder.state]++;
      readsQueued += responder.queued;
      burstsSending += responder.writing;
    }
    return {
      queuePairs,
      waiting: this.#waiting.length,
      readsQueued,
      burstsReading: this.#reading,
      burstsSending,
      slabsSmall: this.slabs.smallInUse,
      slabsLarge: this.slabs.largeInUse,
      slabsMax: this.limits.slabsMax,
      openFiles: this.files.count,
    };
  }

  #pump(): void {
    // A burst without file bytes is filled on the spot and calls back into here.
    if (this.#pumping) return;
    this.#pumping = true;
    while (this.#reading < BURSTS_READING_MAX && this.#waiting.length > 0) {
      const responder = this.#waiting.shift()!;
      responder.listed = false;
      if (!responder.canStart) continue;
      this.#reading++;
      const bytesMax = this.#waiting.length > 0 ? SHARED_BURST_BYTES : LARGE_SLAB_BYTES;
      if (!responder.startBurst(bytesMax)) this.#reading--;
      else if (responder.canStart && !responder.listed) {
        responder.listed = true;
        this.#waiting.push(responder);
      }
    }
    this.#pumping = false;
  }
}
