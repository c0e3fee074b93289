/**
 * What a request is refused with, and the one place where errors become HTTP statuses. An answer that is an error is
 * JSON: {"error": {"code", "message", "retryable"}}, and for a request that makes no sense "problems", each with the
 * path in the request. Codes of the fetcher and of decoding are passed on as they are.
 */
import { DecodeError, type DecodeErrorCode } from '../../decode/index.ts';
import { FetchError, type FetchErrorCode } from '../../fetcher/index.ts';
import { redact } from '../secrets.ts';
import { RETRY_AFTER_S } from './limits.ts';

export type HttpErrorCode =
  | 'REQUEST' // no JSON, or not what the request may hold
  | 'PATH' // nothing has this path
  | 'METHOD' // the path is there for another method
  | 'MEDIA_TYPE' // a body that is no JSON
  | 'TOO_LARGE' // more body than there may be
  | 'LOCATION' // a location where only sources may be named
  | 'SOURCE' // no source of this name
  | 'MISDIRECTED' // meant for another host
  | 'VERSION' // HTTP without chunks: a cut answer would look whole
  | 'BUSY' // as many scans as there may be
  | 'STOPPING'; // the daemon is about to end

const STATUS: Readonly<Record<HttpErrorCode, number>> = {
  REQUEST: 400,
  PATH: 404,
  METHOD: 405,
  MEDIA_TYPE: 415,
  TOO_LARGE: 413,
  LOCATION: 403,
  SOURCE: 404,
  MISDIRECTED: 421,
  VERSION: 505,
  BUSY: 503,
  STOPPING: 503,
};

const FETCH_STATUS: Readonly<Record<FetchErrorCode, number>> = {
  BAD_URL: 400,
  NOT_FOUND: 404,
  COLUMN: 400,
  OPTION: 400,
  HOST: 502,
  REFUSED: 502,
  ACCESS: 409,
  STALE: 409,
  SERVER: 502,
  DENIED: 403,
  STORAGE: 500,
  PACKED: 500,
  PROTOCOL: 502,
  LOST: 502,
  RDMA: 502,
  STALLED: 504,
  OUT_OF_RANGE: 502,
  MEMORY: 507,
  CANCELLED: 503,
  CLOSED: 503,
};

/** A file that can't be read is no fault of the request's form, and none of the daemon: the request names it. */
const DECODE_STATUS: Readonly<Partial<Record<DecodeErrorCode, number>>> = { UNSUPPORTED: 501, ENCRYPTED: 501 };
const DECODE_STATUS_OTHERWISE = 422;

export interface RequestProblem {
  readonly path: string;
  readonly message: string;
}

interface Details {
  readonly problems?: readonly RequestProblem[];
  readonly headers?: Readonly<Record<string, string>>;
}

export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly code: HttpErrorCode;
  readonly problems: readonly RequestProblem[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: HttpErrorCode, message: string, { problems = [], headers = {} }: Details = {}) {
    super(message);
    this.code = code;
    this.problems = problems;
    this.headers = headers;
  }
}

export interface ErrorAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: {
    readonly error: {
      readonly code: string;
      readonly message: string;
      /** The same request may do later. */
      readonly retryable: boolean;
      readonly problems?: readonly RequestProblem[];
    };
  };
}

/** The answer for an error. What is none of the expected ones is a bug: 500, and the log has it. */
export function errorAnswer(error: unknown): ErrorAnswer {
  if (error instanceof HttpError) {
    const { code, problems, headers } = error;
    const busy = code === 'BUSY' || code === 'STOPPING';
    return answer(STATUS[code], code, error.message, busy, headers, problems);
  }
  if (error instanceof FetchError) {
    const busy = error.code === 'MEMORY' && error.retryable;
    const status = busy ? 503 : FETCH_STATUS[error.code];
    const headers = busy ? { 'Retry-After': String(RETRY_AFTER_S) } : {};
    return answer(status, error.code, error.message, error.retryable || status === 409, headers);
  }
  if (error instanceof DecodeError) {
    return answer(DECODE_STATUS[error.code] ?? DECODE_STATUS_OTHERWISE, error.code, error.message, false);
  }
  return answer(500, 'INTERNAL', 'an unexpected error; the log of the daemon has it', false);
}

/** True for what a request or the world brings about. */
export function isExpectedOfHttp(error: unknown): boolean {
  return error instanceof HttpError || error instanceof FetchError || error instanceof DecodeError;
}

function answer(
  status: number,
  code: string,
  message: string,
  retryable: boolean,
  headers: Readonly<Record<string, string>> = {},
  problems: readonly RequestProblem[] = [],
): ErrorAnswer {
  const error = { code, message: redact(message), retryable, ...(problems.length === 0 ? {} : { problems }) };
  return { status, headers, body: { error } };
}
