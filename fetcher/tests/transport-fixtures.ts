/** Files, servers in processes of their own and a proxy, for tests of the transports. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

/** Bytes that depend on their position and on `salt`: a misplaced or mixed byte shows. */
export function pattern(length: number, salt: number): Buffer {
  const bytes = Buffer.alloc(length);
  const words = new Uint32Array(bytes.buffer, bytes.byteOffset, length >>> 2);
  for (let i = 0; i < words.length; i++) words[i] = Math.imul(i + 1, 0x9e3779b1) ^ Math.imul(salt + 1, 0x85ebca6b);
  for (let i = words.length * 4; i < length; i++) bytes[i] = (i * 31 + salt) & 0xff;
  return bytes;
}

export function makeFolder(t: TestContext, files: Record<string, Uint8Array>): string {
  const folder = mkdtempSync(join(tmpdir(), 'qanat-test-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const [path, bytes] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  }
  return folder;
}

const SCRIPT = fileURLToPath(new URL('../../storage-server/bench/serve-process.ts', import.meta.url));

export interface ServerProcess {
  readonly port: number;
  readonly child: ChildProcess;
  kill(): Promise<void>;
}

/** Serves a folder from another process; `port` 0 takes a free one. */
export async function spawnServer(t: TestContext, folder: string, port = 0): Promise<ServerProcess> {
  return startServer(folder, port, (child) => t.after(() => child.kill('SIGKILL')));
}

/** The same for whoever ends it; `born` is given the process before it is ready. */
export async function startServer(
  folder: string,
  port = 0,
  born: (child: ChildProcess) => void = () => {},
): Promise<ServerProcess> {
  const child = spawn(process.execPath, [SCRIPT, String(port), folder], { stdio: ['ignore', 'pipe', 'inherit'] });
  born(child);
  for await (const line of createInterface({ input: child.stdout })) {
    const ready = JSON.parse(line) as { port: number };
    const kill = async (): Promise<void> => {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    };
    return { port: ready.port, child, kill };
  }
  throw new Error('the server ended before it was ready');
}

export interface Proxy {
  readonly port: number;
  /** Called with each piece from the server; what it returns goes on to the client, undefined cuts the connection. */
  onPiece: (piece: Buffer) => Buffer | undefined;
  /** While true nothing is passed on to clients. */
  frozen: boolean;
  /** The connections that are open now stay open, and nothing comes over them any more. */
  swallow(): void;
  /** Cuts all connections. */
  cut(): void;
}

/** A TCP proxy in front of a server, to make the network behave as a test needs it. */
export async function startProxy(t: TestContext, serverPort: () => number): Promise<Proxy> {
  const sockets = new Set<Socket>();
  let epoch = 0;
  const server = createServer((client) => {
    const born = epoch;
    const upstream = connect({ host: '127.0.0.1', port: serverPort() });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (piece: Buffer) => upstream.write(piece));
    upstream.on('data', (piece: Buffer) => {
      if (proxy.frozen || born < epoch) return;
      const passed = proxy.onPiece(piece);
      if (passed === undefined) client.resetAndDestroy();
      else if (!client.write(passed)) {
        upstream.pause();
        client.once('drain', () => upstream.resume());
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const proxy: Proxy = {
    port: address.port,
    onPiece: (piece) => piece,
    frozen: false,
    swallow: () => {
      epoch++;
    },
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
  t.after(() => {
    server.close();
    proxy.cut();
  });
  return proxy;
}
