/**
 * Random operations on whole mounts against a model, over the loopback kernel: handles and reads in parallel, interrupts,
 * new generations, sources that are slow, silent, lost or away, both views, memory as small as it may be, with a disk
 * cache and without. A read gives exactly the bytes of the version that its handle was opened on, or one of the errors
 * that what has happened explains; at the end nothing is left. vfs/SEMANTICS.md names the promises.
 */
import assert from 'node:assert/strict';
import { constants } from 'node:os';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { DECODED_CHUNK_SHARE } from '../../vfs/decoded/index.ts';
import { Opcode } from '../../vfs/fuse/protocol.ts';
import { newRandom, type SeededRandom } from '../../vfs/tests/seeded-random.ts';
import type { View } from '../mount/view.ts';
import { LoopbackMount } from './loopback-mount.ts';
import { type Content, ModelLake, makeContents, shown, type Version } from './model-lake.ts';
import { within } from './mount-rig.ts';
import type { Weather } from './troubled-transport.ts';

const E = constants.errno;
const MIB = 1 << 20;
const SMALL_BYTES = 8 * MIB;
/** QANAT_MODEL_STEPS makes it go on for longer. */
const OPERATIONS = Number(process.env.QANAT_MODEL_STEPS ?? 700);
/** As many as a kernel has under way for a few readers. */
const PENDING_MAX = 40;
const PATHS = ['a.parquet', 'b.parquet', 'c.bin', 'd/a.parquet', 'd/b.bin', 'd/e/c.parquet', 'f.parquet'];
const TROUBLE: ReadonlySet<Weather> = new Set(['silent', 'lost', 'away']);

interface ModelHandle {
  readonly node: number;
  readonly handle: number;
  readonly version: Version;
  /** Where a sequential reader would go on. */
  at: number;
  reading: number;
}

interface Settings {
  readonly view: View;
  readonly memoryBytes: number;
  readonly isCached: boolean;
}

class Model {
  readonly counts = { right: 0, stale: 0, interrupted: 0, troubled: 0, opens: 0, generations: 0 };
  readonly #mount: LoopbackMount;
  readonly #lake: ModelLake;
  readonly #random: SeededRandom;
  readonly #view: View;
  readonly #pending = new Set<Promise<void>>();
  readonly #handles: ModelHandle[] = [];
  /** Of inodes that were found while nothing changed. */
  readonly #versions = new Map<number, Version>();
  /** What is mounted. */
  #tree: ReadonlyMap<string, Version>;
  /** Odd while it is being replaced. */
  #epoch = 0;
  /** Errors of the source may still come. */
  #isTroubled = false;
  #isLookDue = false;
  #namings = 0;
  #failure: unknown;

  constructor(mount: LoopbackMount, lake: ModelLake, random: SeededRandom, view: View) {
    this.#mount = mount;
    this.#lake = lake;
    this.#random = random;
    this.#view = view;
    this.#tree = new Map(lake.current);
  }

