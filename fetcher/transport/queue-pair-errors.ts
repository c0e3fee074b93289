/** What a completion's status means to who reads a file: code and whether another attempt can succeed. */
import { statusName, WC } from '../../storage-server/protocol/index.ts';
import { FetchError } from '../errors.ts';
import type { Completion } from './requester.ts';

/** Statuses with which the server answers a READ: the pair ends, but the server is well. */
const ANSWERS: readonly number[] = [WC.REM_INV_REQ_ERR, WC.REM_ACCESS_ERR, WC.REM_OP_ERR];

/** Whether a completion is an answer of the server, and no loss of it. */
export function isAnswer({ status }: Completion): boolean {
  return ANSWERS.includes(status);
}

/**
 * The error of a READ that completed with another status than SUCCESS; `answered` if the pair ended with the server's
 * answer to another one: each such end settles a read for good, so that those around it may be tried again at once.
 */
export function completionError({ status, reason, stale }: Completion, what: string, answered: boolean): FetchError {
  // a server says itself which file it is about
  const text = reason.startsWith(`${what}: `) ? reason : `${what}: ${reason === '' ? statusName(status) : reason}`;
  switch (status) {
    case WC.REM_ACCESS_ERR:
      // A generation that is gone: the new one is known, or learnt with a new connection.
      return new FetchError('ACCESS', text, { retryable: true, immediate: stale });
    case WC.REM_OP_ERR:
      return new FetchError(stale ? 'STALE' : 'SERVER', text);
    case WC.BAD_RESP_ERR:
      // Damage on the way may be gone the next time; the number of attempts is bounded.
      return new FetchError('PROTOCOL', text, { retryable: true });
    case WC.RESP_TIMEOUT_ERR:
    case WC.RETRY_EXC_ERR:
    case WC.RNR_RETRY_EXC_ERR:
      return new FetchError('STALLED', text, { retryable: true });
    case WC.WR_FLUSH_ERR:
    case WC.FATAL_ERR:
      return new FetchError('LOST', text, { retryable: true, immediate: answered });
    default:
      return new FetchError('PROTOCOL', text);
  }
}
