/**
 * Many scans at once in little memory, clients that are killed, that do not read, that send slowly or too much: every
 * answer is right or an error, and nothing of any stays behind.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from '../../decode/tests/random.ts';
import { TestApi, until } from './api-fixture.ts';
import { Lake, numbersQuery } from './lake.ts';

const ROWS = 200_000;

let lake: Lake;
before(async () => {
  lake = await Lake.create();
  await lake.write('a.parquet', numbersQuery(ROWS), 'row_group_size 20000');
});
after(() => lake[Symbol.asyncDispose]());

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** A raw connection: what a client may do that fetch does not. */
class RawClient {
  readonly socket: Socket;
  received = Buffer.alloc(0);
  closed = false;

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.on('data', (data: Buffer) => {
      this.received = Buffer.concat([this.received, data]);
    });
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.closed = true;
    });
  }

  static scan(port: number, body: unknown): RawClient {
    const client = new RawClient(port);
    const text = JSON.stringify(body);
    client.send(
      'POST /v1/scan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n' +
        `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
    );
    return client;
  }

  send(text: string): void {
    this.socket.write(text);
  }

  get text(): string {
    return this.received.toString('latin1');
  }

  /** Reads no further than what is there already. */
  stopReading(): void {
    this.socket.pause();
  }
}

describe('eight scans at once in 16 MiB', () => {
  test('give the same bytes as one alone, and leave the pool empty', async () => {
    await using api = await TestApi.start({ a: lake.path('a.parquet') }, { memory: 16 << 20 });
    const bodies = [
      { source: 'a', batchRows: 4096 },
      { source: 'a', columns: ['note', 'id'], batchRows: 4096 },
      { source: 'a', limit: 70_000, batchRows: 1024 },
      { source: 'a', columns: ['name'], batchRows: 4096, prefetchDepth: 4 },
    ];
    const expected = await Promise.all(bodies.map(async (body) => sha256((await api.post(body)).bytes)));
    const answers = await Promise.all([...bodies, ...bodies].map((body) => api.post(body)));
    for (const [k, { status, bytes }] of answers.entries()) {
      assert.equal(status, 200, bytes.toString('utf8', 0, 300));
      assert.equal(sha256(bytes), expected[k % bodies.length]);
    }
    await api.idle();
    assert.ok(api.engine.pool.peakBytes <= 16 << 20);
  });

  test('with clients that are killed at random: the others are right, and nothing stays', async () => {
    const random = seededRandom();
    await using api = await TestApi.start({ a: lake.path('a.parquet') }, { memory: 16 << 20, maxScans: 64 });
    const body = { source: 'a', columns: ['id', 'note'], batchRows: 4096 };
    const expected = sha256((await api.post(body)).bytes);
    const survivors = Array.from({ length: 4 }, async () => {
      const { status, bytes } = await api.post(body);
      assert.equal(status, 200, bytes.toString('utf8', 0, 300));
      assert.equal(sha256(bytes), expected);
    });
    const killed = Array.from({ length: 12 }, async () => {
      const client = RawClient.scan(api.port, body);
      await sleep(random.below(400));
      if (random.below(2) === 0) client.socket.resetAndDestroy();
      else client.socket.destroy();
    });
    await Promise.all([...survivors, ...killed]);
    await api.idle();
    const outcomes = api.log.filter((line) => line.includes('"scan: ')).map((line) => JSON.parse(line).msg);
    assert.ok(outcomes.includes('scan: client gone'), outcomes.join());
    assert.ok(outcomes.every((outcome) => outcome === 'scan: complete' || outcome === 'scan: client gone'));
  });

  test('beside clients that stop reading: those hold no more than a batch back, and the others are right', async () => {
    await using api = await TestApi.start({ a: lake.path('a.parquet') }, { memory: 16 << 20 });
    const stalled = Array.from({ length: 3 }, () => {
      const client = RawClient.scan(api.port, { source: 'a', batchRows: 4096 });
      client.stopReading();
      return client;
    });
    await until(() => api.service.running === 3 && api.engine.activity.totals().rows > 0);
    const expected = 8 * ROWS + 0;
    const sums = await Promise.all(
      Array.from(
        { length: 8 },
        async () => (await api.table({ source: 'a', columns: ['id'], batchRows: 4096 })).numRows,
      ),
    );
    assert.equal(
      sums.reduce((sum, rows) => sum + rows),
      expected,
    );
    assert.equal(api.service.running, 3, 'who stopped reading is waited for');
    for (const { socket } of stalled) socket.destroy();
    await api.idle();
  });
});

describe('a client', () => {
  test('sets the pace: who takes nothing gets nothing made', async () => {
    await using api = await TestApi.start({ a: lake.path('a.parquet') }, { memory: 16 << 20 });
    const client = RawClient.scan(api.port, { source: 'a', batchRows: 1024 });
    client.stopReading();
    const rows = (): number => api.engine.activity.totals().rows;
    await until(() => rows() > 0);
    let before = -1;
    while (before !== rows()) {
      before = rows();
      await sleep(300);
    }
    assert.ok(before < ROWS, `${before} of ${ROWS} rows were made for nobody`);
    client.socket.resume();
    await until(() => client.text.endsWith('0\r\n\r\n'));
    assert.equal(rows(), ROWS);
    client.socket.destroy();
    await api.idle();
  });

  test('that takes nothing for too long is cut off', async () => {
    await using api = await TestApi.start({ a: lake.path('a.parquet') }, { clientTimeout: 200 });
    const client = RawClient.scan(api.port, { source: 'a' });
    client.stopReading();
    await until(() => api.log.some((line) => line.includes('scan: client stalled')));
    client.socket.resume();
    await until(() => client.closed);
    assert.ok(!client.text.endsWith('0\r\n\r\n'), 'a cut stream has no end');
    await api.idle();
  });

  test('that reads slowly is not', async () => {
    await using api = await TestApi.start({ a: lake.path('a.parquet') }, { clientTimeout: 1000 });
    const client = RawClient.scan(api.port, { source: 'a' });
    while (!client.text.endsWith('0\r\n\r\n') && !client.closed) {
      client.socket.resume();
      await sleep(5);
      client.socket.pause();
      await sleep(50);
    }
    assert.ok(client.text.endsWith('0\r\n\r\n'));
    client.socket.destroy();
    await api.idle();
  });

  test('beyond the limit is sent away with 503, and may come again', async () => {
    await using api = await TestApi.start({ a: lake.path('a.parquet') }, { maxScans: 2 });
    const two = [1, 2].map(() => RawClient.scan(api.port, { source: 'a' }));
    for (const client of two) client.stopReading();
    await until(() => api.service.running === 2);
    const refused = await api.refusal({ source: 'a', limit: 1 });
    assert.equal(refused.status, 503);
    assert.equal(refused.code, 'BUSY');
    assert.equal(refused.retryable, true);
    assert.equal(refused.headers.get('retry-after'), '1');
    assert.equal((await api.get('/v1/sources')).status, 200);
    for (const { socket } of two) socket.destroy();
    await api.idle();
    assert.equal((await api.table({ source: 'a', limit: 1 })).numRows, 1);
  });
});

describe('requests that are no good', () => {
  const json = { 'Content-Type': 'application/json' };

  test('a body that is too large is not read', async () => {
    await using api = await TestApi.start({});
    const big = JSON.stringify({ source: 'x'.repeat(2 << 20) });
    const told = await api.get('/v1/scan', { method: 'POST', headers: json, body: big }).catch(() => undefined);
    // the connection is closed under whoever goes on sending
    if (told !== undefined) assert.equal(told.status, 413);
    const client = new RawClient(api.port);
    client.send('POST /v1/scan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n');
    client.send('Transfer-Encoding: chunked\r\n\r\n');
    for (let k = 0; k < 20; k++) client.send(`10000\r\n${'x'.repeat(0x10000)}\r\n`);
    await until(() => client.closed);
    assert.match(client.text, /^HTTP\/1\.1 413 [\s\S]*"TOO_LARGE"/);
  });

  test('headers that are too long, and what is no HTTP', async () => {
    await using api = await TestApi.start({});
    for (const [text, says] of [
      [`GET / HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(32 << 10)}\r\n\r\n`, /^HTTP\/1\.1 431 /],
      ['QNTQP\x00\x01 hello\r\n\r\n', /^HTTP\/1\.1 400 /],
      ['GET /v1/sources HTTP/1.1\r\n\r\n', /^HTTP\/1\.1 400 /],
    ] as const) {
      const client = new RawClient(api.port);
      client.send(text);
      await until(() => client.closed);
      assert.match(client.text, says);
    }
  });

  test('one whose client goes away in the middle is no error', async () => {
    await using api = await TestApi.start({});
    const client = new RawClient(api.port);
    client.send(
      'POST /v1/scan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{',
    );
    await sleep(50);
    client.socket.resetAndDestroy();
    await until(() => api.log.some((line) => line.includes('the client has gone')));
    assert.ok(api.log.every((line) => !line.includes('a bug of')));
  });

  test('one that does not come to its end in time', async () => {
    await using api = await TestApi.start({}, {}, { requestMs: 200, checkMs: 50 });
    for (const text of [
      'GET /v1/sources HTTP/1.1\r\nHost: localhost\r\n',
      'POST /v1/scan HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{',
    ]) {
      const client = new RawClient(api.port);
      client.send(text);
      await until(() => client.closed);
      assert.match(client.text, /^HTTP\/1\.1 408 /);
    }
  });

  test('another method, another path, another type, another host, another version', async () => {
    await using api = await TestApi.start({ a: lake.path('a.parquet') });
    const code = async (path: string, init: RequestInit = {}): Promise<string> => {
      const { status, json } = await api.get(path, init);
      return `${status} ${json().error.code}`;
    };
    assert.equal(await code('/v1/scan'), '405 METHOD');
    assert.equal((await api.get('/v1/scan')).headers.get('allow'), 'POST');
    assert.equal(await code('/v1/sources', { method: 'DELETE' }), '405 METHOD');
    assert.equal(await code('/'), '404 PATH');
    assert.equal(await code('/v1/sources/a/files/x'), '404 PATH');
    assert.equal(await code('/v1/sources/%ff/files'), '404 PATH');
    assert.equal(await code('/v1/sources/b/files'), '404 SOURCE');
    assert.equal(await code('/v1/scan', { method: 'POST', body: '{}' }), '415 MEDIA_TYPE');
    const encoded = { method: 'POST', headers: { ...json, 'Content-Encoding': 'gzip' }, body: '{}' };
    assert.equal(await code('/v1/scan', encoded), '415 MEDIA_TYPE');
    for (const [head, says] of [
      ['GET /v1/sources HTTP/1.1\r\nHost: evil.example:80\r\n\r\n', /^HTTP\/1\.1 421 [\s\S]*"MISDIRECTED"/],
      ['GET /v1/sources HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n', /^HTTP\/1\.1 421 /],
      ['GET /v1/sources HTTP/1.1\r\nHost: [::1]:7491\r\n\r\n', /^HTTP\/1\.1 200 /],
      ['GET /v1/sources HTTP/1.1\r\nHost: localhost\r\n\r\n', /^HTTP\/1\.1 200 /],
    ] as const) {
      const client = new RawClient(api.port);
      client.send(head);
      await until(() => client.text.includes('\r\n\r\n'));
      assert.match(client.text, says);
      client.socket.destroy();
    }
    const old = new RawClient(api.port);
    const body = '{"source":"a"}';
    old.send(
      `POST /v1/scan HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`,
    );
    old.send(`\r\n\r\n${body}`);
    await until(() => old.closed);
    assert.match(old.text, /^HTTP\/1\.1 505 [\s\S]*"VERSION"/);
  });
});

describe('sources', () => {
  test('are listed by name, without secrets; their files with where they are', async () => {
    await using api = await TestApi.start({ z: lake.folder, a: lake.path('a.parquet') });
    const { sources } = (await api.get('/v1/sources')).json() as unknown as { sources: unknown };
    assert.deepEqual(sources, [
      { name: 'a', location: lake.path('a.parquet') },
      { name: 'z', location: lake.folder },
    ]);
    const { source, files, leftOut } = (await api.get('/v1/sources/z/files')).json() as unknown as {
      source: string;
      leftOut: number;
      files: Record<string, unknown>[];
    };
    assert.equal(source, 'z');
    assert.equal(leftOut, 0);
    assert.deepEqual(
      files.map(({ path, location }) => ({ path, location })),
      [{ path: 'a.parquet', location: lake.path('a.parquet') }],
    );
    assert.equal(files[0]!.path, 'a.parquet');
    assert.ok(Number(files[0]!.bytes) > 0);
    assert.equal((await api.get('/v1/sources/z/files', { method: 'HEAD' })).bytes.length, 0);
    await api.idle();
  });
});

describe('an end', () => {
  test('lets scans go on to theirs, and takes no new ones', async () => {
    await using api = await TestApi.start({ a: lake.path('a.parquet') });
    const client = RawClient.scan(api.port, { source: 'a' });
    client.stopReading();
    await until(() => api.service.running === 1);
    const drained = api.service.drain(30_000);
    const refused = await api.refusal({ source: 'a' });
    assert.equal(`${refused.status} ${refused.code}`, '503 STOPPING');
    client.socket.resume();
    assert.deepEqual(await drained, { cut: 0 });
    await until(() => client.text.endsWith('0\r\n\r\n'));
  });

  test('is bounded: what still runs then is cut off', async () => {
    await using api = await TestApi.start({ a: lake.path('a.parquet') });
    const client = RawClient.scan(api.port, { source: 'a' });
    client.stopReading();
    await until(() => api.service.running === 1 && api.engine.activity.totals().rows > 0);
    assert.deepEqual(await api.service.drain(100), { cut: 1 });
    client.socket.resume();
    await until(() => client.closed);
    assert.ok(!client.text.endsWith('0\r\n\r\n'));
    await api.idle();
  });
});
