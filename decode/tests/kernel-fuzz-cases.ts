/** One random case of each kernel with a state, and the list of all cases. A case draws everything from its random source and throws on a difference. */
import assert from 'node:assert/strict';
import { BYTES, DELTA, DELTA_BYTES, DONE, HYBRID, LEVELS, SNAPPY } from '../kernels/kernels.ts';
import { decodeSnappyBlock } from '../kernels/scalar/snappy-block.ts';
import { compareCall, compareStream, type Pair, type Random } from './kernel-fuzz.ts';
import { bitmaps, gather, joinStreams, spread, utf8 } from './kernel-fuzz-calls.ts';
import { damage, makeDelta, makeHybrid, makeSnappy, u32Bytes } from './kernel-fuzz-input.ts';
import { lz4 } from './kernel-fuzz-lz4.ts';
import { bitPacked, decimals, int96, lengthsTotal, nested, nesting } from './kernel-fuzz-nested.ts';

export type FuzzCase = (pair: Pair, random: Random) => void;

function snappy(pair: Pair, random: Random): void {
  let { src, size } = makeSnappy(random);
  if (random.chance(0.5)) src = damage(src, random);
  if (random.chance(0.1)) size = Math.max(0, size + random.int(-3, 3));
  const result = compareStream(
    pair,
    {
      kernel: (kernels) => kernels.snappy,
      src,
      inputs: [],
      outBytes: size,
      total: 0,
      opWord: SNAPPY.op,
      setup: (set, { out }) => {
        set(SNAPPY.dst, out);
        set(SNAPPY.op, out);
        set(SNAPPY.dstEnd, out + size);
      },
    },
    random,
  );
  const strict = new Uint8Array(size);
  assert.equal(result.code, decodeSnappyBlock(src, size, strict));
  if (result.code === DONE) assert.deepEqual(result.out, strict, 'snappyjs and the strict decoder differ');
}

const HYBRIDS = [
  { name: 'hybridU32', size: 4, cap: 2 ** 32 - 1 },
  { name: 'hybridU16', size: 2, cap: 2 ** 16 },
  { name: 'hybridU8', size: 1, cap: 2 ** 8 },
  { name: 'hybridDict4', size: 4, cap: 5000 },
  { name: 'hybridDict8', size: 8, cap: 5000 },
] as const;

function hybrid(pair: Pair, random: Random): void {
  const { name, size, cap } = random.pick(HYBRIDS);
  const width = random.int(0, random.chance(0.1) ? 35 : random.chance(0.3) ? 5 : 32);
  const n = random.pick([random.int(0, 30), random.int(0, 300), random.int(0, random.chance(0.1) ? 9000 : 2000)]);
  const most = 2 ** Math.min(width, 31);
  let limit = Math.min(cap, random.chance(0.7) ? most : random.int(1, most));
  let src = makeHybrid(Math.min(width, 32), n, limit, random);
  if (random.chance(0.5)) src = damage(src, random);
  if (random.chance(0.1)) limit--;
  const dictionary = random.bytes(name.startsWith('hybridDict') ? limit * size : 0);
  compareStream(
    pair,
    {
      kernel: (kernels) => kernels[name],
      src,
      inputs: [dictionary],
      outBytes: n * size,
      total: n,
      wantedWord: HYBRID.wanted,
      opWord: HYBRID.op,
      words: [HYBRID.wanted],
      setup: (set, { out, inputs }) => {
        set(HYBRID.op, out);
        set(HYBRID.width, width);
        set(HYBRID.dictionary, inputs[0] as number);
        set(HYBRID.limit, limit);
        set(44, 5); // left over from a page before
      },
    },
    random,
  );
}

function levelBitmap(pair: Pair, random: Random): void {
  const n = random.pick([random.int(0, 30), random.int(0, 300), random.int(0, 5000)]);
  let src = makeHybrid(1, n, 2, random);
  if (random.chance(0.5)) src = damage(src, random);
  const before = random.int(0, 63); // bits pending from a page before
  const pending = random.bytes(8).fill(0, (before + 7) >> 3);
  if (before % 8 > 0) pending[before >> 3] = (pending[before >> 3] as number) & ((1 << (before % 8)) - 1);
  const word = new DataView(pending.buffer);
  compareStream(
    pair,
    {
      kernel: (kernels) => kernels.levelBitmap,
      src,
      inputs: [],
      outBytes: 8 * Math.ceil((before + n) / 64),
      total: n,
      wantedWord: LEVELS.wanted,
      opWord: LEVELS.op,
      words: [LEVELS.wanted, LEVELS.ones, LEVELS.pendingBits, LEVELS.pendingWord, LEVELS.pendingWord + 4],
      setup: (set, { out }) => {
        set(LEVELS.op, out);
        set(LEVELS.pendingBits, before);
        set(LEVELS.pendingWord, word.getUint32(0, true));
        set(LEVELS.pendingWord + 4, word.getUint32(4, true));
        set(44, 5); // a page before may have ended inside a byte
      },
      finish: (kernels) => kernels.flushBits,
    },
    random,
  );
}

