/**
 * DELTA_BYTE_ARRAY (incremental strings): the lengths of the prefixes that values share with the value before them,
 * the lengths of their suffixes, both as delta streams, then the suffixes. Also on FIXED_LEN_BYTE_ARRAY, where every
 * value must come out at the type's length.
 */
import { DecodeError } from '../../errors.ts';
import { DELTA_BYTES, DONE, FULL, NEED } from '../../kernels/kernels.ts';
import { kernelError } from '../kernel-error.ts';
import type { SegmentLayout } from '../spec.ts';
import { DeltaStream } from './delta-stream.ts';
import { NO_MEMORY, type PageContext, type PageValues, type ValueTarget } from './page-values.ts';

/** Bytes that must be readable from the start of the value before, whatever its length. */
const PREVIOUS_SLACK_BYTES = 16;

export class DeltaBytes implements PageValues {
  readonly layout: SegmentLayout;
  readonly #page: PageContext;
  readonly #prefixes: DeltaStream;
  readonly #suffixes: DeltaStream;
  /** Prefix lengths, suffix lengths, and for fixed-width values their end offsets. */
  #slab = 0;
  #slabBytes = 0;
  #prefixesDecoded = 0;
  #suffixesDecoded = 0;
  /** Address of the next suffix, once all lengths are known. */
  #suffixAt = 0;
  #given = 0;
  #window: ValueTarget | undefined;
  /** The last value, kept when its window goes away. */
  #kept: Uint8Array = new Uint8Array(0);
  #keptSlab = 0;
  #keptBytes = 0;
  #last: { readonly address: number; readonly length: number } | undefined;

  constructor(page: PageContext) {
    this.#page = page;
    this.layout = page.width > 0 ? 'fixed' : 'bytes';
    this.#prefixes = new DeltaStream(page, 32);
    this.#suffixes = new DeltaStream(page, 32);
  }

  decode(window: ValueTarget, count: number): number {
    if (count === 0) return DONE;
    const loaded = this.#loadLengths();
    if (loaded !== DONE) return loaded;
    if (count > this.#prefixes.total - this.#given) {
      throw new DecodeError('PAGE', `lengths end after ${this.#prefixes.total} values`, {
        expected: 'a value for every level',
      });
    }
    if (this.#window !== window && !this.#enterWindow(window)) return NO_MEMORY;
    const fitting = this.#fitting(window, count);
    if (fitting === 0) return FULL;
    const code = this.#run(window, fitting);
    if (code !== DONE) return code;
    return fitting === count ? DONE : FULL;
  }

  #prefix(value: number): number {
    return this.#page.pool.u32[(this.#slab >>> 2) + value]!;
  }

