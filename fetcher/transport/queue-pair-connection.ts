/**
 * One queue pair over one TCP connection, under TLS or not: connect, handshake, bytes to and from the socket, the stall timer, the end. The
 * socket reads into the buffers that the pair names (`onread`), so payloads land in their destination without a copy.
 */
import { connect, isIP, type OnReadOpts, type Socket } from 'node:net';
import { type SecureContextOptions, connect as tlsConnect } from 'node:tls';
import {
  decodeWelcome,
  encodeClose,
  encodeHello,
  HANDSHAKE_MAGIC,
  isProtocolError,
  QUEUE_PAIR_ALPN,
  REFUSAL,
  type Refused,
  refusalName,
  type ServedGeneration,
  WC,
  WELCOME_BYTES,
  type Welcome,
} from '../../storage-server/protocol/index.ts';
import { FetchError, type FetchErrorCode } from '../errors.ts';
import { type CredentialOptions, fetchTlsOptions, fetchToken } from './credentials.ts';
import { QueuePair } from './queue-pair.ts';
import type { Completion, Requester } from './requester.ts';
import { tlsFailure } from './tls-errors.ts';
import { VerbsNegotiation, type VerbsWish } from './verbs-negotiation.ts';

export interface ConnectOptions {
  readonly host: string;
  readonly port: number;
  /** Under TLS. */
  readonly secure?: boolean;
  readonly credentials?: CredentialOptions;
  readonly connectMs: number;
  readonly stallMs: number;
  /** A server has answered there before: what goes wrong now may be over soon. */
  readonly proven?: boolean;
  /** Ends the attempt. */
  readonly signal?: AbortSignal;
  readonly checksum: boolean;
  readonly queueDepth: number;
  readonly outstandingMax: number;
  readonly readBytesMax: number;
  /** A queue pair over RDMA is to be had beside the connection. */
  readonly rdma?: VerbsWish | undefined;
}

export interface ConnectionEvents {
  onCompletion(completion: Completion): void;
  onPayload(bytes: number, discarded: number): void;
  /** The server serves another region from now on; may come before anybody has seen the welcome. */
  onGeneration(served: ServedGeneration): void;
  /** The connection has ended; called once, after the completions. */
  onEnd(reason: string): void;
}

/** What is shown to the server; `tls` is there for connections under TLS. */
interface Shown {
  readonly token: string | undefined;
  readonly tls: SecureContextOptions | undefined;
}

/** Connects and shakes hands. Rejects with FetchError HOST, REFUSED, STALLED, PROTOCOL or CLOSED, and what is wrong with files. */
export async function connectQueuePair(
  options: ConnectOptions,
  events: ConnectionEvents,
): Promise<QueuePairConnection> {
  const { credentials = {}, secure = false, signal } = options;
  const token = await fetchToken(credentials);
  const tls = secure ? await fetchTlsOptions(credentials) : undefined;
  if (signal?.aborted) throw new FetchError('CLOSED', 'the transport is closed');
  return new Promise((resolve, reject) => {
    const shown = { token, tls };
    const connection: QueuePairConnection = new QueuePairConnection(options, shown, events, (error) => {
      if (error === undefined) resolve(connection);
      else reject(error);
    });
  });
}

export class QueuePairConnection {
  readonly pair: QueuePair;
  readonly #socket: Socket;
  readonly #events: ConnectionEvents;
  readonly #peer: string;
  #welcomeBytes = new Uint8Array(WELCOME_BYTES);
  #welcomeTaken = 0;
  #welcome: Welcome | undefined;
  #refused: Refused | undefined;
  #settle: ((error: FetchError | undefined) => void) | undefined;
  #timer: NodeJS.Timeout;
  #reached = false;
  #ended = false;
  readonly #proven: boolean;
  readonly #checksum: boolean;
  readonly #isSecure: boolean;
  /** Bytes can go over it: it is connected, and done with TLS. */
  #isOpen = false;
  readonly #rdma: VerbsNegotiation | undefined;
  #onClosed: (() => void) | undefined;

