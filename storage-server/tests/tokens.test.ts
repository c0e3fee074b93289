/** Tokens: what a file of them may hold, and what each door shows to whom. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parsePrefix, Scope } from '../access/scope.ts';
import { bearerToken, Tokens } from '../access/tokens.ts';
import { type ServeOptions, serveRegion } from '../index.ts';
import { EVENT, encodeHello, parseDirectory, parseDirectorySize, REFUSAL, WC } from '../protocol/index.ts';
import { fetchDirectory, makeFolder, pattern, startServer } from './lake.ts';
import { HELLO, RawClient, readFrame } from './raw-client.ts';

const ALL = 'all-of-it-0123456789';
const PART = 'only-a-part-0123456789';
const NONE = 'metrics-alone-0123456789';
const WRONG = 'nobody-knows-0123456789';
const FILES = {
  'a/b/1.parquet': pattern(100_000, 1),
  'a/b/2.parquet': pattern(5000, 2),
  'a/bc/3.parquet': pattern(7000, 3),
  'secret/name.parquet': pattern(90_000, 4),
};
const TOKENS = `
# who, with what, for what
boss ${ALL} /
team sha256:${createHash('sha256').update(PART).digest('hex')} a/b
probe ${NONE} @metrics
`;

interface Rig {
  readonly server: Awaited<ReturnType<typeof startServer>>['server'];
  readonly port: number;
  readonly http: number;
  readonly folder: string;
  readonly tokensFile: string;
  readonly events: string[];
}

async function start(t: TestContext, options: Partial<ServeOptions> = {}): Promise<Rig> {
  const folder = makeFolder(t, FILES);
  const tokensFile = join(makeFolder(t, { tokens: Buffer.from(TOKENS) }), 'tokens');
  chmodSync(tokensFile, 0o600);
  const started = await startServer(t, folder, { tokensFile, ...options });
  const http = createServer((asked, response) => {
    if (!started.server.answerHttp(asked, response)) response.writeHead(418).end();
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    http.close();
    http.closeAllConnections();
  });
  return { ...started, folder, tokensFile, http: (http.address() as AddressInfo).port };
}

interface Answer {
  readonly status: number;
  /** But for the time. */
  readonly headers: string;
  readonly body: Buffer;
}

function ask(port: number, path: string, authorization?: string, method = 'GET'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = authorization === undefined ? {} : { authorization };
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', reject);
      response.on('end', () => {
        const told = response.rawHeaders.join('\n').replace(/Date\n.*/, '');
        resolve({ status: response.statusCode!, headers: told, body: Buffer.concat(parts) });
      });
    });
    sent.on('error', reject);
    sent.end();
  });
}

test('a prefix is whole segments', () => {
  const scope = new Scope(['a/b', 'a/b/c', 'x']);
  for (const path of ['a/b', 'a/b/c.parquet', 'x', 'x/y']) assert.ok(scope.covers(path), path);
  for (const path of ['a', 'a/bc', 'a/b.parquet', 'xy', 'X', '']) assert.ok(!scope.covers(path), path);
  assert.equal(scope.key, new Scope(['x', 'a/b']).key);
  assert.ok(new Scope(['', 'x']).isEverything);
  assert.ok(!new Scope([]).covers('a'));
  assert.equal(parsePrefix('/year=2024/'), 'year=2024');
  assert.equal(parsePrefix('a%20b/%C3%A4'), 'a b/ä');
  assert.equal(parsePrefix('/'), '');
  for (const text of ['', '//', '..', 'a/../b', './a', 'a//b', '%00', '%C0%AF', '%']) {
    assert.equal(parsePrefix(text), undefined, text);
  }
});

