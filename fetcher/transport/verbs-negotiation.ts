/**
 * Beside a connection that has shaken hands: asks the server for a queue pair over RDMA, connects it, and keeps it for as
 * long as the connection lives. Where it can't be had the outcome is a reason, and READs go over the connection.
 */
import {
  decodeVerbsAnswer,
  decodeVerbsRegionEvent,
  EVENT,
  encodeVerbsRequest,
  type ServedGeneration,
  type VerbsAccepted,
  type VerbsRegion,
  WC,
  type Welcome,
} from '../../storage-server/protocol/index.ts';
import { VerbsError, type VerbsQueuePair } from '../../storage-server/verbs/index.ts';
import type { RequesterHost } from './requester.ts';
import type { VerbsClient } from './verbs-client.ts';
import { type VerbsCounts, VerbsPair } from './verbs-pair.ts';

/** That a connection is to have a queue pair over RDMA if it can. */
export interface VerbsWish {
  /** What there is on this side, or why there is nothing. */
  readonly client: VerbsClient | undefined;
  readonly reason: string;
  /** Without it the connection is of no use. */
  readonly required: boolean;
  readonly busyPoll: boolean;
  /** Of all connections. */
  readonly counts: VerbsCounts;
  /** READs go over RDMA, or over the connection because of `reason`. */
  onOutcome(reason: string | undefined): void;
}

export interface NegotiationHost {
  send(bytes: Uint8Array): void;
  /** Settled: with a pair, or without one because of `reason`. */
  onOutcome(reason: string | undefined): void;
}

export class VerbsNegotiation {
  readonly #wish: VerbsWish;
  readonly #host: NegotiationHost;
  readonly #requesterHost: RequesterHost;
  readonly #stallMs: number;
  #welcome: Welcome | undefined;
  #native: VerbsQueuePair | undefined;
  #pair: VerbsPair | undefined;
  /** The last place that the server told, until the generation that is there is told too. */
  #place: VerbsRegion | undefined;
  #served: ServedGeneration | undefined;
  #isAnswered = false;
  #settled = false;

  constructor(wish: VerbsWish, stallMs: number, host: NegotiationHost, requesterHost: RequesterHost) {
    this.#wish = wish;
    this.#stallMs = stallMs;
    this.#host = host;
    this.#requesterHost = requesterHost;
  }

  get pair(): VerbsPair | undefined {
    return this.#pair;
  }

  /** The server has welcomed the connection. */
  begin(welcome: Welcome): void {
    this.#welcome = welcome;
    this.#served ??= welcome;
    const { client, reason } = this.#wish;
    if (client === undefined) {
      this.#settle(reason);
      return;
    }
    if (welcome.verbs !== true) {
      this.#settle('the server has no RDMA device in use (`qanat serve --rdma-device`)');
      return;
    }
    try {
      this.#native = client.device.createQueuePair(Math.min(client.device.facts.readsOutMax, welcome.queueDepth));
      this.#host.send(encodeVerbsRequest(this.#native.endpoint));
    } catch (error) {
      if (!(error instanceof VerbsError)) throw error;
      this.#drop(error.reason);
    }
  }

  /** An event of the server that is about RDMA. Throws ProtocolError. */
  onEvent(event: number, payload: Uint8Array): void {
    if (event === EVENT.VERBS_REGION) {
      this.#place = decodeVerbsRegionEvent(payload);
      return;
    }
    const answer = decodeVerbsAnswer(payload);
    // Not asked, or not any more, or answered already.
    if (this.#native === undefined || this.#settled || this.#isAnswered) return;
    this.#isAnswered = true;
    if ('reason' in answer) this.#drop(`the server refuses: ${answer.reason}`);
    else void this.#connect(this.#native, answer);
  }

  async #connect(native: VerbsQueuePair, { endpoint, region }: VerbsAccepted): Promise<void> {
    const { client, busyPoll, counts } = this.#wish;
    const { queueDepth, readBytesMax } = this.#welcome!;
    if (!isPlaceOf(region, this.#served!)) {
      this.#drop('the server has registered another generation than it serves');
      return;
    }
    this.#place = region;
    try {
      await native.connect(endpoint);
      if (this.#settled) return;
      const readsOutMax = Math.min(native.endpoint.readsMax, endpoint.readsMax);
      const options = {
        client: client!,
        native,
        readsOutMax,
        queueDepth,
        readBytesMax,
        busyPoll,
        stallMs: this.#stallMs,
      };
      this.#pair = new VerbsPair(options, this.#requesterHost, counts);
    } catch (error) {
      this.#drop(error instanceof VerbsError ? error.reason : String(error));
      return;
    }
    this.#native = undefined;
    // There may have been another one meanwhile.
    this.onGeneration(this.#served!);
    this.#settle(undefined);
  }

  /** The server serves this generation from now on. Where it can't be read over RDMA the pair fails. */
  onGeneration(served: ServedGeneration): void {
    this.#served = served;
    if (this.#pair === undefined || this.#pair.state === 'ERR') return;
    const place = this.#place;
    if (place !== undefined && isPlaceOf(place, served)) this.#pair.serve(served.rkey, place);
    else this.#pair.fail(WC.REM_ACCESS_ERR, 'the new generation can not be read by this queue pair', true);
  }

  /** The connection has ended. */
  end(status: number, reason: string): void {
    this.#settled = true;
    this.#pair?.fail(status, reason);
    this.#native?.destroy();
    this.#native = undefined;
  }

  #drop(reason: string): void {
    this.#native?.destroy();
    this.#native = undefined;
    this.#settle(reason);
  }

  #settle(reason: string | undefined): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#wish.onOutcome(reason);
    this.#host.onOutcome(reason);
  }
}

function isPlaceOf({ generation, length }: VerbsRegion, served: ServedGeneration): boolean {
  return Buffer.from(generation).equals(served.generation) && length === served.regionLength;
}
