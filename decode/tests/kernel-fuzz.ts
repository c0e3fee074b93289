/**
 * The bench of the kernel fuzz: seeded random numbers, memories whose last bytes hold a buffer (an access past it
 * traps), canaries around everything else, and the driver that feeds a kernel its input in marks and asks for its
 * values in pieces. Cases are in kernel-fuzz-cases.ts.
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { DONE, FULL, type Kernels, NEED } from '../kernels/kernels.ts';
import { type KernelKind, loadKernels } from '../kernels/load.ts';

export class Random {
  private state: number;

  constructor(seed: number) {
    this.state = seed >>> 0;
  }

  /** In [0, 1) (mulberry32). */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let t = this.state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `low` to `high`, both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.int(0, items.length - 1)] as T;
  }

  bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.int(0, 255));
  }
}

/** `QANAT_SEED`, or a new seed. */
export function chooseSeed(): number {
  const given = Number(process.env.QANAT_SEED ?? '');
  return Number.isInteger(given) && given > 0 ? given : randomInt(1, 2 ** 31);
}

const PAGES = 64;
const CANARY = 0xa5;
const CANARY_BYTES = 256;
const STATE = 1 << 15;
const STATE_BYTES = 20480;
const BUFFERS = 1 << 17;

/** A kernel memory of 4 MiB with one state and the buffers of one case. */
export class Arena {
  readonly kernels: Kernels;
  readonly bytes: Uint8Array;
  readonly data: DataView;
  readonly state = STATE;
  private readonly memory = new WebAssembly.Memory({ initial: PAGES, maximum: PAGES, shared: true });
  private canaries: { at: number; size: number }[] = [];

  constructor(kind: KernelKind) {
    this.kernels = loadKernels(this.memory, kind);
    this.bytes = new Uint8Array(this.memory.buffer);
    this.data = new DataView(this.memory.buffer);
  }

  /** Addresses of the buffers; the one with index `last` ends where the memory ends. The state is zeroed. */
  place(buffers: Uint8Array[], last: number, random: Random): number[] {
    this.canaries = [];
    this.bytes.fill(0, STATE, STATE + STATE_BYTES);
    this.fence(STATE - CANARY_BYTES, CANARY_BYTES);
    this.fence(STATE + STATE_BYTES, CANARY_BYTES);
    let next = BUFFERS;
    return buffers.map((buffer, index) => {
      const at = index === last ? this.bytes.length - buffer.length : next + CANARY_BYTES + random.int(0, 17);
      this.fence(at - CANARY_BYTES, CANARY_BYTES);
      if (index !== last) this.fence(at + buffer.length, CANARY_BYTES);
      this.bytes.set(buffer, at);
      if (index !== last) next = at + buffer.length + CANARY_BYTES;
      return at;
    });
  }

  private fence(at: number, size: number): void {
    this.bytes.fill(CANARY, at, at + size);
    this.canaries.push({ at, size });
  }

  checkCanaries(): void {
    for (const { at, size } of this.canaries) {
      assert.ok(
        this.bytes.subarray(at, at + size).every((byte) => byte === CANARY),
        `canary at ${at} overwritten`,
      );
    }
  }

  word(offset: number): number {
    return this.data.getUint32(STATE + offset, true);
  }

  setWord(offset: number, value: number): void {
    this.data.setUint32(STATE + offset, value, true);
  }
}

/** A resumable kernel with one input. State words 0 and 4 are ip and srcEnd. */
export interface StreamCase {
  kernel: (kernels: Kernels) => (state: number, mark: number) => number;
  src: Uint8Array;
  /** Other inputs, which must not change. */
  inputs: Uint8Array[];
  outBytes: number;
  /** Values in all; `wantedWord` is where a piece of them is asked for (absent: no pieces). */
  total: number;
  wantedWord?: number;
  setup: (set: (word: number, value: number) => void, at: { out: number; inputs: number[] }) => void;
  opWord?: number;
  /** Room past the end of output may hold anything. */
  tailFree?: boolean;
  /** State words that must agree at the end. */
  words?: number[];
  /** The room's end in the state: from `min` to `max` bytes after the start of the output, moved on at FULL. */
  room?: { word: number; min: number; max: number };
  /** After DONE. */
  finish?: (kernels: Kernels) => (state: number) => void;
}
export interface StreamResult {
  code: number;
  out: Uint8Array;
  used: number;
  made: number;
  words: number[];
}
/** How input arrives and values are asked for. */
interface Feed {
  last: 'src' | 'out';
  marks: 'whole' | 'lines' | 'bytes';
  pieces: boolean;
}

