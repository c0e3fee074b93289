/**
 * The server's end of one queue pair: handshake, checks of each request in the order of PROTOCOL.md, completions in the
 * order of the requests, the end of the pair. It reads from storage and writes only when the scheduler gives it a turn
 * (`startBurst`), and never has more bursts under way than its share, so a slow peer holds a bounded amount of memory.
 */
import type { Socket } from 'node:net';
import type { Admission, Guard } from './access/guard.ts';
import { tokenOf } from './access/tokens.ts';
import type { Burst, Failure, PendingRead } from './burst.ts';
import { countBurst, type ServerCounters } from './counters.ts';
import { GenerationNotice } from './generation-notice.ts';
import type { ServerLimits } from './limits.ts';
import { SMALL_SLAB_BYTES } from './limits.ts';
import { MemoryBurst } from './memory-burst.ts';
import type { OpenFiles } from './open-files.ts';
import {
  depthsValid,
  encodeClosed,
  encodeRefusal,
  encodeWelcome,
  FRAME_HEADER_BYTES,
  type Hello,
  isProtocolError,
  OPCODE,
  REFUSAL,
  type Refusal,
  type Request,
  RequestReader,
  WC,
} from './protocol/index.ts';
import type { RegionHolder } from './region-holder.ts';
import type { Slab, SlabPool } from './slab-pool.ts';
import { StoredBurst } from './stored-burst.ts';
import type { VerbsService } from './verbs-service.ts';
import { VerbsSession } from './verbs-session.ts';

/** What a responder needs of its server. */
export interface ResponderHost {
  readonly guard: Guard;
  readonly files: OpenFiles;
  readonly slabs: SlabPool;
  readonly limits: ServerLimits;
  readonly counters: ServerCounters;
  /** READs over RDMA, if this server has them. */
  readonly verbs: VerbsService | undefined;
  /** Why a new connection is refused now, if it is. */
  refusal(): { readonly number: Refusal; readonly reason: string } | undefined;
  /** The responder has a complete hello. */
  heard(responder: QueuePairResponder): void;
  /** It has shaken hands. */
  greeted(responder: QueuePairResponder): void;
  /** The responder may have become able to start a burst. */
  ready(responder: QueuePairResponder): void;
  /** A burst that was started has its bytes. */
  burstFilled(): void;
  ended(responder: QueuePairResponder): void;
  /** A file is not what it was when the region was published. */
  onStale(): void;
  log(event: string, peer: string, detail: string): void;
}

type State = 'handshake' | 'serving' | 'closing' | 'ended';

export class QueuePairResponder {
  /** In the scheduler's list. */
  listed = false;
  readonly #socket: Socket;
  readonly #host: ResponderHost;
  readonly #reader: RequestReader;
  readonly #peer: string;
  readonly #queue: PendingRead[] = [];
  /** Started and not yet written, in order. */
  readonly #bursts: Burst[] = [];
  #state: State = 'handshake';
  /** As whom the peer was let in, what is there for it, and how it hears of more. */
  #admission: Admission | undefined;
  #regions: RegionHolder | undefined;
  #notice: GenerationNotice | undefined;
  #verbs: VerbsSession | undefined;
  /** READs accepted and not completed. */
  #outstanding = 0;
  /** Writes that the socket has not finished. */
  #writing = 0;
  #smallTaken = false;
  #checksum = false;
  #readBytesMax = 0;
  #outstandingMax = 0;
  #timer: NodeJS.Timeout;

