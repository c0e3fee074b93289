/**
 * The daemon's HTTP server:
 *   POST /v1/scan                   JSON -> Arrow IPC stream (scan-answer.ts)
 *   GET  /v1/sources                names and locations
 *   GET  /v1/sources/{name}/files   the files that a source means now
 * Input is hostile: headers, bodies, times and connections are bounded. There is no authentication, so that browsers
 * are kept out: a body has to say that it is JSON, which they ask permission for and get none, and an address of this
 * machine alone is answered for names of this machine alone.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { formatHostPort, type HostPort } from '../argument.ts';
import { CommandError } from '../errors.ts';
import { isExposed } from '../exposure.ts';
import type { Log } from '../log.ts';
import { redact } from '../secrets.ts';
import { errorAnswer, HttpError, isExpectedOfHttp } from './http-error.ts';
import {
  BODY_BYTES_MAX,
  CHECK_MS,
  CONNECTIONS_SPARE,
  FILES_AT_ONCE,
  HEADER_BYTES_MAX,
  KEEP_ALIVE_MS,
  REQUEST_MS,
  RESPONSE_BYTES_AHEAD,
} from './limits.ts';
import { cutOff, ResponseOutput } from './response-output.ts';
import { answerScan } from './scan-answer.ts';
import { parseScanBody } from './scan-body.ts';
import type { ScanService } from './scan-service.ts';

/** Times that tests shorten, milliseconds. */
export interface ApiTimes {
  readonly requestMs: number;
  readonly checkMs: number;
}

export class ApiServer {
  readonly #server: Server;
  readonly #service: ScanService;
  readonly #log: Log;
  readonly #isLocal: boolean;
  #scans = 0;

  private constructor(service: ScanService, log: Log, listen: HostPort, times: ApiTimes) {
    this.#service = service;
    this.#log = log;
    this.#isLocal = !isExposed(listen);
    this.#server = createServer(
      {
        maxHeaderSize: HEADER_BYTES_MAX,
        headersTimeout: times.requestMs,
        requestTimeout: times.requestMs,
        keepAliveTimeout: KEEP_ALIVE_MS,
        connectionsCheckingInterval: times.checkMs,
        highWaterMark: RESPONSE_BYTES_AHEAD,
        noDelay: true,
      },
      (request, response) => void this.#handle(request, response),
    );
    this.#server.on('clientError', refuse);
    this.applySettings();
  }

  /** Listens; port 0 takes a free one. Throws CommandError LISTEN. */
  static async start(
    service: ScanService,
    log: Log,
    listen: HostPort,
    times: ApiTimes = { requestMs: REQUEST_MS, checkMs: CHECK_MS },
  ): Promise<ApiServer> {
    const api = new ApiServer(service, log, listen, times);
    await new Promise<void>((resolve, reject) => {
      api.#server.once('error', (error) => {
        const reason = `can't listen on ${formatHostPort(listen)}: ${error.message}`;
        reject(new CommandError('LISTEN', `${reason}; choose another address with --listen`, { cause: error }));
      });
      api.#server.listen(listen.port, listen.host, resolve);
    });
    return api;
  }

  address(): HostPort {
    const { address, port } = this.#server.address() as AddressInfo;
    return { host: address, port };
  }

  /** The service has other settings. */
  applySettings(): void {
    this.#server.maxConnections = this.#service.settings.maxScans + CONNECTIONS_SPARE;
  }

  /** Accepts no connection any more; those without a request end. */
  stopListening(): void {
    this.#server.close();
    this.#server.closeIdleConnections();
  }

  /** Ends every connection there still is. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      if (this.#service.isStopping) response.setHeader('Connection', 'close');
      await this.#route(request, response);
    } catch (error) {
      this.#fail(error, request, response);
    }
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#checkHost(request);
    const { segments, path } = pathOf(request);
    const [version, what, name, files, ...rest] = segments;
    if (version === 'v1' && rest.length === 0) {
      if (what === 'scan' && name === undefined) {
        checkMethod(request, 'POST');
        return this.#scan(request, response);
      }
      if (what === 'sources' && name === undefined) {
        checkMethod(request, 'GET');
        return sendJson(response, 200, this.#sources());
      }
      if (what === 'sources' && name !== undefined && files === 'files') {
        checkMethod(request, 'GET');
        return this.#files(name, response);
      }
    }
    const there = 'POST /v1/scan, GET /v1/sources and GET /v1/sources/{name}/files';
    throw new HttpError('PATH', `nothing at ${redact(path)}: there are ${there}`);
  }

  /** A page whose own name is made to mean this machine is still called by its own name. */
  #checkHost({ headers }: IncomingMessage): void {
    const host = (headers.host ?? '').replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
    if (!this.#isLocal || host.endsWith('.localhost') || !isExposed({ host, port: 0 })) return;
    throw new HttpError('MISDIRECTED', 'this address answers requests to this machine only, by the name localhost');
  }

  async #scan(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const began = performance.now();
    const body = parseScanBody(await readJsonBody(request));
    const scan = ++this.#scans;
    const { source, location, path } = body;
    const about = { scan, source: source ?? location, ...(path === undefined ? {} : { path }) };
    this.#log.debug({ ...about, columns: body.columns, limit: body.limit }, 'scan begins');
    const { outcome, rows, bytes, error } = await answerScan(this.#service, body, request, response);
    const ms = Math.round(performance.now() - began);
    if (error === undefined) this.#log.info({ ...about, rows, bytes, ms }, `scan: ${outcome}`);
    else this.#log.warn({ ...about, rows, bytes, ms, err: error }, `scan: ${outcome}`);
  }

  #sources(): unknown {
    return {
      sources: this.#service.sources.list().map(([name, { location }]) => ({ name, location: redact(location) })),
    };
  }

  /** Written in parts: a source may have a hundred thousand files. */
  async #files(name: string, response: ServerResponse): Promise<void> {
    const lease = await this.#service.sources.acquire(name);
    try {
      const { source } = lease;
      const { files, leftOut } = await source.listing();
      const output = new ResponseOutput(response, this.#service.settings.clientTimeout);
      response.writeHead(200, JSON_HEADERS);
      await output.write(Buffer.from(`{"source":${JSON.stringify(name)},"leftOut":${leftOut},"files":[`));
      for (let from = 0; from < files.length; from += FILES_AT_ONCE) {
        const part = files.slice(from, from + FILES_AT_ONCE).map(({ path, length, etag, modifiedMs }) => {
          const modified = new Date(modifiedMs).toISOString();
          const location = redact(source.locationOf(path));
          return JSON.stringify({ path: source.pathWithin(path), location, bytes: length, modified, etag });
        });
        await output.write(Buffer.from(`${from === 0 ? '' : ','}${part.join(',')}`));
      }
      await output.write(Buffer.from(']}\n'));
      await output.finish();
    } finally {
      lease.release();
    }
  }

  #fail(error: unknown, request: IncomingMessage, response: ServerResponse): void {
    const { method, url } = request;
    const about = { method, path: url?.split('?')[0] };
    if (response.destroyed || (error instanceof CommandError && error.code === 'OUTPUT_CLOSED')) {
      this.#log.debug(about, 'the client has gone');
      return;
    }
    if (response.headersSent) {
      this.#log.warn({ ...about, err: error }, 'an answer failed midway');
      cutOff(response);
      return;
    }
    const { status, headers, body } = errorAnswer(error);
    const { code, message } = body.error;
    if (!isExpectedOfHttp(error)) this.#log.error({ ...about, err: error }, 'a bug of Qanat');
    else this.#log[status >= 500 ? 'warn' : 'info']({ ...about, status, code }, message);
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    // what is left of a body is not read
    if (!request.complete) response.setHeader('Connection', 'close');
    sendJson(response, status, body);
  }
}

