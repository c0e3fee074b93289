/**
 * Checks that a request was signed by one of the keys, as AWS Signature Version 4 has it: in its header, or in its
 * address (presigned). Bodies are not read and need not be: nothing that has one is served. Any region will do.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { S3Error } from './errors.ts';
import type { SigningKeys } from './keys.ts';
import { CLOCK_SKEW_MS, PRESIGNED_SECONDS_MAX } from './limits.ts';
import { decodePercent, encodePercent } from './query.ts';

const ALGORITHM = 'AWS4-HMAC-SHA256';
const EMPTY_HASH = createHash('sha256').digest('hex');

/** Signs what nobody can have signed. */
const NO_SECRET = randomBytes(32).toString('hex');

/** What of a request is signed. */
export interface SignedRequest {
  readonly method: string;
  /** As it was sent. */
  readonly path: string;
  readonly query: readonly (readonly [name: string, value: string])[];
  readonly headers: IncomingMessage['headers'];
  readonly rawHeaders: readonly string[];
}

interface Claim {
  readonly id: string;
  readonly day: string;
  readonly scope: string;
  readonly region: string;
  readonly signedHeaders: readonly string[];
  readonly signature: string;
  readonly time: string;
  readonly payloadHash: string;
  readonly query: SignedRequest['query'];
}

/** Throws S3Error unless one of the keys signed the request. */
export function checkSignature(request: SignedRequest, keys: SigningKeys, nowMs = Date.now()): void {
  const parameters = new Map(request.query);
  const { authorization } = request.headers;
  if (authorization !== undefined && parameters.has('X-Amz-Signature')) {
    throw new S3Error('InvalidRequest', 'signed in the header and in the address: one of them, please');
  }
  let claim: Claim;
  if (authorization !== undefined) claim = headerClaim(request, authorization, nowMs);
  else if (parameters.has('X-Amz-Signature') || parameters.has('X-Amz-Algorithm')) {
    claim = presignedClaim(request, parameters, nowMs);
  } else throw new S3Error('AccessDenied', 'requests have to be signed');
  // for an id that is not known as much is done, and said, as for a wrong secret
  const secret = keys.get(claim.id);
  const expected = createHmac('sha256', signingKey(secret ?? NO_SECRET, claim))
    .update(stringToSign(claim, canonicalRequest(request, claim)))
    .digest();
  const given = Buffer.from(claim.signature, 'hex');
  const isRight = given.byteLength === expected.byteLength && timingSafeEqual(given, expected);
  if (secret === undefined || !isRight) {
    throw new S3Error('SignatureDoesNotMatch', 'the signature is not the one that a key of this id makes here');
  }
}

function headerClaim({ headers, query }: SignedRequest, authorization: string, nowMs: number): Claim {
  const malformed = (what: string): S3Error => new S3Error('AuthorizationHeaderMalformed', what);
  const [, fields] = /^AWS4-HMAC-SHA256\s+(.+)$/.exec(authorization) ?? [];
  if (fields === undefined) {
    // Basic, Bearer, the old AWS: nothing that is understood here.
    throw new S3Error('InvalidRequest', `only ${ALGORITHM} is understood`);
  }
  const parts = new Map(fields.split(',').map((one) => one.trim().split(/=(.*)/s, 2) as [string, string]));
  const time = one(headers['x-amz-date']) ?? basicTime(headers.date);
  if (time === undefined) throw new S3Error('AccessDenied', 'a signed request has to say its time');
  const skew = timeOf(time) - nowMs;
  if (!(Math.abs(skew) <= CLOCK_SKEW_MS)) {
    throw new S3Error(
      'RequestTimeTooSkewed',
      'the difference between the request time and the current time is too large',
    );
  }
  const payloadHash = one(headers['x-amz-content-sha256']) ?? EMPTY_HASH;
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  if (!hasBody && /^[0-9a-f]{64}$/i.test(payloadHash) && payloadHash.toLowerCase() !== EMPTY_HASH) {
    throw new S3Error('XAmzContentSHA256Mismatch', 'x-amz-content-sha256 is not that of the body, which is empty');
  }
  return {
    ...credentialOf(parts.get('Credential'), time, malformed),
    ...signedHeadersOf(parts.get('SignedHeaders'), malformed),
    signature: signatureOf(parts.get('Signature'), malformed),
    time,
    payloadHash,
    query,
  };
}

