/** The kernels for nested columns, BIT_PACKED levels, decimals and INT96 on literal vectors, in both implementations. */
import assert from 'node:assert/strict';
import { DONE, E_LENGTH, E_TRUNC, E_VALUE, E_WIDTH } from '../kernels/kernels.ts';
import { DICTIONARY, each, OUT, type Scene, SRC } from './kernel-scene.ts';

const DEF = DICTIONARY;

function putLevels(s: Scene, entries: [rep: number, def: number][], times = 1): number {
  const all = Array.from({ length: times }, () => entries).flat();
  s.put(
    SRC,
    all.map(([rep]) => rep),
  );
  s.put(
    DEF,
    all.map(([, def]) => def),
  );
  s.bytes.fill(0xee, OUT, OUT + 8192);
  return all.length;
}

function bits(s: Scene, count: number): number[] {
  return Array.from({ length: count }, (_, i) => ((s.bytes[OUT + (i >> 3)] as number) >> (i & 7)) & 1);
}

/**
 * optional group a (LIST) { repeated group list { optional group element (LIST) { repeated group list { optional int32 } } } }
 * of the rows [[1, null], [], null], null, [], [[], [2]], [[3]].
 */
const LISTS: [number, number][] = [
  [0, 5],
  [2, 4],
  [1, 3],
  [1, 2],
  [0, 0],
  [0, 1],
  [0, 3],
  [1, 5],
  [0, 5],
];

each('nested: rows, slots, validity and offsets of lists of lists', (s) => {
  const { kernels } = s;
  for (const times of [1, 2, 15, 16, 100]) {
    // whole blocks and what is over
    const n = putLevels(s, LISTS, times);
    const repeat = (values: number[]): number[] => Array.from({ length: times }, () => values).flat();
    const running = (lengths: number[]): number[] => {
      const offsets = [0];
      for (const length of repeat(lengths)) offsets.push((offsets.at(-1) as number) + length);
      return offsets;
    };
    assert.equal(kernels.countRows(SRC, n), 5 * times);
    for (let k = 0; k < 5 * times; k++) {
      assert.equal(kernels.findRow(SRC, n, k), 9 * Math.floor(k / 5) + ([0, 4, 5, 6, 8][k % 5] as number));
    }
    assert.equal(kernels.findRow(SRC, n, 5 * times), n);

    assert.equal(kernels.countSlots(SRC, DEF, n, 0, 0), 5 * times); // outer lists
    assert.equal(kernels.nestedValidity(SRC, DEF, n, 0, 0, 1, OUT), 4 * times);
    assert.deepEqual(bits(s, 5 * times), repeat([1, 0, 1, 1, 1]));
    assert.equal(kernels.nestedOffsets(SRC, DEF, n, 0, 0, 1, 2, OUT), 6 * times);
    assert.deepEqual(s.u32s(5 * times + 1), running([3, 0, 0, 2, 1]));

    assert.equal(kernels.countSlots(SRC, DEF, n, 1, 2), 6 * times); // inner lists
    assert.equal(kernels.nestedValidity(SRC, DEF, n, 1, 2, 3, OUT), 5 * times);
    assert.deepEqual(bits(s, 6 * times), repeat([1, 1, 0, 1, 1, 1]));
    assert.equal(kernels.nestedOffsets(SRC, DEF, n, 1, 2, 2, 4, OUT), 4 * times);
    assert.deepEqual(s.u32s(6 * times + 1), running([2, 0, 0, 0, 1, 1]));

    assert.equal(kernels.countSlots(SRC, DEF, n, 2, 4), 4 * times); // integers
    assert.equal(kernels.nestedValidity(SRC, DEF, n, 2, 4, 5, OUT), 3 * times);
    assert.deepEqual(bits(s, 4 * times), repeat([1, 0, 1, 1]));
  }
});

