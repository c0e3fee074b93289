/**
 * The HTTP endpoint: `/metrics` for Prometheus, `/healthz` (the process answers) and `/readyz` (it can do its work).
 * Reads nothing that a peer sends beyond the request's headers, and gives every connection little and not for long.
 * Whoever starts it may answer other paths on the same listener, and then sees to their bounds itself.
 */
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http';
import type { Server as HttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { METRICS } from './definitions.ts';
import { MetricsError } from './errors.ts';
import { isLoopback, isOwnName } from './host-name.ts';
import { ENDPOINT_CHECK_MS, ENDPOINT_LIMITS, type EndpointLimits } from './limits.ts';
import type { MetricsRegistry } from './registry.ts';

export interface EndpointOptions {
  readonly registry: MetricsRegistry;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Why `/readyz` has to say no now; undefined when it does not. Always ready when absent. */
  readonly notReady?: () => string | undefined;
  /** Answers requests for other paths; false, and nothing done, for those that it does not know either. */
  readonly others?: (request: IncomingMessage, response: ServerResponse) => boolean;
  /** Whether a request may see `/metrics`; all may when absent. */
  readonly admits?: (request: IncomingMessage) => boolean;
  /** Names that it may be asked for by, on an address of this machine alone, besides its own. `any` where nothing depends on it. */
  readonly hostNames?: readonly string[] | 'any';
  /** Makes the listener; plain HTTP when absent. */
  readonly secure?: { createHttpServer(options: ServerOptions, handshakeMs: number): HttpsServer };
  readonly limits?: Partial<EndpointLimits>;
}

export interface MetricsEndpoint {
  address(): { readonly host: string; readonly port: number };
  /** Ends it; an answer under way is cut. */
  close(): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

const PLAIN = 'text/plain; charset=utf-8';
const plain = (status: number, text: string): Answer => ({ status, type: PLAIN, text: `${text}\n` });

/** Starts the endpoint; it is listening when the promise resolves. Throws MetricsError LISTEN. */
export async function startMetricsEndpoint(options: EndpointOptions): Promise<MetricsEndpoint> {
  const limits = { ...ENDPOINT_LIMITS, ...options.limits };
  const codes = new Map<number, number>();
  const count = (status: number): void => void codes.set(status, (codes.get(status) ?? 0) + 1);
  const http: ServerOptions = {
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.requestMs,
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: Math.min(ENDPOINT_CHECK_MS, limits.requestMs),
    noDelay: true,
  };
  const server = options.secure?.createHttpServer(http, limits.requestMs) ?? createServer(http);
  const { hostNames = [], host } = options;
  const isOpen = hostNames === 'any' || !isLoopback(host);
  server.maxConnections = limits.connectionsMax;
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const isAsked = isOpen || isOwnName(request.headers.host, hostNames);
    if (isAsked && options.others?.(request, response) === true) return;
    void (isAsked ? answer(request, options) : Promise.resolve(OTHER_HOST)).then((given) => {
      count(given.status);
      send(request, response, given, limits.answerMs);
    });
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    count(400);
    refuse(error, socket);
  });
  const address = await listen(server, options.host, options.port);
  const forget = options.registry.addCollector((samples) => {
    for (const [code, times] of codes) samples.add(METRICS.httpRequests, times, { code: String(code) });
  });
  return {
    address: () => ({ host: address.address, port: address.port }),
    async close() {
      forget();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

const OTHER_HOST = plain(421, 'this address is answered for names of this machine alone (--host-names)');

function listen(server: Server | HttpsServer, host: string, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    const failed = (cause: NodeJS.ErrnoException): void => {
      const why = cause.code === 'EADDRINUSE' ? 'the address is in use (EADDRINUSE)' : cause.message;
      reject(new MetricsError('LISTEN', `${host}:${port}: ${why}`, { cause }));
    };
    server.once('error', failed);
    server.listen({ host, port }, () => {
      server.off('error', failed);
      // What fails later fails single connections, and those are not what the process is for.
      server.on('error', () => {});
      resolve(server.address() as AddressInfo);
    });
  });
}

async function answer(request: IncomingMessage, { registry, notReady, admits }: EndpointOptions): Promise<Answer> {
  const path = (request.url ?? '').split('?', 1)[0];
  if (path !== '/metrics' && path !== '/healthz' && path !== '/readyz') {
    return plain(404, 'not found: there are /metrics, /healthz and /readyz');
  }
  if (request.method !== 'GET' && request.method !== 'HEAD') return plain(405, 'only GET and HEAD');
  if (path === '/healthz') return plain(200, 'ok');
  if (path === '/readyz') {
    const reason = notReady?.();
    return reason === undefined ? plain(200, 'ready') : plain(503, reason);
  }
  if (admits?.(request) === false)
    return plain(401, 'a token that may see metrics is needed: Authorization: Bearer <token>');
  try {
    return { status: 200, type: registry.contentType, text: await registry.text() };
  } catch (error) {
    // A bug of whoever measures; the scraper notes the failure and the work goes on.
    return plain(500, error instanceof Error ? error.message : String(error));
  }
}

function send(
  request: IncomingMessage,
  response: ServerResponse,
  { status, type, text }: Answer,
  withinMs: number,
): void {
  const body = Buffer.from(text);
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined;
  response.writeHead(status, {
    'Content-Type': type,
    'Content-Length': body.byteLength,
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    ...(status === 405 ? { Allow: 'GET, HEAD' } : {}),
    ...(status === 401 ? { 'WWW-Authenticate': 'Bearer realm="qanat"' } : {}),
    // A body is not read: the connection can't be used for a next request.
    ...(hasBody ? { Connection: 'close' } : {}),
  });
  const timer = setTimeout(() => response.destroy(), withinMs);
  response.on('close', () => clearTimeout(timer));
  response.end(request.method === 'HEAD' ? undefined : body);
}

const REFUSALS: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** What is no HTTP, too long or too slow: a last line and the end. */
function refuse(error: NodeJS.ErrnoException, socket: Socket): void {
  if (socket.writable) {
    socket.write(`HTTP/1.1 ${REFUSALS[error.code ?? ''] ?? '400 Bad Request'}\r\nConnection: close\r\n\r\n`);
  }
  socket.destroy();
}