  constructor(socket: Socket, host: ResponderHost) {
    this.#socket = socket;
    this.#host = host;
    this.#peer = `${socket.remoteAddress}:${socket.remotePort}`;
    this.#reader = new RequestReader({
      onHello: (hello, auth) => this.#greet(hello, auth),
      onRequest: (request) => this.#accept(request),
    });
    this.#timer = setTimeout(() => this.dropSilent(), host.limits.handshakeMs);
    this.#timer.unref();
    socket.on('data', (piece) => this.#receive(piece));
    socket.on('end', () => this.#receivedAll());
    socket.on('error', () => {});
    socket.on('close', () => this.#closed());
    socket.on('timeout', () => this.#stalled());
    socket.setTimeout(host.limits.stallMs);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, host.limits.stallMs);
  }

  get state(): State {
    return this.#state;
  }

  /** READs that are not planned into a burst yet. */
  get queued(): number {
    return this.#queue.length;
  }

  /** Bursts that the socket has not taken yet. */
  get writing(): number {
    return this.#writing;
  }

  /** Whether a turn would be used. */
  get canStart(): boolean {
    return (
      this.#queue.length > 0 &&
      (this.#state === 'serving' || this.#state === 'closing') &&
      this.#bursts.length + this.#writing < this.#host.limits.burstsMax
    );
  }

  /** Starts one burst of at most `bytesMax`; false if there is no slab for it now. */
  startBurst(bytesMax: number): boolean {
    const burst = this.#newBurst();
    if (burst === undefined) return false;
    this.#bursts.push(burst);
    burst.plan(this.#queue, this.#regions!.current, bytesMax);
    if (burst.fatal) this.#queue.length = 0;
    burst.fill(this.#host.files, () => {
      this.#host.burstFilled();
      this.#send();
    });
    return true;
  }

  /** Another region may be served: then the peer is told, and what has not been begun of the old one is refused. */
  published(): void {
    if ((this.#state !== 'serving' && this.#state !== 'closing') || !this.#notice?.isDue) return;
    this.#notice.tell(this.#checksum);
    const first = this.#queue.findIndex((read) => read.length > 0);
    const read = this.#queue[first];
    // One that fails anyway ends the pair anyway.
    if (read === undefined || read.failure !== undefined) return;
    this.#queue.splice(first, this.#queue.length, { ...read, failure: this.#staleKey() });
    // Nothing that is asked for behind it will be answered.
    this.#state = 'closing';
  }

  #staleKey(): Failure {
    this.#host.counters.staleRefusals++;
    return { status: WC.REM_ACCESS_ERR, reason: 'the rkey is of a generation that was replaced', stale: true };
  }

  /** Accepts nothing more, completes what it has and ends the connection. */
  drain(): void {
    if (this.#state === 'handshake') this.#socket.destroy();
    if (this.#state !== 'serving') return;
    this.#state = 'closing';
    this.#endIfDone();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Ends it if its token does not let it in any more. */
  dropRevoked(): void {
    if (this.#admission?.isGood === false) this.#drop('its token was taken back');
  }

  /** Ends a connection that has not said hello. */
  dropSilent(): void {
    this.#host.counters.garbage++;
    this.#drop('no complete hello in time');
  }

  #receive(piece: Uint8Array): void {
    try {
      this.#reader.push(piece);
    } catch (error) {
      if (!isProtocolError(error)) {
        // A bug that a peer's bytes have found ends that peer's connection, not the service of all others.
        this.#host.log('bug', this.#peer, String(error));
        this.#drop('an internal error');
        return;
      }
      if (this.#state === 'handshake' && error.code === 'VERSION') {
        this.#refuse(REFUSAL.BAD_VERSION, error.message);
        return;
      }
      this.#host.counters.garbage++;
      this.#drop(error.message);
      return;
    }
    if (this.canStart) this.#host.ready(this);
    else this.#endIfDone();
  }

  /** The peer sends nothing more: as good as a CLOSE, but not in the middle of a message. */
  #receivedAll(): void {
    if (this.#reader.inside && (this.#state === 'handshake' || this.#state === 'serving')) {
      this.#host.counters.garbage++;
      this.#drop('it ended in the middle of a message');
    } else {
      this.drain();
    }
  }

  #greet(hello: Hello, auth: Uint8Array): boolean {
    clearTimeout(this.#timer);
    this.#host.heard(this);
    const { limits } = this.#host;
    // First of all: nothing is told to who may not know it, not even whether there is room.
    const admission = this.#host.guard.admit(tokenOf(auth), 'queue_pair');
    if (admission === undefined)
      return this.#refuse(REFUSAL.BAD_AUTHENTICATION, 'a token that is known here is needed');
    const { regions } = admission;
    const region = regions.current;
    const refusal = this.#host.refusal();
    if (refusal !== undefined) return this.#refuse(refusal.number, refusal.reason);
    if (!depthsValid(hello)) {
      return this.#refuse(REFUSAL.BAD_PARAMETERS, 'a depth or the READ size is zero or over its ceiling');
    }
    this.#checksum = hello.checksum;
    this.#readBytesMax = Math.min(hello.readBytesMax, limits.readBytesMax);
    this.#outstandingMax = Math.min(hello.outstandingMax, limits.outstandingMax);
    this.#admission = admission;
    this.#regions = regions;
    // RDMA reads the memory that everything lies in: nothing there keeps somebody to a part of it.
    this.#verbs = new VerbsSession(this.#socket, this.#host.verbs, admission.seesEverything);
    this.#notice = new GenerationNotice(this.#socket, regions, this.#verbs);
    this.#state = 'serving';
    this.#host.greeted(this);
    this.#socket.write(
      encodeWelcome({
        checksum: this.#checksum,
        verbs: this.#verbs.grant(hello),
        queueDepth: Math.min(hello.queueDepth, limits.queueDepthMax),
        readBytesMax: this.#readBytesMax,
        outstandingMax: this.#outstandingMax,
        rkey: region.rkey,
        regionLength: region.length,
        generation: region.generation,
      }),
    );
    return true;
  }

  #refuse(number: Refusal, reason: string): false {
    this.#host.counters.refused++;
    this.#host.log('refused', this.#peer, reason);
    this.#finish(encodeRefusal(number, reason));
    return false;
  }

  #accept(request: Request): boolean {
    if (this.#state !== 'serving') return false;
    if (request.opcode === OPCODE.CLOSE) {
      this.#state = 'closing';
      return false;
    }
    const { verbs } = request;
    if (verbs !== undefined && this.#verbs?.answer(verbs, () => this.#regions!.current, this.#checksum)) return true;
    const failure = this.#check(request);
    this.#outstanding++;
    const { wrLow, wrHigh, address, length } = request;
    const read = { wrLow, wrHigh, address, length, acceptedMs: performance.now(), planned: 0 };
    this.#queue.push(failure === undefined ? read : { ...read, failure });
    return failure === undefined;
  }

  #check(request: Request): Failure | undefined {
    const regions = this.#regions!;
    const region = regions.current;
    if (request.opcode !== OPCODE.READ) return { status: WC.REM_INV_REQ_ERR, reason: `opcode ${request.opcode}` };
    if (this.#outstanding >= this.#outstandingMax) {
      return { status: WC.REM_INV_REQ_ERR, reason: `more than ${this.#outstandingMax} READs outstanding` };
    }
    if (request.length > this.#readBytesMax) {
      return { status: WC.REM_INV_REQ_ERR, reason: `READ of ${request.length} bytes, at most ${this.#readBytesMax}` };
    }
    if (request.length === 0) return undefined;
    if (request.rkey !== region.rkey) {
      if (regions.wasReplaced(request.rkey)) return this.#staleKey();
      return { status: WC.REM_ACCESS_ERR, reason: 'unknown rkey' };
    }
    if (!region.holds(request.address, request.length)) {
      return { status: WC.REM_ACCESS_ERR, reason: `range outside the region of ${region.length} bytes` };
    }
    return undefined;
  }

  #newBurst(): Burst | undefined {
    if (this.#regions!.current.inMemory) return new MemoryBurst(this.#checksum);
    const slab = this.#takeSlab();
    return slab === undefined ? undefined : new StoredBurst(slab, this.#checksum);
  }

  #takeSlab(): Slab | undefined {
    let wanted = 0;
    for (const read of this.#queue) wanted += FRAME_HEADER_BYTES + read.length - read.planned;
    const small = !this.#smallTaken;
    if (small && wanted <= SMALL_SLAB_BYTES) {
      this.#smallTaken = true;
      return this.#host.slabs.takeSmall();
    }
    const large = this.#host.slabs.takeLarge();
    if (large !== undefined || !small) return large;
    this.#smallTaken = true;
    return this.#host.slabs.takeSmall();
  }

  #giveSlab(slab: Slab | undefined): void {
    if (slab === undefined) return;
    if (!slab.large) this.#smallTaken = false;
    this.#host.slabs.give(slab);
  }

  /** Writes the bursts at the front that have their bytes. */
  #send(): void {
    while (this.#bursts[0]?.filled) {
      const burst = this.#bursts.shift()!;
      if (this.#state === 'ended') {
        this.#giveSlab(burst.slab);
        continue;
      }
      countBurst(this.#host.counters, burst);
      this.#outstanding -= burst.completions;
      this.#writing++;
      burst.write(this.#socket, () => {
        this.#writing--;
        this.#giveSlab(burst.slab);
        if (this.canStart) this.#host.ready(this);
      });
      if (burst.fatal) {
        if (burst.failure?.status === WC.REM_OP_ERR && burst.failure.stale) this.#host.onStale();
        this.#host.log('failed', this.#peer, burst.failure?.reason ?? '');
        this.#finish(undefined);
      }
    }
    if (this.canStart) this.#host.ready(this);
    else this.#endIfDone();
  }

  #endIfDone(): void {
    if (this.#state !== 'closing' || this.#queue.length > 0 || this.#bursts.length > 0) return;
    this.#finish(encodeClosed());
  }

  /**
   * Ends the connection behind a last message. What the peer still sends is read and ignored for a while: closing with
   * unread bytes would reset the connection and take the message away from the peer.
   */
  #finish(message: Uint8Array | undefined): void {
    clearTimeout(this.#timer);
    this.#state = 'ended';
    this.#queue.length = 0;
    if (message === undefined) this.#socket.end();
    else this.#socket.end(message);
    this.#timer = setTimeout(() => this.#socket.destroy(), this.#host.limits.drainMs);
    this.#timer.unref();
  }

  #drop(reason: string): void {
    this.#host.log('dropped', this.#peer, reason);
    this.#state = 'ended';
    this.#socket.destroy();
  }

  #stalled(): void {
    if (this.#writing === 0) return;
    this.#host.counters.stalled++;
    this.#drop('it does not take its bytes');
  }

  #closed(): void {
    clearTimeout(this.#timer);
    this.#state = 'ended';
    this.#queue.length = 0;
    this.#verbs?.close();
    // Bursts that are being filled keep their slabs until storage is done with them; `#send` gives them back.
    this.#host.ended(this);
  }
}
