/** Encoders for the kernel fuzz: valid streams of every shape, and ways to break them. */
import type { Random } from './kernel-fuzz.ts';

export function pushVarint(out: number[], value: number | bigint): void {
  let rest = BigInt(value);
  do {
    const low = Number(rest & 127n);
    rest >>= 7n;
    out.push(rest > 0n ? low | 128 : low);
  } while (rest > 0n);
}

function zigzag(value: bigint): bigint {
  const x = BigInt.asIntN(64, value);
  return BigInt.asUintN(64, (x << 1n) ^ (x >> 63n));
}

/** One to three small damages: a byte, a bit, a cut, inserted bytes, an extreme byte near the front. */
export function damage(bytes: Uint8Array, random: Random): Uint8Array {
  let result = Uint8Array.from(bytes);
  for (let k = random.int(1, 3); k > 0; k--) {
    const at = random.int(0, Math.max(0, result.length - 1));
    const kind = random.int(0, 4);
    if (kind === 2) result = result.slice(0, at);
    else if (kind === 3) {
      result = Uint8Array.from([...result.slice(0, at), ...random.bytes(random.int(1, 8)), ...result.slice(at)]);
    } else if (result.length === 0) continue;
    else if (kind === 0) result[at] = random.int(0, 255);
    else if (kind === 1) result[at] = (result[at] as number) ^ (1 << random.int(0, 7));
    else result[random.int(0, Math.min(8, result.length - 1))] = random.pick([0, 255, 128, 127, random.int(0, 255)]);
  }
  return result;
}

function pushLiteral(body: number[], length: number, random: Random): void {
  const minusOne = length - 1;
  if (minusOne < 60 && random.chance(0.95)) body.push(minusOne << 2);
  else {
    const bytes =
      minusOne < 256 && random.chance(0.8) ? 1 : minusOne < 65536 && random.chance(0.8) ? 2 : random.int(3, 4);
    body.push((59 + bytes) << 2);
    for (let k = 0; k < bytes; k++) body.push((minusOne >>> (8 * k)) & 255);
  }
  for (let k = 0; k < length; k++) body.push(random.int(97, 122));
}

/** A Snappy block and the size it declares. */
export function makeSnappy(random: Random): { src: Uint8Array; size: number } {
  const body: number[] = [];
  let made = 0;
  for (let n = random.int(0, random.chance(0.2) ? 400 : 40); n > 0; n--) {
    if (made === 0 || random.chance(0.45)) {
      const long = random.chance(0.1) ? random.int(200, 3000) : 1;
      const length = random.pick([random.int(1, 6), random.int(1, 6), random.int(1, 20), random.int(50, 70), long]);
      pushLiteral(body, length, random);
      made += length;
      continue;
    }
    const far = random.pick([random.int(1, 20), random.int(1, 70), random.int(1, 2047), random.int(1, 65535), made]);
    const offset = Math.min(made, far);
    const length = random.pick([random.int(4, 11), random.int(1, 64), 64, random.int(4, 16)]);
    if (offset < 2048 && length >= 4 && length <= 11 && random.chance(0.8)) {
      body.push(1 | ((length - 4) << 2) | ((offset >> 8) << 5), offset & 255);
    } else if (offset < 65536 && random.chance(0.9)) {
      body.push(2 | ((length - 1) << 2), offset & 255, offset >> 8);
    } else {
      body.push(3 | ((length - 1) << 2), offset & 255, (offset >> 8) & 255, (offset >>> 16) & 255, 0);
    }
    made += length;
  }
  const size = random.chance(0.1) ? random.int(0, made) : made; // sometimes it makes more than it declares
  const head: number[] = [];
  pushVarint(head, size);
  return { src: Uint8Array.from([...head, ...body]), size };
}

/** Runs of at least n values below `limit`; the last may claim more values, and its group may be cut short. */
export function makeHybrid(width: number, n: number, limit: number, random: Random): Uint8Array {
  const out: number[] = [];
  const highest = Math.min(limit, 2 ** width) - 1;
  const value = (): number => Math.min(highest, Math.floor(random.next() * (highest + 1)));
  for (let left = n; left > 0; ) {
    if (random.chance(0.5)) {
      const run = random.pick([random.int(1, 10), random.int(1, 40), random.int(8, 1000)]);
      pushVarint(out, 2n * BigInt(random.chance(0.1) ? run + 2 ** random.int(10, 30) : run));
      const repeated = value();
      for (let k = 0; k < (width + 7) >> 3; k++) out.push(Math.floor(repeated / 2 ** (8 * k)) & 255);
      left -= run;
    } else {
      const groups = random.pick([1, random.int(1, 4), random.int(1, 150)]);
      pushVarint(out, groups * 2 + 1);
      const count = random.chance(0.5) ? Math.min(8 * groups, left) : 8 * groups; // else padding
      const values = Array.from({ length: count }, value);
      out.push(...packBits(values.map(BigInt), width, groups * width));
      left -= 8 * groups;
    }
  }
  if (random.chance(0.15)) out.length -= Math.min(out.length, random.int(0, width));
  return Uint8Array.from(out);
}

