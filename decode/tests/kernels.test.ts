/** Every kernel on literal vectors, in both implementations. */
import assert from 'node:assert/strict';
import {
  BYTES,
  DELTA,
  DELTA_BYTES,
  DONE,
  E_HEADER,
  E_INDEX,
  E_LENGTH,
  E_OFFSET,
  E_TRUNC,
  E_UTF8,
  E_VALUE,
  E_VARINT,
  E_WIDTH,
  FULL,
  HYBRID,
  LEVELS,
  NEED,
  SNAPPY,
} from '../kernels/kernels.ts';
import { DICTIONARY, each, OUT, SRC, text } from './kernel-scene.ts';

each('snappy: literals and copies, with codes for what is wrong', (s) => {
  const run = (block: number[], size: number): number => {
    s.put(SRC, block);
    s.start({
      [SNAPPY.ip]: SRC,
      [SNAPPY.srcEnd]: SRC + block.length,
      [SNAPPY.dst]: OUT,
      [SNAPPY.op]: OUT,
      [SNAPPY.dstEnd]: OUT + size,
    });
    return s.kernels.snappy(s.state, SRC + block.length);
  };
  const block = [10, 2 << 2, ...text('abc'), 1 | (3 << 2), 3]; // "abc", then 7 bytes from 3 back
  assert.equal(run(block, 10), DONE);
  assert.deepEqual(s.out(10), text('abcabcabca'));
  assert.equal(s.word(SNAPPY.op), OUT + 10);
  assert.equal(run([1, (60 << 2) | 0, 0, 65], 1), DONE); // a length in an extra byte, needlessly
  assert.deepEqual(s.out(1), [65]);
  assert.equal(run(block, 11), E_LENGTH);
  assert.equal(run(block.slice(0, -1), 10), E_TRUNC);
  assert.equal(run([4, 0, 65, 1 | (0 << 2), 2], 5), E_LENGTH);
  assert.equal(run([5, 0, 65, 1 | (0 << 2), 2], 5), E_OFFSET);
  assert.equal(run([255, 255, 255, 255, 255, 1], 5), E_VARINT);
});

each('snappy: NEED until the last byte', (s) => {
  const block = [3, 2 << 2, ...text('xyz')];
  s.put(SRC, block);
  s.start({
    [SNAPPY.ip]: SRC,
    [SNAPPY.srcEnd]: SRC + 5,
    [SNAPPY.dst]: OUT,
    [SNAPPY.op]: OUT,
    [SNAPPY.dstEnd]: OUT + 3,
  });
  for (let mark = 0; mark < 5; mark++) assert.equal(s.kernels.snappy(s.state, SRC + mark), NEED);
  assert.equal(s.kernels.snappy(s.state, SRC + 5), DONE);
  assert.deepEqual(s.out(3), text('xyz'));
});

/** The format's own example: 0..7 at width 3, after a run of five sixes. */
const HYBRID_RUNS = [5 << 1, 6, (1 << 1) | 1, 0b10001000, 0b11000110, 0b11111010];

each('hybrid: runs to u32, u16, u8 and dictionary entries, at once and in pieces', (s) => {
  const begin = (width: number, limit: number, wanted: number, src = HYBRID_RUNS): void => {
    s.put(SRC, src);
    s.start({
      [HYBRID.ip]: SRC,
      [HYBRID.srcEnd]: SRC + src.length,
      [HYBRID.op]: OUT,
      [HYBRID.wanted]: wanted,
      [HYBRID.width]: width,
      [HYBRID.dictionary]: DICTIONARY,
      [HYBRID.limit]: limit,
    });
  };
  const { kernels, state } = s;
  const end = SRC + HYBRID_RUNS.length;
  const values = [6, 6, 6, 6, 6, 0, 1, 2, 3, 4, 5, 6, 7];
  begin(3, 8, 13);
  assert.equal(kernels.hybridU32(state, end), DONE);
  assert.deepEqual(s.u32s(13), values);
  assert.deepEqual([s.word(HYBRID.ip), s.word(HYBRID.op), s.word(HYBRID.wanted)], [end, OUT + 52, 0]);
  begin(3, 8, 13);
  assert.equal(kernels.hybridU8(state, end), DONE);
  assert.deepEqual(s.out(13), values);
  begin(3, 8, 13);
  assert.equal(kernels.hybridU16(state, end), DONE);
  assert.deepEqual(
    s.out(26),
    values.flatMap((value) => [value, 0]),
  );
  s.put(
    DICTIONARY,
    Array.from({ length: 64 }, (_, i) => 100 + i),
  );
  begin(3, 8, 6);
  assert.equal(kernels.hybridDict4(state, end), DONE);
  assert.deepEqual(s.out(4), [124, 125, 126, 127]);
  assert.deepEqual(s.out(4, OUT + 20), [100, 101, 102, 103]);
  begin(3, 8, 7);
  assert.equal(kernels.hybridDict8(state, end), DONE);
  assert.deepEqual(s.out(8, OUT + 48), [108, 109, 110, 111, 112, 113, 114, 115]);

  begin(3, 8, 0);
  for (const piece of [2, 2, 3, 1, 5]) {
    s.setWord(HYBRID.wanted, piece);
    assert.equal(kernels.hybridU8(state, end), DONE);
  }
  assert.deepEqual(s.out(13), values);
  assert.equal(s.word(HYBRID.ip), end);
});

