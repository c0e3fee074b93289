/** Files and servers for tests, gone when the test is. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { TestContext } from 'node:test';
import { type RunningServer, type ServeOptions, serveRegion } from '../index.ts';
import { type Directory, parseDirectory, parseDirectorySize } from '../protocol/index.ts';
import { type RawClient, readFrame } from './raw-client.ts';

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

export async function startServer(
  t: TestContext,
  folder: string,
  options: Partial<ServeOptions> = {},
): Promise<{ server: RunningServer; port: number; events: string[] }> {
  const events: string[] = [];
  const server = await serveRegion({
    roots: [folder],
    listen: { host: '127.0.0.1', port: 0 },
    log: (event, _peer, detail) => events.push(`${event}: ${detail}`),
    ...options,
  });
  t.after(() => server.close());
  return { server, port: server.address().port, events };
}

/** Reads the directory over a connection that has shaken hands. */
export async function fetchDirectory(client: Awaited<ReturnType<typeof RawClient.greeted>>): Promise<Directory> {
  const { rkey, regionLength } = client.welcome;
  client.socket.write(readFrame({ wrId: 1, rkey, address: 0, length: 8 }));
  const size = parseDirectorySize((await client.answer())!.bytes, regionLength);
  client.socket.write(readFrame({ wrId: 2, rkey, address: 8, length: size }));
  return parseDirectory((await client.answer())!.bytes, regionLength);
}
