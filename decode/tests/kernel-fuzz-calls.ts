/** One random case of each kernel that has no state: bitmaps, spreading, gathering, UTF-8, stream split. */
import assert from 'node:assert/strict';
import { DONE, E_UTF8 } from '../kernels/kernels.ts';
import { compareCall, type Pair, type Random } from './kernel-fuzz.ts';
import { damage, makeBitmap, makeUtf8, u32Bytes } from './kernel-fuzz-input.ts';

export function bitmaps(pair: Pair, random: Random): void {
  const n = random.pick([random.int(0, 20), random.int(0, 300), random.int(0, 3000)]);
  const [srcBit, dstBit] = [random.int(0, 100), random.int(0, 100)];
  const src = random.bytes((srcBit + n + 7) >> 3);
  const dst = random.bytes((dstBit + n + 7) >> 3);
  compareCall(
    pair,
    {
      buffers: [src, dst],
      written: [1],
      last: [0, 1],
      call: (kernels, [from, to]) => {
        kernels.copyBits(from as number, srcBit, to as number, dstBit, n);
        return undefined;
      },
    },
    random,
  );
  const count = Math.max(0, 8 * src.length - random.int(0, 7));
  compareCall(
    pair,
    { buffers: [src], written: [], last: [0], call: (kernels, [at]) => kernels.countOnes(at as number, count) },
    random,
  );
}

export function spread(pair: Pair, random: Random): void {
  const n = random.pick([random.int(0, 30), random.int(0, 200), random.int(0, 2000)]);
  const { bits, ones } = makeBitmap(n, random);
  const have = random.chance(0.1) ? Math.min(n, ones + 1) : ones;
  const bitmap = n % 64 > 0 ? bits.slice(0, (n + 7) >> 3) : bits; // the last word need not be there
  const width = random.pick([1, 2, 4, 8, 16, 0]);
  const wide = random.pick([12, random.int(1, 40)]);
  const name = random.pick(['values', 'bits', 'offsets'] as const);
  const bytes = name === 'bits' ? bits.length : name === 'offsets' ? 4 * (n + 1) : n * (width || wide);
  compareCall(
    pair,
    {
      buffers: [random.bytes(bytes), bitmap],
      written: [0],
      last: [0, 1],
      call: (kernels, places) => {
        const [at, map] = places as [number, number];
        if (name === 'bits') return kernels.spreadBits(at, map, n, have);
        if (name === 'offsets') return kernels.spreadOffsets(at, map, n, have);
        if (width === 1) return kernels.spread1(at, map, n, have);
        if (width === 2) return kernels.spread2(at, map, n, have);
        if (width === 4) return kernels.spread4(at, map, n, have);
        if (width === 8) return kernels.spread8(at, map, n, have);
        if (width === 16) return kernels.spread16(at, map, n, have);
        return kernels.spreadWide(at, map, n, have, wide);
      },
    },
    random,
  );
}

export function gather(pair: Pair, random: Random): void {
  const entries = random.int(1, 40);
  const n = random.pick([random.int(0, 10), random.int(0, 300)]);
  const picked = Array.from({ length: n }, () => random.int(0, entries - 1));
  const indices = u32Bytes(picked);
  const width = random.pick([4, 8, 12, 16, random.int(1, 100)]);
  compareCall(
    pair,
    {
      buffers: [indices, random.bytes(entries * width), random.bytes(n * width)],
      written: [2],
      last: [0, 1, 2],
      call: (kernels, at) => {
        const [index, dictionary, out] = at as [number, number, number];
        kernels.gatherWide(index, n, dictionary, width, out);
        return undefined;
      },
    },
    random,
  );
  const lengths = Array.from({ length: entries }, () =>
    random.pick([random.int(0, 12), random.int(0, 70), random.int(0, 200)]),
  );
  const offsets = [0];
  for (const length of lengths) offsets.push((offsets.at(-1) as number) + length);
  const made = picked.reduce((sum, index) => sum + (lengths[index] as number), 0);
  const start = random.pick([0, 100, 0x7fffffff - random.int(0, 2 * made)]);
  compareCall(
    pair,
    {
      buffers: [indices, u32Bytes(offsets), random.bytes(4 * n)],
      written: [2],
      last: [0, 1, 2],
      call: (kernels, at) => kernels.gatherOffsets(at[0] as number, n, at[1] as number, at[2] as number, start),
    },
    random,
  );
  compareCall(
    pair,
    {
      buffers: [indices, u32Bytes(offsets), random.bytes((offsets.at(-1) as number) + 64), random.bytes(made)],
      written: [3],
      last: [0, 1, 2, 3],
      call: (kernels, at) => {
        const [index, dictionaryOffsets, data, out] = at as [number, number, number, number];
        kernels.gatherBytes(index, n, dictionaryOffsets, data, out, out + made);
        return undefined;
      },
    },
    random,
  );
}

export function utf8(pair: Pair, random: Random): void {
  let src = makeUtf8(random.pick([random.int(0, 20), random.int(0, 200)]), random);
  if (random.chance(0.6)) src = damage(src, random);
  const code = compareCall(
    pair,
    {
      buffers: [src],
      written: [],
      last: [0],
      call: (kernels, [at], state) => kernels.utf8(at as number, (at as number) + src.length, state),
    },
    random,
  );
  assert.equal(code, isUtf8(src) ? DONE : E_UTF8);
  const offsets = Array.from({ length: random.int(0, 20) }, () =>
    random.int(0, src.length + (random.chance(0.02) ? 2 : 0)),
  );
  const starts = compareCall(
    pair,
    {
      buffers: [src, u32Bytes(offsets)],
      written: [],
      last: [0, 1],
      call: (kernels, at) => {
        const [data, slots] = at as [number, number];
        return kernels.utf8Starts(slots, offsets.length, data, data + src.length);
      },
    },
    random,
  );
  if (code !== DONE || starts !== DONE) return;
  const edges = [0, ...offsets.sort((a, b) => a - b), src.length];
  for (let i = 1; i < edges.length; i++)
    assert.ok(isUtf8(src.subarray(edges[i - 1], edges[i])), 'a value is not UTF-8');
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

export function joinStreams(pair: Pair, random: Random): void {
  const width = random.pick([2, 4, 8, random.int(1, 20)]);
  const n = random.int(0, random.pick([40, 300]));
  const cuts = [0, random.int(0, n), random.int(0, n), n].sort((a, b) => a - b);
  compareCall(
    pair,
    {
      buffers: [random.bytes(n * width), random.bytes(n * width)],
      written: [1],
      last: [0, 1],
      call: (kernels, at) => {
        const [src, dst] = at as [number, number];
        for (let i = 1; i < cuts.length; i++) {
          const code = kernels.joinStreams(src, n, width, dst, cuts[i - 1] as number, cuts[i] as number);
          if (code !== DONE) return code;
        }
        return DONE;
      },
    },
    random,
  );
}
