/**
 * A web server over a folder, for tests, that does what is asked of it and what servers get wrong: each request may be
 * given a fault. What it did is kept, so that a test can say what was sent.
 */
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';

export type Fault =
  | 'reset' // the connection, before anything is sent
  | 'truncate' // the connection ends in the middle of the body
  | 'truncate-chunked' // the body ends early, and says that it is whole
  | 'stall' // the body stops coming
  | 'stall-headers' // no answer at all
  | 'busy' // 503
  | 'wrong-range' // bytes of another range, and it says so
  | 'short' // fewer bytes than asked, and it says so
  | 'long' // more bytes than asked, in chunks
  | 'whole' // 200 for a range
  | 'part-as-200' // 200 and the range, as rclone answers
  | 'whole-chunked' // 200 for a range, without a length
  | 'other-etag' // the same bytes under another ETag
  | 'no-range-header' // 206 without Content-Range
  | 'gzip' // compressed although nobody asked
  | 'not-modified' // 304
  | 'parts' // multipart/byteranges
  | 'garbage'; // no HTTP

export interface WebServerOptions {
  /** What validators it sends; `old` is a Last-Modified of a minute ago. Default: strong ETags and Last-Modified. */
  readonly validators?: 'strong' | 'weak' | 'modified' | 'fresh' | 'none';
  /** It knows of If-Match and If-Unmodified-Since. */
  readonly conditions?: boolean;
  readonly ranges?: boolean;
  /** Every version that was ever seen can be had by its id, as in a bucket with versions. */
  readonly versions?: boolean;
  readonly tls?: ServerOptions;
  /** What to do wrong with this request. */
  readonly fault?: (request: IncomingMessage, count: number) => Fault | undefined;
  /** Answers by itself and returns true. */
  readonly intercept?: (request: IncomingMessage, response: ServerResponse) => boolean;
}

export interface WebServer {
  readonly origin: string;
  readonly requests: { readonly path: string; readonly headers: IncomingMessage['headers']; readonly method: string }[];
  fault: WebServerOptions['fault'] | undefined;
  connections(): number;
  stop(): Promise<void>;
}

interface StoredFile {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly modified: Date;
}

export async function startWebServer(
  t: TestContext,
  folder: string,
  options: WebServerOptions = {},
): Promise<WebServer> {
  const requests: WebServer['requests'] = [];
  let connections = 0;
  const kept = new Map<string, StoredFile>();
  const history = new Map<string, StoredFile>();
  const load = (path: string): StoredFile | undefined => {
    try {
      const local = join(folder, path);
      const found = statSync(local);
      const etag = `"${found.ino.toString(36)}-${found.mtimeMs.toString(36)}-${found.size.toString(36)}"`;
      const old = kept.get(path);
      if (old?.etag === etag) return old;
      const loaded = { bytes: readFileSync(local), etag, modified: new Date(found.mtimeMs - 60_000) };
      kept.set(path, loaded);
      history.set(`${path}?${versionId(loaded)}`, loaded);
      return loaded;
    } catch {
      return undefined;
    }
  };
  const listener: RequestListener = (request, response) => {
    const url = new URL(request.url!, 'http://h');
    const path = decodeURIComponent(url.pathname).slice(1);
    requests.push({ path: request.url!, headers: request.headers, method: request.method! });
    if (options.intercept?.(request, response)) return;
    const fault = server.fault?.(request, requests.length);
    const current = load(path);
    const id = options.versions ? url.searchParams.get('versionId') : null;
    answer(request, response, id === null ? current : history.get(`${path}?${id}`), options, fault);
  };
  const http: Server = options.tls === undefined ? createServer(listener) : createTlsServer(options.tls, listener);
  http.on('connection', () => connections++);
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const stop = async (): Promise<void> => {
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
  };
  t.after(stop);
  const { port } = http.address() as AddressInfo;
  const scheme = options.tls === undefined ? 'http' : 'https';
  const server: WebServer = {
    origin: `${scheme}://127.0.0.1:${port}`,
    requests,
    fault: options.fault,
    connections: () => connections,
    stop,
  };
  return server;
}

