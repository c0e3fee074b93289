/**
 * The AWS SDK for what it knows best: credentials from wherever a machine has them, regions, endpoints, signatures,
 * listings. Its requests go over our own connections, and it does not try again: who asks does (with-retry.ts). Objects
 * are read without it, by requests that its signer signs. This is the only file that imports it, when S3 is first used.
 */
import type { S3Client } from '@aws-sdk/client-s3';
import { FetchError } from '../errors.ts';
import type { Tell } from '../transport/events.ts';
import type { TransportCounters } from '../transport/transport.ts';
import type { AnswerHeaders } from './answer.ts';
import { connectionError } from './connection-errors.ts';
import { exchange, type Pool } from './exchange.ts';
import { DOCUMENT_BYTES_MAX } from './limits.ts';
import { isExpired, otherRegion, s3Refusal } from './s3-errors.ts';

export interface S3BucketOptions {
  readonly bucket: string;
  readonly endpoint?: string | undefined;
  readonly region?: string | undefined;
  readonly pathStyle?: boolean | undefined;
  /** Requests are not signed. */
  readonly isAnonymous: boolean;
  readonly isRequesterPays: boolean;
  readonly pool: Pool;
  readonly counters: TransportCounters;
  readonly tell?: Tell | undefined;
}

export interface ListedObject {
  readonly key: string;
  readonly length: number;
  readonly etag: string;
  readonly modifiedMs: number;
}

export interface SignedRequest {
  readonly origin: string;
  readonly path: string;
  readonly headers: Record<string, string>;
}

interface Ready {
  readonly client: S3Client;
  readonly region: string;
  /** Where the bucket is; `path` goes in front of a key. */
  readonly origin: string;
  readonly host: string;
  readonly path: string;
}

/** A request as the SDK's signer takes it and gives it back. */
interface SignableRequest {
  method: string;
  protocol: string;
  hostname: string;
  port?: number;
  path: string;
  query: Record<string, string>;
  headers: Record<string, string>;
}

const EMPTY_SHA256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const FALLBACK_REGION = 'us-east-1';

type Sdk = typeof import('@aws-sdk/client-s3');

export class S3Bucket {
  readonly #options: S3BucketOptions;
  #region: string | undefined;
  #ready: Promise<Ready> | undefined;
  /** Counts renewals of the credentials. */
  #epoch = 0;
  #renewing: Promise<void> | undefined;
  /** Nothing has been answered since the credentials were renewed. */
  #isRenewed = false;
  #regionChanges = 0;

  constructor(options: S3BucketOptions) {
    this.#options = options;
    this.#region = options.region;
  }

  /** Changes with the credentials: what `recover` is told. */
  get epoch(): number {
    return this.#epoch;
  }

  /** A request was accepted. */
  succeeded(): void {
    this.#isRenewed = false;
  }

  /** GET of an object, signed. `headers` go out as they are. */
  async sign(key: string, versionId: string | undefined, headers: Record<string, string>): Promise<SignedRequest> {
    const { isAnonymous, isRequesterPays } = this.#options;
    const { client, region, origin, host, path } = await this.#get();
    const url = new URL(origin);
    const request: SignableRequest = {
      method: 'GET',
      protocol: url.protocol,
      hostname: url.hostname,
      ...(url.port === '' ? {} : { port: Number(url.port) }),
      path: path + key.split('/').map(escapeSegment).join('/'),
      query: versionId === undefined ? {} : { versionId },
      headers: {
        host,
        'x-amz-content-sha256': EMPTY_SHA256,
        ...(isRequesterPays ? { 'x-amz-request-payer': 'requester' } : {}),
        ...headers,
      },
    };
    const signed = isAnonymous ? request : await this.#signed(client, region, request);
    const query = versionId === undefined ? '' : `?versionId=${escapeSegment(versionId)}`;
    // not part of the signature: proxies change it
    return { origin, path: signed.path + query, headers: { ...signed.headers, 'accept-encoding': 'identity' } };
  }

