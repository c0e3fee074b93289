/**
 * Levels in the deprecated BIT_PACKED encoding (parquet-format, Encodings.md, "Bit-packed (Deprecated)"): packed from
 * the most significant bit, no length before them. They become one bit-packed run of the hybrid: of single bits for
 * flat columns, whose levels go straight to a bitmap, of whole bytes for nested ones.
 */
import { DecodeError } from '../errors.ts';
import { DONE } from '../kernels/kernels.ts';
import type { DecodeEnvironment } from './environment.ts';
import { kernelError } from './kernel-error.ts';

/** Bytes of a hybrid header: a variable-length integer of 32 bits. */
const HEADER_BYTES_MAX = 5;

export class BitPackedLevels {
  /** Bytes that they take in the page. */
  readonly bytes: number;
  readonly #environment: DecodeEnvironment;
  readonly #count: number;
  readonly #width: number;
  readonly #max: number;
  readonly #asBits: boolean;
  readonly #slab: number;
  readonly #slabBytes: number;
  #end = 0;

  private constructor(environment: DecodeEnvironment, count: number, width: number, max: number, asBits: boolean) {
    this.#environment = environment;
    this.#count = count;
    this.#width = width;
    this.#max = max;
    this.#asBits = asBits;
    this.bytes = Math.ceil((count * width) / 8);
    this.#slabBytes = 64 + Math.ceil(count / 64) * 64 + (asBits ? 64 + Math.ceil(count / 64) * 8 : 0);
    this.#slab = environment.pool.allocate(this.#slabBytes);
  }

  /**
   * Room for `count` levels of a page that has `pageBytes` bytes. Undefined when the pool has none now. Throws LEVELS
   * when the page can't hold them.
   */
  static open(
    environment: DecodeEnvironment,
    levels: { readonly count: number; readonly width: number; readonly max: number; readonly asBits: boolean },
    pageBytes: number,
  ): BitPackedLevels | undefined {
    const { count, width, max, asBits } = levels;
    if (count * width > pageBytes * 8) {
      throw new DecodeError('LEVELS', `${count} bit-packed levels in a page of ${pageBytes} bytes`);
    }
    const made = new BitPackedLevels(environment, count, width, max, asBits);
    return made.#slab === 0 ? undefined : made;
  }

  /** Address after the hybrid run, once it was made. */
  get end(): number {
    return this.#end;
  }

  /** Makes the run from the levels at `source`, all of which have arrived. Throws LEVELS. */
  load(source: number): { readonly start: number; readonly end: number; readonly width: number } {
    const { kernels } = this.#environment;
    const count = this.#count;
    const padding = this.bytes * 8 - count * this.#width;
    if (padding > 0 && (this.#environment.pool.u8[source + this.bytes - 1]! & ((1 << padding) - 1)) !== 0) {
      // an old Impala packed from the other end: its levels would come out in the wrong places
      throw new DecodeError('LEVELS', 'bit-packed levels have padding that is not 0', {
        expected: 'levels packed from the most significant bit',
      });
    }
    const levels = this.#slab + 64;
    const code = kernels.bitPackedLevels(source, source + this.bytes, this.#width, count, levels, this.#max + 1);
    if (code !== DONE) throw kernelError('LEVELS', code, 'bit-packed levels');
    if (!this.#asBits) return this.#run(levels, Math.ceil(count / 8) * 8, 8);
    const bitmap = levels + Math.ceil(count / 64) * 64 + 64;
    kernels.nestedValidity(0, levels, count, 255, 0, 1, bitmap);
    return this.#run(bitmap, Math.ceil(count / 8), 1);
  }

  /** Writes the header before the packed groups at `packed`. */
  #run(packed: number, bytes: number, width: number): { start: number; end: number; width: number } {
    const { u8 } = this.#environment.pool;
    const header: number[] = [];
    let value = Math.ceil(this.#count / 8) * 2 + 1;
    for (; value >= 128; value = Math.floor(value / 128)) header.push((value % 128) | 128);
    header.push(value);
    const start = packed - header.length;
    if (header.length > HEADER_BYTES_MAX) throw new Error(`a hybrid header of ${header.length} bytes`);
    u8.set(header, start);
    this.#end = packed + bytes;
    return { start, end: this.#end, width };
  }

  close(): void {
    this.#environment.pool.free(this.#slab, this.#slabBytes);
  }
}
