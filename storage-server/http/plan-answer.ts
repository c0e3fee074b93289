/**
 * What a GET or HEAD of a representation is answered with, from its headers alone: conditions first, in the order of
 * RFC 9110 (13.2.2), then the range. Pure. Validators are etags; a date is good enough for conditions on the whole, but
 * never to put a part to parts that someone has: seconds can't tell versions apart.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { ETAGS_MAX } from './limits.ts';
import { parseRange } from './range.ts';
import type { Representation } from './representation.ts';

export interface PlannedAnswer {
  readonly status: 200 | 206 | 304 | 412 | 416;
  readonly headers: Readonly<Record<string, string | number>>;
  /** Of the body, in bytes of the representation; nothing unless the status is 200 or 206. */
  readonly start: number;
  readonly length: number;
}

export interface PlanOptions {
  /** Whether a range counts: for GET, and for HEAD where the protocol says so. */
  readonly ranged: boolean;
  /** Whether etags in conditions may come without quotes, as S3 clients send them. */
  readonly bareEtags?: boolean;
}

/** Plans the answer. Never throws. */
export function planAnswer(
  request: IncomingHttpHeaders,
  representation: Representation,
  { ranged, bareEtags = false }: PlanOptions,
): PlannedAnswer {
  const { etag, length, modifiedMs, mediaType } = representation;
  const validators = {
    ETag: etag,
    'Last-Modified': new Date(modifiedMs).toUTCString(),
    'Accept-Ranges': 'bytes',
    // Whoever keeps it asks whether it is the same still; nobody on the way may change it.
    'Cache-Control': 'no-cache, no-transform',
  };
  const failed = failedCondition(request, etag, modifiedMs, bareEtags);
  if (failed !== undefined) return { status: failed, headers: validators, start: 0, length: 0 };
  const about = { ...validators, 'Content-Type': mediaType };
  const usesRange = ranged && rangeHolds(request['if-range'], etag);
  const range = usesRange ? parseRange(request.range, length) : ({ kind: 'whole' } as const);
  if (range.kind === 'unsatisfiable') {
    return { status: 416, headers: { ...validators, 'Content-Range': `bytes */${length}` }, start: 0, length: 0 };
  }
  if (range.kind === 'whole') {
    return { status: 200, headers: { ...about, 'Content-Length': length }, start: 0, length };
  }
  const bytes = range.end - range.start;
  const part = { 'Content-Range': `bytes ${range.start}-${range.end - 1}/${length}`, 'Content-Length': bytes };
  return { status: 206, headers: { ...about, ...part }, start: range.start, length: bytes };
}

function failedCondition(
  request: IncomingHttpHeaders,
  etag: string,
  modifiedMs: number,
  bare: boolean,
): 304 | 412 | undefined {
  const ifMatch = request['if-match'];
  const modifiedSecond = Math.floor(modifiedMs / 1000) * 1000;
  if (ifMatch !== undefined) {
    if (!names(ifMatch, etag, 'strong', bare)) return 412;
  } else {
    const since = dateOf(request['if-unmodified-since']);
    if (since !== undefined && modifiedSecond > since) return 412;
  }
  const ifNoneMatch = request['if-none-match'];
  if (ifNoneMatch !== undefined) return names(ifNoneMatch, etag, 'weak', bare) ? 304 : undefined;
  const since = dateOf(request['if-modified-since']);
  return since !== undefined && modifiedSecond <= since ? 304 : undefined;
}

/** Whether a list of etags names this one. A weak etag never matches strongly. */
function names(list: string, etag: string, how: 'strong' | 'weak', bare: boolean): boolean {
  const text = list.trim();
  if (text === '*') return true;
  if (bare && text === etag.slice(1, -1)) return true;
  let at = 0;
  for (let n = 0; n < ETAGS_MAX && at < text.length; n++) {
    const one = /^[\s,]*(W\/)?("[^"]*")\s*(?:,|$)/.exec(text.slice(at));
    if (one === null) return false;
    if (one[2] === etag && (how === 'weak' || one[1] === undefined)) return true;
    at += one[0].length;
  }
  return false;
}

/** Whether If-Range lets the range be. */
function rangeHolds(ifRange: string | string[] | undefined, etag: string): boolean {
  return ifRange === undefined || String(ifRange).trim() === etag;
}

/** The three forms of RFC 9110; what is none is as if it was not there. */
const DATE = /^[A-Z][a-z]{2,8},? ([A-Z][a-z]{2} [ \d]\d|\d{2}[ -][A-Z][a-z]{2}[ -]\d{2,4}) /;

function dateOf(header: string | undefined): number | undefined {
  if (header === undefined || !DATE.test(header)) return undefined;
  const ms = Date.parse(header);
  return Number.isNaN(ms) ? undefined : ms;
}
