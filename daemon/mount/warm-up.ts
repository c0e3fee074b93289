/**
 * Reads a small file of the product's own through all that a mount consists of but the device and the network, over and
 * over, before the mount is there: a process that has just started runs every line for the first time, compiles what
 * runs often, and collects the garbage of its start just then. All that would be the first reader's, who would wait
 * twice as long. Afterwards the memory that it used is free
 * again, and what the decoders did is forgotten.
 */
import { readFile } from 'node:fs/promises';
import { type Pool, parseFooter, parseTail } from '../../decode/index.ts';
import { FetchError, type FileVersion, newTransportCounters, type Transport } from '../../fetcher/index.ts';
import { FuseSession, LoopbackKernel } from '../../vfs/fuse/index.ts';
import { parseLocation, Source } from '../../vfs/index.ts';
import type { ScanEngine } from '../scan/engine.ts';
import { collectGarbage } from './garbage.ts';
import { WARM_UP_MS, WARM_UP_ROUNDS } from './limits.ts';
import { MountContents } from './mount-contents.ts';
import { SourceTree } from './source-tree.ts';
import type { View } from './view.ts';
import { WARM_UP_FILE } from './warm-up-file.ts';

/** Bytes of a file's end that engines read first, and of a page's beginning. */
const TAIL_BYTES = 16 * 1024;
const PAGE_HEAD_BYTES = 256;

export interface WarmUpParts {
  readonly pool: Pool;
  readonly engine: ScanEngine | undefined;
  readonly view: View;
}

/**
 * Reads the file WARM_UP_ROUNDS times, or fewer, but once, when WARM_UP_MS are over; resolves to how often, and how long that took.
 * Rejects when a read fails: then the mount itself would hardly work.
 */
export async function warmUp(parts: WarmUpParts): Promise<{ rounds: number; ms: number }> {
  const began = performance.now();
  const until = began + WARM_UP_MS;
  const file = await readFile(WARM_UP_FILE);
  let rounds = 0;
  do {
    await readOnce(file, parts);
    rounds++;
  } while (rounds < WARM_UP_ROUNDS && performance.now() < until);
  parts.engine?.resetProfile();
  collectGarbage();
  return { rounds, ms: Math.round(performance.now() - began) };
}

async function readOnce(file: Uint8Array, { pool, engine, view }: WarmUpParts): Promise<void> {
  const opened = { transport: new TransportOfBytes(file), counters: newTransportCounters(), path: '' };
  const source = new Source(parseLocation(WARM_UP_FILE), opened);
  const tree = new SourceTree(source, view);
  const first = await tree.begin();
  const contents = new MountContents({
    source,
    pool,
    engine,
    view,
    prefetchDepth: 2,
    maxGap: 'auto',
    versionOf: (one) => tree.versionOf(one),
    push: async () => false,
    onDepth: () => {},
  });
  const kernel = new LoopbackKernel();
  const session = new FuseSession({ binding: kernel, tree: first, contents: contents.contentOf, notify: () => {} });
  try {
    await readAsEngines(kernel, first.files[0]!.path);
  } finally {
    kernel.end();
    await session.ended;
    contents.close(new FetchError('CLOSED', 'the warm-up is over'));
    tree.close();
  }
}

/** The footer, then every column chunk, of whose first page the header comes first. */
async function readAsEngines(kernel: LoopbackKernel, path: string): Promise<void> {
  await kernel.init();
  const node = await kernel.walk(path);
  const opened = await kernel.open(node);
  const attributes = await kernel.getattr(node);
  if (!('handle' in opened) || typeof attributes === 'number') throw new Error('the warm-up file does not open');
  const read = async (start: number, end: number): Promise<Uint8Array> => {
    const bytes = await kernel.read(node, opened.handle, start, end - start);
    if (typeof bytes === 'number') throw new Error(`a read of the warm-up file failed with errno ${bytes}`);
    return bytes;
  };
  const { length } = attributes;
  const tail = await read(Math.max(0, length - TAIL_BYTES), length);
  const { footerStart, footerLength } = parseTail(tail, length);
  const at = footerStart - (length - tail.length);
  const footer = tail.subarray(at, at + footerLength);
  for (const { columns } of parseFooter(footer, length).rowGroups) {
    for (const { bytes } of columns) {
      const head = Math.min(bytes.end, bytes.start + PAGE_HEAD_BYTES);
      await read(bytes.start, head);
      if (head < bytes.end) await read(head, bytes.end);
    }
  }
  await kernel.release(node, opened.handle);
}

/** A source of one file that lies in memory. */
class TransportOfBytes implements Transport {
  readonly #bytes: Uint8Array;
  readonly #file: FileVersion;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#file = { path: 'warm-up.parquet', length: bytes.length, etag: 'warm-up', modifiedMs: 0 };
  }

  async list(): Promise<readonly FileVersion[]> {
    return [this.#file];
  }

  async find(): Promise<FileVersion> {
    return this.#file;
  }

  async read(
    _file: FileVersion,
    start: number,
    into: Uint8Array,
    options: Parameters<Transport['read']>[3] = {},
  ): Promise<void> {
    into.set(this.#bytes.subarray(start, start + into.length));
    await undefined;
    options.onArrived?.(into.length);
  }

  async close(): Promise<void> {}
}
