/**
 * A bucket of S3, or of any store that speaks it, as a source. Paths are keys, as they are. Each request for bytes has the
 * object's ETag as its condition, and where the bucket has versions names the version as soon as an answer told it. Keys
 * that end with "/" stand for folders and are no files.
 */
import { sortedByPath } from '../../storage-server/protocol/index.ts';
import { FetchError } from '../errors.ts';
import type { FileVersion, FindOptions, ReadOptions, Transport, TransportCounters } from '../transport/transport.ts';
import { type AnswerHeaders, contentLength, headerOf, isPart, parseContentRange, throwIfEncoded } from './answer.ts';
import { type AnswerSink, exchange, type Pool } from './exchange.ts';
import { KEYS_MAX, RECOVERIES_MAX, REFUSAL_BYTES_MAX, VERSIONS_KEPT_MAX } from './limits.ts';
import { type RangeSource, readByRanges } from './range-read.ts';
import { isMissing, parseRefusal, s3Refusal } from './s3-errors.ts';
import { quoted, type S3Bucket } from './s3-sdk.ts';

export interface S3SourceOptions {
  readonly name: string;
  readonly bucket: S3Bucket;
  readonly pool: Pool;
  readonly counters: TransportCounters;
}

export class S3Transport implements Transport {
  readonly #options: S3SourceOptions;
  /** Version ids by etag and key. */
  readonly #versions = new Map<string, string>();
  /** False once a version could not be read by its id: that takes a right of its own. */
  #namesVersions = true;
  readonly #ranges: RangeSource;
  #isClosed = false;

  constructor(options: S3SourceOptions) {
    this.#options = options;
    this.#ranges = {
      counters: options.counters,
      conditions: ({ etag }) => (/^"[^"]+"$/.test(etag) ? { 'if-match': etag } : undefined),
      isOfVersion: (headers, { etag }) => quoted(headerOf(headers, 'etag')?.trim() ?? '') === etag,
      send: (file, headers, sink, signal) => this.#send(file.path, headers, sink, signal, file.etag),
      refusal: (status, headers, _body, { path }) => s3Refusal(status, '', headers, path),
    };
  }

  async list(prefix: string): Promise<readonly FileVersion[]> {
    this.#throwIfClosed();
    const found: FileVersion[] = [];
    let from: string | undefined;
    do {
      const { objects, next } = await this.#options.bucket.list(prefix, from);
      this.#throwIfClosed();
      for (const { key, length, etag, modifiedMs } of objects) {
        if (key.endsWith('/') || !key.startsWith(prefix)) continue;
        found.push({ path: key, length, etag, modifiedMs });
      }
      if (found.length > KEYS_MAX) {
        const words = `more than ${KEYS_MAX} objects begin with ${JSON.stringify(prefix)}: name a folder in it`;
        throw new FetchError('MEMORY', `${this.#options.name}: ${words}`);
      }
      from = next;
    } while (from !== undefined);
    return sortedByPath(found);
  }

  /** The object of just this key; undefined for none, and for one that may not be read without knowing that it is there. */
  async find(path: string, { tailBytes, onTail }: FindOptions = {}): Promise<FileVersion | undefined> {
    this.#throwIfClosed();
    if (path === '' || path.endsWith('/')) return undefined;
    const range = tailBytes === undefined || onTail === undefined ? 'bytes=0-0' : `bytes=-${tailBytes}`;
    const probe = (await this.#probe(path, { range }, tailBytes)) ?? (await this.#probe(path, {}));
    if (probe === undefined || probe === 'none') return undefined;
    throwIfEncoded(probe.headers, path);
    const { total, range: part } = parseContentRange(headerOf(probe.headers, 'content-range')) ?? {};
    const isOfPart = isPart(probe.status, probe.headers);
    const length = isOfPart ? total : contentLength(probe.headers);
    const etag = quoted(headerOf(probe.headers, 'etag')?.trim() ?? '');
    const isAsked = part?.start === 0 || (tailBytes !== undefined && part?.end === total);
    if (length === undefined || (isOfPart && !isAsked)) {
      throw new FetchError('PROTOCOL', `${path}: the server does not say how long it is`, { retryable: true });
    }
    const tail = Buffer.concat(probe.bytes);
    const isTail = isOfPart && part !== undefined && part.end === total && tail.length === part.end - part.start;
    if (isTail) onTail?.(tail, probe.latencyMs);
    const modifiedMs = Date.parse(headerOf(probe.headers, 'last-modified') ?? '');
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

  /** undefined for an empty object that was asked for its first byte. */
  async #probe(path: string, headers: Record<string, string>, bytesMax = 1): Promise<Probe | 'none' | undefined> {
    const { counters } = this.#options;
    let probe: Probe | undefined;
    let held = 0;
    try {
      await this.#send(
        path,
        headers,
        {
          onHeaders(status, answered, latencyMs) {
            probe = { status, headers: answered, latencyMs, bytes: [] };
            held = 0;
          },
          onBytes(bytes) {
            counters.bytesOnWire += bytes.byteLength;
            counters.bytesDirectory += bytes.byteLength;
            if (probe === undefined || !isPart(probe.status, probe.headers)) return probe === undefined;
            held += bytes.byteLength;
            if (held <= bytesMax) probe.bytes.push(Uint8Array.from(bytes));
            return held <= bytesMax;
          },
        },
        undefined,
        undefined,
      );
      return probe;
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (error.status === 416) return undefined;
      if (error.status === 404 ? error.s3Code === '' || isMissing(error.s3Code) : error.status === 403) return 'none';
      throw error.asFetchError();
    }
  }

  /** Sends a request for an object; what is not its bytes is a refusal, after what can be done about it. */
  async #send(
    path: string,
    headers: Record<string, string>,
    sink: AnswerSink,
    signal: AbortSignal | undefined,
    etag: string | undefined,
  ): Promise<void> {
    const { bucket, pool, counters } = this.#options;
    const { 'accept-encoding': _, ...signed } = headers;
    const key = `${etag} ${path}`;
    for (let round = 0; ; round++) {
      this.#throwIfClosed();
      const versionId = this.#namesVersions && etag !== undefined ? this.#versions.get(key) : undefined;
      const { epoch } = bucket;
      const request = await bucket.sign(path, versionId, signed);
      const accepting = new Accepting(sink, counters);
      counters.requests++;
      await exchange(pool, etag === undefined ? { ...request, isLook: true } : request, accepting, signal);
      if (accepting.refused === undefined) {
        bucket.succeeded();
        this.#learn(accepting.headers, path);
        return;
      }
      const { status, headers: answered, body } = accepting.refused;
      const { code } = parseRefusal(Buffer.concat(body).toString('utf8'));
      const isForVersion = versionId !== undefined && status === 403 && this.#namesVersions;
      if (isForVersion) this.#namesVersions = false;
      const again = isForVersion || (await bucket.recover(status, code, answered, epoch));
      if (again && round < RECOVERIES_MAX) continue;
      const refused = new Refused(status, code, answered, path);
      throw etag === undefined ? refused : refused.asFetchError();
    }
  }

  #learn(headers: AnswerHeaders, path: string): void {
    const versionId = headerOf(headers, 'x-amz-version-id');
    const etag = quoted(headerOf(headers, 'etag')?.trim() ?? '');
    // objects from before a bucket had versions have the version "null", which goes with the next write
    if (versionId === undefined || versionId === 'null' || !this.#namesVersions) return;
    this.#versions.delete(`${etag} ${path}`);
    this.#versions.set(`${etag} ${path}`, versionId);
    if (this.#versions.size > VERSIONS_KEPT_MAX) this.#versions.delete(this.#versions.keys().next().value!);
  }
}

