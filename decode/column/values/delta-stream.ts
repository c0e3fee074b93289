/**
 * One DELTA_BINARY_PACKED run (parquet-format, Encodings.md, "Delta encoding"): a header with the count of all its
 * values, then blocks. The kernel wants the count beforehand, so it is read here first.
 */
import { DecodeError } from '../../errors.ts';
import { DELTA, DONE } from '../../kernels/kernels.ts';
import { kernelError } from '../kernel-error.ts';
import type { PageContext } from './page-values.ts';

/** Bytes of the longest header: four variable-length integers. */
const HEADER_BYTES_MAX = 40;

export class DeltaStream {
  readonly #page: PageContext;
  readonly #bits: 32 | 64;
  /** Values in the stream by its header; -1 until that has arrived. */
  total = -1;
  #given = 0;
  #done = false;

  constructor(page: PageContext, bits: 32 | 64) {
    this.#page = page;
    this.#bits = bits;
  }

  /** True when every value was decoded and the padding after the last is stepped over. */
  get isOver(): boolean {
    return this.#done;
  }

  get left(): number {
    return this.total - this.#given;
  }

  /** Address after the stream, once it is over. */
  get end(): number {
    return this.#page.pool.u32[(this.#page.states.delta + DELTA.ip) >>> 2]!;
  }

  /** Reads the header at `start`: false while it has not arrived. Throws PAGE. */
  begin(start: number): boolean {
    if (this.total >= 0) return true;
    const { pool, section, states } = this.#page;
    const total = this.#readTotal(start);
    if (total < 0) return false;
    const word = states.delta >>> 2;
    pool.u32.fill(0, word, word + (DELTA.size >>> 2));
    pool.u32[word + (DELTA.ip >>> 2)] = start;
    pool.u32[word + (DELTA.srcEnd >>> 2)] = section.end;
    pool.u32[word + (DELTA.total >>> 2)] = total;
    this.total = total;
    return true;
  }

  /** The third integer of the header; -1 while it has not arrived. */
  #readTotal(start: number): number {
    const { pool, section } = this.#page;
    const end = Math.min(section.mark, start + HEADER_BYTES_MAX);
    let at = start;
    for (let field = 0; field < 3; field++) {
      let value = 0;
      for (let shift = 0; ; shift += 7) {
        if (at >= end) {
          if (section.isComplete) throw new DecodeError('PAGE', 'the page ends inside a delta header');
          return -1;
        }
        const byte = pool.u8[at++]!;
        value += (byte & 127) * 2 ** shift;
        if (byte < 128) break;
        if (shift >= 63) throw new DecodeError('PAGE', 'a delta header has an over-long integer');
      }
      if (field === 2) {
        if (value > 0x7fffffff) throw new DecodeError('PAGE', `a delta header counts ${value} values`);
        return value;
      }
    }
    return -1;
  }

  /** Decodes up to `count` values to `target`; the number decoded. Throws PAGE. */
  decode(target: number, count: number): { readonly code: number; readonly given: number } {
    const { pool, kernels, section, states } = this.#page;
    if (count > this.left) {
      throw new DecodeError('PAGE', `delta values end after ${this.total}`, { expected: 'a value for every level' });
    }
    const word = states.delta >>> 2;
    pool.u32[word + (DELTA.op >>> 2)] = target;
    pool.u32[word + (DELTA.wanted >>> 2)] = count;
    const kernel = this.#bits === 32 ? kernels.delta32 : kernels.delta64;
    const code = kernel(states.delta, section.mark);
    if (code < 0) throw kernelError('PAGE', code, 'delta-encoded page');
    const bytes = pool.u32[word + (DELTA.op >>> 2)]! - target;
    const given = bytes / (this.#bits / 8);
    this.#given += given;
    if (code === DONE && this.left === 0) this.#done = true;
    return { code, given };
  }
}
