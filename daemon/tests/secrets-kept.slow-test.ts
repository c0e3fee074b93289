/**
 * A server with TLS, tokens and keys, and all that reads from it, as people run them: they work, what is renewed is taken
 * over at SIGHUP, and no secret is in what they print, log, measure, answer or are called with.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { makeCertificate } from '../../storage-server/tests/certificate-maker.ts';
import { until } from './api-fixture.ts';
import { type CommandResult, cleanEnvironment, QANAT, qanat } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';

const TOKEN = 'SECRET-token-of-everything-1';
const PART = 'SECRET-token-of-one-file-2';
const WRONG = 'SECRET-token-that-is-wrong-3';
const NEXT = 'SECRET-token-that-comes-next-4';
const S3_SECRET = 'SECRET-key-of-the-bucket-5';
const S3_WRONG = 'SECRET-key-that-is-wrong-6';
const URL_SECRET = 'SECRET-in-a-query-7';

let lake: Lake;
let folder: string;
/** All that processes said or were called with. */
const seen: string[] = [];

before(async () => {
  lake = await Lake.create();
  mkdirSync(lake.path('a'));
  await lake.write('a/one.parquet', numbersQuery(1000));
  await lake.write('two.parquet', numbersQuery(500));
  folder = mkdtempSync(join(tmpdir(), 'qanat-test-'));
});
after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await lake[Symbol.asyncDispose]();
});

function write(name: string, text: string): string {
  writeFileSync(join(folder, name), text, { mode: 0o600 });
  return join(folder, name);
}

/** Remembers what a process is called with, for all to see. */
function look(child: ChildProcess): void {
  // what stands in a URL is there because somebody wrote it there
  seen.push(readFileSync(`/proc/${child.pid}/cmdline`, 'utf8').replaceAll(URL_SECRET, ''));
}

async function run(args: readonly string[], env: Record<string, string> = {}): Promise<CommandResult> {
  const result = await qanat(args, { env, started: look });
  seen.push(result.text, result.errors);
  return result;
}

interface Process {
  readonly child: ChildProcess;
  readonly ready: Record<string, unknown>;
  readonly log: () => string;
}

