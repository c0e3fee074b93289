/**
 * A read by range requests: each asks for what is still missing, under the condition that the file is the version that is
 * meant, and what comes is checked against both before a byte of it counts. Shared by HTTP and S3; they differ in how a
 * request is sent and what a refusal means. The seam's contract (transport.ts) is kept here.
 */
import { FetchError } from '../errors.ts';
import { checkRange, throwIfCancelled } from '../transport/range.ts';
import type { FileVersion, ReadOptions, TransportCounters } from '../transport/transport.ts';
import {
  type AnswerHeaders,
  contentLength,
  headerOf,
  isOfVersion,
  isPart,
  parseContentRange,
  throwIfEncoded,
} from './answer.ts';
import type { AnswerSink } from './exchange.ts';
import { ANSWERS_MAX, REFUSAL_BYTES_MAX, SKIPPED_BYTES_MAX } from './limits.ts';

export interface RangeSource {
  readonly counters: TransportCounters;
  /** Headers that pin the version; undefined when it is none of this source's. */
  conditions(file: FileVersion): Record<string, string> | undefined;
  /** Whether an answer's headers can be of this version. */
  isOfVersion?(headers: AnswerHeaders, file: FileVersion): boolean;
  /** Sends a request for the file and gives its answer to the sink. */
  send(file: FileVersion, headers: Record<string, string>, sink: AnswerSink, signal?: AbortSignal): Promise<void>;
  /** What an answer means that is neither 200 nor 206. */
  refusal(status: number, headers: AnswerHeaders, body: string, file: FileVersion): FetchError;
}

/** Reads exactly the bytes that fit `into`. */
export async function readByRanges(
  source: RangeSource,
  file: FileVersion,
  start: number,
  into: Uint8Array,
  options: ReadOptions = {},
): Promise<void> {
  checkRange(file, start, into.byteLength);
  throwIfCancelled(file, options.signal);
  const conditions = source.conditions(file);
  if (conditions === undefined) throw new FetchError('STALE', `${file.path}: no version ${file.etag} was ever listed`);
  let landed = 0;
  for (let answers = 0; landed < into.byteLength; answers++) {
    if (answers === ANSWERS_MAX) {
      throw new FetchError('PROTOCOL', `${file.path}: the server answers in pieces that are too small`);
    }
    const before = landed;
    const answer = new RangeAnswer(source, file, start + before, into.subarray(before), (bytes) => {
      landed = before + bytes;
      options.onArrived?.(landed);
    });
    const range = `bytes=${start + before}-${start + into.byteLength - 1}`;
    const headers = { range, 'accept-encoding': 'identity', ...conditions };
    await source.send(file, headers, answer, options.signal);
    answer.end();
  }
}

/** Takes one answer: checks what it says it is and puts its bytes where they belong. */
class RangeAnswer implements AnswerSink {
  readonly #source: RangeSource;
  readonly #file: FileVersion;
  readonly #start: number;
  readonly #into: Uint8Array;
  readonly #onArrived: (bytes: number) => void;
  /** Bytes in front of the asked ones that are still to come. */
  #skip = 0;
  /** Bytes that the answer says it has of those that were asked for. */
  #promised = 0;
  /** Of a longer answer the rest is not waited for. */
  #isWhole = false;
  #landed = 0;
  #refused:
    | { readonly status: number; readonly headers: AnswerHeaders; readonly body: Uint8Array[]; bytes: number }
    | undefined;

  constructor(
    source: RangeSource,
    file: FileVersion,
    start: number,
    into: Uint8Array,
    onArrived: (bytes: number) => void,
  ) {
    this.#source = source;
    this.#file = file;
    this.#start = start;
    this.#into = into;
    this.#onArrived = onArrived;
  }

