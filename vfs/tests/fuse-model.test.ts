/**
 * Random operations of a kernel against a model: files as byte arrays, replaced whole at any time, while reads wait,
 * are interrupted, or are answered late. Every read gives exactly the bytes of the version that was opened or a defined
 * error, and once everything is given back, nothing is left.
 */
import assert from 'node:assert/strict';
import { constants } from 'node:os';
import { test } from 'node:test';
import type { MemoryFile, Rig } from './fuse-rig.ts';
import { patterned, startRig } from './fuse-rig.ts';
import type { SeededRandom } from './seeded-random.ts';
import { newRandom } from './seeded-random.ts';

const E = constants.errno;
const OPERATIONS = 6000;
const NAMES = ['a', 'b', 'c', 'dä', 'e'];

interface ModelHandle {
  readonly node: number;
  readonly handle: number;
  readonly file: MemoryFile;
  /** Its file was replaced or removed. */
  stale: boolean;
  readonly backed: boolean;
}

interface ModelRead {
  readonly unique: number;
  readonly handle: ModelHandle;
  readonly offset: number;
  readonly size: number;
  readonly answer: Promise<Uint8Array | number>;
  interrupted: boolean;
}

class Model {
  readonly handles: ModelHandle[] = [];
  readonly reads: ModelRead[] = [];
  files = new Map<string, MemoryFile>();
  checked = 0;
  readonly #rig: Rig;
  readonly #random: SeededRandom;
  #salt = 0;
  #generation = 1;

  constructor(rig: Rig, random: SeededRandom) {
    this.#rig = rig;
    this.#random = random;
  }

  step(): Promise<void> | void {
    const roll = this.#random.below(100);
    if (roll < 12) return this.#lookUp();
    if (roll < 24) return this.#open();
    if (roll < 70) return this.#read();
    if (roll < 78) return this.#answerHeld(1 + this.#random.below(4));
    if (roll < 82) return this.#interrupt();
    if (roll < 88) return this.#release();
    if (roll < 92) return this.#list();
    if (roll < 95) return this.#forget();
    if (roll < 97) return this.#replace();
    this.#rig.contents.hold = this.#random.below(2) === 0;
    const backing = { serve: 'passthrough', backing: 40, otherwise: 'direct' } as const;
    this.#rig.contents.opening = this.#random.pick([{ serve: 'cached' }, { serve: 'direct' }, backing]);
  }

  #randomPath(): string {
    const path = [...Array(1 + this.#random.below(3))].map(() => this.#random.pick(NAMES));
    return path.join('/');
  }

  async #lookUp(): Promise<void> {
    const known = [...this.files.keys()];
    const path = this.#random.below(4) > 0 && known.length > 0 ? this.#random.pick(known) : this.#randomPath();
    const node = await this.#rig.kernel.walk(path);
    const { files } = this;
    const isFolder = [...files.keys()].some((other) => other.startsWith(`${path}/`));
    if (files.has(path) || isFolder) assert.ok(node > 1, `${path}: ${node}`);
    else assert.ok(node === -E.ENOENT || node === -E.ENOTDIR, `${path}: ${node}`);
    if (files.has(path)) {
      const attributes = await this.#rig.kernel.getattr(node);
      assert.ok(typeof attributes !== 'number');
      assert.equal(attributes.length, files.get(path)!.bytes.length);
    }
  }