each('hybrid: widths, limits and cuts', (s) => {
  const run = (width: number, limit: number, wanted: number, src: number[]): number => {
    s.put(SRC, src);
    s.start({
      [HYBRID.ip]: SRC,
      [HYBRID.srcEnd]: SRC + src.length,
      [HYBRID.op]: OUT,
      [HYBRID.wanted]: wanted,
      [HYBRID.width]: width,
      [HYBRID.limit]: limit,
    });
    return s.kernels.hybridU32(s.state, SRC + src.length);
  };
  assert.equal(run(33, 8, 1, HYBRID_RUNS), E_WIDTH);
  assert.equal(run(3, 6, 13, HYBRID_RUNS), E_INDEX);
  assert.equal(run(3, 7, 13, HYBRID_RUNS), E_INDEX);
  assert.equal(run(3, 7, 12, HYBRID_RUNS), DONE); // the 7 is not wanted
  assert.equal(run(3, 8, 14, HYBRID_RUNS), E_TRUNC);
  assert.equal(run(3, 8, 10, HYBRID_RUNS.slice(0, -1)), DONE); // 5 of 8 values fit into 2 bytes
  assert.equal(run(3, 8, 11, HYBRID_RUNS.slice(0, -1)), E_TRUNC);
  assert.equal(run(3, 8, 3, [0xfe, 0xff, 0xff, 0xff, 0x0f, 1]), DONE); // claims 2^31 - 1 values
  assert.deepEqual(s.u32s(3), [1, 1, 1]);
  assert.equal(run(3, 8, 3, [0xff, 0xff, 0xff, 0xff, 0x1f, 1]), E_VARINT);
  assert.equal(run(0, 1, 3, []), DONE);
  assert.deepEqual(s.u32s(3), [0, 0, 0]);
  assert.equal(run(0, 0, 1, []), E_INDEX);
  assert.equal(run(32, 2 ** 32 - 1, 1, [2, 4, 3, 2, 1]), DONE);
  assert.deepEqual(s.u32s(1), [0x01020304]);
});

each('levels: two pages append to one bitmap', (s) => {
  const { kernels, state } = s;
  s.put(SRC, [3, 0b10110101, 20, 1]); // 8 packed bits, ten ones
  s.start({ [LEVELS.ip]: SRC, [LEVELS.srcEnd]: SRC + 4, [LEVELS.op]: OUT, [LEVELS.wanted]: 12 });
  assert.equal(kernels.levelBitmap(state, SRC + 4), DONE);
  assert.equal(s.word(LEVELS.ones), 9);
  kernels.flushBits(state);
  assert.deepEqual(s.out(8), [0b10110101, 0b1111, 0, 0, 0, 0, 0, 0]);
  s.put(SRC, [40, 0, 140, 1, 1]); // twenty zeroes, seventy ones
  for (const [word, value] of [
    [LEVELS.ip, SRC],
    [LEVELS.srcEnd, SRC + 5],
    [LEVELS.wanted, 40],
    [LEVELS.runKind, 0],
    [LEVELS.runLeft, 0],
  ] as const) {
    s.setWord(word, value);
  }
  assert.equal(kernels.levelBitmap(state, SRC + 5), DONE);
  s.setWord(LEVELS.wanted, 16);
  assert.equal(kernels.levelBitmap(state, SRC + 5), DONE);
  kernels.flushBits(state);
  assert.deepEqual(s.out(16), [0b10110101, 15, 0, 0, 255, 255, 255, 255, 15, 0, 0, 0, 0, 0, 0, 0]);
  assert.equal(s.word(LEVELS.ones), 9 + 36);
  s.put(SRC, [4, 2]);
  s.start({ [LEVELS.ip]: SRC, [LEVELS.srcEnd]: SRC + 2, [LEVELS.op]: OUT, [LEVELS.wanted]: 1 });
  assert.equal(kernels.levelBitmap(state, SRC + 2), E_VALUE);
});

