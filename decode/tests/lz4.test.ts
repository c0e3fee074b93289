/**
 * LZ4 pages in both kernels: blocks of the library's compressor, blocks that break a rule, Hadoop's frames, and bytes
 * that arrive a few at a time.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eachLz4Block } from '../codec/lz4-frames.ts';
import { ChunkInput } from '../column/chunk-input.ts';
import { PageBody } from '../column/page-body.ts';
import { Section } from '../column/section.ts';
import { DecodeError } from '../errors.ts';
import { Codec, nameOf } from '../format/enums.ts';
import { DONE, E_LENGTH, E_OFFSET, E_TRUNC, LZ4, NEED } from '../kernels/kernels.ts';
import { type KernelKind, loadKernels } from '../kernels/load.ts';
import { Pool } from '../pool/pool.ts';
import { each, OUT, type Scene, SRC, text } from './kernel-scene.ts';
import { seededRandom } from './random.ts';
import { compress, type Framing } from './writer/index.ts';

// ---- blocks

function run(s: Scene, block: readonly number[], size: number): number {
  s.put(SRC, block);
  s.start({
    [LZ4.ip]: SRC,
    [LZ4.srcEnd]: SRC + block.length,
    [LZ4.dst]: OUT,
    [LZ4.op]: OUT,
    [LZ4.dstEnd]: OUT + size,
  });
  return s.kernels.lz4(s.state, SRC + block.length);
}

/** "abc", then 7 bytes from 3 back, then "xyz". */
const BLOCK = [0x33, ...text('abc'), 3, 0, 0x30, ...text('xyz')];

each('lz4: literals and matches', (s) => {
  assert.equal(run(s, BLOCK, 13), DONE);
  assert.deepEqual(s.out(13), text('abcabcabcaxyz'));
  assert.equal(s.word(LZ4.op), OUT + 13);
  assert.equal(run(s, [0], 0), DONE, 'a block of nothing');
  assert.equal(run(s, [0xf0, 0, ...text('fifteen letters')], 15), DONE, 'a length of 15 takes a byte of 0');
  assert.deepEqual(s.out(15), text('fifteen letters'));
  assert.equal(run(s, [0x1f, 65, 1, 0, 255, 255, 7, 0], 1 + 4 + 15 + 255 + 255 + 7), DONE);
  assert.ok(s.out(537).every((byte) => byte === 65));
});

each('lz4: a block may end with a match, if no literals follow it', (s) => {
  // compressors leave 5 literals at the end, and 12 bytes after the last match; readers of Parquet do not ask for it
  assert.equal(run(s, [0x10, 65, 1, 0, 0], 5), DONE);
  assert.deepEqual(s.out(5), text('AAAAA'));
  assert.equal(run(s, [0x10, 65, 1, 0, 0x0f], 5), DONE, 'the match of the last token means nothing');
  assert.equal(run(s, [0x10, 65, 1, 0], 5), E_TRUNC, 'the last token is missing');
});