  async #signed(client: S3Client, region: string, request: SignableRequest): Promise<SignableRequest> {
    try {
      const signer = await client.config.signer({
        schemeId: 'aws.auth#sigv4',
        name: 'sigv4',
        signingName: 's3',
        signingRegion: region,
        properties: {},
      } as Parameters<typeof client.config.signer>[0]);
      return (await signer.sign(request as never)) as unknown as SignableRequest;
    } catch (error) {
      throw credentialsError(error);
    }
  }

  /** A page of the keys that begin with `prefix`, and where the next one starts. */
  async list(prefix: string, from: string | undefined): Promise<{ objects: ListedObject[]; next: string | undefined }> {
    const { bucket, isRequesterPays } = this.#options;
    for (;;) {
      const { epoch } = this;
      const { client } = await this.#get();
      const { ListObjectsV2Command } = await loadSdk();
      const command = new ListObjectsV2Command({
        Bucket: bucket,
        Prefix: prefix,
        // names may hold what XML can't
        EncodingType: 'url',
        ...(from === undefined ? {} : { ContinuationToken: from }),
        ...(isRequesterPays ? { RequestPayer: 'requester' } : {}),
      });
      try {
        const page = await client.send(command);
        this.succeeded();
        const isEncoded = page.EncodingType === 'url';
        const objects = (page.Contents ?? []).map(({ Key = '', Size, ETag = '', LastModified }) => {
          const length = Number(Size);
          if (!Number.isSafeInteger(length) || length < 0) {
            throw new FetchError('PROTOCOL', `s3://${bucket}: the listing has an object without a size`);
          }
          const key = isEncoded ? decodeListed(Key) : Key;
          return { key, length, etag: quoted(ETag), modifiedMs: LastModified?.getTime() ?? 0 };
        });
        const next = page.IsTruncated ? page.NextContinuationToken : undefined;
        if (page.IsTruncated && (next === undefined || next === from)) {
          throw new FetchError('PROTOCOL', `s3://${bucket}: the listing goes on and does not say where`);
        }
        return { objects, next };
      } catch (error) {
        if (!(await this.#recoverFrom(error, epoch))) throw this.#listingError(error);
      }
    }
  }

  async #recoverFrom(error: unknown, epoch: number): Promise<boolean> {
    const { name, $metadata, $response } = error as SdkError;
    return this.recover($metadata?.httpStatusCode ?? 0, name, $response?.headers ?? {}, epoch);
  }

  #listingError(error: unknown): FetchError {
    if (error instanceof FetchError) return error;
    const { name, $metadata, $response } = error as SdkError;
    const status = $metadata?.httpStatusCode;
    if (status === undefined) return credentialsError(error);
    const code = name === 'Unknown' || name === 'UnknownError' ? '' : name;
    const refused = s3Refusal(status, code, $response?.headers ?? {}, `s3://${this.#options.bucket}`);
    if (status !== 200) return refused;
    return new FetchError('PROTOCOL', `s3://${this.#options.bucket}: the listing is not what it should be`, {
      retryable: true,
      cause: error,
    });
  }

  /**
   * Does what makes another attempt worth it: newer credentials, which all who found theirs expired share, or the
   * bucket's own region. False when there is nothing to do.
   */
  async recover(status: number, code: string, headers: AnswerHeaders, epoch: number): Promise<boolean> {
    const region = otherRegion(headers, status);
    const current = (await this.#ready?.catch(() => undefined))?.region;
    if (region !== undefined && region !== current && this.#regionChanges < 2) {
      this.#regionChanges++;
      this.#region = region;
      this.#ready = undefined;
      return true;
    }
    if (!isExpired(code) || this.#options.isAnonymous) return false;
    if (epoch < this.#epoch) return true;
    if (this.#isRenewed) return false;
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined;
    });
    await this.#renewing;
    return true;
  }

  async #renew(): Promise<void> {
    const { client } = await this.#get();
    try {
      await client.config.credentials({ forceRefresh: true });
    } catch (error) {
      throw credentialsError(error);
    }
    this.#epoch++;
    this.#isRenewed = true;
    const { counters, tell } = this.#options;
    counters.renewals++;
    tell?.({ kind: 'credentials-renewed', renewals: counters.renewals });
  }

  #get(): Promise<Ready> {
    this.#ready ??= this.#connect();
    this.#ready.catch(() => {
      this.#ready = undefined;
    });
    return this.#ready;
  }

  async #connect(): Promise<Ready> {
    const sdk = await loadSdk();
    const { bucket, endpoint, isAnonymous } = this.#options;
    const { AWS_ENDPOINT_URL_S3: ofS3, AWS_ENDPOINT_URL: ofAll } = process.env;
    const isCustom = (endpoint ?? ofS3 ?? ofAll) !== undefined;
    const region = this.#region ?? (await configuredRegion(sdk));
    const client = new sdk.S3Client({
      region,
      ...(endpoint === undefined ? {} : { endpoint }),
      // names of buckets in front of that of a server are something that only large ones have
      forcePathStyle: this.#options.pathStyle ?? isCustom,
      maxAttempts: 1,
      requestHandler: this.#handler(),
      ...(isAnonymous
        ? { credentials: { accessKeyId: 'anonymous', secretAccessKey: '' }, signer: { sign: async (one) => one } }
        : { credentials: freshCredentials(sdk, region) }),
    });
    const { protocol, hostname, port, path } = await addressOf(sdk, client, bucket);
    const host = port === undefined ? hostname : `${hostname}:${port}`;
    return { client, region, origin: `${protocol}//${host}`, host, path: path.slice(0, -1) };
  }

  /** Carries the SDK's own requests. */
  #handler() {
    const { pool, counters } = this.#options;
    return {
      metadata: { handlerProtocol: 'http/1.1' },
      async handle(request: SignableRequest & { body?: unknown }) {
        const query = formatQuery(request.query);
        const host = request.port === undefined ? request.hostname : `${request.hostname}:${request.port}`;
        const pieces: Buffer[] = [];
        let bytes = 0;
        let answered: { status: number; headers: Record<string, string> } | undefined;
        counters.requests++;
        await exchange(
          pool,
          {
            method: request.method,
            isLook: true,
            origin: `${request.protocol}//${host}`,
            path: request.path + (query === '' ? '' : `?${query}`),
            headers: request.headers,
            ...(request.body === undefined ? {} : { body: request.body as string | Uint8Array }),
          },
          {
            onHeaders: (status, headers) => {
              answered = { status, headers: plainHeaders(headers) };
            },
            onBytes: (piece) => {
              bytes += piece.byteLength;
              counters.bytesOnWire += piece.byteLength;
              counters.bytesDirectory += piece.byteLength;
              pieces.push(Buffer.from(piece));
              if (bytes <= DOCUMENT_BYTES_MAX) return true;
              throw new FetchError('PROTOCOL', `${host}: the answer has more than ${DOCUMENT_BYTES_MAX} bytes`);
            },
          },
        );
        return {
          response: { statusCode: answered!.status, headers: answered!.headers, body: Buffer.concat(pieces) },
        };
      },
      destroy() {},
      updateHttpClientConfig() {},
      httpHandlerConfigs: () => ({}),
    };
  }
}

