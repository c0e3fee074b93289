/**
 * Files of an HTTP server (`http://`, `https://`) as a source. Plain HTTP has no listings: a file is known by its path,
 * and looked at with a request for its first byte (never HEAD, which signed URLs refuse). A strong ETag, else a
 * Last-Modified that is old enough, is its version; without either it is told once that nothing pins it.
 * Redirects are followed and remembered while they work; credentials go to the host that they were given for alone.
 */
import { randomBytes } from 'node:crypto';
import { FetchError } from '../errors.ts';
import type { OnSkipped } from '../transport/file-transport.ts';
import type { FileVersion, ReadOptions, Transport, TransportCounters } from '../transport/transport.ts';
import {
  type AnswerHeaders,
  conditionsOf,
  contentLength,
  headerOf,
  isPart,
  isPinned,
  parseContentRange,
  throwIfEncoded,
  versionOf,
} from './answer.ts';
import { type AnswerSink, exchange, type Pool } from './exchange.ts';
import { REDIRECTS_MAX, REFUSAL_BYTES_MAX, TARGETS_KEPT_MAX } from './limits.ts';
import { type RangeSource, readByRanges } from './range-read.ts';
import { refusal } from './refusal.ts';

export interface HttpSourceOptions {
  /** `https://host:port` */
  readonly origin: string;
  /** Behind every path, from its "?" on, or ''. */
  readonly query: string;
  /** Sent as a bearer token. */
  readonly token?: string | undefined;
  readonly counters: TransportCounters;
  /** Ends with the transport. */
  readonly pool: Pool;
  /** Told, once each, of files that nothing pins. */
  readonly onUnpinned?: OnSkipped | undefined;
}

interface Target {
  readonly origin: string;
  readonly path: string;
}

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

/** What a target of a redirect answers when it has expired. */
const EXPIRED: readonly number[] = [400, 401, 403, 404, 410];

export class HttpTransport implements Transport {
  readonly #options: HttpSourceOptions;
  /** Marks versions that nothing pins: they are nobody else's. */
  readonly #nonce = randomBytes(8).toString('hex');
  readonly #told = new Set<string>();
  /** Where redirects led, by path; the least recently found first. */
  readonly #targets = new Map<string, Target>();
  /** Reads that ask where redirects lead now, by path: others wait for what they find. */
  readonly #asking = new Map<string, Promise<void>>();
  readonly #ranges: RangeSource;
  #isClosed = false;

  constructor(options: HttpSourceOptions) {
    this.#options = options;
    this.#ranges = {
      counters: options.counters,
      conditions: ({ etag }) => conditionsOf(etag),
      send: ({ path }, headers, sink, signal) => this.#send(path, headers, sink, signal),
      refusal: (status, headers, _body, { path }) => refusal(status, headers, path),
    };
  }

  /** The file of just this path; none for what ends with "/". Throws BAD_URL for all files. */
  async list(path: string): Promise<readonly FileVersion[]> {
    this.#throwIfClosed();
    if (path === '')
      throw new FetchError('BAD_URL', `${this.#options.origin}: plain HTTP has no listings, name a file`);
    if (path.endsWith('/')) return [];
    const probe = await this.#probe(path, { range: 'bytes=0-0' });
    // of an empty file there is no first byte
    const found = isEmpty(probe) ? await this.#probe(path, {}) : probe;
    if (found.status === 404 || found.status === 410) return [];
    const file = this.#fileOf(path, found);
    if (!isPinned(file.etag) && !this.#told.has(path)) {
      this.#told.add(path);
      const reason =
        'the server gives no strong ETag and no settled Last-Modified: a change while it is read may go unnoticed';
      this.#options.onUnpinned?.(path, reason);
    }
    return [file];
  }

  #fileOf(path: string, { status, headers }: Probe): FileVersion {
    if (status !== 200 && status !== 206) throw refusal(status, headers, path);
    throwIfEncoded(headers, path);
    const { total, range } = parseContentRange(headerOf(headers, 'content-range')) ?? {};
    const length = isPart(status, headers) ? total : contentLength(headers);
    if (isPart(status, headers) && range?.start !== 0) {
      throw new FetchError('PROTOCOL', `${path}: the server answers with another range than was asked for`, {
        retryable: true,
      });
    }
    if (length === undefined) throw new FetchError('PROTOCOL', `${path}: the server does not say how long it is`);
    const modifiedMs = Date.parse(headerOf(headers, 'last-modified') ?? '');
    const etag = versionOf(headers, this.#nonce);
    return { path, length, etag, modifiedMs: Number.isNaN(modifiedMs) ? 0 : modifiedMs };
  }

  async read(file: FileVersion, start: number, into: Uint8Array, options: ReadOptions = {}): Promise<void> {
    this.#throwIfClosed();
    await readByRanges(this.#ranges, file, start, into, options);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#options.pool.destroy();
  }

  #throwIfClosed(): void {
    if (this.#isClosed) throw new FetchError('CLOSED', 'the transport is closed');
  }

  async #probe(path: string, headers: Record<string, string>): Promise<Probe> {
    const { counters } = this.#options;
    let probe: Probe | undefined;
    const sink: AnswerSink = {
      onHeaders(status, answered) {
        probe = { status, headers: answered };
      },
      onBytes(bytes) {
        counters.bytesOnWire += bytes.byteLength;
        counters.bytesDirectory += bytes.byteLength;
        return probe === undefined || isPart(probe.status, probe.headers);
      },
    };
    await this.#send(path, { ...headers, 'accept-encoding': 'identity' }, sink, undefined);
    return probe!;
  }

  /** Sends a request to where the file is, over redirects. */
  async #send(
    path: string,
    headers: Record<string, string>,
    sink: AnswerSink,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const { origin, query, token, pool, counters } = this.#options;
    const own: Target = { origin, path: `/${path.split('/').map(encodeURIComponent).join('/')}${query}` };
    let target = this.#targets.get(path) ?? own;
    let mayExpire = target !== own;
    let found: (() => void) | undefined;
    try {
      for (let hops = 0; ; hops++) {
        this.#throwIfClosed();
        const following: Following = new Following(sink, counters, mayExpire, (status) => {
          if (target !== own && !mayExpire && status < 300) this.#remember(path, target);
          found?.();
        });
        const authorization: Record<string, string> =
          token !== undefined && target.origin === origin ? { authorization: `Bearer ${token}` } : {};
        counters.requests++;
        // reads are watched, and can be ended; looks only by their time
        const request = { ...target, headers: { ...headers, ...authorization }, isLook: signal === undefined };
        await exchange(pool, request, following, signal);
        if (following.isExpired) {
          if (this.#targets.get(path) === target) this.#targets.delete(path);
          // one asks again for all whose target has expired
          await this.#asking.get(path);
          target = this.#targets.get(path) ?? own;
          mayExpire = false;
          if (target === own) found = this.#ask(path);
          continue;
        }
        if (following.location === undefined) return;
        if (hops === REDIRECTS_MAX) throw new FetchError('PROTOCOL', `${path}: more than ${REDIRECTS_MAX} redirects`);
        target = redirected(target, following.location, path);
        mayExpire = false;
      }
    } finally {
      found?.();
    }
  }

  /** From now on until what is returned is called, others wait for what is found. */
  #ask(path: string): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#asking.set(path, promise);
    return () => {
      if (this.#asking.get(path) === promise) this.#asking.delete(path);
      resolve();
    };
  }

  #remember(path: string, target: Target): void {
    this.#targets.delete(path);
    this.#targets.set(path, target);
    if (this.#targets.size > TARGETS_KEPT_MAX) this.#targets.delete(this.#targets.keys().next().value!);
  }
}

