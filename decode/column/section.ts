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
import { kernelError } from './kernel-error.ts';
import type { PageBody } from './page-body.ts';

export interface SectionSource {
  readonly body: PageBody;
  /** Chunk offsets of the compressed bytes, within the body. */
  readonly from: number;
  readonly to: number;
  readonly codec: Codec;
  /** Bytes that it declares to decompress to. */
  readonly size: number;
  /** Address of SNAPPY.size zeroed or reusable state bytes. */
  readonly snappyState: number;
  /** Where to decompress to, when that is not a slab of its own: [target, target + size) is the caller's. */
  readonly target?: number;
  /** Bytes from `target` on that belong to somebody else: put back as they were when the section is closed. */
  readonly lent?: number;
}

export class Section {
  readonly start: number;
  readonly end: number;
  /** Address up to which the decompressed bytes are final. */
  mark: number;
  readonly #pool: Pool;
  readonly #kernels: Kernels;
  readonly #source: SectionSource;
  /** Address of the compressed bytes. */
  readonly #compressed: number;
  /** The slab that they are decompressed to; 0 when they are not compressed. */
  readonly #target: number;
  readonly #lent: Uint8Array | undefined;
  #finished: boolean;

  private constructor(pool: Pool, kernels: Kernels, source: SectionSource, target: number) {
    const { body, from, to, size } = source;
    this.#pool = pool;
    this.#kernels = kernels;
    this.#source = source;
    this.#target = target;
    this.#compressed = body.address + (from - body.from);
    this.start = target === 0 ? this.#compressed : target;
    this.end = this.start + size;
    this.mark = this.start;
    this.#lent = source.lent === undefined ? undefined : pool.u8.slice(target, target + source.lent);
    this.#finished = size === 0 && to === from;
    if (source.codec === Codec.SNAPPY) {
      const words = source.snappyState >>> 2;
      pool.u32.fill(0, words, words + (SNAPPY.size >>> 2));
      pool.u32[words + (SNAPPY.ip >>> 2)] = this.#compressed;
      pool.u32[words + (SNAPPY.srcEnd >>> 2)] = this.#compressed + (to - from);
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
    const { from, to, codec, size } = source;
    if (codec === Codec.UNCOMPRESSED && size !== to - from) {
      throw new DecodeError('PAGE_HEADER', `uncompressed page of ${to - from} bytes declares ${size}`);
    }
    checkRatio(codec, to - from, size);
    if (codec === Codec.UNCOMPRESSED || size === 0) return new Section(pool, kernels, source, 0);
    const target = source.target ?? pool.allocate(size);
    return target === 0 ? undefined : new Section(pool, kernels, source, target);
  }

  /** True when the bytes lie in the page's body, which goes away with it. */
  get isBorrowed(): boolean {
    return this.#target === 0;
  }

  /** True when every byte is final. */
  get isComplete(): boolean {
    return this.#finished;
  }

  /** Takes in what the body has. Throws CODEC. */
  advance(): void {
    if (this.#finished) return;
    const { body, from, to, codec } = this.#source;
    const arrived = Math.min(body.arrived, to);
    // a section without bytes (which may lie past what has arrived) is judged when its place is reached
    if (arrived < from || (arrived === from && to > from)) return;
    if (codec === Codec.UNCOMPRESSED) {
      this.mark = this.start + (arrived - from);
      this.#finished = arrived === to;
    } else if (codec === Codec.SNAPPY) {
      this.#advanceSnappy(this.#compressed + (arrived - from));
    } else if (arrived === to) {
      const { u8 } = this.#pool;
      const bytes = u8.subarray(this.#compressed, this.#compressed + (to - from));
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
    if (this.#lent !== undefined) this.#pool.u8.set(this.#lent, this.#target);
    if (this.#target !== 0 && this.#source.target === undefined) this.#pool.free(this.#target, this.#source.size);
  }

  /** Hands the decompressed bytes over to the caller, who frees them as a slab; only when not borrowed. */
  takeSlab(): { slab: number; slabBytes: number } {
    return { slab: this.#target, slabBytes: this.#source.size };
  }
}