async function start(args: readonly string[], env: Record<string, string> = {}): Promise<Process> {
  const child = spawn(process.execPath, [QANAT, ...args], {
    env: { ...cleanEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  child.stderr.on('data', (data) => {
    log += data;
  });
  const ended = once(child, 'exit').then(() => {
    throw new Error(`it ended: ${log}`);
  });
  const [line] = (await Promise.race([once(createInterface({ input: child.stdout }), 'line'), ended])) as [string];
  ended.catch(() => {});
  seen.push(line);
  look(child);
  return { child, ready: JSON.parse(line), log: () => log };
}

async function stop({ child, log }: Process): Promise<void> {
  const ended = once(child, 'close');
  child.kill('SIGTERM');
  await ended;
  seen.push(log());
}

function ask(address: unknown, path: string, ca: string, token?: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const sent = request(`https://${address}${path}`, { ca, headers, agent: false }, (response) => {
      let text = '';
      response.on('data', (piece) => {
        text += piece;
      });
      response.on('end', () => {
        seen.push(text, JSON.stringify(response.headers));
        resolve({ status: response.statusCode!, text });
      });
    });
    sent.on('error', reject).end();
  });
}

test('server, clients and daemon with TLS, tokens and keys work, and keep their secrets', {
  timeout: 120_000,
}, async (t) => {
  const authority = makeCertificate('authority', { isAuthority: true });
  const server = makeCertificate('server', { issuer: authority, names: ['127.0.0.1', 'localhost'] });
  const [cert, key] = [write('cert.pem', server.cert), write('key.pem', server.key)];
  const ca = write('ca.pem', authority.cert);
  const tokens = write('tokens', `everything ${TOKEN} /\nteam ${PART} a\n`);
  const keys = write('keys', `reader ${S3_SECRET}\n`);
  chmodSync(keys, 0o644);
  const addresses = ['--listen', '127.0.0.1:0', '--http', '127.0.0.1:0', '--s3', '127.0.0.1:0'];
  const access = ['--tls-cert', cert, '--tls-key', key, '--tokens', tokens, '--s3-keys', keys, '--s3-bucket', 'lake'];
  const serve = await start(['serve', lake.folder, ...addresses, ...access, '--log-level', 'debug']);
  t.after(() => serve.child.kill('SIGKILL'));
  const { rdma, http, s3 } = serve.ready;
  assert.deepEqual([serve.ready.tls, serve.ready.tokens], [true, true]);
  const warning = /keys holds secrets and can be read by every user of this machine: chmod 600/;
  await until(() => warning.test(serve.log()));

  // each of the commands, with the token from a file and from the environment
  const place = `rdmas://${rdma}`;
  const tokenFile = write('token', `${TOKEN}\n`);
  const shown = ['--ca-file', ca, '--token-file', tokenFile];
  const works = async (args: readonly string[], text: RegExp, env: Record<string, string> = {}): Promise<void> => {
    const { code, text: told, errors } = await run(args, env);
    assert.equal(code, 0, errors);
    assert.match(told, text);
  };
  const fails = async (args: readonly string[], errors: RegExp, env: Record<string, string> = {}): Promise<void> => {
    const result = await run(args, env);
    assert.ok(result.code === 1 || result.code === 2, result.errors);
    assert.match(result.errors, errors);
  };
  const aws = { AWS_ACCESS_KEY_ID: 'reader', AWS_REGION: 'us-east-1' };
  const store = ['--endpoint', `https://${s3}`, '--ca-file', ca];
  await Promise.all([
    works(['ls', place, ...shown], /a\/one\.parquet\n.*two\.parquet/),
    works(['ls', place, '--ca-file', ca], /^[^\n]*a\/one\.parquet\n$/, { QANAT_TOKEN: PART }),
    works(['scan', `${place}/**`, '--format', 'count', ...shown], /^1500\n$/),
    works(['scan', `https://${http}/files/two.parquet?x=${URL_SECRET}`, '--format', 'count', ...shown], /^500\n$/),
    works(['scan', 's3://lake/**', '--format', 'count', ...store], /^1500\n$/, {
      ...aws,
      AWS_SECRET_ACCESS_KEY: S3_SECRET,
    }),
  ]);
  await Promise.all([
    works(['cp', `${place}/two.parquet`, join(folder, 'copy.parquet'), ...shown], /^$/),
    fails(['ls', place, '--ca-file', ca], /BAD_AUTHENTICATION: .*--token-file, or QANAT_TOKEN/, { QANAT_TOKEN: WRONG }),
    fails(['scan', `https://${http}/files/two.parquet?x=${URL_SECRET}`, '--ca-file', ca, '--debug'], /DENIED/, {
      QANAT_TOKEN: WRONG,
    }),
    fails(['ls', 's3://lake', ...store, '--debug'], /DENIED/, { ...aws, AWS_SECRET_ACCESS_KEY: S3_WRONG }),
    fails(['ls', place, '--ca-file', ca, '--debug'], /expected a token in one line/, { QANAT_TOKEN: `${WRONG}\nx` }),
  ]);

  // HTTP: metrics for who may see all, health for everybody
  assert.equal((await ask(http, '/metrics', authority.cert)).status, 401);
  assert.equal((await ask(http, '/metrics', authority.cert, PART)).status, 401);
  assert.equal((await ask(http, '/readyz', authority.cert)).status, 200);
  const { status, text } = await ask(http, '/metrics', authority.cert, TOKEN);
  assert.equal(status, 200);
  for (const door of ['queue_pair', 'http', 's3']) {
    const failures = new RegExp(`^qanat_serve_authentication_failures_total\\{door="${door}"\\} [1-9]`, 'm');
    assert.match(text, failures);
  }

  // a daemon, configured by a file
  const config = write(
    'qanat.yaml',
    `sources:\n  lake:\n    location: ${place}\n    ca-file: ca.pem\n    token-file: token\n  denied:\n    location: ${place}\n    ca-file: ca.pem\n    token-file: wrong\n` +
      'listen: 127.0.0.1:0\nmetrics: 127.0.0.1:0\nmemory: 32MiB\ndecoders: 1\nlog-level: debug\nallow-locations: true\n',
  );
  write('wrong', WRONG);
  await works(['config', 'check', config], /token-file/, { QANAT_TOKEN: NEXT });
  const daemon = await start(['daemon', '--config', config], { QANAT_TOKEN: TOKEN, QANAT_CA_FILE: ca });
  t.after(() => daemon.child.kill('SIGKILL'));
  const scan = async (body: unknown): Promise<number> => {
    const answer = await fetch(`http://${daemon.ready.http}/v1/scan`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const told = Buffer.from(await answer.arrayBuffer());
    if (answer.status !== 200) seen.push(told.toString());
    return answer.status;
  };
  assert.equal(await scan({ source: 'lake', path: 'two.parquet' }), 200);
  assert.equal(await scan({ source: 'denied', path: 'two.parquet' }), 502);
  // what the daemon may show to its sources is not shown to wherever somebody says
  assert.equal(await scan({ location: `${place}/two.parquet` }), 502);
  seen.push(await (await fetch(`http://${daemon.ready.metrics}/metrics`)).text());
  seen.push(await (await fetch(`http://${daemon.ready.http}/v1/sources`)).text());
  await stop(daemon);

  // everything is renewed; then what is broken is told, and changes nothing
  const renewed = makeCertificate('renewed', { issuer: authority, names: ['127.0.0.1'] });
  write('cert.pem', renewed.cert);
  write('key.pem', renewed.key);
  write('tokens', `everything ${NEXT} /\n`);
  serve.child.kill('SIGHUP');
  await until(() => /new connections get the certificate/.test(serve.log()));
  await fails(['ls', place, ...shown], /BAD_AUTHENTICATION/);
  write('token', NEXT);
  await works(['ls', place, ...shown], /two/);
  assert.equal((await ask(http, '/metrics', authority.cert, TOKEN)).status, 401);
  write('key.pem', server.key);
  write('tokens', `everything ${NEXT}`);
  write('keys', S3_SECRET);
  serve.child.kill('SIGHUP');
  for (const what of [
    /tokens:1: expected a name/,
    /keys:1: expected/,
    /certificate not taken over: .*is not that of/,
  ]) {
    await until(() => what.test(serve.log()));
  }
  assert.equal((await ask(http, '/metrics', authority.cert, NEXT)).status, 200);
  await stop(serve);

  const all = seen.join('\n');
  assert.ok(all.length > 20_000, 'there is something to look through');
  assert.equal(/.{0,80}SECRET-.{0,40}/.exec(all)?.[0], undefined);
  const digits = server.key.split('\n')[1]!;
  assert.ok(!all.includes(digits), 'nor is a private key there');
});
