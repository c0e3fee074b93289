/**
 * A chunk's dictionary page: PLAIN values, decompressed whole, kept for the life of the chunk. Fixed-width entries
 * stay where they were decompressed; byte arrays become offsets and data in a slab of their own, validated once.
 */
import { DecodeError } from '../errors.ts';
import { Encoding, nameOf, Physical } from '../format/enums.ts';
import { BYTES, DONE, type Kernels } from '../kernels/kernels.ts';
import { DICTIONARY_SLACK_BYTES } from '../limits.ts';
import type { Pool } from '../pool/pool.ts';
import { kernelError } from './kernel-error.ts';
import type { Section } from './section.ts';
import type { ChunkSpec, DictionaryValues } from './spec.ts';

export interface Dictionary {
  readonly count: number;
  /** Address of fixed-width entries; 0 for byte arrays. */
  readonly values: number;
  readonly bytes?: DictionaryValues;
  readonly slab: number;
  readonly slabBytes: number;
}

export interface DictionaryStates {
  /** A BYTES state. */
  readonly bytes: number;
  /** 16 bytes. */
  readonly utf8: number;
}

/** Throws DICTIONARY when a dictionary page of `count` values in `encoding` can't be one of this column. */
export function checkDictionaryPage(spec: ChunkSpec, count: number, encoding: number, size: number): void {
  if (encoding !== Encoding.PLAIN && encoding !== Encoding.PLAIN_DICTIONARY) {
    throw new DecodeError('DICTIONARY', `dictionary page with encoding ${nameOf(Encoding, encoding)}`, {
      expected: 'PLAIN or PLAIN_DICTIONARY',
    });
  }
  if (spec.physical === Physical.BOOLEAN) throw new DecodeError('DICTIONARY', 'booleans can not have a dictionary');
  const least = spec.physical === Physical.BYTE_ARRAY ? 4 : fixedWidth(spec);
  if (count * least > size) {
    throw new DecodeError('DICTIONARY', `${count} entries do not fit in a dictionary page of ${size} bytes`);
  }
}

/**
 * The dictionary in a complete section. Takes the section over: on success it is closed or owned by the result.
 * Undefined when the pool has no room now (the section stays as it is). Throws DICTIONARY or VALUE.
 */
export function loadDictionary(
  pool: Pool,
  kernels: Kernels,
  spec: ChunkSpec,
  section: Section,
  count: number,
  states: DictionaryStates,
): Dictionary | undefined {
  if (spec.physical === Physical.BYTE_ARRAY) return loadByteArrays(pool, kernels, spec, section, count, states);
  const bytes = count * fixedWidth(spec);
  if (!section.isBorrowed) {
    const { slab, slabBytes } = section.takeSlab();
    return { count, values: slab, slab, slabBytes };
  }
  const slab = pool.allocate(Math.max(1, bytes));
  if (slab === 0) return undefined;
  pool.u8.copyWithin(slab, section.start, section.start + bytes);
  section.close();
  return { count, values: slab, slab, slabBytes: Math.max(1, bytes) };
}

function loadByteArrays(
  pool: Pool,
  kernels: Kernels,
  spec: ChunkSpec,
  section: Section,
  count: number,
  states: DictionaryStates,
): Dictionary | undefined {
  const offsetBytes = Math.ceil(((count + 1) * 4) / 64) * 64;
  const dataBytes = section.end - section.start - 4 * count;
  const slabBytes = offsetBytes + dataBytes + DICTIONARY_SLACK_BYTES;
  const slab = pool.allocate(slabBytes);
  if (slab === 0) return undefined;
  try {
    const { u32 } = pool;
    const data = slab + offsetBytes;
    const word = states.bytes >>> 2;
    u32[slab >>> 2] = 0;
    u32.fill(0, word, word + (BYTES.size >>> 2));
    u32[word + (BYTES.ip >>> 2)] = section.start;
    u32[word + (BYTES.srcEnd >>> 2)] = section.end;
    u32[word + (BYTES.slot >>> 2)] = slab + 4;
    u32[word + (BYTES.wanted >>> 2)] = count;
    u32[word + (BYTES.op >>> 2)] = data;
    u32[word + (BYTES.dataEnd >>> 2)] = data + dataBytes;
    const code = kernels.plainBytes(states.bytes, section.mark);
    if (code !== DONE) throw kernelError('DICTIONARY', code, 'dictionary page');
    const used = u32[(slab + 4 * count) >>> 2]!;
    if (spec.utf8) checkUtf8(kernels, slab, count, data, data + used, states.utf8);
    section.close();
    const bytes = { slab, slabBytes, count, offsets: slab, data, dataBytes: used };
    return { count, values: 0, bytes, slab, slabBytes };
  } catch (error) {
    pool.free(slab, slabBytes);
    throw error;
  }
}

/** Throws VALUE unless each of `count` byte arrays is valid UTF-8. */
export function checkUtf8(
  kernels: Kernels,
  offsets: number,
  count: number,
  data: number,
  dataEnd: number,
  scratch: number,
): void {
  let code = kernels.utf8(data, dataEnd, scratch);
  if (code === DONE) code = kernels.utf8Starts(offsets, count, data, dataEnd);
  if (code !== DONE) throw kernelError('VALUE', code, 'string column');
}

/** Bytes of a stored value of a fixed-width physical type. */
export function fixedWidth(spec: Pick<ChunkSpec, 'physical' | 'typeLength'>): number {
  switch (spec.physical) {
    case Physical.INT32:
    case Physical.FLOAT:
      return 4;
    case Physical.INT96:
      return 12;
    case Physical.FIXED_LEN_BYTE_ARRAY:
      return spec.typeLength;
    default:
      return 8;
  }
}