const JSON_HEADERS = {
  'Content-Type': 'application/json',
  'Cache-Control': 'no-store',
  'X-Content-Type-Options': 'nosniff',
};

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  const body = Buffer.from(`${JSON.stringify(value)}\n`);
  response.writeHead(status, { ...JSON_HEADERS, 'Content-Length': body.byteLength });
  response.end(body);
}

function checkMethod({ method }: IncomingMessage, wanted: 'GET' | 'POST'): void {
  if (method === wanted || (wanted === 'GET' && method === 'HEAD')) return;
  const allow = wanted === 'GET' ? 'GET, HEAD' : wanted;
  throw new HttpError('METHOD', `expected ${wanted}, found ${method}`, { headers: { Allow: allow } });
}

/** The path's segments, each decoded. Throws HttpError PATH. */
function pathOf({ url = '/' }: IncomingMessage): { path: string; segments: string[] } {
  const path = url.split('?')[0]!;
  try {
    return { path, segments: path.split('/').slice(1).map(decodeURIComponent) };
  } catch {
    throw new HttpError('PATH', `the path ${redact(path)} is not encoded as it should be`);
  }
}

/** Throws HttpError MEDIA_TYPE and TOO_LARGE. */
async function readJsonBody(request: IncomingMessage): Promise<Buffer> {
  const [type = ''] = (request.headers['content-type'] ?? '').toLowerCase().split(/\s*;/);
  if (type !== 'application/json' || request.headers['content-encoding'] !== undefined) {
    throw new HttpError(
      'MEDIA_TYPE',
      `expected Content-Type: application/json, found ${type === '' ? 'none' : redact(type)}`,
    );
  }
  const tooLarge = (): HttpError => new HttpError('TOO_LARGE', `the body has more than ${BODY_BYTES_MAX} bytes`);
  if (Number(request.headers['content-length'] ?? 0) > BODY_BYTES_MAX) throw tooLarge();
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    if (bytes > BODY_BYTES_MAX) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
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
