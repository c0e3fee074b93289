/** Chunks that must be refused: the error's code, its words, and the place that it names. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChunkSpec } from '../column/spec.ts';
import { DecodeError, type DecodeErrorCode } from '../errors.ts';
import { Encoding, Physical } from '../format/enums.ts';
import { assertDecodes, type Feed, LINES, makeEnvironments, runChunk, specOf, WHOLE } from './chunk-run.ts';
import { type ChunkPlan, type PagePlan, type WriterColumn, writeChunk } from './writer/index.ts';

export const environments = makeEnvironments(64 << 20);

export const INT64: WriterColumn = { name: 'the int64', physical: Physical.INT64 };
export const OPTIONAL: WriterColumn = { name: 'the "optional"', physical: Physical.INT64, optional: true };
export const STRING: WriterColumn = { name: 'the string', physical: Physical.BYTE_ARRAY };
export const BOOLEAN: WriterColumn = { name: 'the boolean', physical: Physical.BOOLEAN };

export const NUMBERS = Array.from({ length: 100 }, (_, i) => BigInt(i % 10));
export const GAPS = NUMBERS.map((value, i) => (i % 3 === 0 ? null : value));
export const STRINGS = NUMBERS.map((value) => `string ${value}`);
export const BITS = NUMBERS.map((value) => value % 2n === 0n);

export const DICTIONARY: PagePlan = { type: 'dictionary' };
export const INDEXED: PagePlan = { encoding: Encoding.RLE_DICTIONARY };

export interface Refusal {
  readonly plan: ChunkPlan;
  readonly spec?: Partial<ChunkSpec>;
  readonly code: DecodeErrorCode;
  readonly says: RegExp;
  /** Index of the page whose start the error names; the first when absent, the chunk's end when -1. */
  readonly page?: number;
  /** Bytes that are left of the chunk. */
  readonly cut?: number;
  /** Changes the chunk's bytes. */
  readonly bytes?: (bytes: Uint8Array) => Uint8Array;
}

const BYTES_EACH: Feed = { borders: [70], next: (arrived) => arrived + 1, early: false };

/** A test that the chunk is refused so, by both kernels and however it arrives, and that the next chunk decodes. */
export function refuses(name: string, refusal: Refusal): void {
  test(name, () => assertRefused(refusal));
}

export function assertRefused(refusal: Refusal): void {
  const { plan, code, says } = refusal;
  const chunk = writeChunk(plan);
  let bytes = chunk.bytes.subarray(0, refusal.cut ?? chunk.bytes.length);
  if (refusal.bytes !== undefined) bytes = refusal.bytes(bytes);
  const at = refusal.page === -1 ? bytes.length : chunk.pages[refusal.page ?? 0]!.start;
  const spec = specOf(plan, { ...chunk, bytes }, refusal.spec);
  for (const environment of [environments.wasm, environments.scalar]) {
    for (const feed of [WHOLE, LINES, BYTES_EACH]) {
      assert.throws(
        () => runChunk(environment, spec, bytes, { feed }),
        (error) => {
          assert.ok(error instanceof DecodeError, String((error as Error)?.stack));
          assert.equal(error.code, code, error.message);
          assert.match(error.message, says);
          assert.equal(error.place.column, plan.column.name);
          assert.equal(error.place.offset, spec.fileOffset + at, error.message);
          assert.ok(
            error.message.includes(`column ${JSON.stringify(plan.column.name)}, offset ${spec.fileOffset + at}`),
          );
          return true;
        },
      );
      assertDecodes(environment, { column: OPTIONAL, values: GAPS, pages: [{}] });
    }
  }
}
