/**
 * The scalar kernels: plain TypeScript over the same memory and states as the WebAssembly ones, and their
 * specification. The fallback where the engine has no SIMD, and what the fuzz test compares with. They are not fast.
 * Input is taken up when all of it has arrived; until then they return NEED.
 */
import { DONE, E_LENGTH, type Kernels } from '../kernels.ts';
import { bitPackedLevels } from './bit-packed.ts';
import { copyBits, countOnes, spread, spreadBits, spreadOffsets } from './bitmap.ts';
import { int96ToNanos, reverseDecimal, widenDecimal4, widenDecimal8 } from './decimals.ts';
import { delta } from './delta.ts';
import { gatherBytes, gatherOffsets, gatherWide } from './gather.ts';
import { flushBits, hybrid, levelBitmap, putDict4, putDict8, putU8, putU16, putU32 } from './hybrid.ts';
import { lz4 } from './lz4.ts';
import { checkNesting, countRows, countSlots, findRow, nestedOffsets, nestedValidity } from './nested.ts';
import { snappy } from './snappy.ts';
import { deltaBytes, lengthsToOffsets, lengthsTotal, plainBytes } from './strings.ts';
import { utf8, utf8Starts } from './utf8.ts';
import { MemoryView } from './view.ts';

export function scalarKernels(memory: WebAssembly.Memory): Kernels {
  const held = new MemoryView(memory);
  const view = (): MemoryView => held.fresh();
  return {
    snappy: (state, mark) => snappy(view(), state, mark),
    lz4: (state, mark) => lz4(view(), state, mark),
    hybridU32: (state, mark) => hybrid(view(), state, mark, 4, 2 ** 32, putU32),
    hybridU16: (state, mark) => hybrid(view(), state, mark, 2, 2 ** 16, putU16),
    hybridU8: (state, mark) => hybrid(view(), state, mark, 1, 2 ** 8, putU8),
    hybridDict4: (state, mark) => hybrid(view(), state, mark, 4, 2 ** 32, putDict4),
    hybridDict8: (state, mark) => hybrid(view(), state, mark, 8, 2 ** 32, putDict8),
    levelBitmap: (state, mark) => levelBitmap(view(), state, mark),
    flushBits: (state) => flushBits(view(), state),
    plainBytes: (state, mark) => plainBytes(view(), state, mark),
    copyBits: (src, srcBit, dst, dstBit, n) => copyBits(view(), src, srcBit, dst, dstBit, n),
    countOnes: (bitmap, n) => countOnes(view(), bitmap, n),
    spread1: (at, bitmap, n, have) => spread(view(), at, bitmap, n, have, 1),
    spread2: (at, bitmap, n, have) => spread(view(), at, bitmap, n, have, 2),
    spread4: (at, bitmap, n, have) => spread(view(), at, bitmap, n, have, 4),
    spread8: (at, bitmap, n, have) => spread(view(), at, bitmap, n, have, 8),
    spread16: (at, bitmap, n, have) => spread(view(), at, bitmap, n, have, 16),
    spreadWide: (at, bitmap, n, have, width) => spread(view(), at, bitmap, n, have, width),
    spreadBits: (at, bitmap, n, have) => spreadBits(view(), at, bitmap, n, have),
    spreadOffsets: (at, bitmap, n, have) => spreadOffsets(view(), at, bitmap, n, have),
    gatherWide: (indices, n, dictionary, width, out) => gatherWide(view(), indices, n, dictionary, width, out),
    gatherOffsets: (indices, n, offsets, slot, start) => gatherOffsets(view(), indices, n, offsets, slot, start),
    gatherBytes: (indices, n, offsets, data, out) => gatherBytes(view(), indices, n, offsets, data, out),
    utf8: (src, end) => utf8(view(), src, end),
    utf8Starts: (offsets, n, base, dataEnd) => utf8Starts(view(), offsets, n, base, dataEnd),
    delta32: (state, mark) => delta(view(), state, mark, 32),
    delta64: (state, mark) => delta(view(), state, mark, 64),
    lengthsToOffsets: (lengths, n, start, limit) => lengthsToOffsets(view(), lengths, n, start, limit),
    lengthsTotal: (lengths, n) => lengthsTotal(view(), lengths, n),
    deltaBytes: (state, mark) => deltaBytes(view(), state, mark),
    joinStreams: (src, n, width, dst, from, to) => joinStreams(view(), src, n, width, dst, from, to),
    countRows: (rep, n) => countRows(view(), rep, n),
    findRow: (rep, n, k) => findRow(view(), rep, n, k),
    countSlots: (rep, def, n, repMax, defMin) => countSlots(view(), rep, def, n, repMax, defMin),
    checkNesting: (rep, def, n, least, before) => checkNesting(view(), rep, def, n, least, before),
    nestedValidity: (rep, def, n, repMax, defMin, defValid, bitmap) =>
      nestedValidity(view(), rep, def, n, repMax, defMin, defValid, bitmap),
    nestedOffsets: (rep, def, n, repMax, defMin, repElement, defElement, offsets) =>
      nestedOffsets(view(), rep, def, n, repMax, defMin, repElement, defElement, offsets),
    bitPackedLevels: (src, srcEnd, width, n, dst, limit) => bitPackedLevels(view(), src, srcEnd, width, n, dst, limit),
    widenDecimal4: (src, n, dst) => widenDecimal4(view(), src, n, dst),
    widenDecimal8: (src, n, dst) => widenDecimal8(view(), src, n, dst),
    reverseDecimal: (src, n, width, dst) => reverseDecimal(view(), src, n, width, dst),
    int96ToNanos: (src, n, dst) => int96ToNanos(view(), src, n, dst),
    copy: (dst, src, n) => {
      view().bytes.copyWithin(dst, src, src + n);
    },
  };
}

/** BYTE_STREAM_SPLIT (Parquet "Encodings", 9): byte k of value i is in stream k. */
function joinStreams(
  { bytes }: MemoryView,
  src: number,
  n: number,
  width: number,
  dst: number,
  from: number,
  to: number,
): number {
  if (from > to || to > n) return E_LENGTH;
  for (let i = from; i < to; i++) {
    for (let k = 0; k < width; k++) bytes[dst + i * width + k] = bytes[src + k * n + i]!;
  }
  return DONE;
}
