/** Signatures against the examples in S3's documentation, and what is refused; files of keys. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ServeError } from '../errors.ts';
import { S3Error } from '../s3/errors.ts';
import { parseKeys } from '../s3/keys.ts';
import { parseQuery } from '../s3/query.ts';
import { checkSignature, type SignedRequest } from '../s3/signature.ts';

const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
const KEYS = new Map([['AKIAIOSFODNN7EXAMPLE', SECRET]]);
const NOW = Date.parse('2013-05-24T00:00:00Z');
const EMPTY = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const SCOPE = 'AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request';

function requestOf(path: string, query: string, headers: Record<string, string>, method = 'GET'): SignedRequest {
  return { method, path, query: parseQuery(query), headers, rawHeaders: Object.entries(headers).flat() };
}

const BASE = {
  host: 'examplebucket.s3.amazonaws.com',
  'x-amz-content-sha256': EMPTY,
  'x-amz-date': '20130524T000000Z',
};
const signed = (signature: string, names = 'host;x-amz-content-sha256;x-amz-date') =>
  `AWS4-HMAC-SHA256 Credential=${SCOPE},SignedHeaders=${names},Signature=${signature}`;

const GET = requestOf('/test.txt', '', {
  ...BASE,
  range: 'bytes=0-9',
  authorization: signed(
    'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
    'host;range;x-amz-content-sha256;x-amz-date',
  ),
});
const LIST = requestOf('/', 'max-keys=2&prefix=J', {
  ...BASE,
  authorization: signed('34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7'),
});
const LIFECYCLE = requestOf('/', 'lifecycle', {
  ...BASE,
  authorization: signed('fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543'),
});
const PRESIGNED_QUERY =
  'X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request' +
  '&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host' +
  '&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404';
const PRESIGNED = requestOf('/test.txt', PRESIGNED_QUERY, { host: BASE.host });

const codeOf = (request: SignedRequest, keys = KEYS, now = NOW): string => {
  try {
    checkSignature(request, keys, now);
    return 'ok';
  } catch (error) {
    assert.ok(error instanceof S3Error);
    assert.ok(!error.message.includes(SECRET));
    return error.code;
  }
};

test("the examples of S3's documentation are signed right", () => {
  for (const request of [GET, LIST, LIFECYCLE, PRESIGNED]) assert.equal(codeOf(request), 'ok');
});

test('what was signed can not be changed', () => {
  const altered: SignedRequest[] = [
    { ...GET, path: '/test2.txt' },
    { ...GET, method: 'HEAD' },
    { ...GET, query: [['versionId', '1']] },
    { ...GET, rawHeaders: GET.rawHeaders.map((one) => (one === 'bytes=0-9' ? 'bytes=0-99' : one)) },
    { ...GET, rawHeaders: [...GET.rawHeaders, 'Range', 'bytes=0-99'] },
    { ...GET, rawHeaders: GET.rawHeaders.map((one) => (one === BASE.host ? 'other' : one)) },
    { ...PRESIGNED, path: '/other' },
    { ...PRESIGNED, query: [...PRESIGNED.query, ['x', 'y']] },
    {
      ...LIST,
      query: [
        ['prefix', 'K'],
        ['max-keys', '2'],
      ],
    },
  ];
  for (const request of altered) assert.equal(codeOf(request), 'SignatureDoesNotMatch');
  assert.equal(codeOf({ ...LIST, query: [...LIST.query].reverse() }), 'ok', 'the order of parameters is free');
});

test('keys, times and forms', () => {
  const minutes = 60_000;
  assert.equal(codeOf(GET, new Map([['other', SECRET]])), 'SignatureDoesNotMatch', 'nobody learns which ids there are');
  assert.equal(codeOf(GET, new Map([['AKIAIOSFODNN7EXAMPLE', 'wrong']])), 'SignatureDoesNotMatch');
  assert.equal(codeOf(GET, KEYS, NOW + 14 * minutes), 'ok');
  assert.equal(codeOf(GET, KEYS, NOW + 16 * minutes), 'RequestTimeTooSkewed');
  assert.equal(codeOf(GET, KEYS, NOW - 16 * minutes), 'RequestTimeTooSkewed');
  assert.equal(codeOf(PRESIGNED, KEYS, NOW + 86_400_000), 'ok');
  assert.equal(codeOf(PRESIGNED, KEYS, NOW + 86_400_001), 'AccessDenied');
  assert.equal(codeOf(PRESIGNED, KEYS, NOW - 16 * minutes), 'AccessDenied');
  assert.equal(codeOf(requestOf('/', '', { host: 'x' })), 'AccessDenied');
  const withHeader = (authorization: string) => requestOf('/', '', { ...BASE, authorization });
  assert.equal(codeOf(withHeader('Basic eDp5')), 'InvalidRequest');
  assert.equal(codeOf(withHeader('AWS4-HMAC-SHA256 nonsense')), 'AuthorizationHeaderMalformed');
  assert.equal(codeOf(withHeader(signed('00', 'host'))), 'AuthorizationHeaderMalformed');
  assert.equal(codeOf(withHeader(signed('0'.repeat(64), 'x-amz-date'))), 'AuthorizationHeaderMalformed');
  assert.equal(
    codeOf(withHeader(signed('0'.repeat(64)).replace('20130524', '20130525'))),
    'AuthorizationHeaderMalformed',
  );
  assert.equal(codeOf(withHeader(signed('0'.repeat(64)).replace('/s3/', '/sqs/'))), 'AuthorizationHeaderMalformed');
  const both = requestOf('/test.txt', PRESIGNED_QUERY, { ...BASE, authorization: signed('0'.repeat(64)) });
  assert.equal(codeOf(both), 'InvalidRequest');
  for (const [from, to] of [
    ['86400', '604801'],
    ['86400', '0'],
    ['86400', '1e3'],
    ['20130524T000000Z', 'now'],
    ['AWS4-HMAC-SHA256', 'AWS4-HMAC-MD5'],
  ] as const) {
    const request = requestOf('/test.txt', PRESIGNED_QUERY.replace(from, to), { host: BASE.host });
    assert.equal(codeOf(request), 'AuthorizationQueryParametersError', to);
  }
});

test('files of keys', () => {
  assert.deepEqual(
    [...parseKeys('# c\n\na:b:c\r\n  id2   s/+=\n', 'f')],
    [
      ['a', 'b:c'],
      ['id2', 's/+='],
    ],
  );
  for (const text of ['', '# nothing', 'onlyid', 'a b c', 'a b\na c']) {
    assert.throws(
      () => parseKeys(text, 'f'),
      (error) => error instanceof ServeError && error.code === 'KEYS' && !error.message.includes('onlyid'),
    );
  }
});
