/**
 * The delta encodings and the split streams (parquet-format, Encodings.md, DELTA_BINARY_PACKED = 5,
 * DELTA_LENGTH_BYTE_ARRAY = 6, DELTA_BYTE_ARRAY = 7, BYTE_STREAM_SPLIT = 9), in exact arithmetic and in any shape of
 * blocks that the grammar allows:
 *   delta  = varint block-size, varint miniblocks of a block, varint count, zigzag first value, { block }
 *   block  = zigzag minimum delta, a byte of bit width for each miniblock, { miniblock }
 * Miniblocks behind the last value are not written, those widths are 0 unless a shape says otherwise.
 */
import { join } from './value.ts';

export interface DeltaShape {
  /** Values of a block: a multiple of 128. */
  readonly blockSize: number;
  /** Miniblocks of a block; each has a multiple of 32 values. */
  readonly miniblocks: number;
  /** Bit widths larger than needed by so much, as far as the type allows. */
  readonly spareBits?: number;
  /** Width written for miniblocks behind the last value, which readers must not look at. */
  readonly idleWidth?: number;
}

export const DELTA_SHAPES: readonly DeltaShape[] = [
  { blockSize: 128, miniblocks: 4 },
  { blockSize: 128, miniblocks: 1 },
  { blockSize: 128, miniblocks: 2, spareBits: 3 },
  { blockSize: 256, miniblocks: 8, idleWidth: 200 },
  { blockSize: 1024, miniblocks: 4 },
  { blockSize: 384, miniblocks: 3, idleWidth: 7 },
];

/** Integers of 32 or 64 bits; deltas wrap around. */
export function encodeDelta(
  values: readonly bigint[],
  bits: 32 | 64,
  { blockSize, miniblocks, spareBits = 0, idleWidth = 0 }: DeltaShape = DELTA_SHAPES[0]!,
): Uint8Array {
  const parts = [bigVarint(BigInt(blockSize)), bigVarint(BigInt(miniblocks)), bigVarint(BigInt(values.length))];
  parts.push(zigzag(values[0] ?? 0n));
  const perMiniblock = blockSize / miniblocks;
  for (let at = 1; at < values.length; at += blockSize) {
    const deltas: bigint[] = [];
    for (let i = at; i < Math.min(values.length, at + blockSize); i++) {
      deltas.push(BigInt.asIntN(bits, values[i]! - values[i - 1]!));
    }
    let least = deltas[0]!;
    for (const delta of deltas) if (delta < least) least = delta;
    const widths = new Uint8Array(miniblocks).fill(idleWidth);
    const packed: Uint8Array[] = [];
    for (let m = 0; m * perMiniblock < deltas.length; m++) {
      const own = deltas.slice(m * perMiniblock, (m + 1) * perMiniblock).map((delta) => delta - least);
      let used = 0n;
      for (const delta of own) used |= delta;
      const width = Math.min(bits, (used === 0n ? 0 : used.toString(2).length) + spareBits);
      widths[m] = width;
      packed.push(packBits(own, perMiniblock, width));
    }
    parts.push(zigzag(least), widths, ...packed);
  }
  return join(parts);
}

export function encodeDeltaLengths(values: readonly Uint8Array[], shape?: DeltaShape): Uint8Array {
  const lengths = values.map((value) => BigInt(value.length));
  return join([encodeDelta(lengths, 32, shape), ...values]);
}

export function encodeDeltaBytes(values: readonly Uint8Array[], shape?: DeltaShape): Uint8Array {
  const prefixes = values.map((value, i) => (i === 0 ? 0 : sharedPrefix(values[i - 1]!, value)));
  const suffixes = values.map((value, i) => value.subarray(prefixes[i]!));
  return join([encodeDelta(prefixes.map(BigInt), 32, shape), encodeDeltaLengths(suffixes, shape)]);
}

function sharedPrefix(a: Uint8Array, b: Uint8Array): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}

/** The k-th bytes of all values, for each k; values without a width, which can't be split, stay as they are. */
export function splitStreams(plain: Uint8Array, width: number): Uint8Array {
  if (width === 0) return plain;
  const count = plain.length / width;
  const bytes = new Uint8Array(plain.length);
  for (let i = 0; i < count; i++) for (let k = 0; k < width; k++) bytes[k * count + i] = plain[i * width + k]!;
  return bytes;
}

/** `count` values of `width` bits, least significant bit first; those that are missing are 0. */
function packBits(values: readonly bigint[], count: number, width: number): Uint8Array {
  const bytes = new Uint8Array((count * width) / 8);
  for (const [i, value] of values.entries()) {
    let rest = value;
    for (let k = i * width; rest > 0n; k++, rest >>= 1n) if (rest & 1n) bytes[k >>> 3]! |= 1 << (k & 7);
  }
  return bytes;
}

function zigzag(value: bigint): Uint8Array {
  return bigVarint(BigInt.asUintN(64, (value << 1n) ^ (value < 0n ? -1n : 0n)));
}

export function bigVarint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  for (; value >= 128n; value >>= 7n) bytes.push(Number(value & 127n) | 128);
  bytes.push(Number(value));
  return Uint8Array.from(bytes);
}
