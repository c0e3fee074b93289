/** What one connection has of RDMA: whether it may ask, the queue pair that it got, and the news that go with it. */
import type { Socket } from 'node:net';
import { encodeVerbsAnswer, encodeVerbsRegionEvent, type Hello, type VerbsEndpoint } from './protocol/index.ts';
import type { Region } from './region.ts';
import type { VerbsQueuePair } from './verbs/index.ts';
import type { VerbsService } from './verbs-service.ts';

export class VerbsSession {
  readonly #service: VerbsService | undefined;
  readonly #socket: Socket;
  readonly #seesEverything: boolean;
  #state: 'not granted' | 'granted' | 'asked' | 'answered' | 'ended' = 'not granted';
  #pair: VerbsQueuePair | undefined;

  /** Without `seesEverything` the client may read a part of the files only: the device can't tell them apart. */
  constructor(socket: Socket, service: VerbsService | undefined, seesEverything: boolean) {
    this.#seesEverything = seesEverything;
    this.#socket = socket;
    this.#service = service;
  }

  /** Whether the client may ask: it has a device, and so has the server. */
  grant({ verbs = false }: Hello): boolean {
    if (verbs && this.#service !== undefined) this.#state = 'granted';
    return this.#state === 'granted';
  }

  /** Answers a VERBS request; false, and nothing done, if it was not granted or has been answered already. */
  answer(client: VerbsEndpoint, region: () => Region, checksum: boolean): boolean {
    const service = this.#service;
    if (service === undefined || this.#state !== 'granted') return false;
    this.#state = 'asked';
    const objection = this.#objection();
    if (objection !== undefined) {
      this.#socket.write(encodeVerbsAnswer(service.refuse(objection), checksum));
      return true;
    }
    const accepted = service.accept(client, region, (pair) => {
      this.#pair = pair;
    });
    accepted.then(
      (answer) => {
        if (this.#state === 'ended') return;
        this.#state = 'answered';
        this.#socket.write(encodeVerbsAnswer(answer, checksum));
      },
      // A bug: it ends this connection, not the service of all others.
      (error: unknown) => this.#socket.destroy(error as Error),
    );
    return true;
  }

  /** Why this client may not have it, whatever the device. */
  #objection(): string | undefined {
    // What the connection keeps from others would go over the network for all to read.
    if ('encrypted' in this.#socket) return 'the connection is encrypted (TLS), and RDMA is not';
    return this.#seesEverything ? undefined : 'the token is for a part of the files, and RDMA reads all of them';
  }

  /** Tells where a new region lies, if it lies anywhere; to be called before it is told that there is one. */
  tell(region: Region, checksum: boolean): void {
    const place = this.#state === 'answered' ? this.#service?.placeOf(region) : undefined;
    if (place !== undefined) this.#socket.write(encodeVerbsRegionEvent(place, checksum));
  }

  /** The connection has ended. */
  close(): void {
    if (this.#pair !== undefined) this.#service?.end(this.#pair);
    this.#pair = undefined;
    this.#state = 'ended';
  }
}
