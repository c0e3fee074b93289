/** A session over the loopback kernel, with contents in memory that answer at once, later, wrongly or not at all. */
import type { FileContent, FileTree, Opening, ReadDone, RequestSignal, TreeFile } from '../fuse/content.ts';
import { LoopbackKernel } from '../fuse/loopback.ts';
import type { SessionOptions } from '../fuse/session.ts';
import { FuseSession } from '../fuse/session.ts';

export interface MemoryFile {
  readonly path: string;
  readonly bytes: Uint8Array;
  readonly etag: string;
  readonly modifiedMs?: number;
  /** Its length is to be measured. */
  readonly unmeasured?: boolean;
}

export interface HeldRead {
  readonly path: string;
  readonly offset: number;
  readonly length: number;
  readonly signal: RequestSignal;
  readonly done: ReadDone;
  /** Answers with the right bytes. */
  answer(): boolean;
}

/** Contents by version; what happened to them is kept in order. */
export class MemoryContents {
  readonly log: string[] = [];
  readonly held: HeldRead[] = [];
  /** Reads wait until the test answers them. */
  hold = false;
  opening: Opening = { serve: 'cached' };
  /** Takes the place of the right answer. */
  read: FileContent['read'] | undefined;
  openWith: FileContent['open'] | undefined;
  measureWith: FileContent['measure'] | undefined;
  readonly #bytes = new Map<string, Uint8Array>();

  tree(generation: string, files: readonly MemoryFile[]): FileTree {
    return {
      generation,
      files: files.map(({ path, bytes, etag, modifiedMs = 1000, unmeasured = false }) => {
        this.#bytes.set(`${path}@${etag}`, bytes);
        return { path, etag, modifiedMs, length: unmeasured ? undefined : bytes.length };
      }),
    };
  }

  make(file: TreeFile): FileContent {
    const name = `${file.path}@${file.etag}`;
    const bytes = this.#bytes.get(name)!;
    const say = (what: string) => void this.log.push(`${what} ${name}`);
    say('made');
    const content: FileContent = {
      open: (signal, done) =>
        this.openWith === undefined ? done(undefined, this.opening) : this.openWith(signal, done),
      opened: (handle, served) => say(`opened ${handle} ${served}`),
      released: (handle) => say(`released ${handle}`),
      close: () => say('closed'),
      read: (offset, length, signal, done) => {
        if (this.read !== undefined) return this.read(offset, length, signal, done);
        const answer = () => done(undefined, cutUp(bytes.subarray(offset, offset + length)));
        if (this.hold) this.held.push({ path: file.path, offset, length, signal, done, answer });
        else answer();
      },
    };
    if (file.length !== undefined) return content;
    const measure: FileContent['measure'] = (signal, done) =>
      this.measureWith === undefined ? done(undefined, bytes.length) : this.measureWith(signal, done);
    return { ...content, measure };
  }
}

/** The same bytes in views of different sizes. */
function cutUp(bytes: Uint8Array): Uint8Array[] {
  const views: Uint8Array[] = [];
  for (let at = 0, size = 1; at < bytes.length; at += size, size = size * 3 + 1)
    views.push(bytes.subarray(at, at + size));
  return views;
}

export interface Rig {
  readonly kernel: LoopbackKernel;
  readonly contents: MemoryContents;
  readonly session: FuseSession;
  readonly problems: string[];
  /** Messages that another thread would write. */
  readonly notified: Uint8Array[];
}

export async function startRig(files: readonly MemoryFile[], options: Partial<SessionOptions> = {}): Promise<Rig> {
  const kernel = new LoopbackKernel();
  const contents = new MemoryContents();
  const problems: string[] = [];
  const notified: Uint8Array[] = [];
  const session = new FuseSession({
    binding: kernel,
    tree: contents.tree('g1', files),
    contents: (file) => contents.make(file),
    notify: (messages) => void notified.push(...messages),
    onProblem: (text) => void problems.push(text),
    isDying: () => true,
    ...options,
  });
  await kernel.init();
  await session.ready;
  return { kernel, contents, session, problems, notified };
}

/** Bytes that tell where they are from. */
export function patterned(length: number, salt = 0): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let k = 0; k < length; k++) bytes[k] = (k * 31 + (k >> 8) * 7 + salt * 101) & 0xff;
  return bytes;
}

export function file(path: string, length: number, salt = 0): MemoryFile {
  return { path, bytes: patterned(length, salt), etag: `e${salt}` };
}