each('nested: without repetition levels; whole words, zero-padded', (s) => {
  const { kernels } = s;
  const n = putLevels(
    s,
    [
      [9, 1],
      [9, 0],
      [9, 2],
    ],
    25,
  );
  assert.equal(kernels.countRows(0, n), n);
  assert.deepEqual(
    [0, 74, 75, 2 ** 31 - 1].map((k) => kernels.findRow(0, n, k)),
    [0, 74, 75, 75],
  );
  assert.equal(kernels.countSlots(0, DEF, n, 0, 0), 75);
  assert.equal(kernels.countSlots(0, DEF, n, 0, 1), 50);
  assert.equal(kernels.nestedValidity(0, DEF, n, 0, 0, 1, OUT), 50);
  assert.deepEqual(
    bits(s, 75),
    Array.from({ length: 75 }, (_, i) => Number(i % 3 !== 1)),
  );
  assert.deepEqual(s.out(8, OUT + 8), [0b10110110, 0b101, 0, 0, 0, 0, 0, 0]);
  assert.deepEqual(s.out(1, OUT + 16), [0xee]);
  assert.equal(kernels.nestedValidity(0, DEF, n, 0, 1, 2, OUT), 25);
  assert.deepEqual(
    bits(s, 50),
    Array.from({ length: 50 }, (_, i) => i % 2),
  );
  assert.equal(kernels.nestedValidity(0, DEF, 0, 0, 0, 1, OUT + 16), 0);
  assert.deepEqual(s.out(1, OUT + 16), [0xee]);
  assert.equal(kernels.nestedOffsets(0, DEF, n, 0, 0, 1, 2, OUT), 25); // lists of at most one element
  assert.deepEqual(
    s.u32s(76),
    Array.from({ length: 76 }, (_, i) => Math.floor(i / 3)),
  );
  assert.equal(kernels.nestedOffsets(0, DEF, 0, 0, 0, 1, 2, OUT), 0);
  assert.deepEqual(s.u32s(1), [0]);
});

each('nested: blocks in which every entry is a slot, an element, both or neither', (s) => {
  const { kernels } = s;
  const levels = [2, 2, 1, 1, 0, 0, 2, 1, 0, 2].flatMap((level) => Array(64).fill(level) as number[]);
  const n = putLevels(
    s,
    levels.map((level) => [0, level]),
  );
  const slots = levels.filter((level) => level >= 1);
  assert.equal(kernels.nestedValidity(SRC, DEF, n, 0, 1, 2, OUT), 4 * 64);
  assert.deepEqual(
    bits(s, slots.length),
    slots.map((level) => level - 1),
  );
  assert.equal(kernels.nestedOffsets(SRC, DEF, n, 0, 1, 1, 2, OUT), 4 * 64);
  const offsets = [0];
  for (const level of slots) offsets.push((offsets.at(-1) as number) + level - 1);
  assert.deepEqual(s.u32s(slots.length + 1), offsets);
  assert.deepEqual(s.out(4, OUT + 4 * offsets.length), [0xee, 0xee, 0xee, 0xee]);
});

each('nested: counts over many blocks', (s) => {
  const n = putLevels(s, [[0, 2]], 20_001);
  assert.equal(s.kernels.countRows(SRC, n), n);
  assert.equal(s.kernels.countSlots(SRC, DEF, n, 0, 1), n);
  assert.equal(s.kernels.findRow(SRC, n, n - 1), n - 1);
});

each('nested: entries that contradict the one before, wherever they are', (s) => {
  const table = OUT + 8192;
  s.put(table, [0, 2, 4, ...new Uint8Array(253)]); // an element of the outer list, then of the inner one
  s.put(table + 200, [1]);
  const good: [number, number][] = Array.from({ length: 100 }, (_, k) => [[0, 2, 1][k % 3]!, 4]);
  const check = (entries: [number, number][], before = 255): number =>
    s.kernels.checkNesting(SRC, DEF, putLevels(s, entries), table, before);
  assert.equal(check(good), 100);
  assert.equal(check([]), 0);
  for (const at of [0, 1, 15, 16, 17, 31, 32, 33, 98, 99]) {
    const bad = (entry: [number, number]): [number, number][] => good.map((one, k) => (k === at ? entry : one));
    assert.equal(check(bad([1, 1])), at, 'an entry that is in no list');
    assert.equal(check(bad([2, 3])), at);
    assert.equal(check(bad([200, 0])), at, 'a level over 15');
    // what follows an entry in no list, unless that begins a row, or nothing follows
    assert.equal(check(bad([0, 1])), (at + 1) % 3 === 0 || at === 99 ? 100 : at + 1);
  }
  assert.equal(check([[1, 4]], 1), 0, 'the entry before the first');
  assert.equal(check([[1, 4]], 2), 1);
});

