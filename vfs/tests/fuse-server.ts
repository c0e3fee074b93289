/**
 * A process that mounts files of known bytes and does what a test tells it over IPC: the test itself must never serve
 * what it reads. The session runs in the main thread or, with `inWorker`, in a worker.
 */
import { mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { errnoOf } from '../errno.ts';
import { MountError } from '../errors.ts';
import type { FileContent, FileTree, TreeFile } from '../fuse/content.ts';
import { mountTree } from '../fuse/mounted-tree.ts';
import { patterned } from './fuse-rig.ts';

export interface ServedFile {
  readonly path: string;
  readonly length: number;
  readonly salt: number;
  readonly serve: 'cached' | 'direct' | 'passthrough';
}

export interface ServerOptions {
  readonly folder: string;
  readonly files: readonly ServedFile[];
  readonly generation: string;
  readonly inWorker?: boolean;
  readonly answerMs?: number;
}

export type ServerCommand =
  | { readonly op: 'replace'; readonly generation: string; readonly files: readonly ServedFile[] }
  /** Reads of these paths wait from now on; those of others, and those that waited, are answered. */
  | { readonly op: 'hold'; readonly paths: readonly string[] }
  | { readonly op: 'figures' }
  | { readonly op: 'push'; readonly path: string }
  | { readonly op: 'unmount'; readonly graceMs: number };

const blocks = new Map<string, Uint8Array>();
const served = new Map<string, ServedFile>();
let held = new Set<string>();
let waiting: { path: string; answer: () => void }[] = [];
const backing = new Map<string, number>();

function bytesOf({ length, salt }: ServedFile): Uint8Array {
  const key = `${length}/${salt}`;
  let bytes = blocks.get(key);
  if (bytes === undefined) {
    bytes = new Uint8Array(new SharedArrayBuffer(length));
    bytes.set(patterned(length, salt));
    blocks.set(key, bytes);
  }
  return bytes;
}

function treeOf(generation: string, files: readonly ServedFile[]): FileTree {
  for (const file of files) served.set(`${file.path}@${file.salt}`, file);
  const listed = files.map(({ path, length, salt }) => ({ path, length, etag: String(salt), modifiedMs: 1e12 + salt }));
  return { generation, files: listed };
}

function backingOf(file: ServedFile): number {
  const key = `${file.path}@${file.salt}`;
  let descriptor = backing.get(key);
  if (descriptor === undefined) {
    const folder = mkdtempSync(join(tmpdir(), 'qanat-backing-'));
    writeFileSync(join(folder, 'f'), bytesOf(file));
    descriptor = openSync(join(folder, 'f'), 'r');
    rmSync(folder, { recursive: true });
    backing.set(key, descriptor);
  }
  return descriptor;
}

function contentOf({ path, etag }: TreeFile): FileContent {
  const file = served.get(`${path}@${etag}`)!;
  const bytes = bytesOf(file);
  return {
    open(_signal, done) {
      if (file.serve !== 'passthrough') done(undefined, { serve: file.serve });
      else done(undefined, { serve: 'passthrough', backing: backingOf(file), otherwise: 'direct' });
    },
    read(offset, length, _signal, done) {
      const answer = () => void done(undefined, [bytes.subarray(offset, offset + length)]);
      if (held.has(path)) waiting.push({ path, answer });
      else answer();
    },
  };
}

async function serve(options: ServerOptions, port: Port): Promise<void> {
  const problems: string[] = [];
  const mounted = await mountTree({
    folder: options.folder,
    source: 'test: a, b',
    tree: treeOf(options.generation, options.files),
    contents: contentOf,
    onProblem: (text) => void problems.push(text),
    ...(options.answerMs === undefined ? {} : { answerMs: options.answerMs }),
  });
  const { session } = mounted;
  const run = async (command: ServerCommand): Promise<unknown> => {
    switch (command.op) {
      case 'replace':
        return mounted.replaceTree(treeOf(command.generation, command.files));
      case 'hold': {
        held = new Set(command.paths);
        const free = waiting.filter(({ path }) => !held.has(path));
        waiting = waiting.filter(({ path }) => held.has(path));
        for (const { answer } of free) answer();
        return undefined;
      }
      case 'figures': {
        const { counters, activity } = session;
        const { errors, ...rest } = activity;
        const requests = Object.fromEntries(counters.requests);
        return { ...rest, errors: [...errors], opens: counters.opens, requests, problems, waiting: waiting.length };
      }
      case 'push':
        return push(mounted.descriptor, session.nodeIdOf(command.path), command.path);
      case 'unmount':
        return mounted.unmount(command.graceMs);
    }
  };
  let last: Promise<void> = Promise.resolve();
  port.receive((id, command) => {
    last = run(command).then(
      (value) => port.send({ id, value }),
      (error: unknown) => port.send({ id, error: String(error), errno: errnoOf(error) }),
    );
  });
  port.send({ ready: { cleared: mounted.cleared, offer: mounted.offer, readAheadSet: mounted.readAheadSet } });
  await session.ended;
  await last;
  port.send({ ended: true });
}

/** Stores a whole file from a thread that does not answer. */
async function push(descriptor: number, nodeId: number | undefined, path: string): Promise<string> {
  if (nodeId === undefined) return 'nothing';
  const bytes = bytesOf([...served.values()].find((file) => file.path === path)!);
  const worker = new Worker(new URL('./fuse-store-worker.ts', import.meta.url), {
    workerData: { descriptor, nodeId, bytes },
  });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  worker.once('message', resolve).once('error', reject);
  return promise;
}

interface Port {
  send(message: object): void;
  receive(listener: (id: number, command: ServerCommand) => void): void;
}

async function runWith(options: ServerOptions, port: Port): Promise<void> {
  try {
    await serve(options, port);
  } catch (error) {
    const code = error instanceof MountError ? error.code : 'BUG';
    port.send({ failed: { code, text: error instanceof Error ? (error.stack ?? '') : String(error) } });
  }
}

type Message = { id: number; command: ServerCommand };

if (isMainThread) {
  const options = JSON.parse(process.argv[2]!) as ServerOptions;
  // a test that is gone leaves nobody to end this process
  process.once('disconnect', () => process.exit(1));
  if (options.inWorker) {
    const worker = new Worker(new URL(import.meta.url), { workerData: options });
    worker.on('message', (message: object) => process.send!(message));
    worker.on('error', (error) => process.send!({ failed: { code: 'BUG', text: String(error.stack) } }));
    worker.on('exit', () => process.exit(0));
    process.on('message', (message) => worker.postMessage(message));
  } else {
    await runWith(options, {
      send: (message) => void process.send!(message),
      receive: (listener) => void process.on('message', ({ id, command }: Message) => listener(id, command)),
    });
    process.disconnect();
    process.exit(0);
  }
} else {
  await runWith(workerData as ServerOptions, {
    send: (message) => parentPort!.postMessage(message),
    receive: (listener) => void parentPort!.on('message', ({ id, command }: Message) => listener(id, command)),
  });
  parentPort!.close();
}
