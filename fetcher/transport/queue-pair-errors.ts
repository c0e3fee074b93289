/** What a completion's status means to who reads a file: code and whether another attempt can succeed. */
import { statusName, WC } from '../../storage-server/protocol/index.ts';
import { FetchError } from '../errors.ts';
import type { Completion } from './queue-pair.ts';

/** The error of a READ that completed with another status than SUCCESS. */
export function completionError({ status, reason }: Completion, what: string): FetchError {
  // a server says itself which file it is about
  const text = reason.startsWith(`${what}: `) ? reason : `${what}: ${reason === '' ? statusName(status) : reason}`;
  switch (status) {
    case WC.REM_ACCESS_ERR:
      // Usually a generation that is gone: a new connection learns the new one.
      return new FetchError('ACCESS', text, { retryable: true });
    case WC.REM_OP_ERR:
      return new FetchError('SERVER', text);
    case WC.BAD_RESP_ERR:
      // Damage on the way may be gone the next time; the number of attempts is bounded.
      return new FetchError('PROTOCOL', text, { retryable: true });
    case WC.RESP_TIMEOUT_ERR:
    case WC.RETRY_EXC_ERR:
    case WC.RNR_RETRY_EXC_ERR:
      return new FetchError('STALLED', text, { retryable: true });
    case WC.WR_FLUSH_ERR:
    case WC.FATAL_ERR:
      return new FetchError('LOST', text, { retryable: true });
    default:
      return new FetchError('PROTOCOL', text);
  }
}