each('nested: an element before the first slot', (s) => {
  const { kernels } = s;
  for (const before of [0, 70]) {
    const entries = Array.from({ length: before }, (): [number, number] => [1, 0]);
    let n = putLevels(s, [...entries, [1, 1], [0, 1], [1, 1]]);
    assert.equal(kernels.nestedOffsets(SRC, DEF, n, 0, 0, 1, 1, OUT), E_LENGTH);
    n = putLevels(s, [...entries, [1, 1]]);
    assert.equal(kernels.nestedOffsets(SRC, DEF, n, 0, 0, 1, 1, OUT), E_LENGTH);
    n = putLevels(s, [...entries, [1, 0], [0, 1], [1, 1]]);
    assert.equal(kernels.nestedOffsets(SRC, DEF, n, 0, 0, 1, 1, OUT), 2);
    assert.deepEqual(s.u32s(2), [0, 2]);
  }
});

each('BIT_PACKED levels: the example of the format, widths, cuts, limits', (s) => {
  const run = (src: number[], width: number, n: number, limit: number): number => {
    s.put(SRC, src);
    s.bytes.fill(0xee, OUT, OUT + 64);
    return s.kernels.bitPackedLevels(SRC, SRC + src.length, width, n, OUT, limit);
  };
  const example = [0b00000101, 0b00111001, 0b01110111]; // 0 to 7
  assert.equal(run(example, 3, 8, 8), DONE);
  assert.deepEqual(s.out(9), [0, 1, 2, 3, 4, 5, 6, 7, 0xee]);
  assert.equal(run(Array(12).fill(example).flat(), 3, 96, 8), DONE);
  assert.deepEqual(s.out(96), Array(12).fill([0, 1, 2, 3, 4, 5, 6, 7]).flat());
  assert.equal(run(Array(12).fill(example).flat(), 3, 96, 7), E_VALUE);
  assert.equal(run(example, 3, 8, 7), E_VALUE);
  assert.equal(run(example, 3, 7, 7), DONE); // the 7 is padding
  assert.equal(run(example, 3, 9, 8), E_TRUNC);
  assert.equal(run(example, 8, 3, 256), DONE);
  assert.deepEqual(s.out(3), example);
  assert.equal(run([0b10100000], 1, 3, 2), DONE);
  assert.deepEqual(s.out(4), [1, 0, 1, 0xee]);
  assert.equal(run([], 0, 3, 1), DONE);
  assert.deepEqual(s.out(4), [0, 0, 0, 0xee]);
  assert.equal(run([], 0, 3, 0), E_VALUE);
  assert.equal(run([], 3, 0, 0), DONE);
  assert.equal(run(example, 9, 1, 512), E_WIDTH);
  assert.equal(run(example, 8, 2 ** 29 + 1, 256), E_TRUNC); // bits over 32 bits
});

each('lengths: their sum, a negative one, too much', (s) => {
  const total = (lengths: number[]): number => {
    s.bytes.set(new Uint8Array(Int32Array.from(lengths).buffer), SRC);
    return s.kernels.lengthsTotal(SRC, lengths.length);
  };
  assert.equal(total([]), 0);
  assert.equal(total([1, 2, 3, 4, 5, 6, 7]), 28);
  assert.equal(total([2 ** 31 - 1, 0, 0, 0, 0]), 2 ** 31 - 1);
  assert.equal(total([2 ** 31 - 1, 0, 0, 0, 1]), E_LENGTH);
  assert.equal(total([2 ** 31 - 1, 2 ** 31 - 1, 2 ** 31 - 1, 2 ** 31 - 1]), E_LENGTH);
  for (let i = 0; i < 6; i++) assert.equal(total(Array.from({ length: 6 }, (_, k) => (k === i ? -1 : 5))), E_LENGTH);
});