function runStream(arena: Arena, one: StreamCase, feed: Feed, random: Random): StreamResult {
  const { src, inputs, wantedWord, room } = one;
  const old = Uint8Array.from({ length: one.outBytes }, (_, i) => i * 7);
  const places = arena.place([src, old, ...inputs], feed.last === 'src' ? 0 : 1, random);
  const [from, out] = places as [number, number];
  const step = one.kernel(arena.kernels);
  arena.setWord(0, from);
  arena.setWord(4, from + src.length);
  one.setup((word, value) => arena.setWord(word, value), { out, inputs: places.slice(2) });
  let roomNow = room?.max ?? 0;
  if (room !== undefined && feed.pieces) roomNow = random.int(room.min, room.max);
  if (room !== undefined) arena.setWord(room.word, out + roomNow);
  const ask = (left: number): number => (feed.pieces ? Math.min(left, random.pick(PIECES)(random)) : left);

  let arrived = feed.marks === 'whole' ? src.length : 0;
  arena.bytes.fill(0x5b, from + arrived, from + src.length); // what has not arrived must not matter
  let left = one.total;
  let piece = ask(left);
  if (wantedWord !== undefined) arena.setWord(wantedWord, piece);
  let code: number = NEED;
  for (let calls = 0; ; calls++) {
    assert.ok(calls < 4 * (src.length + one.total) + 1000, 'no end');
    code = step(arena.state, from + arrived);
    if (code === DONE) {
      left -= piece;
      if (left === 0 || wantedWord === undefined) break;
      piece = ask(left);
      arena.setWord(wantedWord, piece);
    } else if (code === FULL && room !== undefined && roomNow < room.max) {
      roomNow += random.int(1, room.max - roomNow);
      arena.setWord(room.word, out + roomNow);
    } else if (code === NEED) {
      assert.ok(arrived < src.length, 'NEED with all input there');
      const more =
        feed.marks === 'lines'
          ? 64 * random.int(1, random.chance(0.3) ? 1 : 64)
          : random.int(0, random.chance(0.5) ? 3 : 200);
      const mark = Math.min(src.length, arrived + more);
      arena.bytes.set(src.subarray(arrived, mark), from + arrived);
      arrived = mark;
    } else {
      break;
    }
  }
  if (code === DONE) one.finish?.(arena.kernels)(arena.state);
  arena.checkCanaries();
  const same = (at: number, expected: Uint8Array): boolean =>
    Buffer.compare(arena.bytes.subarray(at, at + expected.length), expected) === 0;
  assert.ok(same(from, src.subarray(0, arrived)), 'input overwritten');
  inputs.forEach((input, i) => {
    assert.ok(same(places[2 + i] as number, input), 'input overwritten');
  });
  return {
    code,
    out: arena.bytes.slice(out, out + one.outBytes),
    used: arena.word(0) - from,
    made: one.opWord === undefined ? 0 : arena.word(one.opWord) - out,
    words: (one.words ?? []).map((word) => arena.word(word)),
  };
}

const PIECES: ((random: Random) => number)[] = [
  (random) => random.int(0, 3),
  (random) => random.int(1, 20),
  (random) => 8 * random.int(1, 20),
  (random) => random.int(1, 2000),
];

export interface Pair {
  wasm: Arena;
  scalar: Arena;
}

/** Scalar at once against WebAssembly in every layout, and both in random marks and pieces. Returns the scalar code. */
export function compareStream(pair: Pair, one: StreamCase, random: Random): StreamResult {
  const expected = runStream(pair.scalar, one, { last: 'src', marks: 'whole', pieces: false }, random);
  const feeds: [Arena, Feed][] = [
    [pair.wasm, { last: 'src', marks: 'whole', pieces: false }],
    [pair.wasm, { last: 'out', marks: 'whole', pieces: false }],
    [pair.wasm, { last: random.pick(['src', 'out']), marks: 'lines', pieces: random.chance(0.5) }],
    [pair.wasm, { last: random.pick(['src', 'out']), marks: 'bytes', pieces: random.chance(0.5) }],
    [pair.wasm, { last: random.pick(['src', 'out']), marks: 'whole', pieces: true }],
    [pair.scalar, { last: 'out', marks: 'lines', pieces: true }],
  ];
  for (const [arena, feed] of feeds) {
    const actual = runStream(arena, one, feed, random);
    const side = `${arena === pair.wasm ? 'wasm' : 'scalar'} ${JSON.stringify(feed)}`;
    assert.equal(actual.code, expected.code, side);
    if (expected.code < 0) continue;
    assert.deepEqual({ ...actual, out: undefined }, { ...expected, out: undefined }, side);
    const size = one.tailFree ? expected.made : one.outBytes;
    const [mine, theirs] = [actual.out.subarray(0, size), expected.out.subarray(0, size)];
    assert.ok(Buffer.compare(mine, theirs) === 0, `output differs: ${side}`);
  }
  return expected;
}

/** A kernel without a state: buffers in, the writable ones compared after. `trap` guards the end of one of them. */
export interface CallCase {
  buffers: Uint8Array[];
  /** Indices of buffers that are written; the others must not change. */
  written: number[];
  call: (kernels: Kernels, at: number[], state: number) => number | undefined;
  /** Indices of buffers that may lie at the very end of memory. */
  last: number[];
}

export function compareCall(pair: Pair, one: CallCase, random: Random): number | undefined {
  const run = (arena: Arena, last: number): { code: number | undefined; outs: Uint8Array[] } => {
    const at = arena.place(one.buffers, last, random);
    const code = one.call(arena.kernels, at, arena.state);
    arena.checkCanaries();
    const after = one.buffers.map((buffer, i) => arena.bytes.slice(at[i] as number, (at[i] as number) + buffer.length));
    after.forEach((bytes, i) => {
      if (!one.written.includes(i)) assert.deepEqual(bytes, one.buffers[i], `buffer ${i} overwritten`);
    });
    return { code, outs: one.written.map((i) => after[i] as Uint8Array) };
  };
  const expected = run(pair.scalar, one.last[0] as number);
  for (const last of one.last) {
    const actual = run(pair.wasm, last);
    assert.equal(actual.code, expected.code, `buffer ${last} last`);
    if (expected.code === undefined || expected.code >= 0) {
      assert.deepEqual(actual.outs, expected.outs, `buffer ${last} last`);
    }
  }
  return expected.code;
}