test('a file of tokens that makes no sense is told by line, and never by what it holds', () => {
  const refused: Record<string, RegExp> = {
    '': /holds no token/,
    'a short /': /tokens:1: a token has 16/,
    'a 0123456789abcdef': /tokens:1: expected a name/,
    '# x\nb/d 0123456789abcdef /': /tokens:2: a name has/,
    'a 0123456789abcdef ../x': /no path/,
    'a 0123456789abcdef /\na fedcba9876543210 /': /tokens:2: a is there twice/,
    'a 0123456789abcdef /\nb 0123456789abcdef /': /tokens:2: another name/,
    'a sha256:0123456789abcdef /': /sha256/,
  };
  for (const [text, message] of Object.entries(refused)) {
    assert.throws(
      () => Tokens.parse(text, 'tokens'),
      (error: Error) => message.test(error.message) && !/0123456789abcdef|fedcba/.test(error.message),
      text,
    );
  }
  const tokens = Tokens.parse(TOKENS, 'tokens');
  assert.equal(tokens.holderOf(ALL)?.name, 'boss');
  assert.equal(tokens.holderOf(PART)?.name, 'team');
  for (const token of [undefined, '', WRONG, `${ALL} `, ALL.slice(1), `sha256:${ALL}`]) {
    assert.equal(tokens.holderOf(token), undefined);
  }
  assert.equal(bearerToken(`bearer  ${ALL} `), ALL);
  for (const text of ['', ALL, `Basic ${ALL}`, 'Bearer', `Bearer ${ALL} x`]) assert.equal(bearerToken(text), undefined);
});

test('queue pairs: a wrong token and none get the same answer, and nothing else', async (t) => {
  const { port, server } = await start(t, { limits: { connectionsMax: 1 } });
  const refusal = async (auth: string, hello: Partial<typeof HELLO> = {}): Promise<string> => {
    const client = await RawClient.connect(port);
    client.socket.write(encodeHello({ ...HELLO, ...hello }, Buffer.from(auth)));
    const answer = (await client.take(64))!;
    assert.equal(answer.readUInt16LE(6), REFUSAL.BAD_AUTHENTICATION);
    const reason = (await client.take(answer.readUInt16LE(50)))!;
    await client.end();
    assert.equal(await client.take(1), undefined);
    return `${answer.toString('hex')} ${reason}`;
  };
  const none = await refusal('');
  const held = await RawClient.greeted(port, {}, { token: ALL });
  for (const auth of [
    `Bearer ${WRONG}`,
    ALL,
    'Bearer ',
    `Basic ${ALL}`,
    `Bearer ${ALL.toUpperCase()}`,
    '\0'.repeat(4096),
  ]) {
    // also when there is no room, and for what would be refused for its depths
    assert.equal(await refusal(auth), none);
    assert.equal(await refusal(auth, { queueDepth: 0 }), none);
  }
  await assert.rejects(RawClient.greeted(port, {}, { token: ALL }), /refused 3/);
  held.socket.destroy();
  assert.equal(server.counters().refused, 14);
});

for (const pin of [false, true]) {
  test(`queue pairs: a token sees its part as a region of its own${pin ? ', pinned' : ''}`, async (t) => {
    const { port } = await start(t, pin ? { pin: { budgetBytes: 1 << 30 } } : {});
    const whole = await RawClient.greeted(port, {}, { token: ALL });
    const part = await RawClient.greeted(port, {}, { token: PART });
    assert.equal((await fetchDirectory(whole)).entries.length, 4);
    const directory = await fetchDirectory(part);
    assert.deepEqual(
      directory.entries.map(({ path }) => path),
      ['a/b/1.parquet', 'a/b/2.parquet'],
    );
    const { rkey, regionLength } = part.welcome;
    part.socket.write(readFrame({ wrId: 3, rkey, address: 0, length: regionLength }));
    const bytes = (await part.answer())!.bytes;
    for (const { path, offset, length } of directory.entries) {
      const at = directory.dataStart + offset;
      assert.ok(bytes.subarray(at, at + length).equals(FILES[path as keyof typeof FILES]), path);
    }
    for (const salt of [3, 4]) assert.equal(bytes.indexOf(pattern(64, salt)), -1, 'no byte of other files');
    const outside = [
      { rkey, address: regionLength, length: 1 },
      { rkey, address: regionLength - 1, length: 2 },
      { rkey, address: 2n ** 64n - 1n, length: 2 },
      { rkey, address: 2n ** 53n, length: 1 },
      // the key of the whole region is none here
      { rkey: whole.welcome.rkey, address: 0, length: 8 },
    ];
    for (const read of outside) {
      const client = await RawClient.greeted(port, {}, { token: PART });
      client.socket.write(readFrame({ wrId: 1, ...read }));
      assert.equal((await client.answer())!.status, WC.REM_ACCESS_ERR);
      await client.end();
    }
    const probe = await RawClient.greeted(port, {}, { token: NONE });
    assert.deepEqual((await fetchDirectory(probe)).entries, []);
    for (const client of [whole, part, probe]) client.socket.destroy();
  });
}

