/** Numbers and dates as text, against JavaScript's own BigInt, Date and number conversions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  decimalText,
  floatText,
  halfText,
  writeDate,
  writeDecimal,
  writeHex,
  writeInteger,
  writeTime,
} from '../output/digits.ts';
import { uniqueNames } from '../output/ndjson.ts';
import { alignRows, cutText, padText, printable, textWidth } from '../output/printable.ts';

const SEED = Number(process.env.QANAT_SEED ?? Math.floor(Math.random() * 2 ** 31));
console.log(`QANAT_SEED=${SEED}`);

/** mulberry32 */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const buffer = Buffer.alloc(128);
const written = (write: (out: Uint8Array, at: number) => number): string => {
  const end = write(buffer, 3);
  return buffer.toString('latin1', 3, end);
};

test('integers, on both sides of every power of ten and of two', () => {
  const random = randomOf(SEED);
  const values = [0, Number.MAX_SAFE_INTEGER];
  for (let k = 0; k < 16; k++) values.push(10 ** k - 1, 10 ** k, 10 ** k + 1);
  for (let k = 0; k < 53; k++) values.push(2 ** k - 1, 2 ** k);
  for (let k = 0; k < 2000; k++) values.push(Math.floor(random() * 2 ** Math.floor(random() * 53)));
  for (const value of values.filter(Number.isSafeInteger)) {
    assert.equal(
      written((out, at) => writeInteger(out, at, value)),
      String(value),
    );
    if (value > 0)
      assert.equal(
        written((out, at) => writeInteger(out, at, -value)),
        String(-value),
      );
  }
});

test('decimals of every scale', () => {
  const random = randomOf(SEED + 1);
  assert.equal(decimalText(-5n, 2), '-0.05');
  assert.equal(decimalText(0n, 3), '0.000');
  assert.equal(decimalText(12n, -3), '12000');
  assert.equal(decimalText(0n, -3), '0');
  assert.equal(decimalText(10n ** 37n, 38), '0.10000000000000000000000000000000000000');
  for (let k = 0; k < 3000; k++) {
    const unscaled = Math.floor((random() - 0.5) * 2 ** Math.ceil(random() * 53));
    const scale = Math.floor(random() * 19);
    assert.equal(
      written((out, at) => writeDecimal(out, at, unscaled, scale)),
      decimalText(BigInt(unscaled), scale),
    );
  }
});

test('dates, as Date has them', () => {
  const random = randomOf(SEED + 2);
  const days = [0, -1, 59, 60, 11_016, -719_528, -719_529, 2_932_896, 2_932_897, 100_000_000, -100_000_000];
  for (let k = 0; k < 5000; k++) days.push(Math.floor((random() - 0.5) * 2 * 10 ** (2 + random() * 6)));
  for (const day of days) {
    if (Math.abs(day) > 100_000_000) continue;
    const [expected] = new Date(day * 86_400_000).toISOString().split('T');
    assert.equal(
      written((out, at) => writeDate(out, at, day)),
      expected,
      String(day),
    );
  }
  // beyond what Date knows
  assert.equal(
    written((out, at) => writeDate(out, at, 2 ** 31 - 1)),
    '+5881580-07-11',
  );
  assert.equal(
    written((out, at) => writeDate(out, at, -(2 ** 31))),
    '-5877641-06-23',
  );
});

test('times of day, and times that are none', () => {
  assert.equal(
    written((out, at) => writeTime(out, at, 86_399_999, 3)),
    '23:59:59.999',
  );
  assert.equal(
    written((out, at) => writeTime(out, at, 1, 9)),
    '00:00:00.000000001',
  );
  assert.equal(
    written((out, at) => writeTime(out, at, -1, 6)),
    '-00:00:00.000001',
  );
  assert.equal(
    written((out, at) => writeTime(out, at, 360_000_000, 3)),
    '100:00:00.000',
  );
});

test('floats: the shortest text that reads back', () => {
  const random = randomOf(SEED + 3);
  assert.equal(floatText(Math.fround(0.1)), '0.1');
  assert.equal(floatText(Math.fround(16_777_216)), '16777216');
  assert.equal(halfText(Math.f16round(0.1)), '0.1');
  assert.equal(halfText(65_504), '65500');
  assert.equal(halfText(Number.POSITIVE_INFINITY), 'Infinity');
  const bits = new DataView(new ArrayBuffer(4));
  for (let k = 0; k < 5000; k++) {
    bits.setUint32(0, Math.floor(random() * 2 ** 32));
    const single = bits.getFloat32(0);
    const half = bits.getFloat16(0);
    // === and not Object.is: the text of a zero has no sign, as in JavaScript
    if (Number.isFinite(single)) assert.ok(Math.fround(Number(floatText(single))) === single, `${single}`);
    if (Number.isFinite(half)) assert.ok(Math.f16round(Number(halfText(half))) === half, `${half}`);
    assert.ok(floatText(single).length <= String(single).length);
  }
});

test('hexadecimal', () => {
  const bytes = Uint8Array.from({ length: 32 }, (_, k) => (k * 37) & 255);
  assert.equal(
    written((out, at) => writeHex(out, at, bytes, 1, 30)),
    Buffer.from(bytes.subarray(1, 30)).toString('hex'),
  );
});

test('names that repeat get others, unlike all that are there', () => {
  assert.deepEqual(uniqueNames(['a', 'a', 'a_1', 'a', 'b']), ['a', 'a_2', 'a_1', 'a_3', 'b']);
  assert.deepEqual(uniqueNames(['__proto__', '__proto__', 'constructor']), ['__proto__', '__proto___1', 'constructor']);
});

test('texts on a terminal: width, cutting, nothing that it obeys', () => {
  assert.equal(printable('a\x1b[31mb\n\u202ec\x7f'), 'a\\u001b[31mb\\n\\u202ec\\u007f');
  assert.equal(textWidth('漢字ab'), 6);
  assert.equal(textWidth('e\u0301'), 1);
  assert.equal(cutText('abcdef', 6), 'abcdef');
  assert.equal(cutText('abcdefg', 6), 'abcde…');
  assert.equal(cutText('漢字漢字', 5), '漢字…');
  assert.equal(padText('漢', 4, true), '  漢');
  assert.equal(
    alignRows(
      [
        ['a', '1'],
        ['bb', '22'],
      ],
      new Set([1]),
    ),
    'a    1\nbb  22\n',
  );
});
