import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FetchError } from '../../fetcher/index.ts';
import { formatLocation, parseLocation } from '../location.ts';

const parts = (text: string, folder = '/work') => {
  const { scheme, authority, glob } = parseLocation(text, folder);
  return [scheme, authority, glob.pattern];
};

test('servers', () => {
  assert.deepEqual(parts('rdma://host:7401/a/b.parquet'), ['rdma', 'host:7401', 'a/b.parquet']);
  assert.deepEqual(parts('rdma://host/year=2024/**/*.parquet'), ['rdma', 'host:7400', 'year=2024/**/*.parquet']);
  assert.deepEqual(parts('rdma://127.0.0.1:1'), ['rdma', '127.0.0.1:1', '']);
  assert.deepEqual(parts('RDMA://[::1]:7400/'), ['rdma', '[::1]:7400', '']);
  assert.deepEqual(parts('rdma://h:1//a/./b/'), ['rdma', 'h:1', 'a/b']);
});

test('web servers: no wildcards, and what follows a "?" is a query that is not told', () => {
  assert.deepEqual(parts('https://h/a/b.parquet'), ['https', 'h', 'a/b.parquet']);
  assert.deepEqual(parts('HTTP://[::1]:80/a//b%20c'), ['http', '[::1]:80', 'a//b c']);
  const { glob, query, text } = parseLocation('https://h:1/x[*].parquet?sig=a%2Fb?c');
  assert.deepEqual([glob.literal, query, text], ['x[*].parquet', '?sig=a%2Fb?c', 'https://h:1/x[*].parquet?***']);
  const asked = { ...parseLocation('https://h/lake.qanat?sig=x'), pack: 'lake.qanat' };
  assert.equal(formatLocation(asked, 'a#b c'), 'https://h/lake.qanat?sig=x!/a%23b%20c');
});

test('buckets: keys as they are, empty segments and all', () => {
  assert.deepEqual(parts('s3://lake'), ['s3', 'lake', '']);
  assert.deepEqual(parts('s3://lake/'), ['s3', 'lake', '']);
  assert.deepEqual(parts('S3://lake//a//b.parquet'), ['s3', 'lake', '/a//b.parquet']);
  assert.deepEqual(parts('s3://my.lake_1/dir/'), ['s3', 'my.lake_1', 'dir']);
  assert.deepEqual(parts('s3://lake/a b+c/./ü%2A'), ['s3', 'lake', 'a b+c/./ü\\*']);
  assert.equal(parseLocation('s3://lake/year=2024/m*/x.parquet').glob.lead, 'year=2024/m');
  assert.equal(parseLocation('s3://lake/a%20b').asWritten, 'a%20b');
  assert.equal(formatLocation(parseLocation('s3://lake/x'), '/a//b c%2'), 's3://lake//a//b%20c%252');
});

test('local files', () => {
  assert.deepEqual(parts('file:///data/x.parquet'), ['file', '', 'data/x.parquet']);
  assert.deepEqual(parts('file://localhost/data'), ['file', '', 'data']);
  assert.deepEqual(parts('file:///data/*.parquet?'), ['file', '', 'data/*.parquet?']);
  assert.deepEqual(parts('x.parquet'), ['file', '', 'work/x.parquet']);
  assert.deepEqual(parts('./a/../b/{c,d}/'), ['file', '', 'work/b/{c,d}']);
  assert.deepEqual(parts('/data//x'), ['file', '', 'data/x']);
  assert.deepEqual(parts('.'), ['file', '', 'work']);
  assert.deepEqual(parts('../*', '/a/b'), ['file', '', 'a/*']);
});

test('special characters mean themselves where they are not written as wildcards', () => {
  // A working folder is a name, whatever it holds.
  assert.equal(parseLocation('x*', '/odd [1]').glob.prefix, 'odd [1]/');
  assert.equal(parseLocation('file:///a%2Ab/c%20d').glob.literal, 'a*b/c d');
  assert.equal(parseLocation('file:///%E6%BC%A2').glob.literal, '漢');
  assert.equal(parseLocation('rdma://h/50%25').glob.literal, '50%');
  assert.equal(parseLocation('rdma://h/50% off').glob.literal, '50% off');
  assert.equal(parseLocation('/a%20b').glob.literal, 'a%20b');
  assert.equal(parseLocation('a:b#c', '/').glob.literal, 'a:b#c');
});

test('what is no location says what to write instead', () => {
  const refuses = (text: string, reason: RegExp) =>
    assert.throws(
      () => parseLocation(text, '/work'),
      (error) => error instanceof FetchError && error.code === 'BAD_URL' && reason.test(error.message),
      text,
    );
  refuses('', /empty: write rdma:/);
  refuses('gs://bucket/key', /scheme gs:.* not supported: write rdma:/);
  refuses('s3://', /no valid name of a bucket/);
  refuses('s3://k:hunter2@bucket/key', /^fetch BAD_URL: "s3:\/\/\*\*\*@…" holds a user name/);
  refuses('s3:bucket/key', /lacks the slashes/);
  refuses('https://h', /no listings: name a file/);
  refuses('https://h/dir/', /no listings: name a file/);
  refuses('https://me:hunter2@h/x', /^fetch BAD_URL: "https:\/\/\*\*\*@h" holds a user name/);
  refuses('https://h/a#b', /%23/);
  refuses('https://h/a/../b', /segment/);
  refuses('https://h:99999/a', /no valid host/);
  refuses('http:/h/a', /lacks the slashes/);
  refuses('file:/data', /lacks the slashes/);
  refuses('rdma:host/data', /lacks the slashes/);
  refuses('file://data/x', /names the host "data".*three slashes/);
  refuses('file://', /three slashes/);
  refuses('rdma://', /no valid host/);
  refuses('rdma:///path', /no valid host/);
  refuses('rdma://host:port/', /no valid host/);
  refuses('rdma://ho st/', /no valid host/);
  refuses('rdma://ho*/', /no valid host/);
  refuses('rdma://user@host/', /user name/);
  refuses('rdma://host:0/', /ports are 1 to 65535/);
  refuses('rdma://host:70000/', /ports are 1 to 65535/);
  refuses('rdma://host/a/../b', /segment ".."/);
  refuses('file:///a/%2e%2e/b', /segment ".."/);
  refuses('file:///a%2Fb', /%2F, which no name can hold/);
  refuses('file:///a%00b', /no name can hold/);
  refuses('rdma://h/%FF', /%FF, which is not UTF-8/);
  refuses('a\0b', /NUL/);
  refuses('a'.repeat(5000), /longer than 4096/);
});
