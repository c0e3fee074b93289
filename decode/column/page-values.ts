/**
 * Values of one data page, decoded densely to the window: one decoder per encoding behind one interface. Each is
 * resumable: it consumes up to the section's mark and says whether it needs more.
 */
import { DecodeError } from '../errors.ts';
import { Encoding, nameOf, Physical } from '../format/enums.ts';
import { BYTES, DONE, HYBRID, type Kernels, LEVELS, NEED } from '../kernels/kernels.ts';
import type { Pool } from '../pool/pool.ts';
import { kernelError } from './kernel-error.ts';
import type { Section } from './section.ts';
import type { SegmentLayout } from './spec.ts';
import type { Window } from './window.ts';

/** Addresses of kernel states that belong to one decoder. */
export interface DecoderStates {
  readonly boolRuns: number;
  readonly bytes: number;
  readonly hybrid: number;
}

/** The chunk's dictionary as page decoders see it. */
export interface LoadedDictionary {
  readonly count: number;
  /** Address of fixed-width entries; 0 for byte arrays. */
  readonly values: number;
}

export interface PageContext {
  readonly pool: Pool;
  readonly kernels: Kernels;
  readonly states: DecoderStates;
  readonly section: Section;
  /** Address of the first byte of the values. */
  readonly start: number;
  /** Bytes of a value as it is stored. */
  readonly width: number;
}

/** Beside DONE, NEED and FULL: scratch memory did not fit; nothing was consumed, ask again when some was freed. */
export const NO_MEMORY = 3;

export interface PageValues {
  /** The layout of the window that these values go to. */
  readonly layout: SegmentLayout;
  /** Appends up to `count` values to the window (advancing `window.dense`). DONE, NEED, FULL or NO_MEMORY; throws on bad input. */
  decode(window: Window, count: number): number;
  /** Gives back scratch memory. */
  close(): void;
}

/** PLAIN values of a fixed width: INT32, INT64, INT96, FLOAT, DOUBLE, FIXED_LEN_BYTE_ARRAY. */
class PlainFixed implements PageValues {
  readonly layout = 'fixed';
  readonly #page: PageContext;
  #at: number;

  constructor(page: PageContext) {
    this.#page = page;
    this.#at = page.start;
  }

