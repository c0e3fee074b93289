/** What an answer that is none means: whether the file is gone, kept from us, or the server wants to be asked again. */
import { FetchError } from '../errors.ts';
import { type AnswerHeaders, headerOf, retryAfterMs } from './answer.ts';
import { WORDS_MAX } from './limits.ts';

/** Statuses that another attempt may change. 425 is for TLS that was too early. */
const PASSING: readonly number[] = [408, 425, 429, 500, 502, 503, 504];

/** A refusal of HTTP in general, by its status alone. `what` is the file. */
export function refusal(status: number, headers: AnswerHeaders, what: string): FetchError {
  if (status === 404 || status === 410) return new FetchError('STALE', `${what} is not there any more (${status})`);
  if (status === 412) return new FetchError('STALE', `${what} has changed since it was opened (412)`);
  if (status === 416) return new FetchError('STALE', `${what} is shorter than it was (416)`);
  if (status === 401 || status === 403 || status === 407) {
    const realm = headerOf(headers, 'www-authenticate');
    const asked = realm === undefined ? '' : `, asks for ${realm.split(' ', 1)[0]!.slice(0, WORDS_MAX)}`;
    return new FetchError('DENIED', `${what}: the server does not let us read it (${status}${asked})`);
  }
  const text = `${what}: the server answers with ${status}`;
  if (PASSING.includes(status)) return new FetchError('SERVER', text, { busyMs: retryAfterMs(headers) ?? 0 });
  return new FetchError(status >= 500 ? 'SERVER' : 'PROTOCOL', text);
}