const BAD: readonly (readonly [what: string, code: number, block: readonly number[], size: number])[] = [
  ['no bytes', E_TRUNC, [], 0],
  ['no bytes for some', E_TRUNC, [], 5],
  ['offset 0', E_OFFSET, [0x30, ...text('abc'), 0, 0, 0], 7],
  ['offset before the start', E_OFFSET, [0x30, ...text('abc'), 4, 0, 0], 7],
  ['offset far before the start', E_OFFSET, [0x30, ...text('abc'), 255, 255, 0], 7],
  ['offset with nothing before it', E_OFFSET, [0x00, 1, 0, 0], 4],
  ['half an offset', E_TRUNC, [0x30, ...text('abc'), 1], 7],
  ['literals over the end of the input', E_TRUNC, [0x40, ...text('abc')], 4],
  ['literals over the end of the output', E_LENGTH, BLOCK, 12],
  ['a match over the end of the output', E_LENGTH, BLOCK, 9],
  ['too little output', E_TRUNC, BLOCK, 14],
  ['more after the output is full', E_LENGTH, [...BLOCK, 1, 0, 0], 13],
  ['a literal length over the output', E_LENGTH, [0xf0, 255, 255, 255, 1], 600],
  ['a literal length over the input', E_TRUNC, [0xf0, 255, 3, 65], 1000],
  ['a literal length that does not end', E_TRUNC, [0xf0, 255, 255], 10_000],
  ['a match length over the output', E_LENGTH, [0x1f, 65, 1, 0, 255, 255, 255, 1, 0], 600],
  ['a match length that does not end', E_TRUNC, [0x1f, 65, 1, 0, 255, 255], 10_000],
  ['a literal length of 1 GiB', E_LENGTH, [0xf0, ...new Array<number>(40_000).fill(255), 1], 60_000],
];
for (const [what, code, block, size] of BAD) {
  each(`lz4: ${what}`, (s) => {
    s.bytes.fill(0xa5, OUT, OUT + size + 64);
    assert.equal(run(s, block, size), code);
    assert.ok(
      s.out(64, OUT + size).every((byte) => byte === 0xa5),
      'the kernel wrote past its output',
    );
    // the same inside a block that is long enough for the fast path
    const lead = [0xf0, 255, 255, 30, ...new Array<number>(555).fill(66)];
    const far = [...lead, 9, 0, ...block];
    if (code !== E_OFFSET) assert.equal(run(s, far, 555 + 4 + size), code);
  });
}

each('lz4: NEED until the last byte, and what came is there', (s) => {
  assert.equal(run(s, BLOCK, 13), DONE);
  s.start({
    [LZ4.ip]: SRC,
    [LZ4.srcEnd]: SRC + BLOCK.length,
    [LZ4.dst]: OUT,
    [LZ4.op]: OUT,
    [LZ4.dstEnd]: OUT + 13,
  });
  for (let mark = 0; mark < BLOCK.length; mark++) assert.equal(s.kernels.lz4(s.state, SRC + mark), NEED);
  assert.equal(s.kernels.lz4(s.state, SRC + BLOCK.length), DONE);
  assert.deepEqual(s.out(13), text('abcabcabcaxyz'));
});

// ---- pages

const MEMORY_BYTES = 32 << 20;

const pool = Pool.create(MEMORY_BYTES);
const kernels = { wasm: loadKernels(pool.memory, 'wasm'), scalar: loadKernels(pool.memory, 'scalar') };
const blockState = pool.allocate(64);

/** Decompresses a page whose bytes arrive `step` at a time; whatever happens, no memory stays in use. */
function decompress(kind: KernelKind, codec: Codec, source: Uint8Array, size: number, step = source.length): Buffer {
  const before = pool.usedBytes;
  const slabBytes = Math.max(1, source.length);
  const slab = pool.allocate(slabBytes);
  pool.u8.set(source, slab);
  const input = new ChunkInput(pool);
  input.add({ address: slab, start: 0, end: source.length });
  const body = PageBody.open(pool, input, 0, source.length)!;
  const place = { body, from: 0, to: source.length, codec, size, blockState };
  let section: Section | undefined;
  try {
    section = Section.open(pool, kernels[kind], place)!;
    for (let at = step; ; at += step) {
      input.arrived = at;
      section.advance();
      if (section.isComplete) return Buffer.from(pool.u8.slice(section.start, section.mark));
      if (at >= source.length) throw new Error('the page does not end');
    }
  } finally {
    section?.close();
    body.close();
    pool.free(slab, slabBytes);
    assert.equal(pool.usedBytes, before);
  }
}

