/**
 * Locations as people write them, to a source and a glob of paths within it:
 *   rdma://host:port/path      a storage server; the port may be left out (7400); rdmas:// under TLS
 *   https://host:port/path     a file of a web server, or http://; no folders and no globs, which plain HTTP has not
 *   s3://bucket/key            a bucket of S3 or of what speaks it
 *   file:///path               local files, absolute
 *   path                       local files, relative to the working folder or absolute
 * Paths may be globs (glob.ts); the path alone may be a file, a folder (everything below) or nothing (everything).
 * In URLs %xx stands for a character that then has no special meaning; a plain path is taken as it is. A file that is
 * named just like the path, percent signs and wildcards and all, comes first (source.ts), so that any name can be used.
 * Of a web server the path is just what it says, and what follows a "?" is a query, as in any URL; it may be a secret.
 */
import { resolve } from 'node:path';
import { FetchError } from '../fetcher/index.ts';
import type { Glob } from './glob.ts';
import { escapeGlob, parseGlob } from './glob.ts';
import { LOCATION_CHARACTERS_MAX } from './limits.ts';

export interface Location {
  /** As it was written, but for a query, which may be a secret. */
  readonly text: string;
  readonly scheme: 'rdma' | 'rdmas' | 'http' | 'https' | 's3' | 'file';
  /** host:port of a server, or a bucket; '' for local files. */
  readonly authority: string;
  /** Of a web server: what goes behind each path, from its "?" on. */
  readonly query?: string;
  /** The packed region that the paths lie in: its own path, as those of files that are not in one. */
  readonly pack?: string;
  /** Paths within the source, no leading slash; local ones are relative to the root folder "/". */
  readonly glob: Glob;
  /** The path as it was written, without "." and empty segments, nothing decoded. */
  readonly asWritten: string;
  /** The folder that a relative path is relative to. */
  readonly relativeTo?: string;
}

const RDMA_PORT = 7400;
const FORMS = 'write rdma://host:port/path, s3://bucket/key, https://host/path, file:///path, or a local path';

/** Throws FetchError BAD_URL with what to write instead. */
export function parseLocation(text: string, workingFolder = process.cwd()): Location {
  if (text.length > LOCATION_CHARACTERS_MAX) {
    throw bad(text.slice(0, 80), `is longer than ${LOCATION_CHARACTERS_MAX} characters`);
  }
  if (text === '') throw new FetchError('BAD_URL', `the location is empty: ${FORMS}`);
  if (text.includes('\0')) throw bad(text, 'holds a NUL character');
  const [, scheme, rest = ''] = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/is.exec(text) ?? [];
  switch (scheme?.toLowerCase()) {
    case undefined:
      return parseBare(text, workingFolder);
    case 'rdma':
    case 'rdmas':
      return parseRdma(text, scheme!.toLowerCase() as 'rdma' | 'rdmas', rest);
    case 'file':
      return parseFile(text, rest);
    case 's3':
      return parseS3(text, rest);
    case 'http':
    case 'https':
      return parseHttp(text, scheme!.toLowerCase() as 'http' | 'https', rest);
    default:
      throw bad(text, `has the scheme ${scheme}://, which is not supported: ${FORMS}`);
  }
}

function bad(text: string, why: string): FetchError {
  return new FetchError('BAD_URL', `${JSON.stringify(text)} ${why}`);
}

function parseBare(text: string, workingFolder: string): Location {
  const [, scheme] = /^(file|rdmas?|s3|https?):/i.exec(text) ?? [];
  if (scheme !== undefined) throw bad(text, `lacks the slashes after ${scheme}: — ${FORMS}`);
  const folder = resolve(workingFolder);
  const asWritten = resolve(folder, text).slice(1);
  if (text.startsWith('/')) return { text, scheme: 'file', authority: '', glob: parseGlob(asWritten), asWritten };
  const glob = parseGlob(resolve('/', `${escapeGlob(folder)}/${text}`).slice(1));
  return { text, scheme: 'file', authority: '', glob, asWritten, relativeTo: folder };
}

function parseFile(text: string, rest: string): Location {
  const slash = rest.indexOf('/');
  const host = slash < 0 ? rest : rest.slice(0, slash);
  if (slash < 0 || (host !== '' && host.toLowerCase() !== 'localhost')) {
    throw bad(
      text,
      `names the host ${JSON.stringify(host)}: local files are file:///absolute/path, with three slashes`,
    );
  }
  const path = cleanPath(text, rest.slice(slash));
  return { text, scheme: 'file', authority: '', glob: parseGlob(path), asWritten: undecoded(rest.slice(slash)) };
}

