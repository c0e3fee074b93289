/** From an `http://` or `https://` URL to its server as a source, and the path in it. A "?" begins a query, as in any URL. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { FetchError } from '../errors.ts';
import type { OnSkipped } from '../transport/file-transport.ts';
import { asFetchError } from '../transport/local-errors.ts';
import type { Transport } from '../transport/transport.ts';
import { openPool, type PoolOptions } from './exchange.ts';
import { HttpTransport } from './http-transport.ts';

export interface OpenHttpOptions extends Omit<PoolOptions, 'ca'> {
  readonly tokenFile?: string | undefined;
  readonly caFile?: string | undefined;
  readonly onUnpinned?: OnSkipped | undefined;
}

const HTTP_URL = /^(?<scheme>https?):\/\/(?<authority>[^/?#@\s]+)(?:\/(?<path>[^?#]*))?(?<query>\?[^#]*)?$/is;

/** Opens the source; nothing is sent yet. Throws FetchError BAD_URL, and what is wrong with a file of the options. */
export async function openHttpSource(
  url: string,
  { tokenFile, caFile, onUnpinned, ...pool }: OpenHttpOptions,
): Promise<{ source: Transport; path: string; identity: string }> {
  const parts = HTTP_URL.exec(url)?.groups;
  const origin = `${parts?.scheme?.toLowerCase()}://${parts?.authority}`;
  if (parts === undefined || !URL.canParse(origin)) {
    throw new FetchError('BAD_URL', `${url}: expected https://host:port/path`);
  }
  const query = parts.query ?? '';
  const token = await fetchToken(tokenFile);
  const ca = await fetchText(caFile);
  const source = new HttpTransport({
    origin,
    query,
    token,
    counters: pool.counters,
    onUnpinned,
    pool: openPool(ca === undefined ? pool : { ...pool, ca }),
  });
  return { source, path: decoded(parts.path ?? '', url), identity: origin.toLowerCase() + queryMark(query) };
}

/** The one line of a file that is a secret. */
async function fetchToken(path: string | undefined): Promise<string | undefined> {
  const token = (await fetchText(path))?.trim();
  if (path === undefined || /^[\x21-\x7e]+$/.test(token ?? '')) return token;
  throw new FetchError('OPTION', `${path}: expected a token in one line`);
}

async function fetchText(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw asFetchError(error, path);
  }
}

function decoded(path: string, url: string): string {
  try {
    return decodeURIComponent(path);
  } catch (cause) {
    throw new FetchError('BAD_URL', `${url}: a "%" that is meant as it stands is written "%25"`, { cause });
  }
}

/** Tells what a query names apart, without it: signatures change and are secrets. */
function queryMark(query: string): string {
  const names = new URLSearchParams(query);
  for (const name of [...names.keys()])
    if (/^(x-(amz|goog)-|signature$|expires$|sig$|se$|st$)/i.test(name)) names.delete(name);
  if (names.size === 0) return '';
  return `/?${createHash('sha256').update(names.toString()).digest('hex').slice(0, 32)}`;
}
