/** The fast way over a struct against the slow one: where both end, and that what one refuses the other does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DecodeError } from '../errors.ts';
import { CompactReader, Wire } from '../format/compact.ts';
import { structEnd } from '../format/compact-skip.ts';
import { THRIFT_DEPTH_MAX } from '../format/limits.ts';
import { footerBytes, plainFooter } from './footer-model.ts';
import { seededRandom } from './random.ts';

/** Where the slow reader's struct ends, or -1 when it is refused. A finite budget keeps it slow. */
function slowEnd(bytes: Uint8Array): number {
  const r = new CompactReader(bytes);
  r.budget = 1e9;
  try {
    r.skip(Wire.STRUCT);
    return r.pos;
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return -1;
  }
}

function checkSame(bytes: Uint8Array): void {
  const text = Buffer.from(bytes).toString('hex');
  const fast = structEnd(bytes, 0, bytes.length);
  const slow = slowEnd(bytes);
  // it gives up at maps
  if (fast >= 0 || !hasMaps(bytes)) assert.equal(fast, slow, text);
  const r = new CompactReader(bytes);
  if (slow < 0) assert.throws(() => r.skip(Wire.STRUCT), DecodeError, text);
  else {
    r.skip(Wire.STRUCT);
    assert.equal(r.pos, slow, text);
  }
}

const hasMaps = (bytes: Uint8Array): boolean => bytes.some((b) => (b & 0x0f) === Wire.MAP);

test('footers, whole, cut and changed', () => {
  const random = seededRandom();
  const bytes = footerBytes({ ...plainFooter(5, 3), key_value_metadata: [{ key: 'k', value: 'v'.repeat(200) }] });
  assert.equal(structEnd(bytes, 0, bytes.length), bytes.length);
  for (let length = 0; length < bytes.length; length++) {
    assert.equal(structEnd(bytes.subarray(0, length), 0, length), -1);
    assert.equal(structEnd(bytes, 0, length), -1);
  }
  for (let round = 0; round < 5000; round++) {
    const changed = Uint8Array.from(bytes);
    for (let flips = 1 + random.below(3); flips > 0; flips--) changed[random.below(changed.length)] = random.below(256);
    checkSame(changed);
  }
});

test('random bytes', () => {
  const random = seededRandom();
  for (let round = 0; round < 20_000; round++) {
    // small values are likelier to be field headers and lengths that fit
    checkSame(
      Uint8Array.from({ length: random.below(60) }, () =>
        random.below(3) === 0 ? random.below(256) : random.below(4) * 16 + random.below(14),
      ),
    );
  }
});

test('every wire type, integers of every length, and nesting up to the bound', () => {
  const varint = (bytes: number, last = 1): number[] => [...new Array<number>(bytes - 1).fill(0x80), last];
  for (let length = 1; length <= 12; length++) checkSame(Uint8Array.of(0x16, ...varint(length), 0));
  checkSame(Uint8Array.of(0x16, ...varint(10, 2), 0));
  checkSame(Uint8Array.of(0x06, ...varint(3), 4, 0));
  for (let wire = 0; wire < 16; wire++) {
    checkSame(Uint8Array.of(0x10 | wire, ...new Uint8Array(20)));
    checkSame(Uint8Array.of(0x19, 0x20 | wire, ...new Uint8Array(40)));
    checkSame(Uint8Array.of(0x19, 0xf0 | wire, 0x02, ...new Uint8Array(40)));
  }
  for (const length of [1, 4, 5, 6]) checkSame(Uint8Array.of(0x18, ...varint(length, 0), 0));
  checkSame(Uint8Array.of(0x18, 0xff, 0xff, 0xff, 0xff, 0x0f, 0));
  for (let depth = THRIFT_DEPTH_MAX - 3; depth < THRIFT_DEPTH_MAX + 3; depth++) {
    checkSame(Uint8Array.from([...new Array<number>(depth).fill(0x1c), ...new Uint8Array(depth + 1)]));
    checkSame(Uint8Array.from([...new Array<number>(depth).fill(0x1c), 0x19, 0x15, 2, ...new Uint8Array(depth + 1)]));
  }
});
