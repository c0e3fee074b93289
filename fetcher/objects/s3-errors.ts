/** What S3 says when it refuses, by its code where it gives one: the same status can mean very different things. */
import { FetchError, type FetchErrorCode } from '../errors.ts';
import { type AnswerHeaders, headerOf, retryAfterMs } from './answer.ts';
import { WORDS_MAX } from './limits.ts';
import { refusal } from './refusal.ts';

/** Asks to come again, whatever its status: RequestTimeout is a 400. */
const BUSY: ReadonlySet<string> = new Set([
  'SlowDown',
  'ServiceUnavailable',
  'InternalError',
  'InternalServerError',
  'RequestTimeout',
  'RequestTimeoutException',
  'OperationAborted',
  'Throttling',
  'ThrottlingException',
  'ThrottledException',
  'RequestThrottled',
  'RequestLimitExceeded',
  'TooManyRequests',
  'TooManyRequestsException',
  'BandwidthLimitExceeded',
  'Busy',
  'ServerBusy',
  'TemporaryRedirect',
  'KMS.ThrottlingException',
]);

/** The credentials are too old; newer ones may be had. It comes as 400 and as 403. */
const EXPIRED: ReadonlySet<string> = new Set([
  'ExpiredToken',
  'ExpiredTokenException',
  'TokenRefreshRequired',
  'RequestExpired',
]);

const FINAL: Readonly<Record<string, readonly [code: FetchErrorCode, words: string]>> = {
  NoSuchKey: ['STALE', 'is not there any more'],
  NoSuchVersion: ['STALE', 'is not there any more in this version'],
  MethodNotAllowed: ['STALE', 'has been deleted'],
  PreconditionFailed: ['STALE', 'has changed since it was opened'],
  InvalidRange: ['STALE', 'is shorter than it was'],
  NoSuchBucket: ['NOT_FOUND', 'there is no such bucket'],
  AccessDenied: ['DENIED', 'these credentials may not read it'],
  AllAccessDisabled: ['DENIED', 'nobody may read it'],
  InvalidAccessKeyId: ['DENIED', 'the server does not know this access key'],
  InvalidToken: ['DENIED', 'the session token is not valid'],
  SignatureDoesNotMatch: ['DENIED', 'the secret key is not the one of this access key'],
  RequestTimeTooSkewed: ['DENIED', "this machine's clock is wrong"],
  InvalidObjectState: ['DENIED', 'it is archived and has to be restored first'],
  UserKeyMustBeSpecified: ['DENIED', 'it is encrypted with a key of its own'],
};

/** Names of the file when it is gone, for who only looked whether it is there. */
export function isMissing(code: string): boolean {
  return code === 'NoSuchKey' || code === 'NoSuchVersion' || code === 'NotFound';
}

export function isExpired(code: string): boolean {
  return EXPIRED.has(code);
}

/** Another attempt in the bucket's own region may do; where it is the answer says. */
export function otherRegion(headers: AnswerHeaders, status: number): string | undefined {
  const region = headerOf(headers, 'x-amz-bucket-region');
  return region !== undefined && [301, 307, 400, 403].includes(status) && /^[a-z0-9-]{2,30}$/.test(region)
    ? region
    : undefined;
}

/** The code in the XML of a refusal, and what it says; '' for what is no such XML. */
export function parseRefusal(body: string): { code: string; words: string } {
  const code = /<Code>\s*([\w.]{1,100})\s*<\/Code>/.exec(body)?.[1] ?? '';
  const words = /<Message>([^<]*)<\/Message>/.exec(body)?.[1] ?? '';
  return { code, words: words.slice(0, WORDS_MAX) };
}

/** A refusal as a FetchError. `what` is the file, or the bucket. */
export function s3Refusal(status: number, code: string, headers: AnswerHeaders, what: string): FetchError {
  if (BUSY.has(code)) {
    return new FetchError('SERVER', `${what}: the server asks to come again (${code})`, {
      busyMs: retryAfterMs(headers) ?? 0,
    });
  }
  const known = FINAL[code];
  if (known !== undefined) return new FetchError(known[0], `${what}: ${known[1]} (${code})`);
  if (EXPIRED.has(code)) return new FetchError('DENIED', `${what}: the credentials have expired (${code})`);
  const { code: general, reason, busyMs } = refusal(status, headers, what);
  const text = code === '' ? reason : `${reason} (${code})`;
  return new FetchError(general, text, busyMs === undefined ? {} : { busyMs });
}