function samples(): Uint8Array[] {
  const random = seededRandom();
  const noise = Uint8Array.from({ length: 70_000 }, () => random.below(256));
  const words = Array.from({ length: 20_000 }, () => `word ${random.below(300)}, `).join('');
  const numbers = new Uint8Array(Float64Array.from({ length: 9000 }, () => random.below(100_000) / 100).buffer);
  return [noise.subarray(0, 1), new Uint8Array(15), new Uint8Array(300_000), noise, Buffer.from(words), numbers];
}

function refused(act: () => void, name: string): void {
  assert.throws(act, (error) => {
    assert.ok(error instanceof DecodeError, String(error));
    assert.equal(error.code, 'CODEC');
    assert.match(error.message, new RegExp(`${name} (page|bytes)`));
    return true;
  });
}

const SHAPES: readonly (readonly [Codec, Framing])[] = [
  [Codec.LZ4_RAW, 'one'],
  [Codec.LZ4, 'one'],
  [Codec.LZ4, 'several'],
  [Codec.LZ4, 'bare'],
];
for (const kind of ['wasm', 'scalar'] as const) {
  for (const [codec, framing] of SHAPES) {
    const name = nameOf(Codec, codec);
    const called = `${name}, framing ${framing}, ${kind}`;
    test(`${called}: what was compressed comes back, at once and in pieces`, () => {
      const random = seededRandom();
      for (const sample of samples()) {
        const source = compress(codec, sample, framing);
        for (const step of [source.length, 64 * (1 + random.below(64)), 1 + random.below(40)]) {
          const plain = decompress(kind, codec, source, sample.length, step);
          assert.equal(Buffer.compare(plain, sample), 0, `${sample.length} bytes, ${step} at a time`);
        }
      }
      assert.equal(decompress(kind, codec, compress(codec, new Uint8Array(0), framing), 0).length, 0);
    });

    test(`${called}: cut, damaged, or of another size than declared`, () => {
      const random = seededRandom();
      const sample = samples()[4]!.subarray(0, 5000);
      const source = compress(codec, sample, framing);
      for (const size of [0, 1, sample.length - 1, sample.length + 1, 2 * sample.length]) {
        refused(() => decompress(kind, codec, source, size), name);
      }
      for (let keep = 0; keep < source.length; keep += 1 + random.below(60)) {
        refused(() => decompress(kind, codec, source.subarray(0, keep), sample.length, 64), name);
      }
      for (let turn = 0; turn < 60; turn++) {
        const damaged = Uint8Array.from(source);
        damaged[random.below(damaged.length)]! ^= 1 + random.below(255);
        const outcome = (step: number): string => {
          try {
            return decompress(kind, codec, damaged, sample.length, step).toString('latin1');
          } catch (error) {
            if (!(error instanceof DecodeError)) throw error;
            return error.message;
          }
        };
        assert.equal(outcome(64), outcome(source.length), 'the outcome depends on how the bytes arrive');
      }
    });
  }
}

test('Hadoop frames and bare blocks are told apart by their sizes', () => {
  const blocks = (source: Uint8Array, size: number): number[][] => {
    const found: number[][] = [];
    eachLz4Block(source, size, (...block) => found.push(block));
    return found;
  };
  const plain = Buffer.from('one two three one two three one two three');
  const bare = compress(Codec.LZ4_RAW, plain);
  assert.deepEqual(blocks(bare, plain.length), [[0, bare.length, 0, plain.length]]);
  const framed = compress(Codec.LZ4, plain);
  assert.deepEqual(blocks(framed, plain.length), [[8, framed.length, 0, plain.length]]);
  const two = Buffer.concat([framed, framed]);
  assert.deepEqual(blocks(two, 2 * plain.length), [
    [8, framed.length, 0, plain.length],
    [framed.length + 8, 2 * framed.length, plain.length, 2 * plain.length],
  ]);
  // sizes that do not agree: a block
  assert.deepEqual(blocks(two, plain.length), [[0, two.length, 0, plain.length]]);
  assert.deepEqual(blocks(framed.subarray(0, -1), plain.length), [[0, framed.length - 1, 0, plain.length]]);
});