for (const pin of [false, true]) {
  test(`queue pairs: a change elsewhere is not told to who can't see it${pin ? ', pinned' : ''}`, async (t) => {
    const { port, folder, server } = await start(t, pin ? { pin: { budgetBytes: 1 << 30 } } : {});
    const whole = await RawClient.greeted(port, {}, { token: ALL });
    const part = await RawClient.greeted(port, {}, { token: PART });
    writeFileSync(join(folder, 'secret/another.parquet'), pattern(100, 9));
    assert.equal(await server.republish(), 'published');
    assert.equal((await whole.frame())?.status, EVENT.GENERATION);
    // what it had is still there under the same key, and the next thing it hears is the answer
    const directory = await fetchDirectory(part);
    const { dataStart, entries } = directory;
    part.socket.write(readFrame({ wrId: 9, rkey: part.welcome.rkey, address: dataStart, length: entries[0]!.length }));
    assert.ok((await part.answer())!.bytes.equals(FILES['a/b/1.parquet']));
    writeFileSync(join(folder, 'a/b/4.parquet'), pattern(100, 10));
    assert.equal(await server.republish(), 'published');
    assert.equal((await part.frame())?.status, EVENT.GENERATION);
    part.socket.write(readFrame({ wrId: 10, rkey: part.welcome.rkey, address: 0, length: 8 }));
    const late = await part.frame();
    assert.deepEqual([late?.status, late?.stale], [WC.REM_ACCESS_ERR, true]);
    for (const client of [whole, part]) client.socket.destroy();
  });
}

test('a token that is taken away, or for something else now, ends what it let in', async (t) => {
  const { port, http, server, tokensFile } = await start(t);
  const kept = await RawClient.greeted(port, {}, { token: ALL });
  const part = await RawClient.greeted(port, {}, { token: PART });
  const probe = await RawClient.greeted(port, {}, { token: NONE });
  writeFileSync(tokensFile, 'broken');
  await assert.rejects(server.reloadTokens(), /tokens:1/);
  assert.equal((await fetchDirectory(part)).entries.length, 2);
  writeFileSync(tokensFile, `boss ${ALL} /\nteam ${PART} a/bc\n`);
  await server.reloadTokens();
  await part.end();
  await probe.end();
  assert.equal((await fetchDirectory(kept)).entries.length, 4);
  const again = await RawClient.greeted(port, {}, { token: PART });
  assert.deepEqual(
    (await fetchDirectory(again)).entries.map(({ path }) => path),
    ['a/bc/3.parquet'],
  );
  await assert.rejects(RawClient.greeted(port, {}, { token: NONE }), /refused 2/);
  assert.equal((await ask(http, '/files/a/b/1.parquet', `Bearer ${PART}`)).status, 404);
  assert.equal((await ask(http, '/files/a/bc/3.parquet', `Bearer ${PART}`)).status, 200);
  // once more: who stayed the first time can be taken away the second time
  writeFileSync(tokensFile, `other ${WRONG} /\n`);
  await server.reloadTokens();
  await kept.end();
  await again.end();
});

