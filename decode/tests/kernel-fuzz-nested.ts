/** One random case of each kernel for nested columns, BIT_PACKED levels, decimals and INT96. */
import type { Kernels } from '../kernels/kernels.ts';
import { compareCall, type Pair, type Random } from './kernel-fuzz.ts';
import { u32Bytes } from './kernel-fuzz-input.ts';

interface Levels {
  n: number;
  rep: Uint8Array;
  def: Uint8Array;
  repMax: number;
  defMax: number;
}

/** Entries in stretches: rows of one length, whole blocks alike, levels as lists make them, anything at all. */
function makeLevels(random: Random): Levels {
  const n = random.pick([random.int(0, 20), random.int(0, 300), random.int(0, 3000)]);
  const [rep, def] = [new Uint8Array(n), new Uint8Array(n)];
  const wild = random.chance(0.05);
  const [repMax, defMax] = wild ? [255, 255] : [random.int(0, 3), random.int(0, 5)];
  for (let i = 0; i < n; ) {
    const end = Math.min(n, i + random.pick([random.int(1, 20), random.int(1, 200), random.int(64, 1000)]));
    const mode = random.int(0, 4);
    const length = random.pick([1, random.int(1, 8), random.int(1, 300)]);
    const full = random.pick([1, 0.5, random.next()]);
    for (let at = 0; i < end; i++, at++) {
      if (mode === 0) [rep[i], def[i]] = [at % length === 0 ? 0 : repMax, defMax];
      else if (mode === 1) [rep[i], def[i]] = [0, random.chance(full) ? defMax : random.int(0, defMax)];
      else if (mode === 2) [rep[i], def[i]] = [random.int(0, repMax), random.int(0, defMax)];
      else if (mode === 3) [rep[i], def[i]] = [repMax, random.chance(full) ? defMax : 0];
      else {
        rep[i] = random.chance(1 / length) ? random.int(0, repMax) : repMax;
        def[i] = rep[i] === repMax || random.chance(full) ? defMax : random.int(0, defMax);
      }
    }
  }
  if (n > 0 && random.chance(0.8)) [rep[0], def[0]] = [0, defMax]; // else elements may come before a slot
  return { n, rep, def, repMax, defMax };
}

export function nested(pair: Pair, random: Random): void {
  const { n, rep, def, repMax, defMax } = makeLevels(random);
  const flat = random.chance(0.2);
  const repBound = random.pick([0, random.int(0, Math.min(255, repMax + 1))]);
  const [defMin, defValid, defElement] = [0, 0, 0].map(() => random.int(0, Math.min(255, defMax + 1))) as [
    number,
    number,
    number,
  ];
  const repElement = random.int(repBound, Math.min(255, repMax + 1));
  let slots = 0;
  for (let i = 0; i < n; i++) if ((flat || (rep[i] as number) <= repBound) && (def[i] as number) >= defMin) slots++;
  const compare = (out: number, call: (kernels: Kernels, rep: number, def: number, out: number) => number): void => {
    compareCall(
      pair,
      {
        buffers: [rep, def, random.bytes(out)],
        written: [2],
        last: out > 0 ? [0, 1, 2] : [0, 1],
        call: (kernels, at) => call(kernels, flat ? 0 : (at[0] as number), at[1] as number, at[2] as number),
      },
      random,
    );
  };
  compare(0, (kernels, r) => kernels.countRows(r, n));
  const k = random.pick([0, random.int(0, 5), random.int(0, n), random.int(0, 2 ** 31 - 1)]);
  compare(0, (kernels, r) => kernels.findRow(r, n, k));
  compare(0, (kernels, r, d) => kernels.countSlots(r, d, n, repBound, defMin));
  compare(8 * Math.ceil(slots / 64), (kernels, r, d, out) =>
    kernels.nestedValidity(r, d, n, repBound, defMin, defValid, out),
  );
  compare(4 * (slots + 1), (kernels, r, d, out) =>
    kernels.nestedOffsets(r, d, n, repBound, defMin, repElement, defElement, out),
  );
}

export function nesting(pair: Pair, random: Random): void {
  const { n, rep, def, repMax, defMax } = makeLevels(random);
  const least = Uint8Array.from({ length: 256 }, () => (random.chance(0.9) ? 0 : random.int(0, defMax)));
  least[0] = random.chance(0.9) ? 0 : (least[0] as number);
  least[repMax] = random.int(0, defMax);
  if (random.chance(0.7)) def.fill(defMax, 0, random.int(0, n)); // so that the first contradiction comes late, or never
  const before = random.pick([255, random.int(0, defMax)]);
  compareCall(
    pair,
    {
      buffers: [rep, def, least],
      written: [],
      last: [0, 1, 2],
      call: (kernels, at) => kernels.checkNesting(at[0] as number, at[1] as number, n, at[2] as number, before),
    },
    random,
  );
}