  async step(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    const roll = this.#random.below(1000);
    if (roll < 150) this.#start(this.#open());
    else if (roll < 700) this.#read();
    else if (roll < 780) this.#release();
    else if (roll < 830) this.#start(this.#stat());
    else if (roll < 860) this.#start(this.#list());
    else if (roll < 885) this.#start(this.#attribute());
    else if (roll < 910) this.#forget();
    else if (roll < 940) await this.#publish();
    else if (roll < 955) await this.#change();
    else if (roll < 970) await this.drain();
    else await sleep(this.#random.below(4));
    if (this.#isLookDue && this.#random.below(10) === 0) await this.#look();
    while (this.#pending.size > PENDING_MAX) await within(Promise.race(this.#pending), 'an answer');
  }

  #start(operation: Promise<void>): void {
    const running: Promise<void> = operation.then(
      () => void this.#pending.delete(running),
      (error: unknown) => {
        this.#pending.delete(running);
        this.#failure ??= error;
      },
    );
    this.#pending.add(running);
  }

  /** Everything that was asked is answered, and nothing is under way. */
  async drain(): Promise<void> {
    await within(Promise.all(this.#pending), 'all answers');
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Whether an error may be what was answered, after what has happened. */
  #check(
    errno: number,
    version: Version | undefined,
    wasTroubled: boolean,
    isInterrupted: boolean,
    what: string,
  ): void {
    if ((errno === E.ESTALE || errno === E.ENOENT) && (version === undefined || this.#lake.gone.has(version.number))) {
      this.counts.stale++;
    } else if (errno === E.EINTR && isInterrupted) this.counts.interrupted++;
    else {
      const isTrouble = errno === E.EIO || errno === E.ETIMEDOUT;
      assert.ok(isTrouble && (wasTroubled || this.#isTroubled), `${what}: errno ${errno}`);
      this.counts.troubled++;
    }
  }

  /** The inode of a path, where nothing changed meanwhile. */
  async #find(path: string): Promise<{ node: number; version: Version } | undefined> {
    const [epoch, wasTroubled] = [this.#epoch, this.#isTroubled];
    const version = this.#tree.get(path);
    this.#namings++;
    let node: number;
    try {
      node = await this.#mount.kernel.walk(path);
    } finally {
      this.#namings--;
    }
    if (epoch !== this.#epoch || epoch % 2 === 1) return undefined;
    if (version === undefined) {
      assert.ok(node === -E.ENOENT, `${path}, which is not there: ${node}`);
      return undefined;
    }
    if (node < 0) {
      this.#check(-node, version, wasTroubled, false, `finding ${path}`);
      return undefined;
    }
    const known = this.#versions.get(node);
    assert.ok(known === undefined || known === version, `${path}: the inode of another version`);
    this.#versions.set(node, version);
    return { node, version };
  }

  async #open(): Promise<void> {
    const wasTroubled = this.#isTroubled;
    const found = await this.#find(this.#random.pick(PATHS));
    if (found === undefined) return;
    const { node, version } = found;
    const opened = await this.#mount.kernel.open(node);
    if ('errno' in opened) return this.#check(opened.errno, version, wasTroubled, false, `opening ${version.path}`);
    this.counts.opens++;
    this.#handles.push({ node, handle: opened.handle, version, at: 0, reading: 0 });
  }

  #read(): void {
    if (this.#handles.length === 0) return;
    const handle = this.#random.pick(this.#handles);
    const { length } = shown(handle.version, this.#view);
    const kind = this.#random.below(4);
    const isNext = kind < 2;
    const offset = isNext ? handle.at : this.#random.below(length + 10);
    const size = kind === 3 ? 1 + this.#random.below(5000) : Math.min(MIB, 1 + this.#random.below(2 * MIB));
    if (isNext) handle.at = offset + size >= length ? 0 : offset + size;
    this.#start(this.#readAt(handle, offset, size, this.#random.below(25) === 0));
  }

  async #readAt(handle: ModelHandle, offset: number, size: number, interrupt: boolean): Promise<void> {
    const { version } = handle;
    const what = `${size} bytes at ${offset} of ${version.path}, version ${version.number}`;
    const wasTroubled = this.#isTroubled;
    const wasStale = this.#epoch % 2 === 0 && this.#tree.get(version.path) !== version;
    handle.reading++;
    const answering = this.#mount.kernel.read(handle.node, handle.handle, offset, size);
    const unique = this.#mount.kernel.lastUnique;
    if (interrupt) setTimeout(() => this.#mount.kernel.interrupt(unique), this.#random.below(5));
    const answer = await answering;
    handle.reading--;
    if (typeof answer === 'number') return this.#check(answer, version, wasTroubled, interrupt, what);
    assert.ok(!wasStale, `${what}: read although it had been replaced`);
    const expected = shown(version, this.#view).subarray(offset, offset + size);
    assert.equal(answer.length, expected.length, what);
    assert.equal(Buffer.compare(answer, expected), 0, `${what}: other bytes`);
    this.counts.right++;
  }

  #release(): void {
    const at = this.#random.below(this.#handles.length + 1);
    const handle = this.#handles[at];
    // a kernel releases a handle when nobody reads through it any more
    if (handle === undefined || handle.reading > 0) return;
    this.#handles.splice(at, 1);
    this.#start(this.#releaseOne(handle));
  }

  async #releaseOne({ node, handle }: ModelHandle): Promise<void> {
    assert.equal(await this.#mount.kernel.release(node, handle), 0);
  }

  async #stat(): Promise<void> {
    const wasTroubled = this.#isTroubled;
    const found = await this.#find(this.#random.pick([...PATHS, 'd/nothing', 'nothing']));
    if (found === undefined) return;
    const { node, version } = found;
    const attributes = await this.#mount.kernel.getattr(node);
    if (typeof attributes === 'number')
      return this.#check(attributes, version, wasTroubled, false, `stat ${version.path}`);
    assert.equal(attributes.length, shown(version, this.#view).length, version.path);
  }

  async #list(): Promise<void> {
    const epoch = this.#epoch;
    const names = new Set([...this.#tree.keys()].map((path) => path.split('/')[0]!));
    this.#namings++;
    const listed = await this.#mount.kernel.list(1, this.#random.below(2) === 0, 200 + this.#random.below(3000));
    this.#namings--;
    if (epoch !== this.#epoch || epoch % 2 === 1) return;
    assert.deepEqual(listed.map(({ name }) => name).sort(), ['.', '..', ...names].sort());
    for (const { name, entry } of listed) {
      const version = this.#tree.get(name);
      if (entry === undefined || entry.nodeId === 0 || version === undefined) continue;
      assert.equal(entry.attributes.length, shown(version, this.#view).length, name);
    }
  }

  async #attribute(): Promise<void> {
    const found = await this.#find(this.#random.pick(PATHS));
    if (found === undefined) return;
    const [name, expected] = this.#random.pick([
      ['user.qanat.path', found.version.path],
      ['user.qanat.view', found.version.path.endsWith('.parquet') ? this.#view : 'raw'],
      ['user.qanat.none', undefined],
    ] as const);
    const body = Buffer.concat([Buffer.from([200, 0, 0, 0, 0, 0, 0, 0]), Buffer.from(`${name}\0`)]);
    const { errno, body: value } = await this.#mount.kernel.request(Opcode.FUSE_GETXATTR, found.node, body);
    if (errno === E.ESTALE) this.#check(errno, found.version, false, false, name);
    else if (expected === undefined) assert.equal(errno, E.ENODATA);
    else assert.equal(Buffer.from(value).toString(), expected);
  }

  #forget(): void {
    if (this.#namings > 0) return;
    const inUse = new Set(this.#handles.map(({ node }) => node));
    const known = [...this.#mount.kernel.lookups.keys()].filter((node) => !inUse.has(node));
    if (known.length === 0) return;
    const some = new Set([...Array(1 + this.#random.below(4))].map(() => this.#random.pick(known)));
    // of who is still being asked about, a kernel forgets nothing
    if (this.#pending.size > 0) return;
    this.#mount.kernel.forget(...some);
  }

  async #publish(): Promise<void> {
    for (let changes = 1 + this.#random.below(3); changes > 0; changes--) {
      const path = this.#random.pick(PATHS);
      if (this.#lake.current.has(path) && this.#random.below(4) === 0) this.#lake.remove(path);
      else this.#lake.put(path);
    }
    if (this.#random.below(3) > 0) await this.#look();
    else this.#isLookDue = true;
  }

  async #look(): Promise<void> {
    if (this.#lake.current.size === 0) this.#lake.put('a.parquet');
    this.#isLookDue = false;
    const next = new Map(this.#lake.current);
    this.#epoch++;
    await this.#mount.look();
    this.#tree = next;
    this.#epoch++;
    this.counts.generations++;
  }

  /** Other weather for a while; then fair again, and what had begun in it ends. */
  async #change(): Promise<void> {
    const { transport } = this.#mount;
    const weather = this.#random.pick([
      'slow',
      'slow',
      'slow',
      'fair',
      'lost',
      'lost',
      'away',
      'away',
      'silent',
    ] as const);
    if (!TROUBLE.has(weather)) {
      transport.weather = weather;
      return;
    }
    transport.weather = weather;
    this.#isTroubled = true;
    for (let steps = 5 + this.#random.below(20); steps > 0; steps--) {
      this.#random.below(3) === 0 ? this.#start(this.#open()) : this.#read();
      if (this.#random.below(4) === 0) await sleep(this.#random.below(3));
    }
    transport.weather = 'fair';
    await this.drain();
    await this.#quiet();
    this.#isTroubled = false;
  }

  /** Nothing is on its way any more, fetched ahead or not. */
  async #quiet(): Promise<void> {
    const { store } = this.#mount.contents;
    const wait = async (): Promise<void> => {
      while (store.requestsOpen > 0) await sleep(2);
    };
    await within(wait(), 'the end of all requests');
  }

  /** Gives everything back, and mounts nothing. */
  async finish(): Promise<void> {
    this.#mount.transport.weather = 'fair';
    await this.drain();
    for (const handle of this.#handles.splice(0)) await this.#releaseOne(handle);
    this.#mount.session.replaceTree({ generation: 'none', files: [] });
    this.#mount.kernel.forget(...this.#mount.kernel.lookups.keys(), 4711);
    await this.#quiet();
  }
}

async function run({ view, memoryBytes, isCached }: Settings, random: SeededRandom, contents: readonly Content[]) {
  using lake = new ModelLake(random.fork(), contents);
  for (const path of PATHS) if (random.below(4) > 0) lake.put(path);
  const mount = await LoopbackMount.start({
    folder: lake.folder,
    view,
    memoryBytes,
    prefetchDepth: 1 + random.below(4),
    random: random.fork(),
    ...(isCached ? { cacheFolder: lake.path('cache') } : {}),
  });
  try {
    const model = new Model(mount, lake, random.fork(), view);
    for (let k = 0; k < OPERATIONS; k++) await model.step();
    await model.finish();
    const { activity, counters } = mount.session;
    const { right, opens, generations } = model.counts;
    assert.ok(right > OPERATIONS / 10 && opens > 10 && generations > 3, JSON.stringify(model.counts));
    assert.deepEqual(mount.problems, []);
    const left = [activity.pending, activity.handles, activity.nodes, counters.broken, counters.malformed];
    assert.deepEqual(left, [0, 0, 1, 0, 0]);
    await within(freed(mount), 'all memory');
    assert.equal(mount.heldBytes, 0);
    assert.equal(mount.undecidedBytes, 0, 'bytes that nobody accounts for');
  } finally {
    await mount.close();
  }
}

/** Decoders give back what they had when they are told that nobody wants it. */
async function freed(mount: LoopbackMount): Promise<void> {
  while (mount.heldBytes > 0) await sleep(2);
}

const random = newRandom('mount model');
const contentsOf = new Map<number, Promise<Content[]>>();

for (const view of ['raw', 'decoded'] as const) {
  for (const memoryBytes of [SMALL_BYTES, 64 * MIB]) {
    for (const isCached of [false, true]) {
      const name = `${view}, ${memoryBytes / MIB} MiB, ${isCached ? 'with' : 'without'} a disk cache`;
      const seeds = random.fork();
      // SEMANTICS 1, 2, 8, 16, 17, 19, 23, 35, 36
      test(`random operations on a mount over the loopback kernel: ${name}`, async () => {
        const chunkBytesMax = Math.floor(memoryBytes * DECODED_CHUNK_SHARE);
        const contents = contentsOf.get(memoryBytes) ?? makeContents(random.fork(), chunkBytesMax);
        contentsOf.set(memoryBytes, contents);
        await run({ view, memoryBytes, isCached }, seeds, await contents);
      });
    }
  }
}