  onHeaders(status: number, headers: AnswerHeaders): void {
    this.#skip = this.#promised = this.#landed = 0;
    this.#isWhole = !isPart(status, headers);
    this.#refused = undefined;
    if (status !== 200 && status !== 206) {
      this.#refused = { status, headers, body: [], bytes: 0 };
      return;
    }
    const { path } = this.#file;
    throwIfEncoded(headers, path);
    const matches = this.#source.isOfVersion?.(headers, this.#file) ?? isOfVersion(headers, this.#file.etag);
    // a server that has the version says so: one that says nothing has got something wrong
    if (!matches && !namesVersion(headers)) throw this.#wrong('bytes without a word of their version');
    if (!matches) throw new FetchError('STALE', `${path} has changed since it was opened`);
    if (this.#isWhole) this.#checkWhole(headers);
    else this.#checkPart(headers);
  }

  #checkPart(headers: AnswerHeaders): void {
    const { path, length } = this.#file;
    const wanted = this.#start + this.#into.byteLength;
    const told = headerOf(headers, 'content-range');
    const { range, total } = parseContentRange(told) ?? {};
    if (total !== undefined && total !== length) throw this.#resized(total);
    if (range === undefined || range.start !== this.#start || range.end > wanted) {
      const answered = told === undefined ? 'bytes without a range' : `the range ${told.slice(0, 60)}`;
      throw this.#wrong(`${answered} for bytes ${this.#start}-${wanted - 1}`);
    }
    this.#promised = range.end - range.start;
    const bytes = contentLength(headers);
    if (bytes !== undefined && bytes !== this.#promised) {
      throw this.#wrong(`${bytes} bytes for a range of ${this.#promised} of ${path}`);
    }
  }

  #checkWhole(headers: AnswerHeaders): void {
    const { path, length } = this.#file;
    const bytes = contentLength(headers);
    if (bytes !== undefined && bytes !== length) throw this.#resized(bytes);
    if (this.#start > SKIPPED_BYTES_MAX) {
      const what = `${path}: the server has no ranges, and would send ${this.#start} bytes before those that are needed`;
      throw new FetchError('PROTOCOL', `${what}; ${SKIPPED_BYTES_MAX} are taken at most`);
    }
    this.#skip = this.#start;
    this.#promised = this.#into.byteLength;
  }

  #resized(length: number): FetchError {
    const { path, length: before } = this.#file;
    return new FetchError('STALE', `${path} has ${length} bytes and had ${before} when it was opened`);
  }

  /** What a server has got wrong it may get right the next time; none of it is used. */
  #wrong(what: string): FetchError {
    return new FetchError('PROTOCOL', `${this.#file.path}: the server answers with ${what}`, { retryable: true });
  }

  onBytes(bytes: Uint8Array): boolean {
    const { counters } = this.#source;
    counters.bytesOnWire += bytes.byteLength;
    if (this.#refused !== undefined) {
      counters.bytesDiscarded += bytes.byteLength;
      this.#refused.bytes += bytes.byteLength;
      this.#refused.body.push(Buffer.from(bytes));
      return this.#refused.bytes < REFUSAL_BYTES_MAX;
    }
    const skipped = Math.min(this.#skip, bytes.byteLength);
    this.#skip -= skipped;
    const used = Math.min(bytes.byteLength - skipped, this.#promised - this.#landed);
    const excess = bytes.byteLength - skipped - used;
    counters.bytesDiscarded += skipped + excess;
    if (used > 0) {
      this.#into.set(bytes.subarray(skipped, skipped + used), this.#landed);
      this.#landed += used;
      this.#onArrived(this.#landed);
    }
    if (excess > 0 && !this.#isWhole) throw this.#wrong(`more bytes than its range of ${this.#promised} has`);
    return !this.#isWhole || this.#landed < this.#promised;
  }

  /** The answer has ended. Throws what it was instead, or what it lacks. */
  end(): void {
    const { path } = this.#file;
    if (this.#refused !== undefined) {
      const { status, headers, body } = this.#refused;
      throw this.#source.refusal(status, headers, Buffer.concat(body).toString('utf8'), this.#file);
    }
    if (this.#landed < this.#promised) {
      const what = `${path}: the answer ended after ${this.#landed} of ${this.#promised} bytes`;
      throw new FetchError('LOST', what, { retryable: true });
    }
  }
}

function namesVersion(headers: AnswerHeaders): boolean {
  return headerOf(headers, 'etag') !== undefined || headerOf(headers, 'last-modified') !== undefined;
}