  constructor(
    options: ConnectOptions,
    { token, tls }: Shown,
    events: ConnectionEvents,
    settle: (error: FetchError | undefined) => void,
  ) {
    this.#events = events;
    this.#isSecure = tls !== undefined;
    this.#settle = settle;
    this.#peer = options.host.includes(':') ? `[${options.host}]:${options.port}` : `${options.host}:${options.port}`;
    this.#proven = options.proven ?? false;
    this.#checksum = options.checksum;
    const told = {
      onCompletion: (completion: Completion) => events.onCompletion(completion),
      onError: () => this.#socket.destroy(),
      onPayload: (bytes: number, discarded: number) => events.onPayload(bytes, discarded),
    };
    const { rdma } = options;
    const send = (bytes: Uint8Array): unknown => this.#socket.write(bytes);
    const onOutcome = (reason: string | undefined): void => this.#established(rdma?.required === true, reason);
    this.#rdma =
      rdma === undefined ? undefined : new VerbsNegotiation(rdma, options.stallMs, { send, onOutcome }, told);
    this.pair = new QueuePair({
      ...told,
      send,
      onGeneration: (served) => {
        this.#rdma?.onGeneration(served);
        events.onGeneration(served);
      },
      onVerbs: (event, payload) => this.#rdma?.onEvent(event, payload),
    });
    this.pair.modify('INIT');
    const onread: OnReadOpts = {
      buffer: () => this.#target(),
      callback: (bytes) => this.#received(bytes),
    };
    this.#socket = this.#open(options, tls, onread);
    this.#timer = setTimeout(() => this.#endSilent(options.connectMs), options.connectMs);
    this.#socket.once('connect', () => {
      this.#reached = true;
    });
    this.#socket.once(tls === undefined ? 'connect' : 'secureConnect', () => {
      this.#isOpen = true;
      const auth = token === undefined ? undefined : new TextEncoder().encode(`Bearer ${token}`);
      this.#socket.write(encodeHello({ ...options, verbs: rdma?.client !== undefined }, auth));
    });
    this.#socket.on('error', (error) => this.#endBroken(error));
    this.#socket.on('end', () => this.#endEarly('the server ended the connection'));
    this.#socket.on('close', () => {
      this.#endEarly('the connection was lost');
      this.#onClosed?.();
    });
    // Not the callback of setTimeout, which is called once: what is posted after an idle time is watched too.
    this.#socket.on('timeout', () => {
      if (this.pair.outstanding === 0) return;
      this.pair.fail(WC.RESP_TIMEOUT_ERR, `no bytes from ${this.#peer} for ${options.stallMs} ms`);
    });
    this.#socket.setTimeout(options.stallMs);
    options.signal?.addEventListener('abort', () => this.#end('closed', { code: 'CLOSED', retryable: false }));
  }

  #open({ host, port }: ConnectOptions, tls: SecureContextOptions | undefined, onread: OnReadOpts): Socket {
    const tcp = { host, port, noDelay: true, keepAlive: true, onread };
    if (tls === undefined) return connect(tcp);
    // an address is no name to ask for, but is checked all the same
    const servername = isIP(host) === 0 ? { servername: host } : {};
    return tlsConnect({ ...tcp, ...tls, ...servername, minVersion: 'TLSv1.3', ALPNProtocols: [QUEUE_PAIR_ALPN] });
  }

  /** What READs are posted to. */
  get requester(): Requester {
    return this.#rdma?.pair ?? this.pair;
  }

  /** What the server granted. */
  get welcome(): Welcome {
    if (this.#welcome === undefined) throw new Error('no handshake yet');
    return this.#welcome;
  }

  /** Ends the connection now; what is posted completes with an error. */
  destroy(reason: string): void {
    this.#end(reason);
  }

  /** Tells the server that nothing more comes and waits for its end, for at most `graceMs`. */
  async close(graceMs: number): Promise<void> {
    if (this.#socket.destroyed) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => this.#end('closed'), graceMs);
      this.#onClosed = () => {
        clearTimeout(timer);
        resolve();
      };
      this.#socket.write(encodeClose());
    });
  }

  #target(): Uint8Array {
    return this.#welcome === undefined ? this.#welcomeBytes.subarray(this.#welcomeTaken) : this.pair.target();
  }

  #received(bytes: number): boolean {
    try {
      if (this.#welcome === undefined) this.#shake(bytes);
      else this.pair.landed(bytes);
    } catch (error) {
      if (!isProtocolError(error)) throw error;
      if (this.#welcome === undefined) this.#endStranger(error.message);
      // READs may not be posted yet: it is the setting up that fails.
      else if (this.#settle !== undefined) this.#end(error.message, { code: 'PROTOCOL', retryable: false });
      else this.pair.fail(WC.BAD_RESP_ERR, error.message);
    }
    if (this.requester.state === 'ERR' || this.pair.state === 'ERR') this.#end('the queue pair failed');
    return !this.#socket.destroyed;
  }

  #shake(bytes: number): void {
    this.#welcomeTaken += bytes;
    if (this.#welcomeTaken < this.#welcomeBytes.byteLength) return;
    if (this.#refused !== undefined) {
      this.#endRefused(this.#refused, new TextDecoder().decode(this.#welcomeBytes));
      return;
    }
    const answer = decodeWelcome(this.#welcomeBytes);
    if ('refusal' in answer) {
      this.#refused = answer;
      this.#welcomeBytes = new Uint8Array(answer.reasonBytes);
      this.#welcomeTaken = 0;
      if (answer.reasonBytes === 0) this.#endRefused(answer, '');
      return;
    }
    if (this.#checksum && !answer.checksum) {
      const failure = { code: 'PROTOCOL', retryable: false } as const;
      this.#end('the server does not send the checksums that were asked for', failure);
      return;
    }
    this.#welcome = answer;
    this.pair.modify('RTR', answer);
    this.pair.modify('RTS');
    if (this.#rdma === undefined) this.#established(false, undefined);
    else this.#rdma.begin(answer);
  }

  /** READs may be posted: `reason` says why not over RDMA. */
  #established(rdmaRequired: boolean, reason: string | undefined): void {
    clearTimeout(this.#timer);
    if (rdmaRequired && reason !== undefined) this.#end(reason, { code: 'RDMA', retryable: false });
    else this.#settled(undefined);
  }

  #endRefused({ refusal }: Refused, text: string): void {
    const retryable = refusal === REFUSAL.NO_RESOURCES || refusal === REFUSAL.CLOSING;
    const hint = refusal === REFUSAL.BAD_AUTHENTICATION ? ' (--token-file, or QANAT_TOKEN)' : '';
    this.#settled(new FetchError('REFUSED', `${this.#peer}: ${refusalName(refusal)}: ${text}${hint}`, { retryable }));
    this.#end('refused');
  }

  /** The time for the handshake is over. Where no server was seen before, a second wait is as long for nothing. */
  #endSilent(milliseconds: number): void {
    const reason = this.#reached
      ? `connected, but nothing there speaks Qanat (no answer in ${milliseconds} ms): ${WRONG_PORT}`
      : `no connection in ${milliseconds} ms`;
    this.#end(reason, { code: 'STALLED', retryable: this.#proven });
  }

  /** The other side has gone; before the handshake it may never have been a server. */
  #endEarly(reason: string): void {
    if (this.#ended || this.#welcome !== undefined || !this.#reached || this.#refused !== undefined) this.#end(reason);
    else if (!this.#isOpen) this.#endBroken(new Error(reason));
    else if (isStranger(this.#welcomeBytes.subarray(0, this.#welcomeTaken))) this.#endStranger('not a Qanat server');
    else this.#end(`${reason} before the handshake: ${this.#isSecure ? NO_CERTIFICATE : `${WRONG_PORT} ${OR_TLS}`}`);
  }

  /** The connection has failed. What is wrong with TLS stays wrong, unless the connection was only lost. */
  #endBroken(error: NodeJS.ErrnoException): void {
    const failure = this.#isSecure && this.#welcome === undefined ? tlsFailure(error) : undefined;
    if (failure !== undefined) {
      const words = failure.isPlain ? `${failure.words}: ${NO_TLS}` : failure.words;
      this.#end(words, { code: 'REFUSED', retryable: false });
    } else if (this.#isSecure && this.#reached && !this.#isOpen && !this.#proven) {
      this.#end(`${error.message} in the TLS handshake: ${NO_TLS}`);
    } else this.#end(error.message, connectError(error, this.#proven));
  }

  /** One that speaks something else stays wrong. */
  #endStranger(reason: string): void {
    const isTls = !this.#isSecure && TLS_RECORDS.includes(this.#welcomeBytes[0]!);
    const what = isTls ? `speaks Qanat without TLS: ${NO_PLAIN}` : `speaks Qanat (${reason}): ${WRONG_PORT}`;
    this.#end(`connected, but nothing there ${what}`, {
      code: 'PROTOCOL',
      retryable: false,
    });
  }

  /** A server that is not there may come back. */
  #end(reason: string, what: ConnectFailure = { code: 'REFUSED', retryable: true }): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    const text = `${this.#peer}: ${what.reason ?? reason}`;
    this.#settled(new FetchError(what.code, text, { retryable: what.retryable }));
    this.#socket.destroy();
    this.#rdma?.end(WC.FATAL_ERR, reason);
    this.pair.fail(WC.FATAL_ERR, reason);
    this.#events.onEnd(reason);
  }

  #settled(error: FetchError | undefined): void {
    this.#settle?.(error);
    this.#settle = undefined;
  }
}

