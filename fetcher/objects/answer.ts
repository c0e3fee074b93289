/**
 * What the headers of an answer say about the file: which bytes these are, of how many, of which version. Nothing in them
 * is believed before it is checked against what was asked. Pure.
 */
import { FetchError } from '../errors.ts';
import { SETTLED_MS } from './limits.ts';

export type AnswerHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

export function headerOf(headers: AnswerHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' ? value : value?.[0];
}

export interface ContentRange {
  /** First byte and the one behind the last; undefined in an answer that says only how long the file is. */
  readonly range: { readonly start: number; readonly end: number } | undefined;
  /** Length of the file; undefined where the server does not tell. */
  readonly total: number | undefined;
}

/** `bytes 0-99/1000`, and with stars for what is not told; undefined for what is none of these, or makes no sense. */
export function parseContentRange(text: string | undefined): ContentRange | undefined {
  const [, first, last, length] = /^\s*bytes\s+(?:(\d+)-(\d+)|\*)\/(\d+|\*)\s*$/i.exec(text ?? '') ?? [];
  if (length === undefined) return undefined;
  const total = length === '*' ? undefined : Number(length);
  if (total !== undefined && !Number.isSafeInteger(total)) return undefined;
  if (first === undefined) return total === undefined ? undefined : { range: undefined, total };
  const [start, end] = [Number(first), Number(last) + 1];
  if (!Number.isSafeInteger(end) || start >= end || (total !== undefined && end > total)) return undefined;
  return { range: { start, end }, total };
}

/** Whether the answer is a part of the file. Some servers (rclone's) say 200 to a range that they give, and tell which it is. */
export function isPart(status: number, headers: AnswerHeaders): boolean {
  return (
    status === 206 || (status === 200 && parseContentRange(headerOf(headers, 'content-range'))?.range !== undefined)
  );
}

/** The body's length; undefined when the answer does not say it. */
export function contentLength(headers: AnswerHeaders): number | undefined {
  const text = headerOf(headers, 'content-length');
  const length = /^\d+$/.test(text ?? '') ? Number(text) : Number.NaN;
  return Number.isSafeInteger(length) ? length : undefined;
}

/** The time that a busy server asks for, milliseconds: seconds or a date. undefined when it says nothing of use. */
export function retryAfterMs(headers: AnswerHeaders, nowMs = Date.now()): number | undefined {
  const text = headerOf(headers, 'retry-after')?.trim();
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}

/** Refuses an answer whose bytes are not those of the file. */
export function throwIfEncoded(headers: AnswerHeaders, where: string): void {
  const encoding = headerOf(headers, 'content-encoding')?.trim().toLowerCase();
  if (encoding === undefined || encoding === '' || encoding === 'identity') return;
  throw new FetchError('PROTOCOL', `${where}: the server sends it compressed (${encoding}) although asked not to`);
}

/**
 * The version that an answer is of, as an etag for FileVersion:
 *   "abc"              a strong ETag
 *   modified DATE      no strong ETag, and a Last-Modified that is old enough to be that of one version only
 *   unpinned NONCE …   neither: what there is of both. A version of this process only, and no pin
 */
export function versionOf(headers: AnswerHeaders, nonce: string): string {
  const etag = headerOf(headers, 'etag')?.trim();
  if (etag !== undefined && isStrong(etag)) return etag;
  const modified = headerOf(headers, 'last-modified')?.trim() ?? '';
  const modifiedMs = Date.parse(modified);
  const answeredMs = Date.parse(headerOf(headers, 'date') ?? '');
  if (answeredMs - modifiedMs >= SETTLED_MS) return `modified ${modified}`;
  return `unpinned ${nonce} ${modified} ${etag ?? ''}`;
}

function isStrong(etag: string): boolean {
  return /^"[^"]+"$/.test(etag);
}

/** Whether the version is one that no change of the file can share. */
export function isPinned(version: string): boolean {
  return !version.startsWith('unpinned ');
}

/** Headers that make a server refuse when it has another version. undefined for what is no version of ours. */
export function conditionsOf(version: string): Record<string, string> | undefined {
  if (isStrong(version)) return { 'if-match': version };
  const [, modified] = /^(?:modified|unpinned [0-9a-f]+) (.*? GMT)/.exec(version) ?? [];
  if (modified !== undefined) return { 'if-unmodified-since': modified };
  return /^unpinned [0-9a-f]+ /.test(version) ? {} : undefined;
}

/** Whether an answer can be of this version: servers need not know of conditions. */
export function isOfVersion(headers: AnswerHeaders, version: string): boolean {
  if (isStrong(version)) return headerOf(headers, 'etag')?.trim() === version;
  const modified = headerOf(headers, 'last-modified')?.trim() ?? '';
  if (version.startsWith('modified ')) return version === `modified ${modified}`;
  const etag = headerOf(headers, 'etag')?.trim() ?? '';
  return version.replace(/^unpinned [0-9a-f]+ /, '') === `${modified} ${etag}`;
}