  async #open(): Promise<void> {
    if (this.files.size === 0) return;
    const file = this.#random.pick([...this.files.values()]);
    const node = await this.#rig.kernel.walk(file.path);
    const opened = await this.#rig.kernel.open(node);
    assert.ok('handle' in opened, `${file.path}: ${JSON.stringify(opened)}`);
    this.handles.push({ node, handle: opened.handle, file, stale: false, backed: (opened.flags & 128) !== 0 });
  }

  #read(): void {
    if (this.handles.length === 0) return;
    const handle = this.#random.pick(this.handles);
    const { length } = handle.file.bytes;
    const offset = this.#random.below(length + 20);
    const size = 1 + this.#random.below(this.#random.below(3) === 0 ? 100_000 : 200);
    const answer = this.#rig.kernel.read(handle.node, handle.handle, offset, size);
    const read = { unique: this.#rig.kernel.lastUnique, handle, offset, size, answer, interrupted: false };
    this.reads.push(read);
  }

  /** What has been answered was answered right: bytes of its version, or the error that had to come. */
  async settle(): Promise<void> {
    for (const read of this.reads.splice(0)) {
      const answer = await read.answer;
      this.checked++;
      const { file, stale } = read.handle;
      if (typeof answer === 'number') {
        const allowed = [...(stale ? [E.ESTALE] : []), ...(read.interrupted ? [E.EINTR] : [])];
        assert.ok(allowed.includes(answer), `${file.path}: errno ${answer}`);
        continue;
      }
      const expected = file.bytes.subarray(read.offset, read.offset + read.size);
      assert.ok(Buffer.from(answer).equals(expected), `${file.path} at ${read.offset}+${read.size}`);
    }
  }

  #answerHeld(count: number): void {
    const { held } = this.#rig.contents;
    for (let k = 0; k < count && held.length > 0; k++) {
      const [read] = held.splice(this.#random.below(held.length), 1);
      read!.answer();
    }
  }

  #interrupt(): void {
    if (this.reads.length === 0) return;
    const read = this.#random.pick(this.reads);
    read.interrupted = true;
    this.#rig.kernel.interrupt(read.unique);
  }

  async #release(): Promise<void> {
    if (this.handles.length === 0) return;
    const at = this.#random.below(this.handles.length);
    const handle = this.handles[at]!;
    // a kernel releases a handle when nobody reads through it any more
    if (this.reads.some((read) => read.handle === handle)) return;
    this.handles.splice(at, 1);
    assert.equal(await this.#rig.kernel.release(handle.node, handle.handle, handle.backed), 0);
  }

  async #list(): Promise<void> {
    const names = new Set([...this.files.keys()].map((path) => path.split('/')[0]!));
    const listed = await this.#rig.kernel.list(1, this.#random.below(2) === 0, 300 + this.#random.below(2000));
    assert.deepEqual(listed.map(({ name }) => name).sort(), ['.', '..', ...names].sort());
  }

  #forget(): void {
    const { lookups } = this.#rig.kernel;
    const inUse = new Set(this.handles.map(({ node }) => node));
    const known = [...lookups.keys()].filter((node) => !inUse.has(node));
    if (known.length === 0) return;
    this.#rig.kernel.forget(...new Set([...Array(1 + this.#random.below(5))].map(() => this.#random.pick(known))));
  }

  #replace(): void {
    const next = new Map<string, MemoryFile>();
    for (const [path, file] of this.files) if (this.#random.below(5) > 0) next.set(path, file);
    for (let k = this.#random.below(6); k >= 0; k--) {
      const path = this.#randomPath();
      const above = [...next.keys()].some((other) => path.startsWith(`${other}/`) || other.startsWith(`${path}/`));
      if (above) continue;
      const salt = ++this.#salt;
      next.set(path, { path, bytes: patterned(this.#random.below(5000), salt), etag: `e${salt}` });
    }
    this.files = next;
    for (const handle of this.handles) if (next.get(handle.file.path) !== handle.file) handle.stale = true;
    const tree = this.#rig.contents.tree(`g${++this.#generation}`, [...next.values()]);
    const { leftOut } = this.#rig.session.replaceTree(tree);
    assert.deepEqual(leftOut, []);
  }

  /** Gives everything back. */
  async finish(): Promise<void> {
    this.#rig.contents.hold = false;
    while (this.#rig.contents.held.length > 0) this.#answerHeld(10);
    await this.settle();
    for (const { node, handle, backed } of this.handles.splice(0)) {
      assert.equal(await this.#rig.kernel.release(node, handle, backed), 0);
    }
    this.files.clear();
    this.#rig.session.replaceTree({ generation: 'last', files: [] });
    this.#rig.kernel.forget(...this.#rig.kernel.lookups.keys(), 4711);
  }
}

test('random operations against a model', async () => {
  const random = newRandom('fuse model');
  const rig = await startRig([]);
  const model = new Model(rig, random);
  for (let k = 0; k < OPERATIONS; k++) {
    await model.step();
    if (k % 50 === 49 && random.below(3) === 0) {
      while (rig.contents.held.length > 0) rig.contents.held.pop()!.answer();
      await model.settle();
    }
  }
  await model.finish();
  const { activity, counters } = rig.session;
  assert.ok(model.checked > OPERATIONS / 5, `${model.checked} reads checked`);
  assert.deepEqual(rig.problems, []);
  assert.equal(activity.pending, 0);
  assert.equal(activity.handles, 0);
  assert.equal(activity.nodes, 1, 'the root alone');
  assert.equal(rig.kernel.backingFiles.size, 0);
  assert.equal(rig.kernel.waiting, 0);
  assert.equal(counters.broken + counters.malformed, 0);
  // each content that was made has been closed, and no handle was released that was not opened
  const count = (what: string) => rig.contents.log.filter((line) => line.startsWith(what)).length;
  assert.equal(count('made'), count('closed'));
  assert.equal(count('opened'), count('released'));
});

test('random messages to a session: each is answered at most once, and it goes on', async () => {
  const random = newRandom('fuse session fuzz');
  const rig = await startRig([{ path: 'd/f', bytes: patterned(5000), etag: 'e' }]);
  for (let k = 0; k < 5000; k++) {
    const body = random.bytes(random.below(80));
    // small numbers are more likely to mean something
    for (let at = 0; at < body.length; at++) if (random.below(2) === 0) body[at] = random.below(3) === 0 ? at % 6 : 0;
    const opcode = random.below(53);
    const interrupts = opcode === 36;
    if (interrupts || opcode === 2 || opcode === 42 || opcode === 41) rig.kernel.post(opcode, random.below(6), body);
    else void rig.kernel.request(opcode, random.below(6), body);
  }
  assert.ok((await rig.kernel.walk('d/f')) > 0);
  assert.deepEqual(
    rig.problems.filter((text) => !text.includes('PROTOCOL')),
    [],
  );
});