interface Probe {
  readonly status: number;
  readonly headers: AnswerHeaders;
}

function isEmpty({ status, headers }: Probe): boolean {
  const { total } = parseContentRange(headerOf(headers, 'content-range')) ?? {};
  // some servers do not tell the length with it
  return status === 416 && (total === undefined || total === 0);
}

/** Where a redirect leads. Throws PROTOCOL for where it may not. */
function redirected(from: Target, location: string, path: string): Target {
  const base = from.origin + from.path;
  if (!URL.canParse(location, base)) throw new FetchError('PROTOCOL', `${path}: redirected to what is no URL`);
  const { protocol, origin, pathname, search } = new URL(location, base);
  if (protocol !== 'https:' && (protocol !== 'http:' || from.origin.startsWith('https:'))) {
    throw new FetchError('PROTOCOL', `${path}: redirected from ${from.origin} to ${protocol}//, which is not followed`);
  }
  if (origin === new URL(base).origin && pathname === `${new URL(base).pathname}/`) {
    throw new FetchError('BAD_URL', `${path} is a folder: plain HTTP has no listings, name a file`);
  }
  return { origin, path: pathname + search };
}

/** Keeps answers that are not the file's own from its sink: redirects, and those of targets that have expired. */
class Following implements AnswerSink {
  readonly #sink: AnswerSink;
  readonly #counters: TransportCounters;
  readonly #mayExpire: boolean;
  readonly #onAnswer: (status: number) => void;
  #bytes = 0;
  location: string | undefined;
  isExpired = false;

  constructor(sink: AnswerSink, counters: TransportCounters, mayExpire: boolean, onAnswer: (status: number) => void) {
    this.#sink = sink;
    this.#counters = counters;
    this.#mayExpire = mayExpire;
    this.#onAnswer = onAnswer;
  }

  onHeaders(status: number, headers: AnswerHeaders, latencyMs: number): void {
    if (REDIRECTS.includes(status)) this.location = headerOf(headers, 'location');
    this.isExpired = this.#mayExpire && EXPIRED.includes(status);
    if (this.location !== undefined || this.isExpired) return;
    this.#onAnswer(status);
    this.#sink.onHeaders(status, headers, latencyMs);
  }

  onBytes(bytes: Uint8Array): boolean {
    if (this.location === undefined && !this.isExpired) return this.#sink.onBytes(bytes);
    this.#counters.bytesOnWire += bytes.byteLength;
    this.#counters.bytesDiscarded += bytes.byteLength;
    this.#bytes += bytes.byteLength;
    return this.#bytes < REFUSAL_BYTES_MAX;
  }
}