function versionId({ etag }: StoredFile): string {
  return `v${etag.slice(1, -1)}`;
}

function answer(
  request: IncomingMessage,
  response: ServerResponse,
  file: StoredFile | undefined,
  { validators = 'strong', conditions = true, ranges = true, versions = false }: WebServerOptions,
  fault: Fault | undefined,
): void {
  const refuse = (status: number, headers: Record<string, string> = {}): void => {
    response.writeHead(status, headers);
    response.end(status === 304 ? undefined : `no: ${status}`);
  };
  if (fault === 'stall-headers') return;
  if (fault === 'reset') {
    response.socket?.resetAndDestroy();
    return;
  }
  if (fault === 'garbage') {
    response.socket?.end('220 smtp here\r\n');
    return;
  }
  if (fault === 'busy') {
    refuse(503, { 'Retry-After': '0' });
    return;
  }
  if (fault === 'not-modified') {
    refuse(304);
    return;
  }
  if (request.method !== 'GET') {
    refuse(405);
    return;
  }
  if (file === undefined) {
    refuse(404);
    return;
  }
  const { bytes, modified } = file;
  const etag = fault === 'other-etag' ? '"other"' : file.etag;
  const headers: Record<string, string> = { 'Accept-Ranges': ranges ? 'bytes' : 'none' };
  if (validators === 'strong' || validators === 'weak') headers.ETag = validators === 'weak' ? `W/${etag}` : etag;
  if (validators === 'fresh') headers['Last-Modified'] = new Date().toUTCString();
  else if (validators !== 'none') headers['Last-Modified'] = modified.toUTCString();
  if (versions) headers['x-amz-version-id'] = versionId(file);
  const { 'if-match': match, 'if-unmodified-since': since } = request.headers;
  if (conditions && match !== undefined && match !== headers.ETag) {
    refuse(412);
    return;
  }
  const sinceMs = since === undefined ? Number.NaN : Date.parse(since);
  if (conditions && sinceMs < Math.floor(modified.getTime() / 1000) * 1000) {
    refuse(412);
    return;
  }
  const [, first, last] = /^bytes=(\d*)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
  if (!ranges || first === undefined || fault === 'whole' || fault === 'whole-chunked') {
    if (fault !== 'whole-chunked') headers['Content-Length'] = String(bytes.length);
    response.writeHead(200, headers);
    response.end(bytes);
    return;
  }
  let [start, end] = [Number(first), Math.min(Number(last) + 1, bytes.length)];
  if (first === '') [start, end] = [Math.max(0, bytes.length - Number(last)), bytes.length];
  if (start >= bytes.length) {
    refuse(416, { 'Content-Range': `bytes */${bytes.length}` });
    return;
  }
  if (fault === 'wrong-range') start = Math.max(0, start - 1);
  if (fault === 'wrong-range' && start === 0) end = Math.min(bytes.length, end + 1);
  if (fault === 'short') end = start + Math.max(1, (end - start) >> 1);
  let body = bytes.subarray(start, end);
  if (fault === 'gzip') {
    body = gzipSync(body);
    headers['Content-Encoding'] = 'gzip';
  }
  if (fault === 'parts') headers['Content-Type'] = 'multipart/byteranges; boundary=x';
  else if (fault !== 'no-range-header') headers['Content-Range'] = `bytes ${start}-${end - 1}/${bytes.length}`;
  if (fault === 'long') body = Buffer.concat([body, Buffer.alloc(100, 0xaa)]);
  const isChunked = fault === 'long' || fault === 'truncate-chunked';
  if (!isChunked) headers['Content-Length'] = String(body.length);
  response.writeHead(fault === 'part-as-200' ? 200 : 206, headers);
  const half = body.length >> 1;
  if (fault === 'truncate-chunked') response.end(body.subarray(0, half));
  else if (fault === 'stall') response.write(body.subarray(0, half));
  else if (fault === 'truncate') response.write(body.subarray(0, half), () => response.socket?.destroy());
  else response.end(body);
}