interface ConnectFailure {
  readonly code: FetchErrorCode;
  readonly retryable: boolean;
  /** In better words than those of the system. */
  readonly reason?: string;
}

const WRONG_PORT = 'is this the port of a `qanat serve`?';
const OR_TLS = 'One with --tls-cert is reached with rdmas://';
const NO_TLS = 'a server without --tls-cert is reached with rdma://';
const NO_PLAIN = 'it answers with TLS, and is reached with rdmas://';
const NO_CERTIFICATE =
  'it may ask for a client certificate (--client-cert), or for another one; or it is no `qanat serve`';

/** First bytes of what comes under TLS: alerts and handshakes. */
const TLS_RECORDS: readonly number[] = [21, 22];

/** What a socket's error before the handshake means. */
function connectError(error: NodeJS.ErrnoException, proven: boolean): ConnectFailure {
  switch (error.code) {
    case 'ENOTFOUND':
      return { code: 'HOST', retryable: proven, reason: 'no host of this name is known' };
    case 'EAI_AGAIN':
      return { code: 'HOST', retryable: true, reason: 'the name server does not answer' };
    case 'ECONNREFUSED':
      return {
        code: 'REFUSED',
        retryable: true,
        reason: 'nothing listens there (ECONNREFUSED): is `qanat serve` running there?',
      };
    default:
      return { code: 'REFUSED', retryable: true };
  }
}

/** Whether the first bytes of an answer can't be those of a server. */
function isStranger(bytes: Uint8Array): boolean {
  const magic = new Uint8Array(4);
  new DataView(magic.buffer).setUint32(0, HANDSHAKE_MAGIC, true);
  return bytes.length > 0 && magic.subarray(0, bytes.length).some((byte, k) => byte !== bytes[k]);
}
