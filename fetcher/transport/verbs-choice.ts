/**
 * How READs of one source go: over RDMA where both ends have a device and agree, else over TCP (`auto`), over RDMA or not at
 * all (`verbs`), or over TCP (`tcp`). Holds the device for the source, and tells each outcome once.
 */
import { type OpenVerbsDevice, VerbsError } from '../../storage-server/verbs/index.ts';
import { FetchError } from '../errors.ts';
import type { QueuePairRdma } from './transport.ts';
import { leaseVerbs, type VerbsLease } from './verbs-client.ts';
import type { VerbsWish } from './verbs-negotiation.ts';
import type { VerbsCounts } from './verbs-pair.ts';

export const TRANSPORTS = ['auto', 'verbs', 'tcp'] as const;
export type TransportName = (typeof TRANSPORTS)[number];

/** How READs go, or why they do not go over RDMA: the server can't, this side is set up so that it can't, or has no device. */
export type TransportOutcome = 'rdma' | 'tcp' | 'no device';

export type OnTransport = (text: string, outcome: TransportOutcome) => void;

export interface VerbsOptions {
  readonly transport?: TransportName | undefined;
  /** Name of the device on this side; without one, the first that works. */
  readonly device?: string | undefined;
  /** Ask for completions all the time instead of waiting for the device to tell: less latency, a whole core. */
  readonly busyPoll?: boolean | undefined;
  /** Another device than those of the system. */
  readonly open?: OpenVerbsDevice | undefined;
}

export class VerbsChoice {
  readonly #options: VerbsOptions;
  readonly #checksum: boolean;
  readonly #onTransport: OnTransport;
  readonly #counts: VerbsCounts = { readsOut: 0, completions: new Map() };
  #lease: Promise<VerbsLease | string> | undefined;
  #held: VerbsLease | undefined;
  #told: string | undefined;
  #released = false;

  /** Throws FetchError OPTION if what is asked for contradicts itself. */
  constructor(options: VerbsOptions, checksum: boolean, onTransport: OnTransport = () => {}) {
    if (options.transport === 'verbs' && checksum) {
      throw new FetchError(
        'OPTION',
        'checksums of payloads are made by the server, which takes no part in READs over RDMA',
      );
    }
    this.#options = options;
    this.#checksum = checksum;
    this.#onTransport = onTransport;
  }

  /** What a new connection is to ask for; undefined for TCP. Throws FetchError RDMA if RDMA must be and can't. */
  async wish(): Promise<VerbsWish | undefined> {
    const { transport = 'auto', busyPoll = false } = this.#options;
    if (transport === 'tcp') return undefined;
    const lease = await this.#leaseOrReason();
    const required = transport === 'verbs';
    if (typeof lease === 'string' && required) throw new FetchError('RDMA', lease);
    const found =
      typeof lease === 'string' ? { client: undefined, reason: lease } : { client: lease.client, reason: '' };
    const onOutcome = (reason: string | undefined): void => this.#tell(reason);
    return { ...found, required, busyPoll, counts: this.#counts, onOutcome };
  }

  /** For metrics; what was counted stays when the device is given back. */
  figures(): QueuePairRdma {
    return { device: this.#held?.client.figures, ...this.#counts };
  }

  /** All connections have ended. */
  release(): void {
    this.#released = true;
    this.#held?.release();
    this.#held = undefined;
    this.#lease = undefined;
  }

  #leaseOrReason(): Promise<VerbsLease | string> {
    this.#lease ??= this.#take();
    return this.#lease;
  }

  async #take(): Promise<VerbsLease | string> {
    if (this.#checksum) return 'checksums of payloads were asked for, which the server makes';
    try {
      const lease = await leaseVerbs(this.#options.device, this.#options.open);
      if (this.#released) {
        lease.release();
        throw new FetchError('CLOSED', 'the transport is closed');
      }
      lease.client.onUnregistered = (reason) => this.#onTransport(`READs are copied to their place: ${reason}`, 'rdma');
      this.#held = lease;
      return lease;
    } catch (error) {
      if (!(error instanceof VerbsError)) throw error;
      return error.reason;
    }
  }

  #tell(reason: string | undefined): void {
    const text = reason === undefined ? this.#usedText() : `READs go over TCP: ${reason}`;
    if (text === this.#told) return;
    this.#told = text;
    if (reason === undefined) this.#onTransport(text, 'rdma');
    else this.#onTransport(text, this.#held === undefined && !this.#checksum ? 'no device' : 'tcp');
  }

  #usedText(): string {
    const { name, port, gidKind, gid } = this.#held!.client.device.facts;
    return `READs go over RDMA: device ${name}, port ${port}, ${gidKind} ${gid}`;
  }
}