function presignedClaim({ query }: SignedRequest, parameters: ReadonlyMap<string, string>, nowMs: number): Claim {
  const malformed = (what: string): S3Error => new S3Error('AuthorizationQueryParametersError', what);
  if (parameters.get('X-Amz-Algorithm') !== ALGORITHM) throw malformed(`X-Amz-Algorithm has to be ${ALGORITHM}`);
  const time = parameters.get('X-Amz-Date') ?? '';
  const startMs = timeOf(time);
  if (Number.isNaN(startMs)) throw malformed('X-Amz-Date has to be a time such as 20260102T030405Z');
  const text = parameters.get('X-Amz-Expires') ?? '';
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(seconds >= 1 && seconds <= PRESIGNED_SECONDS_MAX)) {
    throw malformed(`X-Amz-Expires has to be seconds, 1 to ${PRESIGNED_SECONDS_MAX}`);
  }
  if (startMs > nowMs + CLOCK_SKEW_MS) throw new S3Error('AccessDenied', 'the request is not valid yet');
  if (nowMs > startMs + seconds * 1000) throw new S3Error('AccessDenied', 'the request has expired');
  return {
    ...credentialOf(parameters.get('X-Amz-Credential'), time, malformed),
    ...signedHeadersOf(parameters.get('X-Amz-SignedHeaders'), malformed),
    signature: signatureOf(parameters.get('X-Amz-Signature'), malformed),
    time,
    payloadHash: parameters.get('X-Amz-Content-Sha256') ?? 'UNSIGNED-PAYLOAD',
    query: query.filter(([name]) => name !== 'X-Amz-Signature'),
  };
}

type Fault = (what: string) => S3Error;

function credentialOf(text: string | undefined, time: string, malformed: Fault) {
  const [, id, day, region, service] = /^(.+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request$/.exec(text ?? '') ?? [];
  if (id === undefined || day === undefined || region === undefined) {
    throw malformed('the credential has to be id/date/region/s3/aws4_request');
  }
  if (service !== 's3') throw malformed('the service of the credential has to be s3');
  if (day !== time.slice(0, 8)) throw malformed('the date of the credential is not that of the request');
  return { id, day, region, scope: `${day}/${region}/s3/aws4_request` };
}

function signedHeadersOf(text: string | undefined, malformed: Fault) {
  const signedHeaders = (text ?? '').toLowerCase().split(';');
  if (!signedHeaders.includes('host')) throw malformed('the host has to be signed');
  return { signedHeaders };
}

function signatureOf(text: string | undefined, malformed: Fault): string {
  if (!/^[0-9a-f]{64}$/.test(text ?? '')) throw malformed('a signature is 64 hexadecimal digits');
  return text!;
}

function canonicalRequest({ method, path, rawHeaders }: SignedRequest, claim: Claim): string {
  const values = new Map<string, string[]>();
  for (let k = 0; k + 1 < rawHeaders.length; k += 2) {
    const name = rawHeaders[k]!.toLowerCase();
    const value = rawHeaders[k + 1]!.trim().replace(/\s+/g, ' ');
    values.set(name, [...(values.get(name) ?? []), value]);
  }
  // Node gives headers as latin1; what was signed are the bytes of UTF-8.
  const lines = claim.signedHeaders.map((name) => `${name}:${(values.get(name) ?? []).join(',')}\n`);
  const query = claim.query
    .map(([name, value]) => [encodePercent(name), encodePercent(value)] as const)
    .sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : x > y ? 1 : 0))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
  const uri = path
    .split('/')
    .map((segment) => encodePercent(decodePercent(segment)))
    .join('/');
  return [method, uri, query, lines.join(''), claim.signedHeaders.join(';'), claim.payloadHash].join('\n');
}

function stringToSign({ time, scope }: Claim, canonical: string): string {
  const hash = createHash('sha256').update(Buffer.from(canonical, 'latin1')).digest('hex');
  return [ALGORITHM, time, scope, hash].join('\n');
}

function signingKey(secret: string, { day, region }: Claim): Buffer {
  const hmac = (key: Buffer | string, text: string): Buffer => createHmac('sha256', key).update(text).digest();
  return hmac(hmac(hmac(hmac(`AWS4${secret}`, day), region), 's3'), 'aws4_request');
}

/** `20260102T030405Z` in milliseconds, or NaN. */
function timeOf(text: string): number {
  const [, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text) ?? [];
  return year === undefined ? Number.NaN : Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

/** The Date header in the form of x-amz-date. */
function basicTime(date: string | undefined): string | undefined {
  const ms = Date.parse(date ?? '');
  return Number.isNaN(ms) ? undefined : new Date(ms).toISOString().replace(/[-:]|\.\d{3}/g, '');
}

function one(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}