each('plain strings: offsets and data; FULL keeps the value for later', (s) => {
  const src = [3, 0, 0, 0, ...text('one'), 0, 0, 0, 0, 5, 0, 0, 0, ...text('three')];
  s.put(SRC, src);
  const data = OUT + 64;
  const begin = (wanted: number, room: number, at = 0): void =>
    s.start({
      [BYTES.ip]: SRC,
      [BYTES.srcEnd]: SRC + src.length,
      [BYTES.slot]: OUT,
      [BYTES.wanted]: wanted,
      [BYTES.op]: data,
      [BYTES.dataEnd]: data + room,
      [BYTES.at]: at,
    });
  const run = (): number => s.kernels.plainBytes(s.state, SRC + src.length);
  begin(3, 8);
  assert.equal(run(), DONE);
  assert.deepEqual(s.u32s(3), [3, 3, 8]);
  assert.deepEqual(s.out(8, data), text('onethree'));
  begin(3, 7);
  assert.equal(run(), FULL);
  assert.deepEqual([s.word(BYTES.ip), s.word(BYTES.wanted), s.word(BYTES.at)], [SRC + 11, 1, 3]);
  s.setWord(BYTES.op, data + 100);
  s.setWord(BYTES.dataEnd, data + 105);
  s.setWord(BYTES.slot, OUT);
  s.setWord(BYTES.at, 0);
  assert.equal(run(), DONE);
  assert.deepEqual(s.u32s(1), [5]);
  assert.deepEqual(s.out(5, data + 100), text('three'));
  begin(4, 100);
  assert.equal(run(), E_TRUNC);
  begin(3, 100, 0x7fffffff - 7);
  assert.equal(run(), E_LENGTH);
  s.put(SRC, [255, 255, 255, 255]);
  begin(1, 2);
  assert.equal(run(), E_TRUNC); // even though it would not fit either
});