  #suffix(value: number): number {
    return this.#page.pool.u32[(this.#slab >>> 2) + this.#prefixes.total + value]!;
  }

  /** How many of the next `count` values have room in the window. */
  #fitting(window: ValueTarget, count: number): number {
    if (this.#page.width > 0) return count;
    const { u32 } = this.#page.pool;
    let room = window.dataEnd - window.dataStart - u32[(window.values >>> 2) + window.dense]!;
    const prefixes = (this.#slab >>> 2) + this.#given;
    const suffixes = prefixes + this.#prefixes.total;
    let fits = 0;
    for (; fits < count; fits++) {
      room -= u32[prefixes + fits]! + u32[suffixes + fits]!;
      if (room < 0) break;
    }
    return fits;
  }

  #run(window: ValueTarget, count: number): number {
    const { pool, kernels, section, states, width } = this.#page;
    const { u32 } = pool;
    const fixed = width > 0;
    const word = states.delta >>> 2;
    const dataStart = fixed ? window.values : window.dataStart;
    const at = fixed ? window.dense * width : u32[(window.values >>> 2) + window.dense]!;
    const slot = fixed ? this.#endsAddress() : window.values + 4 + window.dense * 4;
    const last = this.#last ?? { address: this.#keptSlab, length: this.#kept.length };
    u32[word + (DELTA_BYTES.ip >>> 2)] = this.#suffixAt;
    u32[word + (DELTA_BYTES.srcEnd >>> 2)] = section.end;
    u32[word + (DELTA_BYTES.slot >>> 2)] = slot;
    u32[word + (DELTA_BYTES.wanted >>> 2)] = count;
    u32[word + (DELTA_BYTES.op >>> 2)] = dataStart + at;
    u32[word + (DELTA_BYTES.dataEnd >>> 2)] = fixed ? dataStart + at + count * width : window.dataEnd;
    u32[word + (DELTA_BYTES.at >>> 2)] = at;
    u32[word + (DELTA_BYTES.prefixes >>> 2)] = this.#slab + this.#given * 4;
    u32[word + (DELTA_BYTES.suffixes >>> 2)] = this.#slab + (this.#prefixes.total + this.#given) * 4;
    u32[word + (DELTA_BYTES.previous >>> 2)] = last.address;
    u32[word + (DELTA_BYTES.previousLength >>> 2)] = last.length;
    const code = kernels.deltaBytes(states.delta, section.mark);
    if (code < 0) throw kernelError('PAGE', code, 'incremental byte arrays');
    const given = (u32[word + (DELTA_BYTES.slot >>> 2)]! - slot) / 4;
    if (fixed) this.#checkWidths(slot, at, given);
    this.#suffixAt = u32[word + (DELTA_BYTES.ip >>> 2)]!;
    this.#given += given;
    window.dense += given;
    if (given > 0) {
      this.#last = {
        address: u32[word + (DELTA_BYTES.previous >>> 2)]!,
        length: u32[word + (DELTA_BYTES.previousLength >>> 2)]!,
      };
    }
    return given === count ? DONE : NEED;
  }

  #endsAddress(): number {
    return this.#slab + this.#prefixes.total * 8;
  }

  #checkWidths(slot: number, at: number, given: number): void {
    const { pool, width } = this.#page;
    for (let k = 0; k < given; k++) {
      if (pool.u32[(slot >>> 2) + k] === at + (k + 1) * width) continue;
      throw new DecodeError('PAGE', 'an incremental value has another length than its type', {
        expected: `${width} bytes`,
      });
    }
  }

  /** Another window than the last value's: takes that value along. False when memory is short. */
  #enterWindow(window: ValueTarget): boolean {
    const { pool } = this.#page;
    const bytes = this.#kept.length + PREVIOUS_SLACK_BYTES;
    if (this.#keptBytes < bytes) {
      const slab = pool.allocate(bytes);
      if (slab === 0) return false;
      if (this.#keptSlab !== 0) pool.free(this.#keptSlab, this.#keptBytes);
      this.#keptSlab = slab;
      this.#keptBytes = bytes;
    }
    pool.u8.set(this.#kept, this.#keptSlab);
    this.#window = window;
    return true;
  }

  /** Told before the window is given out: from then on its memory is another's. */
  leaveWindow(): void {
    this.#window = undefined;
    if (this.#last === undefined) return;
    const { address, length } = this.#last;
    this.#kept = this.#page.pool.u8.slice(address, address + length);
    this.#last = undefined;
  }

  /** DONE, NEED or NO_MEMORY. */
  #loadLengths(): number {
    if (this.#suffixAt !== 0) return DONE;
    const { pool, start, width } = this.#page;
    if (!this.#prefixes.begin(start)) return NEED;
    const { total } = this.#prefixes;
    if (this.#slab === 0) {
      this.#slabBytes = Math.max(4, total * (width > 0 ? 12 : 8));
      this.#slab = pool.allocate(this.#slabBytes);
      if (this.#slab === 0) return NO_MEMORY;
    }
    const prefixes = this.#load(this.#prefixes, this.#slab, this.#prefixesDecoded);
    this.#prefixesDecoded += prefixes.given;
    if (!this.#prefixes.isOver) return prefixes.code;
    if (this.#suffixes.total < 0) {
      if (!this.#suffixes.begin(this.#prefixes.end)) return NEED;
      if (this.#suffixes.total !== total) {
        throw new DecodeError('PAGE', `${this.#suffixes.total} suffix lengths`, { expected: `${total}, as prefixes` });
      }
    }
    const suffixes = this.#load(this.#suffixes, this.#slab + total * 4, this.#suffixesDecoded);
    this.#suffixesDecoded += suffixes.given;
    if (!this.#suffixes.isOver) return suffixes.code;
    this.#suffixAt = this.#suffixes.end;
    return DONE;
  }

  #load(stream: DeltaStream, target: number, decoded: number): { readonly code: number; readonly given: number } {
    if (stream.isOver) return { code: DONE, given: 0 };
    return stream.decode(target + decoded * 4, stream.left);
  }

  /** Throws PAGE for lengths that can't be: they would ask for any amount of memory. */
  needBytes(): number {
    const prefix = this.#prefix(this.#given);
    const suffix = this.#suffix(this.#given);
    const previous = this.#last?.length ?? this.#kept.length;
    if (prefix > previous || suffix > this.#page.section.end - this.#suffixAt) {
      throw new DecodeError('PAGE', `an incremental value of ${prefix} + ${suffix} bytes`, {
        expected: `at most ${previous} bytes of the value before and what the page has`,
      });
    }
    return prefix + suffix;
  }

  end(): void {
    if (this.#prefixes.total > this.#given) {
      throw new DecodeError('PAGE', `${this.#prefixes.total - this.#given} lengths more than the page's levels have`);
    }
  }

  close(): void {
    const { pool } = this.#page;
    if (this.#slab !== 0) pool.free(this.#slab, this.#slabBytes);
    if (this.#keptSlab !== 0) pool.free(this.#keptSlab, this.#keptBytes);
    this.#slab = 0;
    this.#keptSlab = 0;
  }
}
