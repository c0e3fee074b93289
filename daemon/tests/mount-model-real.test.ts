/**
 * Random use of real mounts by several processes against a model: the real command over a real server and a network that
 * is slow, silent or cut, a server that is killed and comes back, files that are replaced, readers that are killed. What
 * a handle reads is of one version, byte for byte, whatever else happens; errors are those that what has happened
 * explains; everything is answered; memory comes back. vfs/SEMANTICS.md names the promises.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { METRICS } from '../../metrics/index.ts';
import { parseExposition } from '../../metrics/tests/exposition.ts';
import { DECODED_CHUNK_SHARE } from '../../vfs/decoded/index.ts';
import { newRandom, type SeededRandom } from '../../vfs/tests/seeded-random.ts';
import type { View } from '../mount/view.ts';
import { type Content, ModelLake, makeContents, shown, type Version } from './model-lake.ts';
import { ReaderProcess, ServerBehindProxy } from './model-processes.ts';
import { type Mount, MountRig, until, whyNoMounts } from './mount-rig.ts';
import { type NetworkWeather, WeatherProxy } from './weather-proxy.ts';

const MIB = 1 << 20;
const MEMORY_BYTES = 16 * MIB;
/** QANAT_MODEL_STEPS makes it go on for longer. */
const STEPS = Number(process.env.QANAT_MODEL_STEPS ?? 90);
const READERS = 3;
const PENDING_MAX = 10;
const MARK = 'generation.txt';
const PATHS = ['a.parquet', 'b.parquet', 'c.bin', 'd/a.parquet', 'd/e/c.parquet'];
/** What a source that is away may cost a reader. */
const TROUBLE_ERRORS = new Set(['EIO', 'ETIMEDOUT']);
const CHANGE_ERRORS = new Set(['ESTALE', 'ENOENT']);

interface ModelHandle {
  readonly reader: ReaderProcess;
  readonly number: number;
  readonly path: string;
  /** Versions that it may be of, by all that was read so far. */
  candidates: Version[];
  at: number;
  reading: number;
  isStale: boolean;
}

class Model {
  readonly counts = { right: 0, changed: 0, troubled: 0, opens: 0, generations: 0, killed: 0 };
  readonly #folder: string;
  readonly #lake: ModelLake;
  readonly #server: ServerBehindProxy;
  readonly #random: SeededRandom;
  readonly #view: View;
  readonly #readers: ReaderProcess[] = [];
  readonly #handles: ModelHandle[] = [];
  readonly #pending = new Set<Promise<void>>();
  /** What may be mounted as a path: versions, or nothing. */
  readonly #possible = new Map<string, (Version | undefined)[]>();
  #generation = 0;
  #isTroubled = false;
  #nextHandle = 1;
  #failure: unknown;

  readonly #log: () => string;

  constructor(
    folder: string,
    log: () => string,
    lake: ModelLake,
    server: ServerBehindProxy,
    random: SeededRandom,
    view: View,
  ) {
    this.#folder = folder;
    this.#log = log;
    this.#lake = lake;
    this.#server = server;
    this.#random = random;
    this.#view = view;
    for (let k = 0; k < READERS; k++) this.#readers.push(new ReaderProcess());
    for (const path of PATHS) this.#possible.set(path, [lake.current.get(path)]);
  }