  decode(window: Window, count: number): number {
    const { kernels, section, width } = this.#page;
    const there = width === 0 ? count : Math.floor((section.mark - this.#at) / width);
    const take = Math.min(count, there);
    if (take > 0) {
      const target = window.values + window.dense * width;
      if (target !== this.#at) kernels.copy(target, this.#at, take * width); // else decompressed in place
      this.#at += take * width;
      window.dense += take;
    }
    if (take === count) return DONE;
    if (section.isComplete) throw new DecodeError('PAGE', 'PLAIN values end before the page has all of its values');
    return NEED;
  }

  close(): void {}
}

/** PLAIN booleans: one bit a value, least significant first. */
class PlainBits implements PageValues {
  readonly layout = 'bits';
  readonly #page: PageContext;
  #bit = 0;

  constructor(page: PageContext) {
    this.#page = page;
  }

  decode(window: Window, count: number): number {
    const { kernels, section, start } = this.#page;
    const take = Math.min(count, (section.mark - start) * 8 - this.#bit);
    if (take > 0) {
      kernels.copyBits(start, this.#bit, window.values, window.dense, take);
      this.#bit += take;
      window.dense += take;
    }
    if (take === count) return DONE;
    if (section.isComplete) throw new DecodeError('PAGE', 'PLAIN booleans end before the page has all of its values');
    return NEED;
  }

  close(): void {}
}

/** RLE booleans: a 4-byte length, then hybrid runs of width 1. */
class RunBits implements PageValues {
  readonly layout = 'bits';
  readonly #page: PageContext;
  #scratch: { readonly at: number; readonly taken: number } | undefined;
  #started = false;

  constructor(page: PageContext) {
    this.#page = page;
  }

  decode(window: Window, count: number): number {
    const { pool, kernels, section, states, start } = this.#page;
    const { u32 } = pool;
    const word = states.boolRuns >>> 2;
    if (!this.#started) {
      if (section.mark - start < 4) {
        if (section.isComplete) throw new DecodeError('PAGE', 'RLE booleans have no length');
        return NEED;
      }
      const length = readU32(pool, start);
      if (length > section.end - start - 4) throw new DecodeError('PAGE', 'RLE booleans are longer than their page');
      u32.fill(0, word, word + (LEVELS.size >>> 2));
      u32[word + (LEVELS.ip >>> 2)] = start + 4;
      u32[word + (LEVELS.srcEnd >>> 2)] = start + 4 + length;
      this.#started = true;
    }
    if (count === 0) return DONE;
    // The kernel writes whole words from a word's start, so the bits go to scratch memory first.
    if (this.#scratch === undefined) {
      const at = pool.allocate(bitmapRoom(count));
      if (at === 0) return NO_MEMORY;
      this.#scratch = { at, taken: count };
      u32[word + (LEVELS.op >>> 2)] = at;
      u32[word + (LEVELS.wanted >>> 2)] = count;
      u32[word + (LEVELS.pendingBits >>> 2)] = 0;
      u32[word + (LEVELS.pendingWord >>> 2)] = 0;
      u32[word + (LEVELS.pendingWord >>> 2) + 1] = 0;
    }
    const end = u32[word + (LEVELS.srcEnd >>> 2)]!;
    const code = kernels.levelBitmap(states.boolRuns, Math.min(section.mark, end));
    if (code === NEED) return NEED;
    if (code < 0) throw kernelError('PAGE', code, 'RLE booleans');
    const { at, taken } = this.#scratch;
    kernels.flushBits(states.boolRuns);
    kernels.copyBits(at, 0, window.values, window.dense, taken);
    window.dense += taken;
    this.close();
    return DONE;
  }

  close(): void {
    if (this.#scratch === undefined) return;
    this.#page.pool.free(this.#scratch.at, bitmapRoom(this.#scratch.taken));
    this.#scratch = undefined;
  }
}

/** PLAIN BYTE_ARRAY values: a 4-byte length before each. */
class PlainBytes implements PageValues {
  readonly layout = 'bytes';
  readonly #page: PageContext;
  #at: number;
  #window: Window | undefined;
  /** 1 while the bytes of a value whose length is known are still arriving. */
  #pending = 0;

  constructor(page: PageContext) {
    this.#page = page;
    this.#at = page.start;
  }

  decode(window: Window, count: number): number {
    const { pool, kernels, section, states } = this.#page;
    const { u32 } = pool;
    const word = states.bytes >>> 2;
    if (section.mark < this.#at) return NEED; // levels are still arriving
    if (this.#window !== window) {
      // a new page, or a new window: the state follows the input here and the output there
      u32[word + (BYTES.ip >>> 2)] = this.#at;
      u32[word + (BYTES.srcEnd >>> 2)] = section.end;
      u32[word + (BYTES.slot >>> 2)] = window.values + 4 + window.dense * 4;
      u32[word + (BYTES.at >>> 2)] = u32[(window.values + window.dense * 4) >>> 2]!;
      u32[word + (BYTES.op >>> 2)] = window.dataStart + u32[word + (BYTES.at >>> 2)]!;
      u32[word + (BYTES.dataEnd >>> 2)] = window.dataEnd;
      u32[word + (BYTES.valueLeft >>> 2)] = 0;
      this.#window = window;
    }
    u32[word + (BYTES.wanted >>> 2)] = count - this.#pending;
    const code = kernels.plainBytes(states.bytes, section.mark);
    if (code < 0) throw kernelError('PAGE', code, 'PLAIN byte arrays');
    const slot = u32[word + (BYTES.slot >>> 2)]!;
    this.#pending = u32[word + (BYTES.valueLeft >>> 2)]! > 0 ? 1 : 0;
    window.dense = (slot - window.values) / 4 - 1 - this.#pending;
    this.#at = u32[word + (BYTES.ip >>> 2)]!;
    return code;
  }

  close(): void {}
}

/** Bytes that the value which did not fit needs; `ip` stands on its length. */
export function nextValueBytes(page: PageContext): number {
  return readU32(page.pool, page.pool.u32[(page.states.bytes + BYTES.ip) >>> 2]!);
}

/** Dictionary-encoded values: a byte with the bit width, then hybrid runs of indices. */
class DictionaryIndices implements PageValues {
  readonly layout: SegmentLayout;
  readonly #page: PageContext;
  readonly #dictionary: LoadedDictionary;
  #started = false;
  /** Indices of values that have no gathering kernel, until they are gathered. */
  #scratch: { readonly at: number; readonly taken: number } | undefined;

  constructor(page: PageContext, dictionary: LoadedDictionary) {
    this.#page = page;
    this.#dictionary = dictionary;
    this.layout = dictionary.values === 0 ? 'indices' : 'fixed';
  }

  decode(window: Window, count: number): number {
    const { pool, section, states, start } = this.#page;
    const { u32 } = pool;
    const word = states.hybrid >>> 2;
    if (!this.#started) {
      if (count === 0) return DONE;
      if (section.mark <= start) {
        if (section.isComplete) throw new DecodeError('PAGE', 'dictionary indices have no bit width');
        return NEED;
      }
      u32.fill(0, word, word + 32);
      u32[word + (HYBRID.ip >>> 2)] = start + 1;
      u32[word + (HYBRID.srcEnd >>> 2)] = section.end;
      u32[word + (HYBRID.width >>> 2)] = pool.u8[start]!;
      u32[word + (HYBRID.dictionary >>> 2)] = this.#dictionary.values;
      u32[word + (HYBRID.limit >>> 2)] = this.#dictionary.count;
      this.#started = true;
    }
    return this.#decodeRuns(window, count, word);
  }

  #decodeRuns(window: Window, count: number, word: number): number {
    const { pool, kernels, section, states, width } = this.#page;
    const { u32 } = pool;
    const wide = this.layout === 'fixed' && width !== 4 && width !== 8;
    if (wide) return this.#decodeWide(window, count, word);
    const size = this.layout === 'indices' ? 4 : width;
    const target = window.values + window.dense * size;
    u32[word + (HYBRID.op >>> 2)] = target;
    u32[word + (HYBRID.wanted >>> 2)] = count;
    const code =
      this.layout === 'indices'
        ? kernels.hybridU32(states.hybrid, section.mark)
        : width === 8
          ? kernels.hybridDict8(states.hybrid, section.mark)
          : kernels.hybridDict4(states.hybrid, section.mark);
    if (code < 0) throw kernelError('DICTIONARY', code, 'dictionary-encoded page');
    window.dense += count - u32[word + (HYBRID.wanted >>> 2)]!;
    return code;
  }

  #decodeWide(window: Window, count: number, word: number): number {
    const { pool, kernels, section, states, width } = this.#page;
    const { u32 } = pool;
    if (this.#scratch === undefined) {
      const at = pool.allocate(count * 4);
      if (at === 0) return NO_MEMORY;
      this.#scratch = { at, taken: count };
      u32[word + (HYBRID.op >>> 2)] = at;
      u32[word + (HYBRID.wanted >>> 2)] = count;
    }
    const { at, taken } = this.#scratch;
    const code = kernels.hybridU32(states.hybrid, section.mark);
    if (code === NEED) return NEED;
    if (code < 0) throw kernelError('DICTIONARY', code, 'dictionary-encoded page');
    kernels.gatherWide(at, taken, this.#dictionary.values, width, window.values + window.dense * width);
    window.dense += taken;
    this.close();
    return DONE;
  }

  close(): void {
    if (this.#scratch === undefined) return;
    this.#page.pool.free(this.#scratch.at, this.#scratch.taken * 4);
    this.#scratch = undefined;
  }
}

/** The decoder of a data page's values. Throws UNSUPPORTED, DICTIONARY or PAGE_HEADER. */
export function openPageValues(
  page: PageContext,
  encoding: number,
  physical: number,
  dictionary: LoadedDictionary | undefined,
): PageValues {
  switch (encoding) {
    case Encoding.PLAIN:
      if (physical === Physical.BOOLEAN) return new PlainBits(page);
      return physical === Physical.BYTE_ARRAY ? new PlainBytes(page) : new PlainFixed(page);
    case Encoding.PLAIN_DICTIONARY:
    case Encoding.RLE_DICTIONARY:
      if (physical === Physical.BOOLEAN) {
        throw new DecodeError('PAGE_HEADER', 'booleans can not be dictionary-encoded');
      }
      if (dictionary === undefined) {
        throw new DecodeError('DICTIONARY', 'a dictionary-encoded page comes before any dictionary page');
      }
      return new DictionaryIndices(page, dictionary);
    case Encoding.RLE:
      if (physical === Physical.BOOLEAN) return new RunBits(page);
      throw new DecodeError('PAGE_HEADER', `encoding RLE on ${nameOf(Physical, physical)}`, { expected: 'BOOLEAN' });
    default:
      throw new DecodeError('UNSUPPORTED', `encoding ${nameOf(Encoding, encoding)} is not supported`);
  }
}

const bitmapRoom = (bits: number): number => Math.ceil(bits / 64) * 8 + 8;

export function readU32(pool: Pool, address: number): number {
  const { u8 } = pool;
  return (u8[address]! | (u8[address + 1]! << 8) | (u8[address + 2]! << 16) | (u8[address + 3]! << 24)) >>> 0;
}
