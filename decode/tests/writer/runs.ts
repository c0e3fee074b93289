/**
 * The RLE / bit-packed hybrid (parquet-format, Encodings.md, RLE = 3), written in any cut of runs that the grammar
 * allows:
 *   run = varint header, then header & 1 ? (header >> 1) groups of 8 bit-packed values : one value, (header >> 1) times
 */
import { join } from './value.ts';

export type RunStyle =
  | 'auto' // stretches of 8 and more as RLE, the rest packed: what writers do
  | 'rle' // RLE only
  | 'packed' // one bit-packed run
  | 'mixed'; // short and long runs of both kinds in turn, empty ones too

export function encodeRuns(values: ArrayLike<number>, width: number, style: RunStyle = 'auto'): Uint8Array {
  const count = values.length;
  if (style === 'packed') return count === 0 ? new Uint8Array(0) : packedRun(values, 0, count, width);
  const parts: Uint8Array[] = [];
  let packedFrom = 0;
  let turn = 0;
  const flush = (to: number): void => {
    if (to > packedFrom) parts.push(packedRun(values, packedFrom, to, width));
  };
  for (let at = 0; at < count; ) {
    let end = at + 1;
    while (end < count && values[end] === values[at]) end++;
    if (style === 'mixed' && at === packedFrom) {
      turn++;
      if (turn % 5 === 0) parts.push(varint(0), new Uint8Array(Math.ceil(width / 8))); // an RLE run of nothing
      if (turn % 7 === 0) parts.push(varint(1)); // a packed run of nothing
      if (turn % 2 === 0) {
        at = Math.min(count, at + 8 * (1 + (turn % 11)));
        flush(at);
        packedFrom = at;
        continue;
      }
      end = Math.min(end, at + 1 + ((turn * 37) % 300));
    }
    const alone = style !== 'auto' || end - at >= 8;
    if (alone && (at - packedFrom) % 8 === 0) {
      flush(at);
      parts.push(rleRun(values[at]!, end - at, width));
      at = end;
      packedFrom = at;
    } else at++;
  }
  flush(count);
  return join(parts);
}

export function rleRun(value: number, count: number, width: number): Uint8Array {
  const bytes = new Uint8Array(Math.ceil(width / 8));
  for (let k = 0; k < bytes.length; k++) bytes[k] = Math.floor(value / 2 ** (8 * k)) & 255;
  return join([varint(count * 2), bytes]);
}

/** Values [from, to), the last group filled up with zeros. */
export function packedRun(values: ArrayLike<number>, from: number, to: number, width: number): Uint8Array {
  const groups = Math.ceil((to - from) / 8);
  const bytes = new Uint8Array(groups * width);
  for (let i = from, bit = 0; i < to; i++, bit += width) {
    for (let k = 0; k < width; k++) {
      if (Math.floor(values[i]! / 2 ** k) % 2 === 1) bytes[(bit + k) >>> 3]! |= 1 << ((bit + k) & 7);
    }
  }
  return join([varint(groups * 2 + 1), bytes]);
}

export function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) | 128);
  bytes.push(value);
  return Uint8Array.from(bytes);
}

/** Bits that indices below `count` need. */
export function bitWidth(count: number): number {
  return count <= 1 ? 0 : 32 - Math.clz32(count - 1);
}

/** The deprecated BIT_PACKED encoding of levels: from the most significant bit of each byte down, no length. */
export function packLevels(levels: ArrayLike<number>, width: number): Uint8Array {
  const bytes = new Uint8Array(Math.ceil((levels.length * width) / 8));
  for (let i = 0; i < levels.length; i++) {
    for (let k = 0; k < width; k++) {
      const bit = i * width + k;
      if ((levels[i]! >>> (width - 1 - k)) & 1) bytes[bit >>> 3]! |= 128 >>> (bit & 7);
    }
  }
  return bytes;
}
