/**
 * The read-only S3 API: requests in path style and in virtual-host style become listings and objects of the region that
 * is served now. Checks signatures first, when there are keys: before that, nothing is told of what exists. All that
 * writes is refused, and its body is never read.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isOwnName } from '../../metrics/index.ts';
import type { Door } from '../http/door.ts';
import type { RequestKind } from '../http/door-counters.ts';
import { planAnswer } from '../http/plan-answer.ts';
import { BlockFault } from '../http/region-blocks.ts';
import { splitTarget } from '../http/request-path.ts';
import type { Buckets } from './buckets.ts';
import { bucketDocument, locationDocument, serviceDocument, versioningDocument } from './documents.ts';
import { S3Error } from './errors.ts';
import type { SigningKeys } from './keys.ts';
import { decodePercent, parseQuery } from './query.ts';
import { checkSignature } from './signature.ts';
import { type Element, xmlDocument } from './xml.ts';

/** The one region that we say to be in: what clients take for granted. */
const REGION = 'us-east-1';

export interface S3DoorOptions {
  readonly door: Door;
  readonly buckets: Buckets;
  /** Those that requests have to be signed with now; undefined lets everybody in. */
  readonly keys: () => SigningKeys | undefined;
  /** Names that everybody may ask for it by on an address of this machine alone; undefined for any. */
  readonly hostNames?: readonly string[] | undefined;
  /** Domain below which the names of buckets are hosts. */
  readonly domain: string;
}

interface S3Request {
  readonly query: ReadonlyMap<string, string>;
  readonly bucket: string | undefined;
  /** Empty for the bucket itself. */
  readonly key: string;
}

/** Parameters that mean something else than an object or a listing. */
const OBJECT_RESOURCES = ['acl', 'attributes', 'legal-hold', 'retention', 'tagging', 'torrent', 'uploadId'];
const BUCKET_RESOURCES = [
  'accelerate',
  'acl',
  'analytics',
  'cors',
  'encryption',
  'intelligent-tiering',
  'inventory',
  'lifecycle',
  'logging',
  'metrics',
  'notification',
  'object-lock',
  'ownershipControls',
  'policy',
  'policyStatus',
  'publicAccessBlock',
  'replication',
  'requestPayment',
  'tagging',
  'uploads',
  'versions',
  'website',
];

/** Answers a request of the S3 API. */
export function answerS3(options: S3DoorOptions, request: IncomingMessage, response: ServerResponse): void {
  const { door } = options;
  door.serve(request, response, async () => {
    const id = randomBytes(8).toString('hex').toUpperCase();
    response.setHeader('x-amz-request-id', id);
    response.setHeader('Server', 'Qanat');
    const state: { kind: RequestKind } = { kind: 's3_other' };
    try {
      await answer(options, request, response, state);
    } catch (cause) {
      const error = cause instanceof BlockFault ? new S3Error('ServiceUnavailable', cause.message) : cause;
      if (!(error instanceof S3Error)) throw error;
      const content: Element[] = [
        ['Code', error.code],
        ['Message', error.message],
        ['Resource', splitTarget(request.url)?.path ?? '/'],
        ['RequestId', id],
      ];
      door.say(state.kind, request, response, {
        status: error.status,
        headers: {
          'Content-Type': 'application/xml',
          ...(error.code === 'MethodNotAllowed' ? { Allow: 'GET, HEAD' } : {}),
        },
        text: xmlDocument(['Error', content], false),
      });
    }
  });
}

