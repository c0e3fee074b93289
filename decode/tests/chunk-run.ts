/**
 * Runs a chunk's decoder in a test the way a stream's worker does: bytes arrive in pieces and steps, consumed pieces
 * go away, segments are taken and freed. Bytes that have not arrived are garbage, and what is freed becomes garbage,
 * so that reading too far or too late gives wrong values. In the end the pool must be as it was.
 */
import assert from 'node:assert/strict';
import { ChunkDecoder } from '../column/chunk-decoder.ts';
import type { DecodeEnvironment } from '../column/environment.ts';
import { freeSegment } from '../column/free-segment.ts';
import type { ChunkSpec, DictionaryValues, InputPiece, Segment } from '../column/spec.ts';
import { Physical } from '../format/enums.ts';
import { loadKernels } from '../kernels/load.ts';
import { Pool } from '../pool/pool.ts';
import type { SeededRandom } from './random.ts';
import {
  type ChunkPlan,
  type ColumnValue,
  valueBytes,
  type WriterColumn,
  type WrittenChunk,
  writeChunk,
} from './writer/index.ts';

/** One value as bytes (a boolean is one byte), or null. */
export type DecodedValue = Buffer | null;

export interface Feed {
  /** Chunk offsets at which a new piece of input begins. */
  readonly borders: readonly number[];
  /** Bytes that have arrived next, more than `arrived`. */
  readonly next: (arrived: number, total: number) => number;
  /** Every piece is announced before its bytes arrive, not with them. */
  readonly early: boolean;
}

export const WHOLE: Feed = { borders: [], next: (_, total) => total, early: true };
export const LINES: Feed = { borders: [], next: (arrived) => arrived + 64, early: true };

/** Random steps, in up to `pieces` pieces of random sizes. */
export function randomFeed(random: SeededRandom, total: number, pieces: number): Feed {
  const step = 1 + random.below(random.below(3) === 0 ? 20 : 2000);
  return {
    borders: Array.from({ length: random.below(pieces) }, () => random.below(total + 1)),
    next: (arrived) => arrived + 1 + random.below(step),
    early: random.below(2) === 0,
  };
}

export interface RunOptions {
  readonly feed?: Feed;
  /** Called when a step answers 'memory'; without it that is a failure. */
  readonly onMemory?: () => void;
  /** Called after each segment with all values so far; false ends the run midway. */
  readonly onSegment?: (rows: number, arrived: number) => boolean;
  /** Called with the list of values, which grows, before the first step. */
  readonly onStart?: (values: DecodedValue[]) => void;
}

export interface RunResult {
  readonly values: DecodedValue[];
  /** Rows of each segment, in order. */
  readonly segments: number[];
  readonly layouts: string[];
  /** Bytes of data of each segment of byte arrays. */
  readonly dataBytes: number[];
}

/** A pool full of garbage, with the kernels of both kinds on it. */
export function makeEnvironments(bytes: number): { pool: Pool; wasm: DecodeEnvironment; scalar: DecodeEnvironment } {
  const pool = Pool.create(bytes);
  const slab = pool.allocate(pool.capacityBytes);
  pool.u8.fill(0xa5, slab, slab + pool.capacityBytes);
  pool.free(slab, pool.capacityBytes);
  const wasm = { pool, kernels: loadKernels(pool.memory, 'wasm'), verifyChecksums: true };
  const scalar = { pool, kernels: loadKernels(pool.memory, 'scalar'), verifyChecksums: true };
  return { pool, wasm, scalar };
}

/** The spec under which a footer would describe the chunk. */
export function specOf(plan: ChunkPlan, chunk: WrittenChunk, change: Partial<ChunkSpec> = {}): ChunkSpec {
  const { column } = plan;
  return {
    columnName: column.name,
    physical: column.physical as Physical,
    typeLength: column.typeLength ?? 0,
    maxDefinitionLevel: column.optional ? 1 : 0,
    codec: (plan.codec ?? 0) as ChunkSpec['codec'],
    numValues: chunk.numValues,
    byteLength: chunk.bytes.length,
    fileOffset: 1000,
    uncompressedBytes: chunk.uncompressedBytes,
    utf8: false,
    bytesOutput: 'values',
    windowRows: 4096,
    ...change,
  };
}

export function expectedValues(column: WriterColumn, values: readonly ColumnValue[]): DecodedValue[] {
  return values.map((value) => (value === null ? null : Buffer.from(valueBytes(column, value))));
}

