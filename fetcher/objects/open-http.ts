/** From an `http://` or `https://` URL to its server as a source, and the path in it. A "?" begins a query, as in any URL. */
import { createHash } from 'node:crypto';
import { FetchError } from '../errors.ts';
import { type CredentialOptions, fetchTlsOptions, fetchToken } from '../transport/credentials.ts';
import type { OnSkipped } from '../transport/file-transport.ts';
import type { Transport } from '../transport/transport.ts';
import { openPool, type PoolOptions } from './exchange.ts';
import { HttpTransport } from './http-transport.ts';

export interface OpenHttpOptions extends Omit<PoolOptions, 'tls'> {
  readonly credentials: CredentialOptions;
  readonly onUnpinned?: OnSkipped | undefined;
}

const HTTP_URL = /^(?<scheme>https?):\/\/(?<authority>[^/?#@\s]+)(?:\/(?<path>[^?#]*))?(?<query>\?[^#]*)?$/is;

/** Opens the source; nothing is sent yet. Throws FetchError BAD_URL, and what is wrong with a file of the options. */
export async function openHttpSource(
  url: string,
  { credentials, onUnpinned, ...pool }: OpenHttpOptions,
): Promise<{ source: Transport; path: string; identity: string }> {
  const parts = HTTP_URL.exec(url)?.groups;
  const origin = `${parts?.scheme?.toLowerCase()}://${parts?.authority}`;
  if (parts === undefined || !URL.canParse(origin)) {
    throw new FetchError('BAD_URL', `${url}: expected https://host:port/path`);
  }
  const query = parts.query ?? '';
  const token = await fetchToken(credentials);
  const tls = await fetchTlsOptions(credentials);
  const source = new HttpTransport({
    origin,
    query,
    token,
    counters: pool.counters,
    onUnpinned,
    pool: openPool({ ...pool, tls }),
  });
  return { source, path: decoded(parts.path ?? '', url), identity: origin.toLowerCase() + queryMark(query) };
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
