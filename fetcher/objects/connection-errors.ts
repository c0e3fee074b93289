/** What went wrong with a connection or an answer's form, from undici's and Node's codes: whether it may be tried again. */
import { FetchError, type FetchErrorCode } from '../errors.ts';
import { tlsFailure } from '../transport/tls-errors.ts';

const KINDS: Readonly<Record<string, readonly [code: FetchErrorCode, retryable: boolean, words?: string]>> = {
  ECONNREFUSED: ['REFUSED', true, 'connection refused'],
  EHOSTUNREACH: ['REFUSED', true, 'host unreachable'],
  ENETUNREACH: ['REFUSED', true, 'network unreachable'],
  ETIMEDOUT: ['REFUSED', true, 'no connection in time'],
  UND_ERR_CONNECT_TIMEOUT: ['REFUSED', true, 'no connection in time'],
  ENOTFOUND: ['HOST', false, 'its host has no address'],
  EAI_AGAIN: ['HOST', true, 'its host can not be looked up just now'],
  UND_ERR_HEADERS_TIMEOUT: ['STALLED', true, 'no answer in time'],
  UND_ERR_BODY_TIMEOUT: ['STALLED', true, 'the answer stopped coming'],
  ECONNRESET: ['LOST', true, 'the connection was reset'],
  EPIPE: ['LOST', true, 'the connection was lost'],
  UND_ERR_SOCKET: ['LOST', true, 'the connection was lost'],
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: ['LOST', true, 'the answer has another length than it says'],
  UND_ERR_HEADERS_OVERFLOW: ['PROTOCOL', false, 'the headers of the answer are too long'],
  UND_ERR_CLOSED: ['CLOSED', false, 'the transport is closed'],
  UND_ERR_DESTROYED: ['CLOSED', false, 'the transport is closed'],
};

/** The alert that says so comes behind what we take for success, and is seldom seen. */
const CERTIFICATE_HINT = ' before any answer: it may ask for a client certificate (--client-cert), or for another one';

/** A failure below HTTP as a FetchError; `where` goes in front of its words. `isProven` if something there has answered before. */
export function connectionError(error: unknown, where: string, isProven = true): FetchError {
  if (error instanceof FetchError) return error;
  const { code = '', message } = innermost(error);
  const kind = KINDS[code];
  if (kind !== undefined) {
    const [name, retryable, words] = kind;
    const hint = name === 'LOST' && !isProven && where.startsWith('https:') ? CERTIFICATE_HINT : '';
    return new FetchError(name, `${where}: ${words ?? message}${hint}`, { retryable, cause: error });
  }
  if (error instanceof Error && error.name === 'HTTPParserError') {
    const isTls = where.startsWith('http:') ? ': is it https://?' : '';
    const words = `${where}: what answers is not HTTP (${message})${isTls}`;
    return new FetchError('PROTOCOL', words, { retryable: true, cause: error });
  }
  const failure = tlsFailure({ code, message });
  if (failure !== undefined) {
    const words = failure.isPlain ? `${failure.words}: is it http://?` : failure.words;
    return new FetchError('REFUSED', `${where}: ${words}`, { cause: error });
  }
  return new FetchError('LOST', `${where}: ${message}`, { retryable: true, cause: error });
}

function innermost(error: unknown): { code?: string; message: string } {
  if (!(error instanceof Error)) return { message: String(error) };
  // one error for each address that was tried
  if (error instanceof AggregateError && error.errors.length > 0) return innermost(error.errors[0]);
  const { code, cause } = error as NodeJS.ErrnoException;
  if (KINDS[code ?? ''] === undefined && cause instanceof Error) return innermost(cause);
  return { ...(code === undefined ? {} : { code }), message: error.message };
}