interface SdkError {
  readonly name: string;
  readonly $metadata?: { readonly httpStatusCode?: number };
  readonly $response?: { readonly headers?: Record<string, string> };
}

let loading: Promise<Sdk> | undefined;

function loadSdk(): Promise<Sdk> {
  loading ??= import('@aws-sdk/client-s3');
  return loading;
}

/** The region of the environment or the profile. */
async function configuredRegion(sdk: Sdk): Promise<string> {
  try {
    return await new sdk.S3Client({}).config.region();
  } catch {
    return FALLBACK_REGION;
  }
}

/** The SDK's chain, which looks at its files anew when it is asked again. */
function freshCredentials(sdk: Sdk, region: string) {
  const { credentialDefaultProvider } = new sdk.S3Client({ region }).config;
  return credentialDefaultProvider({ ignoreCache: true, clientConfig: { region } } as never);
}

/** Where the SDK would ask for an object named "x". */
async function addressOf(sdk: Sdk, client: S3Client, bucket: string): Promise<SignableRequest> {
  const command = new sdk.GetObjectCommand({ Bucket: bucket, Key: 'x' });
  let found: SignableRequest | undefined;
  command.middlewareStack.add(
    () => async (args) => {
      found = (args as unknown as { request: SignableRequest }).request;
      return { response: {}, output: { $metadata: {} } };
    },
    { step: 'finalizeRequest', priority: 'high' },
  );
  try {
    await client.send(command);
  } catch (error) {
    throw credentialsError(error);
  }
  if (found === undefined) throw new FetchError('BAD_URL', `s3://${bucket}: no address`);
  return found;
}

/** What the SDK throws before anything was sent. */
function credentialsError(error: unknown): FetchError {
  if (error instanceof FetchError) return error;
  const { name, message } = error as Error;
  if (/credential|token|sso|expired/i.test(name + message)) {
    const words = 'there are no credentials (AWS_ACCESS_KEY_ID, a profile, a role); --anonymous does without';
    return new FetchError('DENIED', `${words}: ${message}`, { cause: error });
  }
  if (/endpoint|region|bucket|hostname|uri|url/i.test(name + message)) {
    return new FetchError('BAD_URL', message, { cause: error });
  }
  return connectionError(error, 's3');
}

function escapeSegment(segment: string): string {
  return encodeURIComponent(segment).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

function formatQuery(query: Readonly<Record<string, string | readonly string[] | null | undefined>>): string {
  return Object.entries(query)
    .flatMap(([name, value]) =>
      [value ?? ''].flat().map((one) => `${escapeSegment(name)}=${escapeSegment(String(one))}`),
    )
    .join('&');
}

function plainHeaders(headers: AnswerHeaders): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, [value ?? ''].flat().join(', ')] as const),
  );
}

/** A key as a listing writes it. */
function decodeListed(key: string): string {
  try {
    return decodeURIComponent(key.replaceAll('+', ' '));
  } catch (cause) {
    throw new FetchError('PROTOCOL', 'the listing has a key that is not encoded as it says', { cause });
  }
}

/** ETags in quotes, as headers have them. */
export function quoted(etag: string): string {
  return etag === '' || etag.startsWith('"') || etag.startsWith('W/') ? etag : `"${etag}"`;
}
