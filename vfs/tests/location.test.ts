import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FetchError } from '../../fetcher/index.ts';
import { parseLocation } from '../location.ts';

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
  refuses('s3://bucket/key', /scheme s3:.* not supported: write rdma:/);
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