interface Probe {
  readonly status: number;
  readonly headers: AnswerHeaders;
  /** Time from the request to the first word of the answer. */
  readonly latencyMs: number;
  /** What came of a part, up to as much as was asked for. */
  readonly bytes: Uint8Array[];
}

/** A refusal that the one who asked may want to look at. */
class Refused extends Error {
  readonly status: number;
  readonly s3Code: string;
  readonly #headers: AnswerHeaders;
  readonly #path: string;

  constructor(status: number, s3Code: string, headers: AnswerHeaders, path: string) {
    super(`${status} ${s3Code}`);
    this.status = status;
    this.s3Code = s3Code;
    this.#headers = headers;
    this.#path = path;
  }

  asFetchError(): FetchError {
    return s3Refusal(this.status, this.s3Code, this.#headers, this.#path);
  }
}

/** Passes on what is an answer, and keeps what is none. */
class Accepting implements AnswerSink {
  readonly #sink: AnswerSink;
  readonly #counters: TransportCounters;
  headers: AnswerHeaders = {};
  refused: { readonly status: number; readonly headers: AnswerHeaders; readonly body: Uint8Array[] } | undefined;
  #bytes = 0;

  constructor(sink: AnswerSink, counters: TransportCounters) {
    this.#sink = sink;
    this.#counters = counters;
  }

  onHeaders(status: number, headers: AnswerHeaders, latencyMs: number): void {
    this.headers = headers;
    if (status === 200 || status === 206) this.#sink.onHeaders(status, headers, latencyMs);
    else this.refused = { status, headers, body: [] };
  }

  onBytes(bytes: Uint8Array): boolean {
    if (this.refused === undefined) return this.#sink.onBytes(bytes);
    this.#counters.bytesOnWire += bytes.byteLength;
    this.#counters.bytesDiscarded += bytes.byteLength;
    this.#bytes += bytes.byteLength;
    this.refused.body.push(Buffer.from(bytes));
    return this.#bytes < REFUSAL_BYTES_MAX;
  }
}
