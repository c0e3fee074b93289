import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, describe, test } from 'node:test';
import { METRICS } from '../definitions.ts';
import { type EndpointOptions, type MetricsEndpoint, startMetricsEndpoint } from '../endpoint.ts';
import { MetricsError } from '../errors.ts';
import { MetricsRegistry } from '../registry.ts';
import { parseExposition, sampleValue } from './exposition.ts';

const started: MetricsEndpoint[] = [];
after(async () => {
  for (const endpoint of started) await endpoint.close();
});

async function start(options: Partial<EndpointOptions> = {}): Promise<{ url: string; port: number }> {
  const registry = options.registry ?? new MetricsRegistry('server');
  const endpoint = await startMetricsEndpoint({ host: '127.0.0.1', port: 0, ...options, registry });
  started.push(endpoint);
  const { port } = endpoint.address();
  return { url: `http://127.0.0.1:${port}`, port };
}

/** Sends bytes and gives what came until the other side ended the connection. */
async function exchange(port: number, bytes: string): Promise<string> {
  const socket = await open(port);
  let answer = '';
  socket.on('data', (data) => {
    answer += data;
  });
  socket.write(bytes);
  await once(socket, 'close');
  return answer;
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

describe('endpoint', () => {
  test('metrics, health and readiness', async () => {
    let reason: string | undefined = 'starting';
    const { url } = await start({ notReady: () => reason });
    const metrics = await fetch(`${url}/metrics`);
    assert.equal(metrics.status, 200);
    assert.equal(metrics.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8');
    assert.ok(parseExposition(await metrics.text()).length > 10);
    assert.equal(await (await fetch(`${url}/healthz`)).text(), 'ok\n');
    const starting = await fetch(`${url}/readyz`);
    assert.deepEqual([starting.status, await starting.text()], [503, 'starting\n']);
    reason = undefined;
    assert.equal((await fetch(`${url}/readyz?verbose`)).status, 200);
  });

  test('HEAD is answered without a body', async () => {
    const { url } = await start();
    const head = await fetch(`${url}/healthz`, { method: 'HEAD' });
    assert.deepEqual([head.status, head.headers.get('content-length'), await head.text()], [200, '3', '']);
  });

  test('other paths and methods are refused, and requests are counted by status', async () => {
    const { url, port } = await start();
    for (const path of ['/', '/metrics/', '/../metrics', '/%6detrics', '/debug/pprof', '/favicon.ico']) {
      assert.match(
        await exchange(port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`),
        /^HTTP\/1.1 404 /,
      );
    }
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      const refused = await fetch(`${url}/metrics`, { method });
      assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'GET, HEAD']);
    }
    const samples = parseExposition(await (await fetch(`${url}/metrics`)).text());
    const requests = (code: string): number => sampleValue(samples, METRICS.httpRequests.name, { code });
    assert.deepEqual([requests('404'), requests('405')], [6, 5]);
  });

  test('a body is not read', async () => {
    const { port } = await start();
    const request = `POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n${'x'.repeat(1000)}`;
    assert.match(await exchange(port, request), /^HTTP\/1.1 405 [\s\S]*\r\nConnection: close\r\n/);
  });

  test('what is no HTTP, or has large headers, is ended', async () => {
    const { port, url } = await start();
    assert.match(await exchange(port, '\x16\x03\x01\x02\x00\x01\x00\r\n\r\n'), /^HTTP\/1.1 400 /);
    const large = `GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ${'x'.repeat(16 * 1024)}\r\n\r\n`;
    assert.match(await exchange(port, large), /^HTTP\/1.1 431 /);
    const split =
      'GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n';
    assert.match(await exchange(port, split), /^HTTP\/1.1 400 /);
    assert.equal((await fetch(`${url}/healthz`)).status, 200);
  });

  test('who is slow to ask, or silent, is ended', async () => {
    const { port, url } = await start({ limits: { requestMs: 100 } });
    assert.match(await exchange(port, 'GET /metrics HTTP/1.1\r\nHost:'), /^HTTP\/1.1 408 |^$/);
    assert.match(await exchange(port, ''), /^HTTP\/1.1 408 |^$/);
    assert.equal((await fetch(`${url}/healthz`)).status, 200);
  });

  test('who is slow to take the answer is ended', async () => {
    const { port, url } = await start({ limits: { answerMs: 200 } });
    const socket = await open(port);
    socket.pause();
    // many answers on one connection, none of them taken: more than buffers hold
    const asked = 3000;
    const text = await (await fetch(`${url}/metrics`)).text();
    const request = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n';
    const closed = once(socket, 'close');
    socket.write(request.repeat(asked));
    assert.equal((await fetch(`${url}/healthz`)).status, 200, 'others are answered meanwhile');
    // An end shows to who reads; what was in buffers comes first.
    setTimeout(() => socket.resume(), 1000).unref();
    await closed;
    assert.ok(socket.bytesRead < asked * text.length, `${socket.bytesRead} bytes of the answers came`);
  });

  test('no more connections than the limit', async () => {
    const { port } = await start({ limits: { connectionsMax: 4 } });
    const sockets = await Promise.all(Array.from({ length: 12 }, () => open(port)));
    const closed = (): number => sockets.filter((socket) => socket.closed).length;
    while (closed() < 8) await wait(10);
    await wait(100);
    assert.equal(closed(), 8);
    for (const socket of sockets) socket.destroy();
  });

  test('a collector that fails is a 500, and the endpoint goes on', async () => {
    const registry = new MetricsRegistry('server');
    const end = registry.addCollector(() => {
      throw new Error('a bug of whoever measures');
    });
    const { url } = await start({ registry });
    assert.equal((await fetch(`${url}/metrics`)).status, 500);
    end();
    assert.equal((await fetch(`${url}/metrics`)).status, 200);
  });

  test('a port in use is told', async () => {
    const other = createServer();
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    await assert.rejects(
      startMetricsEndpoint({ registry: new MetricsRegistry('client'), host: '127.0.0.1', port }),
      (error) => error instanceof MetricsError && error.code === 'LISTEN' && /EADDRINUSE/.test(error.message),
    );
    other.close();
  });

  test('closing cuts what is open', async () => {
    const endpoint = await startMetricsEndpoint({
      registry: new MetricsRegistry('client'),
      host: '127.0.0.1',
      port: 0,
    });
    const socket = await open(endpoint.address().port);
    const closed = once(socket, 'close');
    await endpoint.close();
    await closed;
  });
});

function wait(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
}
