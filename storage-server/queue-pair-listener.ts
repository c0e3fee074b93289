/**
 * The listener of queue pairs: plain TCP, or TLS. Under TLS a connection is handed on when its handshake is done, but told
 * of when it comes, so that one that never finishes it counts as one that says nothing.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { Certificates } from './access/certificates.ts';
import { QUEUE_PAIR_ALPN } from './protocol/index.ts';

export interface ListenerEvents {
  /** A connection in its TLS handshake. False when there is no room for it. */
  onHandshake(handshake: Handshake): boolean;
  /** It is over, with or without a connection. */
  onHandshakeEnd(handshake: Handshake): void;
  /** Bytes can go over it from now on. */
  onConnection(socket: Socket, handshake: Handshake | undefined): void;
  /** A handshake has failed. */
  onFailure(peer: string, reason: string): void;
}

/** A connection in its TLS handshake. */
export class Handshake {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Ends the connection. */
  dropSilent(): void {
    this.#socket.destroy();
  }
}

/** Makes the listener; it does not listen yet. */
export function createListener(
  certificates: Certificates | undefined,
  handshakeMs: number,
  events: ListenerEvents,
): Server {
  const options = { allowHalfOpen: true };
  if (certificates === undefined) {
    return createServer(options, (socket) => events.onConnection(socket, undefined));
  }
  const handshakes = new Map<string, Handshake>();
  const server = createTlsServer({
    ...options,
    ...certificates.options,
    ALPNProtocols: [QUEUE_PAIR_ALPN],
    handshakeTimeout: handshakeMs,
  });
  certificates.attach(server);
  server.on('connection', (socket: Socket) => {
    const handshake = new Handshake(socket);
    socket.on('error', () => {});
    if (!events.onHandshake(handshake)) {
      socket.destroy();
      return;
    }
    const key = endsOf(socket);
    handshakes.set(key, handshake);
    socket.once('close', () => {
      if (handshakes.get(key) !== handshake) return;
      handshakes.delete(key);
      events.onHandshakeEnd(handshake);
    });
  });
  server.on('secureConnection', (socket) => {
    const key = endsOf(socket);
    const handshake = handshakes.get(key);
    handshakes.delete(key);
    if (handshake === undefined) {
      socket.destroy();
      return;
    }
    events.onHandshakeEnd(handshake);
    events.onConnection(socket, handshake);
  });
  server.on('tlsClientError', (error, socket) => {
    events.onFailure(`${socket.remoteAddress ?? '?'}:${socket.remotePort ?? 0}`, reasonOf(error));
    socket.destroy();
  });
  return server;
}

/** What tells a connection from all others that are open: Node hands on another socket than it announced. */
function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

function reasonOf(error: NodeJS.ErrnoException): string {
  if (error.code === 'ERR_TLS_HANDSHAKE_TIMEOUT') return 'no complete TLS handshake in time';
  if (error.code === 'ECONNRESET') return 'it ended in the TLS handshake';
  return `the TLS handshake failed (${error.code ?? error.message})`;
}