  async step(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    const roll = this.#random.below(1000);
    // of stale handles alone nothing is learnt
    const isPoor = this.#handles.filter(({ isStale }) => !isStale).length < 3;
    if (roll < (isPoor ? 450 : 150)) this.#start(this.#open());
    else if (roll < 780) this.#read();
    else if (roll < 850) this.#close();
    else if (roll < 880) this.#start(this.#list());
    else if (roll < 910) this.#start(this.#stat());
    else if (roll < 935) await this.publish();
    else if (roll < 955) await this.#trouble();
    else if (roll < 965) await this.#replaceReader();
    else if (roll < 975) this.#server.proxy.weather = this.#random.pick(['fair', 'slow'] as const);
    else await sleep(this.#random.below(60));
    while (this.#pending.size >= PENDING_MAX) await Promise.race(this.#pending);
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

  async drain(): Promise<void> {
    await Promise.all(this.#pending);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Whether an error may be what a program was told, after what has happened. */
  #check(error: string, versions: readonly (Version | undefined)[], wasTroubled: boolean, what: string): void {
    if (error === 'KILLED') return;
    const isChange = versions.some((version) => version === undefined || this.#lake.gone.has(version.number));
    if (CHANGE_ERRORS.has(error) && isChange) this.counts.changed++;
    else {
      assert.ok(TROUBLE_ERRORS.has(error) && (wasTroubled || this.#isTroubled), `${what}: ${error}`);
      this.counts.troubled++;
    }
  }

  async #open(): Promise<void> {
    const path = this.#random.pick(PATHS);
    const reader = this.#random.pick(this.#readers);
    const number = this.#nextHandle++;
    const wasTroubled = this.#isTroubled;
    const before = this.#possible.get(path)!;
    const answer = await reader.ask({ op: 'open', path: `${this.#folder}/${path}`, handle: number });
    const possible = [...new Set([...before, ...this.#possible.get(path)!])];
    if ('error' in answer) return this.#check(answer.error, possible, wasTroubled, `open ${path}`);
    assert.ok('length' in answer);
    const candidates = possible
      .filter((version) => version !== undefined)
      .filter((version) => shown(version, this.#view).length === answer.length);
    assert.ok(candidates.length > 0, `${path} has ${answer.length} bytes, which no version of it has`);
    this.counts.opens++;
    this.#handles.push({ reader, number, path, candidates, at: 0, reading: 0, isStale: false });
  }

  #read(): void {
    if (this.#handles.length === 0) return;
    const fresh = this.#handles.filter(({ isStale }) => !isStale);
    const handle = this.#random.pick(fresh.length > 0 && this.#random.below(8) > 0 ? fresh : this.#handles);
    const { length } = shown(handle.candidates[0]!, this.#view);
    const isNext = this.#random.below(2) === 0;
    const offset = isNext ? handle.at : this.#random.below(length + 10);
    const size = 1 + this.#random.below(this.#random.below(3) === 0 ? 9000 : 1_500_000);
    if (isNext) handle.at = offset + size >= length ? 0 : offset + size;
    this.#start(this.#readAt(handle, offset, size));
  }

  async #readAt(handle: ModelHandle, offset: number, length: number): Promise<void> {
    const what = `${length} bytes at ${offset} of ${handle.path}`;
    const wasTroubled = this.#isTroubled;
    handle.reading++;
    const answer = await handle.reader.ask({ op: 'read', handle: handle.number, offset, length });
    handle.reading--;
    if ('error' in answer) {
      handle.isStale ||= CHANGE_ERRORS.has(answer.error);
      return this.#check(answer.error, handle.candidates, wasTroubled, what);
    }
    assert.ok('bytes' in answer);
    const { bytes } = answer;
    const all = shown(handle.candidates[0]!, this.#view).length;
    const expected = Math.max(0, Math.min(length, all - offset));
    if (bytes.length < expected) {
      // a kernel gives what came before an error, and the error to the next read
      const isExplained = wasTroubled || this.#isTroubled || this.#lake.gone.has(handle.candidates[0]!.number);
      assert.ok(isExplained && bytes.length > 0, `${what}: ${bytes.length} bytes only`);
    }
    const of = handle.candidates.filter((version) => {
      const part = shown(version, this.#view).subarray(offset, offset + bytes.length);
      return Buffer.compare(part, bytes) === 0;
    });
    assert.ok(of.length > 0, `${what}: of no version, or of several`);
    handle.candidates = of;
    this.counts.right++;
  }

  #close(): void {
    const at = this.#random.below(this.#handles.length + 1);
    const handle = this.#handles[at];
    if (handle === undefined || handle.reading > 0) return;
    this.#handles.splice(at, 1);
    this.#start(handle.reader.ask({ op: 'close', handle: handle.number }).then(() => {}));
  }

  async #list(): Promise<void> {
    const generation = this.#generation;
    const names = new Set([...this.#lake.current.keys(), MARK].map((path) => path.split('/')[0]!));
    const wasSynced = this.#isSynced();
    const answer = await this.#random.pick(this.#readers).ask({ op: 'list', path: this.#folder });
    if (!wasSynced || generation !== this.#generation) return;
    if ('error' in answer) return this.#check(answer.error, [], false, 'list');
    assert.ok('names' in answer);
    assert.deepEqual(answer.names.sort(), [...names].sort());
  }

  async #stat(): Promise<void> {
    const path = this.#random.pick(PATHS);
    const wasTroubled = this.#isTroubled;
    const before = this.#possible.get(path)!;
    const answer = await this.#random.pick(this.#readers).ask({ op: 'stat', path: `${this.#folder}/${path}` });
    const possible = [...before, ...this.#possible.get(path)!];
    if ('error' in answer) return this.#check(answer.error, possible, wasTroubled, `stat ${path}`);
    assert.ok('length' in answer);
    const { length } = answer;
    assert.ok(
      possible.some((version) => version !== undefined && shown(version, this.#view).length === length),
      `${path}: ${length} bytes`,
    );
  }

  /** What is mounted is known to be what is in the lake. */
  #isSynced(): boolean {
    return PATHS.every((path) => {
      const possible = this.#possible.get(path)!;
      return possible.length === 1 && possible[0] === this.#lake.current.get(path);
    });
  }

  /** Puts other files into the lake, and sometimes waits until they are mounted. */
  async publish(): Promise<void> {
    for (let changes = 1 + this.#random.below(3); changes > 0; changes--) {
      const path = this.#random.pick(PATHS);
      if (this.#lake.current.has(path) && this.#random.below(4) === 0) this.#lake.remove(path);
      else this.#lake.put(path);
      this.#possible.get(path)!.push(this.#lake.current.get(path));
    }
    this.#mark();
    if (this.#random.below(2) === 0) await this.sync();
  }

  #mark(): void {
    writeFileSync(this.#lake.path('mark'), String(++this.#generation));
    this.#lake.place('mark', MARK);
    this.#server.publish();
    this.counts.generations++;
  }

  /** Waits until what is in the lake is mounted. */
  async sync(): Promise<void> {
    await this.#fair();
    const reader = this.#random.pick(this.#readers);
    const isThere = async (): Promise<boolean> => {
      const number = this.#nextHandle++;
      const opened = await reader.ask({ op: 'open', path: `${this.#folder}/${MARK}`, handle: number });
      if ('error' in opened) return false;
      const answer = await reader.ask({ op: 'read', handle: number, offset: 0, length: 100 });
      await reader.ask({ op: 'close', handle: number });
      return 'bytes' in answer && Buffer.from(answer.bytes).toString() === String(this.#generation);
    };
    await until(isThere, `generation ${this.#generation}`).catch((error) => {
      throw new Error(`${error}\n${this.#log()}`);
    });
    for (const path of PATHS) this.#possible.set(path, [this.#lake.current.get(path)]);
  }

  /** Everything was asked in bad weather is answered, and the weather is fair again. */
  async #fair(): Promise<void> {
    this.#server.proxy.weather = 'fair';
    await this.#server.start();
    await this.drain();
    this.#isTroubled = false;
  }

  /** The server dies, or the network does, while it is read. */
  async #trouble(): Promise<void> {
    this.#isTroubled = true;
    const kind = this.#random.pick(['dead', 'silent', 'cut'] as const);
    if (kind === 'dead') await this.#server.kill();
    else this.#server.proxy.weather = kind satisfies NetworkWeather;
    for (let steps = 3 + this.#random.below(8); steps > 0; steps--) {
      this.#random.below(3) === 0 ? this.#start(this.#open()) : this.#read();
      await sleep(this.#random.below(40));
    }
    // sooner or later than readers give up
    await sleep(this.#random.pick([0, 200, 1500]));
    await this.#fair();
    // listings fail with the source, and so does what is asked before it is known to be back
    this.#isTroubled = true;
    await this.#known();
    this.#isTroubled = false;
  }

  /** The source answers again. */
  async #known(): Promise<void> {
    this.#mark();
    await this.sync();
  }

  /** A reader is killed with all that it waits for, and another one comes. */
  async #replaceReader(): Promise<void> {
    const at = this.#random.below(this.#readers.length);
    const reader = this.#readers[at]!;
    for (let k = this.#handles.length - 1; k >= 0; k--)
      if (this.#handles[k]!.reader === reader) this.#handles.splice(k, 1);
    this.#readers[at] = new ReaderProcess();
    await reader.end();
    this.counts.killed++;
  }

  /** All that is mounted, whole, by every reader; then nothing is open and nothing but the mark is left. */
  async finish(): Promise<void> {
    await this.#fair();
    this.#mark();
    await this.sync();
    for (const reader of this.#readers) {
      for (const [path, version] of this.#lake.current) {
        const number = this.#nextHandle++;
        const bytes = shown(version, this.#view);
        assert.deepEqual(await reader.ask({ op: 'open', path: `${this.#folder}/${path}`, handle: number }), {
          length: bytes.length,
        });
        for (let at = 0; at < bytes.length; at += MIB) {
          const answer = await reader.ask({ op: 'read', handle: number, offset: at, length: MIB });
          assert.ok('bytes' in answer, `${path} at ${at}: ${JSON.stringify(answer)}`);
          assert.equal(Buffer.compare(answer.bytes, bytes.subarray(at, at + MIB)), 0, `${path} at ${at}`);
        }
        await reader.ask({ op: 'close', handle: number });
      }
    }
    for (const { reader, number } of this.#handles.splice(0)) await reader.ask({ op: 'close', handle: number });
    for (const path of [...this.#lake.current.keys()]) this.#lake.remove(path);
    this.#mark();
    await this.sync();
  }

  async end(): Promise<void> {
    await Promise.all(this.#readers.map((reader) => reader.end()));
  }
}

async function poolUsed(mount: Mount): Promise<number> {
  const samples = parseExposition(await (await fetch(`http://${mount.ready.metrics}/metrics`)).text());
  return samples.find(({ name }) => name === METRICS.poolUsed.name)!.value;
}

async function run(view: View, isCached: boolean, random: SeededRandom, contents: readonly Content[]): Promise<void> {
  await using rig = new MountRig();
  using lake = new ModelLake(random.fork(), contents);
  for (const path of PATHS) if (random.below(5) > 0) lake.put(path);
  writeFileSync(lake.path('mark'), '0');
  lake.place('mark', MARK);
  const proxy = await WeatherProxy.start(random.fork());
  const server = new ServerBehindProxy(rig, lake.folder, proxy);
  await server.start();
  const options = ['--view', view, '--memory', '16MiB', '--stall-timeout', '400ms', '--watch-interval', '200ms'];
  if (isCached) options.push('--cache-dir', rig.path('cache'), '--cache-size', '64MiB');
  if (view === 'decoded') options.push('--decoders', '1');
  const mount = await rig.mount(`rdma://127.0.0.1:${proxy.port}`, 'mount', ...options, '--metrics', '127.0.0.1:0');
  const before = await poolUsed(mount);
  const model = new Model(mount.folder, () => mount.errors(), lake, server, random.fork(), view);
  try {
    for (let k = 0; k < STEPS; k++) await model.step();
    await model.finish();
    const { right, opens, generations } = model.counts;
    assert.ok(right >= 5 && opens >= 5 && generations > 2, JSON.stringify(model.counts));
    // the mark is what is left
    await until(async () => (await poolUsed(mount)) <= before + 4096, 'all memory');
  } finally {
    await model.end();
  }
  const { code, errors } = await mount.end('SIGTERM');
  proxy.close();
  assert.equal(code, 0, errors);
  assert.equal((await rig.run('mountpoint', ['-q', mount.folder])).code, 32);
}

const random = newRandom('real mount model');
let contents: Promise<Content[]> | undefined;

for (const view of ['raw', 'decoded'] as const) {
  const seeds = random.fork();
  const isCached = seeds.below(2) === 0;
  // SEMANTICS 1, 2, 3, 15, 25, 35
  test(`random use of a real mount by several processes: ${view}`, { skip: whyNoMounts() }, async () => {
    contents ??= makeContents(random.fork(), Math.floor(MEMORY_BYTES * DECODED_CHUNK_SHARE));
    await run(view, isCached, seeds, await contents);
  });
}