/** Writes the chunk, decodes it, and fails unless the values are those that were written. */
export function assertDecodes(
  environment: DecodeEnvironment,
  plan: ChunkPlan,
  change: Partial<ChunkSpec> = {},
  options: RunOptions = {},
): RunResult {
  const chunk = writeChunk(plan);
  const spec = specOf(plan, chunk, change);
  const result = runChunk(environment, spec, chunk.bytes, options);
  assertSameValues(result.values, expectedValues(plan.column, plan.values));
  for (const rows of result.segments) assert.ok(rows > 0 && rows <= spec.windowRows, `a segment of ${rows} rows`);
  return result;
}

export function assertSameValues(actual: readonly DecodedValue[], expected: readonly DecodedValue[]): void {
  assert.equal(actual.length, expected.length, 'rows');
  for (const [row, value] of expected.entries()) {
    const got = actual[row]!;
    const same = value === null || got === null ? value === got : value.equals(got);
    if (!same) assert.fail(`row ${row} is ${got?.toString('hex')} instead of ${value?.toString('hex')}`);
  }
}

/** Decodes; throws what the decoder throws. Fails when it leaves memory behind or asks for more than there is. */
export function runChunk(
  environment: DecodeEnvironment,
  spec: ChunkSpec,
  bytes: Uint8Array,
  options: RunOptions = {},
): RunResult {
  const result: RunResult = { values: [], segments: [], layouts: [], dataBytes: [] };
  options.onStart?.(result.values);
  driveChunk(environment, spec, bytes, options, (segment) => {
    collect(environment.pool, spec, segment, result);
    return result.values.length;
  });
  return result;
}

/** The same, with each segment going to `take`, which returns the rows so far. */
export function driveChunk(
  environment: DecodeEnvironment,
  spec: ChunkSpec,
  bytes: Uint8Array,
  options: RunOptions,
  take: (segment: Segment) => number,
): void {
  const { pool } = environment;
  const usedBefore = pool.usedBytes;
  const given = new Set<DictionaryValues>();
  const decoder = new ChunkDecoder(environment, spec);
  const input = new Input(pool, bytes, options.feed ?? WHOLE, decoder.input);
  try {
    for (;;) {
      assert.equal(decoder.isDone && decoder.step() !== 'end', false, 'isDone before the end');
      const step = decoder.step();
      if (step === 'end') break;
      if (step === 'input') input.more();
      else if (step === 'memory') {
        assert.ok(options.onMemory, `no memory for ${pool.refusedBytes} bytes`);
        options.onMemory();
      } else {
        const segment = decoder.takeSegment();
        if (segment.dictionary !== undefined) given.add(segment.dictionary);
        let rows: number;
        try {
          rows = take(segment);
        } finally {
          pool.u8.fill(0xdb, segment.slab, segment.slab + segment.slabBytes);
          for (const slab of segment.nested?.slabs ?? []) pool.u8.fill(0xdb, slab.address, slab.address + slab.bytes);
          freeSegment(pool, segment);
        }
        if (options.onSegment?.(rows, decoder.input.arrived) === false) break;
      }
      input.release();
    }
    assert.ok(decoder.isDone || options.onSegment !== undefined);
  } finally {
    decoder.close();
    input.close();
    for (const dictionary of given) pool.free(dictionary.slab, dictionary.slabBytes);
    assert.ok(given.size <= 1, 'one dictionary');
    assert.equal(pool.usedBytes, usedBefore, 'bytes of the pool in use after close');
  }
}

/** The fetch side: pieces in slabs of the pool, at addresses that are not aligned. */
class Input {
  readonly #pool: Pool;
  readonly #bytes: Uint8Array;
  readonly #feed: Feed;
  readonly #decoderInput: ChunkDecoder['input'];
  readonly #pieces: (InputPiece & { readonly slab: number; readonly slabBytes: number })[] = [];
  #added = 0;
  #freed = 0;

  constructor(pool: Pool, bytes: Uint8Array, feed: Feed, decoderInput: ChunkDecoder['input']) {
    this.#pool = pool;
    this.#bytes = bytes;
    this.#feed = feed;
    this.#decoderInput = decoderInput;
    const ends = [...new Set([...feed.borders, bytes.length])].sort((a, b) => a - b).filter((end) => end > 0);
    let start = 0;
    for (const end of ends) {
      const shift = (start * 7) % 64;
      const slabBytes = end - start + shift;
      const slab = pool.allocate(slabBytes);
      assert.ok(slab > 0, 'room for the input');
      pool.u8.fill(0x5a, slab, slab + slabBytes);
      this.#pieces.push({ slab, slabBytes, address: slab + shift, start, end });
      start = end;
    }
    if (feed.early) this.#add(bytes.length);
  }

