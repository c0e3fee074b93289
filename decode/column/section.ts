/**
 * One compressed run of a page's bytes and its decompressed form, both in the pool: a whole V1 or dictionary page, or
 * the values of a V2 page (its levels are a section without codec). It moves a mark: bytes [start, mark) are final,
 * though more input may still be on its way. Snappy and uncompressed sections move with every line that arrives; the
 * library codecs move once, when all of their input is there.
 */
import { checkRatio, decompressInto } from '../codec/codec.ts';
import { DecodeError } from '../errors.ts';
import { Codec } from '../format/enums.ts';
import { DONE, type Kernels, SNAPPY } from '../kernels/kernels.ts';
import type { Pool } from '../pool/pool.ts';
import type { ChunkInput } from './chunk-input.ts';
import { kernelError } from './kernel-error.ts';

export interface SectionSource {
  readonly input: ChunkInput;
  /** Chunk offsets of the compressed bytes. */
  readonly from: number;
  readonly to: number;
  readonly codec: Codec;
  /** Bytes that it declares to decompress to. */
  readonly size: number;
  /** Address of SNAPPY.size zeroed or reusable state bytes. */
  readonly snappyState: number;
}

export class Section {
  readonly start: number;
  readonly end: number;
  /** Address up to which the decompressed bytes are final. */
  mark: number;
  readonly #pool: Pool;
  readonly #kernels: Kernels;
  readonly #source: SectionSource;
  /** Address of the compressed bytes, in the input itself or in a slab that they are gathered in. */
  readonly #sourceAddress: number;
  readonly #gathered: number;
  readonly #target: number;
  #copiedTo: number;
  #finished: boolean;

  private constructor(pool: Pool, kernels: Kernels, source: SectionSource, direct: number, slabs: [number, number]) {
    const [gathered, target] = slabs;
    this.#pool = pool;
    this.#kernels = kernels;
    this.#source = source;
    this.#gathered = gathered;
    this.#target = target;
    this.#sourceAddress = gathered === 0 ? direct : gathered;
    this.#copiedTo = source.from;
    this.start = target === 0 ? this.#sourceAddress : target;
    this.end = this.start + source.size;
    this.mark = this.start;
    this.#finished = source.size === 0 && source.to === source.from;
    if (source.codec === Codec.SNAPPY) {
      const words = source.snappyState >>> 2;
      pool.u32.fill(0, words, words + (SNAPPY.size >>> 2));
      pool.u32[words + (SNAPPY.ip >>> 2)] = this.#sourceAddress;
      pool.u32[words + (SNAPPY.srcEnd >>> 2)] = this.#sourceAddress + (source.to - source.from);
      pool.u32[words + (SNAPPY.dst >>> 2)] = this.start;
      pool.u32[words + (SNAPPY.op >>> 2)] = this.start;
      pool.u32[words + (SNAPPY.dstEnd >>> 2)] = this.end;
    }
  }

  /**
   * Makes ready for the section's bytes. Undefined when the pool has no room now. Throws CODEC or PAGE_HEADER when
   * the sizes contradict each other.
   */
  static open(pool: Pool, kernels: Kernels, source: SectionSource): Section | undefined {
    const { input, from, to, codec, size } = source;
    if (codec === Codec.UNCOMPRESSED && size !== to - from) {
      throw new DecodeError('PAGE_HEADER', `uncompressed page of ${to - from} bytes declares ${size}`);
    }
    checkRatio(codec, to - from, size);
    const direct = to > from ? input.addressOf(from, to) : 0;
    const mustGather = to > from && direct === 0;
    const gathered = mustGather ? pool.allocate(to - from) : 0;
    if (mustGather && gathered === 0) return undefined;
    const mustDecompress = codec !== Codec.UNCOMPRESSED && size > 0;
    const target = mustDecompress ? pool.allocate(size) : 0;
    if (mustDecompress && target === 0) {
      if (gathered !== 0) pool.free(gathered, to - from);
      return undefined;
    }
    return new Section(pool, kernels, source, direct, [gathered, target]);
  }

  /** True when the decompressed bytes lie in the input, which goes away when it is consumed. */
  get isBorrowed(): boolean {
    return this.#target === 0 && this.#gathered === 0;
  }

  /** True when every byte is final. */
  get isComplete(): boolean {
    return this.#finished;
  }

  /** Takes in what has arrived. Throws CODEC with the section's place in the chunk as offset. */
  advance(): void {
    if (this.#finished) return;
    const { input, from, to, codec } = this.#source;
    const arrived = Math.min(input.arrived, to);
    if (arrived <= from && to > from) return;
    if (this.#gathered !== 0 && arrived > this.#copiedTo) {
      input.copy(this.#copiedTo, arrived, this.#gathered + (this.#copiedTo - from));
      this.#copiedTo = arrived;
    }
    const whole = arrived === to;
    if (codec === Codec.UNCOMPRESSED) {
      this.mark = this.start + (arrived - from);
      this.#finished = whole;
    } else if (codec === Codec.SNAPPY) {
      this.#advanceSnappy(this.#sourceAddress + (arrived - from));
    } else if (whole) {
      const { u8 } = this.#pool;
      const bytes = u8.subarray(this.#sourceAddress, this.#sourceAddress + (to - from));
      decompressInto(codec, bytes, u8.subarray(this.start, this.end));
      this.mark = this.end;
      this.#finished = true;
    }
  }

  #advanceSnappy(sourceMark: number): void {
    const code = this.#kernels.snappy(this.#source.snappyState, sourceMark);
    if (code < 0) throw kernelError('CODEC', code, 'SNAPPY page');
    this.mark = this.#pool.u32[(this.#source.snappyState + SNAPPY.op) >>> 2]!;
    this.#finished = code === DONE;
  }

  close(): void {
    if (this.#gathered !== 0) this.#pool.free(this.#gathered, this.#source.to - this.#source.from);
    if (this.#target !== 0) this.#pool.free(this.#target, this.#source.size);
  }

  /** Hands the decompressed bytes over to the caller, who frees [start, end) as a slab; only when not borrowed. */
  takeSlab(): { slab: number; slabBytes: number } {
    const { from, to, size } = this.#source;
    if (this.#target !== 0) {
      if (this.#gathered !== 0) this.#pool.free(this.#gathered, to - from);
      return { slab: this.#target, slabBytes: size };
    }
    return { slab: this.#gathered, slabBytes: to - from };
  }
}