function plainBytes(pair: Pair, random: Random): void {
  const n = random.int(0, random.pick([5, 60, 300]));
  const out: number[] = [];
  let total = 0;
  for (let i = 0; i < n; i++) {
    const length = random.pick([random.int(0, 12), random.int(0, 70), random.chance(0.05) ? random.int(0, 3000) : 0]);
    out.push(length & 255, length >> 8, 0, 0, ...random.bytes(length));
    total += length;
  }
  let src = Uint8Array.from(out);
  if (random.chance(0.5)) src = damage(src, random) as typeof src;
  const room = Math.max(0, total + (random.chance(0.2) ? random.int(-5, 5) : 0));
  const start = random.pick([0, 100, 0x7fffffff - random.int(0, 2 * total)]);
  compareStream(
    pair,
    {
      kernel: (kernels) => kernels.plainBytes,
      src,
      inputs: [],
      outBytes: 4 * n + room,
      total: n,
      wantedWord: BYTES.wanted,
      opWord: BYTES.op,
      tailFree: true,
      words: [BYTES.at, BYTES.valueLeft],
      room: { word: BYTES.dataEnd, min: 4 * n, max: 4 * n + room },
      setup: (set, at) => {
        set(BYTES.slot, at.out);
        set(BYTES.op, at.out + 4 * n);
        set(BYTES.at, start);
      },
    },
    random,
  );
}

function delta(pair: Pair, random: Random): void {
  const bits = random.pick([32, 64] as const);
  const n = random.pick([random.int(0, 5), random.int(0, 200), random.int(0, 1000)]);
  let src = makeDelta(n, bits, random);
  if (random.chance(0.5)) src = damage(src, random);
  compareStream(
    pair,
    {
      kernel: (kernels) => (bits === 32 ? kernels.delta32 : kernels.delta64),
      src,
      inputs: [],
      outBytes: (n * bits) / 8,
      total: n,
      wantedWord: DELTA.wanted,
      opWord: DELTA.op,
      words: [DELTA.wanted, DELTA.left],
      setup: (set, { out }) => {
        set(DELTA.op, out);
        set(DELTA.total, n);
      },
    },
    random,
  );
}

function deltaBytes(pair: Pair, random: Random): void {
  const prefixes: number[] = [];
  const suffixes: number[] = [];
  let [before, made, stored] = [0, 0, 0];
  for (let n = random.int(0, 80); n > 0; n--) {
    const shared = Math.min(before, random.pick([random.int(0, 16), random.int(0, 60)]));
    const prefix = random.chance(0.99) ? shared : random.int(-3, before + 3);
    const suffix = random.chance(0.99) ? random.pick([random.int(0, 12), random.int(0, 40)]) : random.int(-2, 3000);
    prefixes.push(prefix);
    suffixes.push(suffix);
    if (prefix < 0 || suffix < 0) continue;
    before = prefix + suffix;
    made += before;
    stored += suffix;
  }
  const n = prefixes.length;
  const src = random.bytes(Math.max(0, stored + (random.chance(0.1) ? random.int(-3, 3) : 0)));
  const room = Math.max(0, made + (random.chance(0.1) ? random.int(-3, 9) : 0));
  const start = random.pick([0, 0x7fffffff - random.int(0, 2 * made)]);
  compareStream(
    pair,
    {
      kernel: (kernels) => kernels.deltaBytes,
      src,
      inputs: [u32Bytes(prefixes), u32Bytes(suffixes)],
      outBytes: 4 * n + room,
      total: n,
      wantedWord: DELTA_BYTES.wanted,
      opWord: DELTA_BYTES.op,
      tailFree: true,
      words: [DELTA_BYTES.at, DELTA_BYTES.previousLength],
      setup: (set, { out, inputs }) => {
        set(DELTA_BYTES.slot, out);
        set(DELTA_BYTES.op, out + 4 * n);
        set(DELTA_BYTES.previous, out + 4 * n);
        set(DELTA_BYTES.dataEnd, out + 4 * n + room);
        set(DELTA_BYTES.at, start);
        set(DELTA_BYTES.prefixes, inputs[0] as number);
        set(DELTA_BYTES.suffixes, inputs[1] as number);
      },
    },
    random,
  );
  const first = random.pick([0, 5]);
  const limit = random.pick([stored, 0x7fffffff]);
  compareCall(
    pair,
    {
      buffers: [u32Bytes(suffixes)],
      written: [0],
      last: [0],
      call: (kernels, [at]) => kernels.lengthsToOffsets(at as number, n, first, limit),
    },
    random,
  );
}

export const FUZZ_CASES: Record<string, FuzzCase> = {
  snappy,
  lz4,
  hybrid,
  levelBitmap,
  bitmaps,
  spread,
  gather,
  plainBytes,
  utf8,
  delta,
  deltaBytes,
  joinStreams,
  nested,
  nesting,
  bitPacked,
  lengthsTotal,
  decimals,
  int96,
};
