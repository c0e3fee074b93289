/** The listener of the S3 API. Gives every connection little and not for long; reads no body. */
import { createServer, type Server, type ServerOptions } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Certificates } from '../access/certificates.ts';
import { ServeError } from '../errors.ts';
import { CHECK_MS, type FilesLimits } from '../http/limits.ts';
import { answerS3, type S3DoorOptions } from './s3-door.ts';

export class S3Server {
  readonly #server: Server | TlsServer;

  constructor(
    options: S3DoorOptions,
    certificates: Certificates | undefined,
    { headerBytesMax, requestMs, keepAliveMs, connectionsMax }: FilesLimits,
  ) {
    const http: ServerOptions = {
      maxHeaderSize: headerBytesMax,
      headersTimeout: requestMs,
      requestTimeout: requestMs,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: Math.min(CHECK_MS, requestMs),
      noDelay: true,
    };
    this.#server =
      certificates === undefined ? createServer(http) : certificates.createHttpServer(http, requestMs, 's3');
    this.#server.maxConnections = connectionsMax;
    this.#server.on('request', (request, response) => answerS3(options, request, response));
    // Who asks whether a body is wanted is told that it is not.
    this.#server.on('checkContinue', (request, response) => answerS3(options, request, response));
    this.#server.on('clientError', refuse);
  }

  /** Starts to listen. Throws ServeError LISTEN_S3. */
  listen(host: string, port: number): Promise<AddressInfo> {
    return new Promise((resolve, reject) => {
      const failed = (cause: NodeJS.ErrnoException): void => {
        const why = cause.code === 'EADDRINUSE' ? 'the address is in use (EADDRINUSE)' : cause.message;
        reject(new ServeError('LISTEN_S3', `S3 on ${host}:${port}: ${why}`, { cause }));
      };
      this.#server.once('error', failed);
      this.#server.listen({ host, port }, () => {
        this.#server.off('error', failed);
        this.#server.on('error', () => {});
        resolve(this.#server.address() as AddressInfo);
      });
    });
  }

  /** Takes no new connections; ends those that are idle. */
  stop(): void {
    this.#server.close();
    this.#server.closeIdleConnections();
  }

  /** Ends what is left. */
  end(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

const REFUSALS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (socket.writable) {
    socket.write(`HTTP/1.1 ${REFUSALS[error.code ?? ''] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`);
  }
  socket.destroy();
}