function parseRdma(text: string, scheme: 'rdma' | 'rdmas', rest: string): Location {
  const slash = rest.indexOf('/');
  const authority = slash < 0 ? rest : rest.slice(0, slash);
  const form = `write ${scheme}://host:port/path`;
  if (authority.includes('@')) throw bad(text, `holds a user name, which is not supported: ${form}`);
  const [, host, port] = /^(\[[0-9a-f:.]+\]|[^:[\]\s?#*{}]+)(?::(\d+))?$/i.exec(authority) ?? [];
  if (host === undefined) throw bad(text, `has no valid host and port: ${form}`);
  const number = port === undefined ? RDMA_PORT : Number(port);
  if (number < 1 || number > 65535) throw bad(text, `has the port ${port}: ports are 1 to 65535`);
  const written = slash < 0 ? '' : rest.slice(slash);
  const glob = parseGlob(cleanPath(text, written));
  return { text, scheme, authority: `${host}:${number}`, glob, asWritten: undecoded(written) };
}

/** Keys are taken as they are, empty segments too; one "/" at the end says that a folder is meant. */
function parseS3(text: string, rest: string): Location {
  const slash = rest.indexOf('/');
  const bucket = slash < 0 ? rest : rest.slice(0, slash);
  const form = 'write s3://bucket/key';
  if (bucket.includes('@')) throw bad('s3://***@…', `holds a user name, which is not supported: ${form}`);
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{1,62}$/.test(bucket)) throw bad(text, `has no valid name of a bucket: ${form}`);
  const written = slash < 0 ? '' : rest.slice(slash + 1).replace(/\/$/, '');
  const segments = written.split('/').map((segment) => decodeSegment(text, segment));
  return { text, scheme: 's3', authority: bucket, glob: parseGlob(segments.join('/')), asWritten: written };
}

function parseHttp(written: string, scheme: 'http' | 'https', rest: string): Location {
  const [, address = '', query = ''] = /^([^?]*)(\?.*)?$/s.exec(rest) ?? [];
  const text = query === '' ? written : `${scheme}://${address}?***`;
  const slash = address.indexOf('/');
  const authority = slash < 0 ? address : address.slice(0, slash);
  if (authority.includes('@'))
    throw bad(
      `${scheme}://***@${authority.replace(/^.*@/, '')}`,
      'holds a user name, which is not supported; --token-file gives a bearer token',
    );
  if (!/^(\[[0-9a-f:.]+\]|[^:[\]\s#*{}]+)(:\d+)?$/i.test(authority) || !URL.canParse(`${scheme}://${authority}`)) {
    throw bad(text, `has no valid host and port: write ${scheme}://host:port/path`);
  }
  if (address.includes('#')) throw bad(text, 'has a "#": in a path it is written %23');
  const path = slash < 0 ? '' : address.slice(slash + 1);
  if (path === '' || path.endsWith('/')) {
    throw bad(
      text,
      'names a folder, and plain HTTP has no listings: name a file, or a packed region (lake.qanat!/path)',
    );
  }
  const segments = path.split('/').map((segment) => decodeSegment(text, segment, String));
  if (segments.some((segment) => segment === '.' || segment === '..')) throw bad(text, 'has a segment "." or ".."');
  const glob = parseGlob(escapeGlob(segments.join('/')));
  return { text, scheme, authority, glob, asWritten: glob.verbatim, ...(query === '' ? {} : { query }) };
}

function undecoded(path: string): string {
  return path
    .split('/')
    .filter((segment) => segment !== '' && segment !== '.')
    .join('/');
}

/** Decodes %xx and drops empty and "." segments. ".." is refused: nothing is above a source. */
function cleanPath(text: string, path: string): string {
  const segments: string[] = [];
  for (const raw of path.split('/')) {
    const segment = decodeSegment(text, raw);
    if (segment === '' || segment === '.') continue;
    if (segment === '..') throw bad(text, 'has a segment "..": write the path without it');
    segments.push(segment);
  }
  return segments.join('/');
}

function decodeSegment(text: string, segment: string, write = escapeGlob): string {
  return segment.replace(/(?:%[0-9a-f]{2})+/gi, (escaped) => {
    let decoded: string;
    try {
      decoded = decodeURIComponent(escaped);
    } catch {
      throw bad(text, `has ${escaped}, which is not UTF-8: write a percent sign in a name as %25`);
    }
    if (decoded.includes('/') || decoded.includes('\0')) throw bad(text, `has ${escaped}, which no name can hold`);
    return write(decoded);
  });
}

/** The location `inside` the packed file `pack`, of which `outer` is the location; `text` is what was written. */
export function inPacked(text: string, outer: Location, pack: string, inside: string): Location {
  const isUrl = /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  const path = isUrl ? cleanPath(text, inside) : undecoded(inside);
  if (path.split('/').includes('..')) throw bad(text, 'has a segment "..": write the path without it');
  return { ...outer, text, pack, glob: parseGlob(path), asWritten: undecoded(inside) };
}

/** A path of a location's source (no leading slash) as a location of its own, which means just that file. */
export function formatLocation({ scheme, authority, pack, query = '' }: Location, path: string): string {
  // local paths are not decoded, and a name as it is comes before what it would match
  const written = (name: string): string => (scheme === 'file' ? name : name.replace(SPECIAL, encodeURIComponent));
  const lead = scheme === 'file' ? '/' : `${scheme}://${authority}/`;
  return pack === undefined ? lead + written(path) + query : `${lead}${written(pack)}${query}!/${written(path)}`;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what has to be escaped
const SPECIAL = /[%#*?[\]{}\\"'\u0000-\u0020\u007f]/g;

/** host:port with or without a path: a server's address without its scheme, when there is no such file. */
export function looksLikeServer({ text, relativeTo }: Location): boolean {
  return relativeTo !== undefined && /^(\[[\da-f:.]+\]|[a-z\d][a-z\d.-]*):\d{1,5}(\/|$)/i.test(text);
}
