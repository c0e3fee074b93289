/** One random LZ4 block for both kernels: put together token by token, or by the library's compressor; whole or damaged. */
import assert from 'node:assert/strict';
import { compressSync } from 'lz4-napi';
import { DONE, LZ4 } from '../kernels/kernels.ts';
import { compareStream, type Pair, type Random } from './kernel-fuzz.ts';
import { damage } from './kernel-fuzz-input.ts';

interface Block {
  readonly src: Uint8Array;
  readonly plain: Uint8Array;
}

export function lz4(pair: Pair, random: Random): void {
  const { src, plain } = random.chance(0.7) ? makeBlock(random) : compressText(random);
  const damaged = random.chance(0.5) ? damage(src, random) : src;
  const size = random.chance(0.1) ? Math.max(0, plain.length + random.int(-3, 3)) : plain.length;
  const { code, out } = compareStream(
    pair,
    {
      kernel: (kernels) => kernels.lz4,
      src: damaged,
      inputs: [],
      outBytes: size,
      total: 0,
      opWord: LZ4.op,
      setup: (set, at) => {
        set(LZ4.dst, at.out);
        set(LZ4.op, at.out);
        set(LZ4.dstEnd, at.out + size);
      },
    },
    random,
  );
  if (damaged !== src) return;
  assert.equal(code === DONE, size === plain.length, `code ${code}`);
  if (code === DONE) assert.deepEqual(Buffer.from(out), Buffer.from(plain));
}

function makeBlock(random: Random): Block {
  const src: number[] = [];
  const plain: number[] = [];
  for (let n = random.int(0, random.chance(0.2) ? 400 : 40); n > 0; n--) {
    const long = random.chance(0.05) ? random.int(200, 3000) : 2;
    const literals = random.pick([0, 1, 2, random.int(0, 14), random.int(10, 20), random.int(265, 275), long]);
    // the first sequence has nothing to copy from but its own literals
    const letters = Array.from({ length: plain.length === 0 ? literals + 1 : literals }, () => random.int(97, 122));
    const far = random.pick([random.int(1, 17), random.int(1, 40), random.int(1, 65535), plain.length]);
    const offset = Math.min(plain.length + letters.length, 65535, Math.max(1, far));
    const match = random.pick([
      random.int(4, 8),
      random.int(4, 18),
      random.int(16, 40),
      random.int(270, 280),
      long + 2,
    ]);
    src.push((Math.min(15, letters.length) << 4) | Math.min(15, match - 4));
    pushMore(src, letters.length);
    for (const letter of letters) src.push(letter);
    for (const letter of letters) plain.push(letter);
    src.push(offset & 255, offset >> 8);
    pushMore(src, match - 4);
    for (let k = 0; k < match; k++) plain.push(plain[plain.length - offset]!);
  }
  const last = random.pick([0, 5, random.int(0, 20), random.int(200, 300)]);
  const letters = Array.from({ length: last }, () => random.int(97, 122));
  src.push((Math.min(15, last) << 4) | (random.chance(0.1) ? random.int(0, 15) : 0)); // nobody asks for a match here
  pushMore(src, last);
  return { src: Uint8Array.from([...src, ...letters]), plain: Uint8Array.from([...plain, ...letters]) };
}

/** The bytes after a token of a length that is 15 or more. */
function pushMore(src: number[], length: number): void {
  let rest = length - 15;
  for (; rest >= 255; rest -= 255) src.push(255);
  if (rest >= 0) src.push(rest);
}

function compressText(random: Random): Block {
  const words = Array.from({ length: random.int(1, 30) }, () => random.bytes(random.int(1, 30)));
  const pieces = Array.from({ length: random.int(0, 400) }, () => random.pick(words));
  const plain = new Uint8Array(Buffer.concat(pieces));
  // the library puts the size in front of the block
  return { src: new Uint8Array(compressSync(Buffer.from(plain))).subarray(4), plain };
}