export function bitPacked(pair: Pair, random: Random): void {
  const width = random.int(0, random.chance(0.05) ? 9 : 8);
  const n = random.pick([random.int(0, 20), random.int(0, 300), random.int(0, 2000)]);
  const src = random.bytes(Math.max(0, Math.ceil((n * width) / 8) + random.pick([0, random.int(0, 40), -1])));
  const highest = random.int(0, 2 ** width); // mostly small values, so that limits can hold
  if (random.chance(0.5)) src.fill(random.pick([0, 255]), 0, random.int(0, src.length));
  const limit = random.pick([2 ** width, 300, highest]);
  compareCall(
    pair,
    {
      buffers: [src, random.bytes(n)],
      written: [1],
      last: [0, 1],
      call: (kernels, at) => {
        const [from, to] = at as [number, number];
        return kernels.bitPackedLevels(from, from + src.length, width, n, to, limit);
      },
    },
    random,
  );
}

export function lengthsTotal(pair: Pair, random: Random): void {
  const n = random.pick([random.int(0, 10), random.int(0, 300)]);
  const most = random.pick([100, Math.floor((2 ** 32 - 1) / Math.max(n, 1)), 2 ** 31 - 1]);
  const lengths = Array.from({ length: n }, () => (random.chance(0.001) ? -1 : random.int(0, most)));
  compareCall(
    pair,
    {
      buffers: [u32Bytes(lengths)],
      written: [],
      last: [0],
      call: (kernels, [at]) => kernels.lengthsTotal(at as number, n),
    },
    random,
  );
}

/** `width` bytes a value at the start of the room of the output, or in a buffer of their own. */
function convert(
  pair: Pair,
  random: Random,
  [src, n, size]: [Uint8Array, number, number],
  call: (kernels: Kernels, from: number, to: number) => number | undefined,
): void {
  const room = random.bytes(n * size);
  compareCall(
    pair,
    {
      buffers: [src, room],
      written: [1],
      last: [0, 1],
      call: (kernels, at) => call(kernels, at[0] as number, at[1] as number),
    },
    random,
  );
  const shared = random.bytes(Math.max(src.length, n * size));
  shared.set(src);
  compareCall(
    pair,
    {
      // what INT96 leaves of its source behind the output is not compared: it does not change
      buffers: [shared],
      written: [0],
      last: [0],
      call: (kernels, at) => call(kernels, at[0] as number, at[0] as number),
    },
    random,
  );
}

export function decimals(pair: Pair, random: Random): void {
  const n = random.pick([random.int(0, 20), random.int(0, 200)]);
  convert(pair, random, [random.bytes(4 * n), n, 16], (kernels, from, to) => {
    kernels.widenDecimal4(from, n, to);
    return undefined;
  });
  convert(pair, random, [random.bytes(8 * n), n, 16], (kernels, from, to) => {
    kernels.widenDecimal8(from, n, to);
    return undefined;
  });
  const width = random.int(1, 16);
  convert(pair, random, [random.bytes(width * n), n, 16], (kernels, from, to) => {
    kernels.reverseDecimal(from, n, width, to);
    return undefined;
  });
}

const EPOCH_JULIAN_DAY = 2440588;

export function int96(pair: Pair, random: Random): void {
  const n = random.pick([random.int(0, 20), random.int(0, 200)]);
  const src = random.bytes(12 * n);
  const view = new DataView(src.buffer);
  const edge = random.chance(0.4); // one value near the ends of 64 bits, the others of our time
  const odd = random.int(0, 3 * n);
  for (let i = 0; i < n; i++) {
    let nanos = BigInt(random.int(0, 86_400_000)) * 1_000_000n;
    let days = random.int(-100_000, 100_000);
    if (edge && i === odd) {
      if (random.chance(0.5)) nanos = (BigInt(random.int(-(2 ** 31), 2 ** 31)) << 32n) + BigInt(random.int(-9, 9));
      days = random.pick([
        106751,
        -106752,
        -106751,
        106752,
        random.int(-220_000, 220_000),
        random.int(-(2 ** 30), 2 ** 30),
      ]);
      const rest = random.pick([2n ** 63n, -(2n ** 63n)]) - BigInt(days) * 86_400_000_000_000n;
      if (random.chance(0.5) && BigInt.asIntN(62, rest) === rest) nanos = rest + BigInt(random.int(-2, 2));
    }
    view.setBigInt64(12 * i, nanos, true);
    view.setInt32(12 * i + 8, EPOCH_JULIAN_DAY + days, true);
  }
  convert(pair, random, [src, n, 8], (kernels, from, to) => kernels.int96ToNanos(from, n, to));
}