each('decimals: widened and turned round, also in place', (s) => {
  const { kernels, data } = s;
  const wide = (count: number, at = OUT): bigint[] =>
    Array.from({ length: count }, (_, i) =>
      BigInt.asIntN(128, data.getBigUint64(at + 16 * i, true) | (data.getBigUint64(at + 16 * i + 8, true) << 64n)),
    );
  const small = [0, 1, -1, 2 ** 31 - 1, -(2 ** 31), 12345, -99999];
  for (const dst of [OUT, SRC]) {
    s.bytes.set(new Uint8Array(Int32Array.from(small).buffer), SRC);
    kernels.widenDecimal4(SRC, 7, dst);
    assert.deepEqual(wide(7, dst), small.map(BigInt));
  }
  const large = [-1n, 2n ** 63n - 1n, -(2n ** 63n), 5n, -12345678901234n];
  for (const dst of [OUT, SRC]) {
    s.bytes.set(new Uint8Array(BigInt64Array.from(large).buffer), SRC);
    kernels.widenDecimal8(SRC, 5, dst);
    assert.deepEqual(wide(5, dst), large);
  }
  for (let width = 1; width <= 16; width++) {
    const top = 2n ** BigInt(8 * width - 1);
    const values = [0n, -1n, top - 1n, -top, top / 3n, -top / 3n, 77n];
    const bytes = values.flatMap((value) =>
      Array.from({ length: width }, (_, k) => Number((value >> BigInt(8 * (width - 1 - k))) & 255n)),
    );
    for (const dst of [OUT, SRC]) {
      s.put(SRC, bytes);
      kernels.reverseDecimal(SRC, 7, width, dst);
      assert.deepEqual(wide(7, dst), values);
    }
  }
});

each('INT96: known instants, the ends of 64 bits', (s) => {
  const run = (values: [nanos: bigint, day: number][]): number => {
    values.forEach(([nanos, day], i) => {
      s.data.setBigInt64(SRC + 12 * i, nanos, true);
      s.data.setInt32(SRC + 12 * i + 8, day, true);
    });
    return s.kernels.int96ToNanos(SRC, values.length, OUT);
  };
  const out = (i: number): bigint => s.data.getBigInt64(OUT + 8 * i, true);
  assert.equal(
    run([
      [0n, 2440588],
      [1n, 2440587],
      [3_723_000_000_000n, 2451545],
    ]),
    DONE,
  );
  assert.equal(out(0), 0n);
  assert.equal(out(1), -86_399_999_999_999n);
  assert.equal(out(2), BigInt(Date.UTC(2000, 0, 1, 1, 2, 3)) * 1_000_000n);
  const day = 86_400_000_000_000n;
  const last = 2n ** 63n - 1n - 106751n * day;
  assert.equal(
    run([
      [last, 2440588 + 106751],
      [-last - 1n, 2440588 - 106751],
      [day - last - 1n, 2440588 - 106752],
    ]),
    DONE,
  );
  assert.deepEqual([out(0), out(1), out(2)], [2n ** 63n - 1n, -(2n ** 63n), -(2n ** 63n)]);
  assert.equal(
    run([
      [0n, 2440588],
      [last + 1n, 2440588 + 106751],
    ]),
    E_VALUE,
  );
  assert.equal(
    run([
      [day - last - 2n, 2440588 - 106752],
      [0n, 2440588],
    ]),
    E_VALUE,
  );
  assert.equal(run([[0n, 2 ** 31 - 1]]), E_VALUE);
  assert.equal(run([[0n, -(2 ** 31)]]), E_VALUE);
  assert.equal(run([[-(2n ** 63n), 2440588 + 2 * 106751]]), DONE); // days and nanoseconds that cancel
  assert.equal(out(0), 2n * 106751n * day - 2n ** 63n);
});
