/** Which options a server takes together, and which addresses take which authentication. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkAccess } from '../commands/server-access.ts';
import { createLog } from '../log.ts';
import type { OptionValues } from '../options.ts';

const LOCAL = { host: '127.0.0.1', port: 0 };
const OTHERS = [
  { host: '0.0.0.0', port: 0 },
  { host: '::', port: 0 },
  { host: '10.0.0.5', port: 7400 },
  { host: 'lake.example', port: 7400 },
];
const TLS = { tlsCert: 'cert.pem', tlsKey: 'key.pem' };
const TOKENS = { tokens: 'tokens' };

/** The warnings, or the reason of the refusal. */
function check(
  options: OptionValues,
  addresses: { listen?: typeof LOCAL; http?: typeof LOCAL | 'none' } = {},
): string[] {
  const told: string[] = [];
  const log = createLog({ command: 'serve', format: 'json', write: (line) => told.push(JSON.parse(line).msg) });
  checkAccess(options, { listen: LOCAL, http: 'none', ...addresses }, log);
  return told;
}

test('which addresses take which authentication', () => {
  assert.deepEqual(check({}, { http: LOCAL }), []);
  assert.deepEqual(check({ s3: { host: '::1', port: 1 } }, { listen: { host: 'localhost', port: 1 } }), []);
  for (const address of OTHERS) {
    for (const where of [{ listen: address }, { http: address }]) {
      assert.throws(
        () => check({}, where),
        /whoever can connect could read every file .*--tokens or --tls-client-ca.*--insecure-listen/,
      );
      assert.throws(() => check(TLS, where), /whoever can connect/, 'encryption is no authentication');
      assert.throws(
        () => check({ s3: LOCAL, s3Keys: 'keys' }, where),
        /whoever can connect/,
        'nor are keys of another door',
      );
      assert.match(check({ insecureListen: true }, where).join(), /whoever can connect can read every file/);
      assert.match(check(TOKENS, where).join(), /not encrypted: --tls-cert/);
      assert.deepEqual(check({ ...TLS, ...TOKENS }, where), []);
      assert.deepEqual(check({ ...TLS, tlsClientCa: 'ca.pem' }, where), []);
    }
    assert.throws(() => check({ s3: address }), /--s3-keys or --tls-client-ca/);
    assert.throws(() => check({ s3: address, ...TOKENS }), /--s3-keys/);
    assert.match(check({ s3: address, s3Keys: 'keys' }).join(), /not encrypted/);
    assert.deepEqual(check({ s3: address, s3Keys: 'keys', ...TLS }), []);
    assert.deepEqual(check({ s3: address, ...TLS, tlsClientCa: 'ca.pem' }), []);
  }
});

test('tokens at one door and nothing at another are no guard', () => {
  assert.throws(() => check({ s3: LOCAL, ...TOKENS }), /tokens are not asked for over S3.*--s3-keys/);
  assert.match(check({ s3: LOCAL, ...TOKENS, insecureListen: true }).join(), /tokens are not asked for over S3/);
  assert.deepEqual(check({ s3: LOCAL, s3Keys: 'keys', ...TOKENS }), []);
});

test('options that make no sense alone', () => {
  assert.throws(() => check({ tlsCert: 'cert.pem' }), /go together/);
  assert.throws(() => check({ tlsKey: 'key.pem' }), /go together/);
  assert.throws(() => check({ tlsClientCa: 'ca.pem' }), /takes TLS/);
  assert.throws(() => check({ s3Keys: 'keys' }), /about --s3/);
});