function packBits(values: bigint[], width: number, size: number): Uint8Array {
  const packed = new Uint8Array(size);
  values.forEach((value, i) => {
    for (let b = 0; b < width; b++) {
      const bit = i * width + b;
      if ((value >> BigInt(b)) & 1n) packed[bit >> 3] = (packed[bit >> 3] as number) | (1 << (bit & 7));
    }
  });
  return packed;
}

/** DELTA_BINARY_PACKED of n values of `bits` bits. */
export function makeDelta(n: number, bits: 32 | 64, random: Random): Uint8Array {
  const wrap = (value: bigint): bigint => BigInt.asIntN(bits, value);
  // some writers take differences of 32-bit values in 64 bits
  const deltaBits = random.chance(0.3) ? 64 : bits;
  const minis = random.pick([1, 2, 4, 8]);
  const perMini = random.pick([32, 64, 128].filter((count) => (count * minis) % 128 === 0));
  const mode = random.int(0, 4);
  const shift = BigInt(random.int(0, bits - 1)); // every width comes up
  const anything = (): bigint => wrap((BigInt(random.int(0, 2 ** 32 - 1)) << 32n) | BigInt(random.int(0, 2 ** 32 - 1)));
  const values: bigint[] = [];
  for (let i = 0; i < n; i++) {
    const before = values[i - 1] ?? BigInt(random.int(-1000, 1000));
    const step = mode === 1 ? 7n : BigInt(random.int(-(2 ** random.int(0, 30)), 2 ** random.int(0, 20)));
    if (mode === 0) values.push(anything() >> shift);
    else values.push(wrap(before + step));
  }
  const out: number[] = [];
  pushVarint(out, perMini * minis);
  pushVarint(out, minis);
  pushVarint(out, n);
  pushVarint(out, zigzag(values[0] ?? 0n));
  for (let i = 1; i < n; i += perMini * minis) {
    const deltas = values.slice(i, i + perMini * minis).map((value, k) => {
      return BigInt.asIntN(deltaBits, value - (values[i + k - 1] as bigint));
    });
    let minimum = deltas[0] as bigint;
    for (const delta of deltas) if (delta < minimum) minimum = delta;
    pushVarint(out, zigzag(minimum));
    const widths: number[] = [];
    const body: number[] = [];
    for (let m = 0; m < minis; m++) {
      const stored = deltas
        .slice(m * perMini, (m + 1) * perMini)
        .map((delta) => BigInt.asUintN(deltaBits, delta - minimum));
      const needed = stored.reduce((width, x) => Math.max(width, x === 0n ? 0 : x.toString(2).length), 0);
      const width = Math.min(deltaBits, needed + (random.chance(0.1) ? random.int(0, 3) : 0));
      widths.push(stored.length === 0 && random.chance(0.5) ? random.int(0, deltaBits) : width);
      if (stored.length > 0) body.push(...packBits(stored, width, (perMini * width) / 8));
    }
    out.push(...widths, ...body);
  }
  if (random.chance(0.1)) out.length -= Math.min(out.length, random.int(0, 20));
  return Uint8Array.from(out);
}

/** A bitmap of n bits with its number of ones; runs of equal bits and mixed stretches. Whole 8-byte words. */
export function makeBitmap(n: number, random: Random): { bits: Uint8Array; ones: number } {
  const bits = new Uint8Array(8 * Math.ceil(n / 64));
  const share = random.pick([0, 0.02, 0.5, 0.98, 1]);
  let ones = 0;
  let bit = random.chance(share);
  for (let i = 0; i < n; i++) {
    if (n < 40 || random.chance(0.1)) bit = random.chance(share);
    if (!bit) continue;
    bits[i >> 3] = (bits[i >> 3] as number) | (1 << (i & 7));
    ones++;
  }
  return { bits, ones };
}

export function makeUtf8(count: number, random: Random): Uint8Array {
  const ascii = random.chance(0.2);
  const points = Array.from({ length: count }, () => {
    const size = ascii ? 0 : random.int(0, 3);
    if (size === 0) return random.int(0, 0x7f);
    if (size === 1) return random.int(0x80, 0x7ff);
    if (size === 2) return random.pick([random.int(0x800, 0xd7ff), random.int(0xe000, 0xffff)]);
    return random.int(0x10000, 0x10ffff);
  });
  return new TextEncoder().encode(String.fromCodePoint(...points));
}

/** Little-endian u32s. */
export function u32Bytes(values: Iterable<number>): Uint8Array {
  return new Uint8Array(Uint32Array.from(values).buffer);
}
