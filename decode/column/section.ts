/**
 * One compressed run of a page's bytes and its decompressed form, both in the pool: a whole V1 or dictionary page, or
 * the values of a V2 page (its levels are a section without codec). It moves a mark: bytes [start, mark) are final,
 * though more input may still be on its way. Snappy, raw LZ4 and uncompressed sections move with every line that
 * arrives; the library codecs and the old LZ4 move once, when all of their input is there.
 */
import { checkRatio, decompressInto } from '../codec/codec.ts';
import { eachLz4Block } from '../codec/lz4-frames.ts';
import { DecodeError } from '../errors.ts';
import { Codec, nameOf } from '../format/enums.ts';
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
  /** Address of SNAPPY.size zeroed or reusable state bytes (LZ4 has the same). */
  readonly blockState: number;
  /** Where to decompress to, when that is not a slab of its own: [target, target + size) is the caller's. */
  readonly target?: number;
  /** Bytes from `target` on that belong to somebody else: put back as they were when the section is closed. */
  readonly lent?: number;
}

/** True for codecs whose blocks a kernel decompresses as they arrive. */
export function isStreamed(codec: Codec): boolean {
  return codec === Codec.SNAPPY || codec === Codec.LZ4_RAW;
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
    if (isStreamed(source.codec)) {
      this.#startBlock(this.#compressed, this.#compressed + (to - from), this.start, this.end);
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
    } else if (isStreamed(codec)) {
      const code = this.#decodeBlock(this.#compressed + (arrived - from));
      this.mark = this.#pool.u32[(this.#source.blockState + SNAPPY.op) >>> 2]!;
      this.#finished = code === DONE;
    } else if (arrived === to) {
      const { u8 } = this.#pool;
      const bytes = u8.subarray(this.#compressed, this.#compressed + (to - from));
      if (codec === Codec.LZ4) this.#decodeLz4Blocks(bytes);
      else decompressInto(codec, bytes, u8.subarray(this.start, this.end));
      this.mark = this.end;
      this.#finished = true;
    }
  }

  #decodeLz4Blocks(bytes: Uint8Array): void {
    eachLz4Block(bytes, this.end - this.start, (start, end, outStart, outEnd) => {
      const blockEnd = this.#compressed + end;
      this.#startBlock(this.#compressed + start, blockEnd, this.start + outStart, this.start + outEnd);
      this.#decodeBlock(blockEnd);
    });
  }

  /** Sets up the kernel for the block in [from, to), which becomes [target, targetEnd). Addresses. */
  #startBlock(from: number, to: number, target: number, targetEnd: number): void {
    const { u32 } = this.#pool;
    const words = this.#source.blockState >>> 2;
    u32.fill(0, words, words + (SNAPPY.size >>> 2));
    u32[words + (SNAPPY.ip >>> 2)] = from;
    u32[words + (SNAPPY.srcEnd >>> 2)] = to;
    u32[words + (SNAPPY.dst >>> 2)] = target;
    u32[words + (SNAPPY.op >>> 2)] = target;
    u32[words + (SNAPPY.dstEnd >>> 2)] = targetEnd;
  }

  /** DONE or NEED, which a block whose end is at the mark never does. */
  #decodeBlock(mark: number): number {
    const { codec, blockState } = this.#source;
    const { snappy, lz4 } = this.#kernels;
    const code = codec === Codec.SNAPPY ? snappy(blockState, mark) : lz4(blockState, mark);
    if (code < 0) throw kernelError('CODEC', code, `${nameOf(Codec, codec)} page`);
    return code;
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
