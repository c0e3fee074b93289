/**
 * A store that speaks as much of S3 as reading takes, over the folder of a test, whose name is the bucket: listings in
 * pages, objects with ranges and conditions, refusals with codes. It believes signatures and looks at who signed.
 */
import { readdirSync, statSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { basename, dirname } from 'node:path';
import type { TestContext } from 'node:test';
import { sortedByPath } from '../../storage-server/protocol/index.ts';
import { startWebServer, type WebServer, type WebServerOptions } from './web-server.ts';

export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request as the store sees it. */
export interface StoreRequest {
  readonly method: string;
  /** '' for the bucket itself. */
  readonly key: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  /** The access key that signed; undefined for nobody. */
  readonly accessKey: string | undefined;
  readonly token: string | undefined;
}

export interface S3StoreOptions extends Omit<WebServerOptions, 'intercept'> {
  /** Keys on a page of a listing. */
  readonly pageKeys?: number;
  readonly refuse?: (request: StoreRequest) => Refusal | undefined;
}

export interface S3Store extends WebServer {
  readonly bucket: string;
  readonly seen: StoreRequest[];
}

export async function startS3Store(t: TestContext, folder: string, options: S3StoreOptions = {}): Promise<S3Store> {
  const bucket = basename(folder);
  const seen: StoreRequest[] = [];
  const intercept = (request: IncomingMessage, response: ServerResponse): boolean => {
    const url = new URL(request.url!, 'http://h');
    const path = decodeURIComponent(url.pathname).slice(1);
    const isOurs = path === bucket || path.startsWith(`${bucket}/`);
    const one: StoreRequest = {
      method: request.method!,
      key: path.slice(bucket.length + 1),
      query: url.searchParams,
      headers: request.headers,
      accessKey: /Credential=([^/]+)\//.exec(request.headers.authorization ?? '')?.[1],
      token: request.headers['x-amz-security-token'] as string | undefined,
    };
    seen.push(one);
    const refusal = isOurs ? options.refuse?.(one) : { status: 404, code: 'NoSuchBucket' };
    if (refusal !== undefined) refuse(response, refusal);
    else if (one.key === '') answerListing(response, folder, one.query, options.pageKeys ?? 1000);
    else return false;
    return true;
  };
  const server = await startWebServer(t, dirname(folder), { ...options, intercept });
  return Object.assign(server, { bucket, seen });
}

function refuse(response: ServerResponse, { status, code, headers = {} }: Refusal): void {
  response.writeHead(status, { 'Content-Type': 'application/xml', ...headers });
  response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>no &amp; no</Message></Error>`);
}

function answerListing(response: ServerResponse, folder: string, query: URLSearchParams, pageKeys: number): void {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const files = entries.map(({ parentPath, name }) => {
    const local = `${parentPath}/${name}`;
    return { path: local.slice(folder.length + 1), local };
  });
  const prefix = query.get('prefix') ?? '';
  const matching = sortedByPath(files).filter(({ path }) => path.startsWith(prefix));
  const from = Number(query.get('continuation-token') ?? 0);
  const page = matching.slice(from, from + pageKeys);
  const isTruncated = from + pageKeys < matching.length;
  const contents = page.map(({ path, local }) => {
    const { size, ino, mtimeMs } = statSync(local);
    const etag = `&quot;${ino.toString(36)}-${mtimeMs.toString(36)}-${size.toString(36)}&quot;`;
    const modified = new Date(mtimeMs).toISOString();
    const key = encodeURIComponent(path).replaceAll('%20', '+').replaceAll('%2F', '/');
    return `<Contents><Key>${key}</Key><Size>${size}</Size><ETag>${etag}</ETag><LastModified>${modified}</LastModified></Contents>`;
  });
  response.writeHead(200, { 'Content-Type': 'application/xml' });
  const next = isTruncated ? `<NextContinuationToken>${from + pageKeys}</NextContinuationToken>` : '';
  response.end(
    `<?xml version="1.0"?><ListBucketResult><EncodingType>url</EncodingType><IsTruncated>${isTruncated}</IsTruncated>` +
      `${next}${contents.join('')}</ListBucketResult>`,
  );
}

/** Has the SDK find nothing but what a test gives it: no files and no services of this machine. */
export function isolateSdk(variables: Readonly<Record<string, string>> = {}): void {
  for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name];
  Object.assign(process.env, {
    AWS_CONFIG_FILE: '/dev/null',
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_REGION: 'us-east-1',
    ...variables,
  });
}