async function answer(
  options: S3DoorOptions,
  request: IncomingMessage,
  response: ServerResponse,
  state: { kind: RequestKind },
): Promise<void> {
  const { door, buckets } = options;
  const target = splitTarget(request.url);
  if (target === undefined) throw new S3Error('InvalidURI', 'the address is none');
  const query = parseQuery(target.query);
  const keys = options.keys();
  if (keys !== undefined) {
    const { method = '', headers, rawHeaders } = request;
    try {
      checkSignature({ method, path: target.path, query, headers, rawHeaders }, keys);
    } catch (error) {
      door.guard.counters.authentication.s3++;
      throw error;
    }
  } else if (options.hostNames !== undefined && !isOwnName(request.headers.host, options.hostNames)) {
    throw new S3Error('AccessDenied', 'this address is answered for names of this machine alone');
  }
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    throw new S3Error('MethodNotAllowed', 'only GET and HEAD: what is here can be read and not be changed');
  }
  if (door.closing) throw new S3Error('ServiceUnavailable', 'the server is shutting down');
  const asked = locate(options, request, target.path, new Map(query));
  const sendDocument = (kind: RequestKind, text: string): void => {
    door.say(kind, request, response, { status: 200, headers: { 'Content-Type': 'application/xml' }, text });
  };
  if (asked.bucket === undefined) {
    state.kind = 's3_list_buckets';
    if (asked.key !== '') throw new S3Error('NoSuchBucket', 'there is no such bucket');
    return sendDocument(state.kind, serviceDocument(buckets.names));
  }
  state.kind = asked.key === '' ? 's3_bucket' : 's3_object';
  if (!buckets.has(asked.bucket)) throw new S3Error('NoSuchBucket', 'there is no such bucket');
  response.setHeader('x-amz-bucket-region', REGION);
  if (asked.key !== '') return sendObject(options, request, response, asked);
  if (request.method === 'HEAD') {
    return door.say(state.kind, request, response, { status: 200, headers: {}, text: '' });
  }
  if (asked.query.has('location')) return sendDocument(state.kind, locationDocument());
  if (asked.query.has('versioning')) return sendDocument(state.kind, versioningDocument());
  refuseResources(asked.query, BUCKET_RESOURCES);
  state.kind = 's3_list_objects';
  sendDocument(
    state.kind,
    bucketDocument(buckets.objects(door.all.regions.current, asked.bucket), asked.bucket, asked.query),
  );
}

async function sendObject(
  { door, buckets }: S3DoorOptions,
  request: IncomingMessage,
  response: ServerResponse,
  { query, bucket, key }: S3Request,
): Promise<void> {
  refuseResources(query, OBJECT_RESOURCES);
  if ((query.get('versionId') ?? 'null') !== 'null') throw new S3Error('NoSuchVersion', 'there is no such version');
  if ((query.get('partNumber') ?? '1') !== '1') throw new S3Error('InvalidRange', 'there is no such part');
  const representation = buckets.object(door.all, bucket!, key);
  if (representation === undefined) throw new S3Error('NoSuchKey', 'there is no such key');
  const plan = planAnswer(request.headers, representation, { ranged: true, bareEtags: true });
  if (plan.status === 412) throw new S3Error('PreconditionFailed', 'it is not the version that was asked for');
  if (plan.status === 416) {
    response.setHeader('Content-Range', `bytes */${representation.length}`);
    throw new S3Error('InvalidRange', 'the range begins behind the end');
  }
  await door.send('s3_object', request, response, plan, representation);
}

/** Which bucket and which key a request is about. */
function locate(
  { buckets, domain }: S3DoorOptions,
  request: IncomingMessage,
  path: string,
  query: ReadonlyMap<string, string>,
): S3Request {
  const host = (request.headers.host ?? '').replace(/:\d+$/, '').toLowerCase();
  if (host.endsWith(`.${domain}`)) {
    const bucket = host.slice(0, -domain.length - 1);
    return { query, bucket: buckets.has(bucket) ? bucket : '', key: decodePercent(path.slice(1)) };
  }
  const [, first = '', rest = ''] = /^\/([^/]*)\/?(.*)$/s.exec(path) ?? [];
  return { query, bucket: first === '' ? undefined : decodePercent(first), key: decodePercent(rest) };
}

function refuseResources(query: ReadonlyMap<string, string>, resources: readonly string[]): void {
  const found = resources.find((one) => query.has(one));
  if (found !== undefined) throw new S3Error('NotImplemented', `there is no ${found} here`);
}
