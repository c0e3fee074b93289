/** Seeded input for the kernel benchmark: streams with the statistics that decide a kernel's speed. */
import { Random } from '../tests/kernel-fuzz.ts';
import { pushVarint } from '../tests/kernel-fuzz-input.ts';

export const random = new Random(7);

/** Tokens to about `size` bytes: literals and copies of the given lengths, a copy with `share` (1: strictly in turn). */
export function snappyTokens(size: number, literal: [number, number], copy: [number, number], share: number) {
  const body: number[] = [];
  let made = 0;
  let copied = true;
  while (made < size) {
    const asCopy: boolean = made > 64 && (share === 1 ? !copied : random.chance(share));
    copied = asCopy;
    const length = random.int(...(asCopy ? copy : literal));
    if (asCopy) {
      const offset = Math.min(made, random.chance(0.4) ? random.int(1, 2047) : random.int(1, 32000));
      if (length <= 11 && offset < 2048) body.push(1 | ((length - 4) << 2) | ((offset >> 8) << 5), offset & 255);
      else body.push(2 | ((length - 1) << 2), offset & 255, offset >> 8);
    } else {
      body.push((length - 1) << 2, ...random.bytes(length));
    }
    made += length;
  }
  const head: number[] = [];
  pushVarint(head, made);
  return { block: Uint8Array.from([...head, ...body]), size: made };
}

/** LZ4 sequences of literals and a match, of the given lengths, to about `size` bytes. */
export function lz4Sequences(size: number, literal: [number, number], match: [number, number]) {
  const block: number[] = [];
  const sequence = (literals: number, length: number): void => {
    block.push((Math.min(15, literals) << 4) | Math.min(15, length));
    if (literals >= 15) block.push(literals - 15);
    block.push(...random.bytes(literals));
  };
  let made = 0;
  while (made < size) {
    const literals = made === 0 ? 8 : random.int(...literal);
    const length = random.int(...match);
    sequence(literals, length - 4);
    const offset = Math.min(made + literals, random.chance(0.4) ? random.int(8, 2047) : random.int(8, 65535));
    block.push(offset & 255, offset >> 8);
    if (length >= 19) block.push(length - 19);
    made += literals + length;
  }
  sequence(8, 0);
  return { block: Uint8Array.from(block), size: made + 8 };
}

/** n values in bit-packed runs of `run` (a multiple of 8). */
export function packedRuns(n: number, width: number, run: number, value: () => number): Uint8Array {
  const out: number[] = [];
  for (let left = n; left > 0; left -= run) {
    pushVarint(out, (run / 8) * 2 + 1);
    const packed = new Uint8Array((run * width) / 8);
    for (let i = 0; i < run; i++) {
      const v = value();
      for (let b = 0; b < width; b++) {
        const bit = i * width + b;
        if ((v >> b) & 1) packed[bit >> 3] = (packed[bit >> 3] as number) | (1 << (bit & 7));
      }
    }
    for (const byte of packed) out.push(byte);
  }
  return Uint8Array.from(out);
}

/** n values in RLE runs of `run`. */
export function repeatedRuns(n: number, width: number, run: number, value: () => number): Uint8Array {
  const out: number[] = [];
  for (let left = n; left > 0; left -= run) {
    pushVarint(out, Math.min(run, left) * 2);
    const v = value();
    for (let k = 0; k < (width + 7) >> 3; k++) out.push((v >> (8 * k)) & 255);
  }
  return Uint8Array.from(out);
}

export function bitmap(n: number, share: number): { bits: Uint8Array; ones: number } {
  const bits = new Uint8Array(n / 8 + 8);
  let ones = 0;
  for (let i = 0; i < n; i++) {
    if (!random.chance(share)) continue;
    bits[i >> 3] = (bits[i >> 3] as number) | (1 << (i & 7));
    ones++;
  }
  return { bits, ones };
}

/** PLAIN strings of lower-case letters. */
export function plainStrings(n: number, [low, high]: [number, number]): { src: Uint8Array; bytes: number } {
  const out: number[] = [];
  let bytes = 0;
  for (let i = 0; i < n; i++) {
    const length = random.int(low, high);
    out.push(length & 255, length >> 8, 0, 0);
    for (let k = 0; k < length; k++) out.push(random.int(97, 122));
    bytes += length;
  }
  return { src: Uint8Array.from(out), bytes };
}

/** n values (n = 1 modulo 128) in blocks of 128 with 4 miniblocks of one width. */
export function deltaBlocks(n: number, width: number): Uint8Array {
  const out: number[] = [];
  for (const value of [128, 4, n, 0]) pushVarint(out, value);
  for (let i = 1; i < n; i += 128) {
    out.push(1, width, width, width, width);
    for (let k = 0; k < 16 * width; k++) out.push(random.int(0, 255));
  }
  return Uint8Array.from(out);
}
