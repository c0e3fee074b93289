/** From an `s3://bucket/prefix` URL to its bucket as a source, and the path in it. */
import { FetchError } from '../errors.ts';
import { type CredentialOptions, fetchTlsOptions } from '../transport/credentials.ts';
import type { Transport } from '../transport/transport.ts';
import { openPool, type PoolOptions } from './exchange.ts';
import { S3Bucket } from './s3-sdk.ts';
import { S3Transport } from './s3-transport.ts';

/** How buckets are reached; what is absent is as the machine is configured for the AWS SDK. */
export interface S3Options {
  /** URL of a store that is not Amazon's. */
  readonly endpoint?: string;
  readonly region?: string;
  /** The bucket in the path and not in the host's name; without it so for every endpoint but Amazon's. */
  readonly pathStyle?: boolean;
  /** Requests are not signed. */
  readonly anonymous?: boolean;
  /** Whoever reads pays. */
  readonly requesterPays?: boolean;
}

export interface OpenS3Options extends Omit<PoolOptions, 'tls'> {
  readonly s3: S3Options | undefined;
  readonly credentials: CredentialOptions;
}

/** Opens the source; nothing is sent yet. Throws FetchError BAD_URL, and what is wrong with a file of the options. */
export async function openS3Source(
  url: string,
  { s3 = {}, credentials, ...options }: OpenS3Options,
): Promise<{ source: Transport; path: string; identity: string }> {
  const [, bucket, path = ''] = /^s3:\/\/([A-Za-z0-9][A-Za-z0-9._-]{1,62})(?:\/(.*))?$/is.exec(url) ?? [];
  if (bucket === undefined) throw new FetchError('BAD_URL', `${url}: expected s3://bucket/path`);
  const { endpoint, region, pathStyle, anonymous = false, requesterPays = false } = s3;
  if (endpoint !== undefined && !isEndpoint(endpoint)) {
    throw new FetchError('OPTION', 'the endpoint of a store is written https://host:port');
  }
  const pool = openPool({ ...options, tls: await fetchTlsOptions(credentials) });
  const access = { region, pathStyle, isAnonymous: anonymous, isRequesterPays: requesterPays };
  const { counters, tell } = options;
  const connected = new S3Bucket({ bucket, endpoint, ...access, pool, counters, tell });
  const source = new S3Transport({ name: `s3://${bucket}`, bucket: connected, pool, counters });
  return { source, path: decoded(path, url), identity: `s3+${endpoint ?? 'aws'}+${bucket}://` };
}

function isEndpoint(text: string): boolean {
  return /^https?:\/\/[^/?#@\s]+(\/[^?#]*)?$/i.test(text) && URL.canParse(text);
}

function decoded(path: string, url: string): string {
  try {
    return decodeURIComponent(path);
  } catch (cause) {
    throw new FetchError('BAD_URL', `${url}: a "%" that is meant as it stands is written "%25"`, { cause });
  }
}
