/**
 * Random operations on a real mount against a model: several handles at a time, reads in parallel, generations that
 * replace files while reads wait. A read gives exactly the bytes of the version that its handle was opened on, or
 * ESTALE once that was replaced (after the bytes before it that the page cache still had); an open gives the version
 * that is current.
 */
import assert from 'node:assert/strict';
import type { FileHandle } from 'node:fs/promises';
import { open, readdir } from 'node:fs/promises';
import { constants } from 'node:os';
import { test } from 'node:test';
import type { MountRig } from './fuse-mount-rig.ts';
import { inTime, newFolder, startMount, whyNoMount } from './fuse-mount-rig.ts';
import { patterned } from './fuse-rig.ts';
import type { ServedFile } from './fuse-server.ts';
import type { SeededRandom } from './seeded-random.ts';
import { newRandom } from './seeded-random.ts';

const ROUNDS = 120;
const PATHS = ['a', 'b', 'd/a', 'd/b', 'd/e/f', 'c'];
const skip = await whyNoMount();

interface ModelHandle {
  readonly handle: FileHandle;
  readonly file: ServedFile;
  readonly bytes: Uint8Array;
  stale: boolean;
}

class Model {
  readonly handles: ModelHandle[] = [];
  files: ServedFile[] = [];
  reads = 0;
  staleReads = 0;
  readonly #rig: MountRig;
  readonly #random: SeededRandom;
  #salt = 0;

  constructor(rig: MountRig, random: SeededRandom) {
    this.#rig = rig;
    this.#random = random;
  }

  async replace(): Promise<void> {
    const kept = this.files.filter(() => this.#random.below(3) > 0);
    const paths = PATHS.filter((path) => !kept.some((file) => file.path === path) && this.#random.below(4) > 0);
    const made = paths.map((path) => {
      const serve = this.#random.pick(['cached', 'direct', 'passthrough'] as const);
      return { path, length: this.#random.below(400_000), salt: ++this.#salt, serve };
    });
    this.files = [...kept, ...made];
    for (const handle of this.handles) if (!kept.includes(handle.file)) handle.stale = true;
    await this.#rig.call({ op: 'replace', generation: `g${this.#salt}`, files: this.files });
  }

  async open(): Promise<void> {
    if (this.files.length === 0) return;
    const file = this.#random.pick(this.files);
    const handle = await inTime(open(this.#rig.path(file.path)), `an open of ${file.path}`);
    this.handles.push({ handle, file, bytes: patterned(file.length, file.salt), stale: false });
    const { size } = await inTime(handle.stat(), 'a stat of what is open');
    assert.equal(size, file.length);
  }

  async read(): Promise<void> {
    if (this.handles.length === 0) return;
    const one = this.#random.pick(this.handles);
    const offset = this.#random.below(one.file.length + 10);
    const into = Buffer.alloc(1 + this.#random.below(this.#random.below(2) === 0 ? 300_000 : 3000));
    const bytesRead = await this.#readAt(one, offset, into);
    if (bytesRead === undefined) return;
    this.reads++;
    const expected = one.bytes.subarray(offset, offset + into.length);
    const place = `${one.file.path} at ${offset}+${into.length}: ${bytesRead}`;
    assert.ok(into.subarray(0, bytesRead).equals(expected.subarray(0, bytesRead)), place);
    if (bytesRead === expected.length) return;
    // what the page cache still had of a replaced file: the kernel gives it, and the error with the next read
    assert.ok(one.stale && one.file.serve === 'cached' && (offset + bytesRead) % 4096 === 0, `short: ${place}`);
    assert.equal(await this.#readAt(one, offset + bytesRead, into), undefined, `no error behind: ${place}`);
  }

  /** Bytes read; undefined when the file is stale. */
  async #readAt({ handle, file }: ModelHandle, offset: number, into: Buffer): Promise<number | undefined> {
    try {
      return (await inTime(handle.read(into, 0, into.length, offset), `a read of ${file.path}`)).bytesRead;
    } catch (error) {
      const { errno } = error as NodeJS.ErrnoException;
      assert.equal(errno, -constants.errno.ESTALE, String(error));
      const stale = this.handles.find((one) => one.handle === handle)?.stale;
      assert.ok(stale, `${file.path} is stale, but was not replaced`);
      this.staleReads++;
      return undefined;
    }
  }

  async close(): Promise<void> {
    if (this.handles.length === 0) return;
    const [one] = this.handles.splice(this.#random.below(this.handles.length), 1);
    await one!.handle.close();
  }

  async list(): Promise<void> {
    const names = new Set(this.files.map(({ path }) => path.split('/')[0]!));
    const listed = await inTime(readdir(this.#rig.folder), 'a listing');
    assert.deepEqual(listed.sort(), [...names].sort());
  }

  /** Reads that wait while the generation changes. */
  async replaceUnderReads(): Promise<void> {
    await this.#rig.call({ op: 'hold', paths: this.files.map(({ path }) => path) });
    const reads = [this.read(), this.read(), this.read()];
    await this.replace();
    await this.#rig.call({ op: 'hold', paths: [] });
    await Promise.all(reads);
  }
}

// SEMANTICS 1
test('random operations on a real mount', { skip }, async () => {
  const random = newRandom('fuse mount model');
  const rig = await startMount({ folder: newFolder(), files: [], generation: 'g0' });
  try {
    const model = new Model(rig, random);
    await model.replace();
    for (let round = 0; round < ROUNDS; round++) {
      const roll = random.below(20);
      if (roll === 0) await model.replace();
      else if (roll === 1) await model.replaceUnderReads();
      else if (roll < 4) await model.close();
      else if (roll < 6) await model.list();
      else if (roll < 10) await model.open();
      else await Promise.all([model.read(), model.read(), model.read(), model.read()]);
    }
    assert.ok(model.reads > ROUNDS / 4, `${model.reads} reads, ${model.staleReads} of replaced files`);
    while (model.handles.length > 0) await model.close();
    const { problems, pending } = await rig.until('all is closed', ({ handles }) => handles === 0);
    assert.deepEqual(
      problems.filter((text) => !text.includes('passthrough')),
      [],
    );
    assert.equal(pending, 0);
    assert.equal(await rig.call({ op: 'unmount', graceMs: 5000 }), 'unmounted');
  } finally {
    await rig.clear();
  }
});
