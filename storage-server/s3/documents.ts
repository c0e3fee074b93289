/** The documents that the S3 API answers with: buckets, their objects, where they are. Pure. */
import { describeFile } from '../http/representation.ts';
import type { ListedObject } from './buckets.ts';
import { S3Error } from './errors.ts';
import { LIST_KEYS_MAX } from './limits.ts';
import { listObjects } from './listing.ts';
import { encodePath } from './query.ts';
import { type Element, xmlDocument } from './xml.ts';

const OWNER: Element = [
  'Owner',
  [
    ['ID', 'qanat'],
    ['DisplayName', 'qanat'],
  ],
];

/** Buckets are as old as this process knows. */
const CREATED = new Date().toISOString();

export function serviceDocument(buckets: readonly string[]): string {
  const list = buckets.map((name): Element => {
    return [
      'Bucket',
      [
        ['Name', name],
        ['CreationDate', CREATED],
      ],
    ];
  });
  return xmlDocument(['ListAllMyBucketsResult', [OWNER, ['Buckets', list]]]);
}

/** Of us-east-1, which S3 does not name. */
export function locationDocument(): string {
  return xmlDocument(['LocationConstraint', '']);
}

/** Of a bucket that never had versions. */
export function versioningDocument(): string {
  return xmlDocument(['VersioningConfiguration', '']);
}

/** A listing, of the second version of the API or of the first. Throws S3Error InvalidArgument. */
export function bucketDocument(
  all: readonly ListedObject[],
  bucket: string,
  query: ReadonlyMap<string, string>,
): string {
  const version = query.get('list-type');
  if (version !== undefined && version !== '2') throw new S3Error('InvalidArgument', 'list-type has to be 2');
  const encoding = query.get('encoding-type');
  if (encoding !== undefined && encoding !== 'url') throw new S3Error('InvalidArgument', 'encoding-type has to be url');
  const encode = encoding === 'url' ? encodePath : (text: string): string => text;
  const isSecond = version === '2';
  const prefix = query.get('prefix') ?? '';
  const delimiter = query.get('delimiter') ?? '';
  const keysMax = keysMaxOf(query.get('max-keys'));
  const start = (isSecond ? query.get('start-after') : query.get('marker')) ?? '';
  const token = isSecond ? query.get('continuation-token') : undefined;
  const after = token === undefined ? start : parseToken(token);
  const { objects, prefixes, next } = listObjects(all, { prefix, delimiter, after, keysMax });
  const common: Element[] = [
    ['Name', bucket],
    ['Prefix', encode(prefix)],
    ...(delimiter === '' ? [] : [['Delimiter', encode(delimiter)] as const]),
    ['MaxKeys', keysMax],
    ...(encoding === undefined ? [] : [['EncodingType', encoding] as const]),
    ['IsTruncated', next !== undefined],
  ];
  const place: Element[] = isSecond
    ? [
        ['KeyCount', objects.length + prefixes.length],
        ...(start === '' ? [] : [['StartAfter', encode(start)] as const]),
        ...(token === undefined ? [] : [['ContinuationToken', token] as const]),
        ...(next === undefined ? [] : [['NextContinuationToken', formatToken(next)] as const]),
      ]
    : [['Marker', encode(start)], ...(next === undefined ? [] : [['NextMarker', encode(next)] as const])];
  const withOwner = !isSecond || query.get('fetch-owner') === 'true';
  const contents = objects.map(({ path, entry }): Element => {
    const { etag, length, modifiedMs } = describeFile(entry);
    const about: Element[] = [
      ['Key', encode(path)],
      ['LastModified', new Date(modifiedMs).toISOString()],
      ['ETag', etag],
      ['Size', length],
      ...(withOwner ? [OWNER] : []),
      ['StorageClass', 'STANDARD'],
    ];
    return ['Contents', about];
  });
  const groups = prefixes.map((one): Element => ['CommonPrefixes', [['Prefix', encode(one)]]]);
  return xmlDocument(['ListBucketResult', [...common, ...place, ...contents, ...groups]]);
}

function keysMaxOf(text: string | undefined): number {
  if (text === undefined || text === '') return LIST_KEYS_MAX;
  if (!/^\d{1,10}$/.test(text)) throw new S3Error('InvalidArgument', 'max-keys has to be a whole number');
  return Math.min(LIST_KEYS_MAX, Number(text));
}

/** A token is the place itself, in letters that pass everywhere; it holds nothing that a client may not know. */
function formatToken(place: string): string {
  return Buffer.from(place).toString('base64url');
}

function parseToken(token: string): string {
  const place = Buffer.from(token, 'base64url');
  if (token === '' || place.toString('base64url') !== token) {
    throw new S3Error('InvalidArgument', 'the continuation token is none of ours');
  }
  return place.toString();
}