test('HTTP: without a token that is known every path has the same answer', async (t) => {
  const { http } = await start(t);
  const first = await ask(http, '/files/a/b/1.parquet');
  assert.equal(first.status, 401);
  assert.match(first.headers, /WWW-Authenticate\nBearer/);
  const paths = [
    '/files/a/b/1.parquet',
    '/files/nothing',
    '/files/%00',
    '/files/%',
    '/files/..%2f..%2fetc/passwd',
    '/region',
  ];
  for (const path of paths) {
    for (const authorization of [undefined, `Bearer ${WRONG}`, ALL, 'Bearer', `Basic ${ALL}`]) {
      for (const method of ['GET', 'PUT', 'DELETE']) {
        assert.deepEqual(await ask(http, path, authorization, method), first, `${method} ${path}`);
      }
    }
  }
});

test('HTTP: a token reads what is under its paths, and the region of that alone', async (t) => {
  const { http, folder } = await start(t);
  const bearer = `Bearer ${PART}`;
  const one = await ask(http, '/files/a/b/1.parquet', bearer);
  assert.ok(one.body.equals(FILES['a/b/1.parquet']));
  const missing = await ask(http, '/files/a/b/none.parquet', bearer);
  assert.equal(missing.status, 404);
  const others = [
    'a/bc/3.parquet',
    'secret/name.parquet',
    'a/b/../../secret/name.parquet',
    'a/b/%2e%2e/%2e%2e/secret/name.parquet',
  ];
  for (const path of others) assert.deepEqual(await ask(http, `/files/${path}`, bearer), missing, path);
  const region = (await ask(http, '/region', bearer)).body;
  const size = parseDirectorySize(region.subarray(0, 8), region.byteLength);
  const { entries } = parseDirectory(region.subarray(8, 8 + size), region.byteLength);
  assert.deepEqual(
    entries.map(({ path }) => path),
    ['a/b/1.parquet', 'a/b/2.parquet'],
  );
  assert.equal((await ask(http, '/files/secret/name.parquet', `Bearer ${ALL}`)).status, 200);
  rmSync(join(folder, 'secret/name.parquet'));
  assert.equal((await ask(http, '/region', `Bearer ${NONE}`)).status, 200);
});

test('HTTP: an answer under way ends when its token is taken away', async (t) => {
  const { http, server, tokensFile, folder } = await start(t);
  const large = pattern(32 << 20, 7);
  writeFileSync(join(folder, 'a/b/large.parquet'), large);
  await server.republish();
  const headers = { authorization: `Bearer ${PART}` };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const path = '/files/a/b/large.parquet';
    request({ host: '127.0.0.1', port: http, path, headers, agent: false }, resolve).on('error', reject).end();
  });
  assert.equal(response.headers['content-length'], String(large.byteLength));
  writeFileSync(tokensFile, `boss ${ALL} /\n`);
  await server.reloadTokens();
  let bytes = 0;
  await assert.rejects(async () => {
    for await (const piece of response) bytes += (piece as Buffer).byteLength;
  }, /aborted/);
  assert.ok(bytes < large.byteLength);
});

test('a file of tokens that others can read is warned of', async (t) => {
  const { tokensFile, folder } = await start(t);
  chmodSync(tokensFile, 0o644);
  const events: string[] = [];
  const listen = { host: '127.0.0.1', port: 0 };
  const log = (event: string, _peer: string, detail: string): void => void events.push(`${event}: ${detail}`);
  const server = await serveRegion({ roots: [folder], listen, tokensFile, log });
  t.after(() => server.close());
  assert.match(events.join('\n'), /warning: .*tokens holds secrets and can be read by every user.*chmod 600/);
});