each('bitmaps: copy, count, spread', (s) => {
  const { kernels } = s;
  s.put(SRC, [0b11001010, 0b01010011]);
  s.put(OUT, [0b10000001, 0b00001110]);
  kernels.copyBits(SRC, 3, OUT, 2, 7); // 1001111 from bit 3 on, in order 1 0 0 1 1 1 1
  assert.deepEqual(s.out(2), [0b11100101, 0b00001111]);
  assert.equal(kernels.countOnes(SRC, 11), 6);
  s.put(SRC, [0b00101100, 0, 0, 0, 0, 0, 0, 0]);
  s.put(OUT, [1, 2, 3, 9, 9, 9]);
  assert.equal(kernels.spread1(OUT, SRC, 6, 3), DONE);
  assert.deepEqual(s.out(6), [0, 0, 1, 2, 0, 3]);
  s.put(OUT, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.equal(kernels.spreadWide(OUT, SRC, 6, 3, 3), DONE);
  assert.deepEqual(s.out(18), [0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0, 7, 8, 9]);
  s.put(OUT, [0b101, 255, 255, 255, 255, 255, 255, 255]);
  assert.equal(kernels.spreadBits(OUT, SRC, 6, 3), DONE);
  assert.deepEqual(s.out(8), [0b00100100, 0, 0, 0, 0, 0, 0, 0]);
  s.data.setUint32(OUT, 10, true);
  s.data.setUint32(OUT + 4, 12, true);
  s.data.setUint32(OUT + 8, 15, true);
  s.data.setUint32(OUT + 12, 19, true);
  assert.equal(kernels.spreadOffsets(OUT, SRC, 6, 3), DONE);
  assert.deepEqual(s.u32s(7), [10, 10, 10, 12, 15, 15, 19]);
  for (const name of ['spread2', 'spread4', 'spread8', 'spread16', 'spreadBits', 'spreadOffsets'] as const) {
    assert.equal(kernels[name](OUT, SRC, 6, 2), E_LENGTH);
  }
});

each('dictionary: fixed widths and strings', (s) => {
  const { kernels, data } = s;
  [2, 0, 2].forEach((index, i) => {
    data.setUint32(SRC + 4 * i, index, true);
  });
  s.put(DICTIONARY, text('aaabbbccc'));
  kernels.gatherWide(SRC, 3, DICTIONARY, 3, OUT);
  assert.deepEqual(s.out(9), text('cccaaaccc'));
  const offsets = DICTIONARY + 1024;
  [0, 1, 1, 5].forEach((offset, i) => {
    data.setUint32(offsets + 4 * i, offset, true);
  });
  assert.equal(kernels.gatherOffsets(SRC, 3, offsets, OUT, 7), 16);
  assert.deepEqual(s.u32s(3), [11, 12, 16]);
  assert.equal(kernels.gatherOffsets(SRC, 3, offsets, OUT, 0x7fffffff - 8), E_LENGTH);
  kernels.gatherBytes(SRC, 3, offsets, DICTIONARY, OUT, OUT + 9);
  assert.deepEqual(s.out(9), text('aabbaaabb'));
});

each('UTF-8: whole buffers and where values start', (s) => {
  const check = (bytes: number[]): number => {
    s.put(SRC, bytes);
    return s.kernels.utf8(SRC, SRC + bytes.length, s.state);
  };
  assert.equal(check(text('żółw 漢字 🐢'.repeat(9))), DONE);
  for (const bad of [[0x80], [0xc0, 0x80], [0xe0, 0x9f, 0xbf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xc3]]) {
    assert.equal(check([...text('a'.repeat(70)), ...bad]), E_UTF8);
  }
  s.put(SRC, text('aż'));
  [0, 1, 2].forEach((offset, i) => {
    s.data.setUint32(OUT + 4 * i, offset, true);
  });
  assert.equal(s.kernels.utf8Starts(OUT, 2, SRC, SRC + 3), DONE);
  assert.equal(s.kernels.utf8Starts(OUT, 3, SRC, SRC + 3), E_UTF8);
  assert.equal(s.kernels.utf8Starts(OUT, 3, SRC, SRC + 1), E_LENGTH);
});

each('delta: the example of the format, at once and in pieces', (s) => {
  // 7, 5, 3, 1, 2, 3, 4, 5: deltas -2 -2 -2 1 1 1 1, minimum -2, width 2
  const src = [128, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0b11000000, 0b00111111, 0, 0, 0, 0, 0, 0];
  s.put(SRC, src);
  const begin = (wanted: number, total: number): void =>
    s.start({
      [DELTA.ip]: SRC,
      [DELTA.srcEnd]: SRC + src.length,
      [DELTA.op]: OUT,
      [DELTA.wanted]: wanted,
      [DELTA.total]: total,
    });
  const values = [7, 5, 3, 1, 2, 3, 4, 5];
  begin(8, 8);
  assert.equal(s.kernels.delta32(s.state, SRC + src.length), DONE);
  assert.deepEqual(s.u32s(8), values);
  assert.equal(s.word(DELTA.ip), SRC + src.length);
  begin(0, 8);
  for (const piece of [1, 3, 4]) {
    s.setWord(DELTA.wanted, piece);
    assert.equal(s.kernels.delta64(s.state, SRC + src.length), DONE);
  }
  assert.deepEqual(
    s.u32s(16),
    values.flatMap((value) => [value, 0]),
  );
  assert.equal(s.word(DELTA.ip), SRC + src.length);
  begin(7, 7);
  assert.equal(s.kernels.delta32(s.state, SRC + src.length), E_LENGTH);
  s.put(SRC, [127]);
  begin(8, 8);
  assert.equal(s.kernels.delta32(s.state, SRC + src.length), E_HEADER);
});

each('delta strings, lengths, streams, copy', (s) => {
  const { kernels, data } = s;
  const [prefixes, suffixes, bytes] = [DICTIONARY, DICTIONARY + 64, OUT + 64];
  [0, 2, 3].forEach((length, i) => {
    data.setUint32(prefixes + 4 * i, length, true);
  });
  [3, 2, 0].forEach((length, i) => {
    data.setUint32(suffixes + 4 * i, length, true);
  });
  s.put(SRC, text('axels'));
  s.start({
    [DELTA_BYTES.ip]: SRC,
    [DELTA_BYTES.srcEnd]: SRC + 5,
    [DELTA_BYTES.slot]: OUT,
    [DELTA_BYTES.wanted]: 3,
    [DELTA_BYTES.op]: bytes,
    [DELTA_BYTES.dataEnd]: bytes + 10,
    [DELTA_BYTES.prefixes]: prefixes,
    [DELTA_BYTES.suffixes]: suffixes,
    [DELTA_BYTES.previous]: bytes,
  });
  assert.equal(kernels.deltaBytes(s.state, SRC + 5), DONE);
  assert.deepEqual(s.out(10, bytes), text('axeaxlsaxl'));
  assert.deepEqual(s.u32s(3), [3, 7, 10]);
  assert.equal(kernels.lengthsToOffsets(suffixes, 3, 1, 6), DONE);
  assert.deepEqual(s.u32s(3, suffixes), [4, 6, 6]);
  assert.equal(kernels.lengthsToOffsets(suffixes, 3, 0, 9), E_LENGTH);
  s.put(SRC, [1, 2, 3, 11, 12, 13]);
  assert.equal(kernels.joinStreams(SRC, 3, 2, OUT, 0, 3), DONE);
  assert.deepEqual(s.out(6), [1, 11, 2, 12, 3, 13]);
  assert.equal(kernels.joinStreams(SRC, 3, 2, OUT, 2, 4), E_LENGTH);
  kernels.copy(OUT + 1, OUT, 3);
  assert.deepEqual(s.out(4), [1, 1, 11, 2]);
});