  #add(to: number): void {
    for (; this.#added < this.#pieces.length && this.#pieces[this.#added]!.start < to; this.#added++) {
      this.#decoderInput.add(this.#pieces[this.#added]!);
    }
  }

  more(): void {
    const from = this.#decoderInput.arrived;
    assert.ok(from < this.#bytes.length, 'input is asked for though all has arrived');
    const to = Math.min(this.#bytes.length, this.#feed.next(from, this.#bytes.length));
    this.#add(to);
    for (const piece of this.#pieces) {
      const start = Math.max(from, piece.start);
      const end = Math.min(to, piece.end);
      if (start < end) this.#pool.u8.set(this.#bytes.subarray(start, end), piece.address + (start - piece.start));
    }
    this.#decoderInput.arrived = to;
  }

  release(): void {
    while (this.#freed < this.#added && this.#pieces[this.#freed]!.end <= this.#decoderInput.consumed) this.#free();
  }

  close(): void {
    while (this.#freed < this.#pieces.length) this.#free();
  }

  #free(): void {
    const { slab, slabBytes } = this.#pieces[this.#freed++]!;
    this.#pool.u8.fill(0xee, slab, slab + slabBytes);
    this.#pool.free(slab, slabBytes);
  }
}

/** Copies a segment's values out, checking that it is well-formed Arrow inside its slab. */
function collect(pool: Pool, spec: ChunkSpec, segment: Segment, result: RunResult): void {
  const { u8, u32 } = pool;
  const { rows, slab, slabBytes, layout, width } = segment;
  const inside = (at: number, bytes: number): void =>
    assert.ok(at >= slab && at + bytes <= slab + slabBytes, `${bytes} bytes at ${at} in slab ${slab}+${slabBytes}`);
  const isNull = (row: number): boolean =>
    segment.validity !== 0 && ((u8[segment.validity + (row >>> 3)]! >>> (row & 7)) & 1) === 0;
  assert.equal(segment.validity === 0, segment.nullCount === 0);
  assert.equal(segment.values % 64, 0);
  if (segment.validity !== 0) inside(segment.validity, Math.ceil(rows / 8));
  inside(segment.values, layout === 'bits' ? Math.ceil(rows / 8) : layout === 'bytes' ? rows * 4 + 4 : rows * width);
  if (layout === 'bytes') {
    inside(segment.data, segment.dataBytes);
    assert.equal(u32[segment.values >>> 2], 0);
    assert.equal(u32[(segment.values >>> 2) + rows], segment.dataBytes);
  }
  assert.equal(layout === 'bits', spec.physical === Physical.BOOLEAN);
  if (layout === 'indices') assert.equal(spec.bytesOutput, 'dictionary');
  let nulls = 0;
  for (let row = 0; row < rows; row++) {
    const value = valueAt(pool, segment, row);
    if (!isNull(row)) {
      result.values.push(value);
      continue;
    }
    nulls++;
    result.values.push(null);
    // the slot of a null is empty or zero
    if (layout === 'indices') assert.equal(u32[(segment.values >>> 2) + row], 0);
    else
      assert.ok(
        value.every((byte) => byte === 0),
        `null slot of row ${row}`,
      );
    if (layout === 'bytes') assert.equal(value.length, 0);
  }
  assert.equal(nulls, segment.nullCount);
  result.segments.push(rows);
  result.layouts.push(layout);
  result.dataBytes.push(segment.dataBytes);
}

function valueAt(pool: Pool, segment: Segment, row: number): Buffer {
  const { u8, u32 } = pool;
  const { layout, values, width } = segment;
  if (layout === 'fixed') return Buffer.from(u8.slice(values + row * width, values + (row + 1) * width));
  if (layout === 'bits') return Buffer.from([(u8[values + (row >>> 3)]! >>> (row & 7)) & 1]);
  const word = (values >>> 2) + row;
  if (layout === 'bytes') {
    const [from, to] = [u32[word]!, u32[word + 1]!];
    assert.ok(from <= to && to <= segment.dataBytes, `offsets ${from}, ${to}`);
    return Buffer.from(u8.slice(segment.data + from, segment.data + to));
  }
  const { dictionary } = segment;
  assert.ok(dictionary, 'indices without a dictionary');
  const index = u32[word]!;
  if (index >= dictionary.count) {
    assert.equal(index, 0, 'index in the dictionary'); // a dictionary may be empty when all is null
    return Buffer.alloc(0);
  }
  const entry = (dictionary.offsets >>> 2) + index;
  return Buffer.from(u8.slice(dictionary.data + u32[entry]!, dictionary.data + u32[entry + 1]!));
}
