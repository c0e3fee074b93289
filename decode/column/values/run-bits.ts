/** Booleans in RLE (parquet-format, Encodings.md, "Run Length Encoding / Bit-Packing Hybrid"). */
import { DecodeError } from '../../errors.ts';
import { DONE, LEVELS, NEED } from '../../kernels/kernels.ts';
import { kernelError } from '../kernel-error.ts';
import { NO_MEMORY, type PageContext, type PageValues, readU32, type ValueTarget } from './page-values.ts';

/** RLE booleans: a 4-byte length, then hybrid runs of width 1. */
export class RunBits implements PageValues {
  readonly layout = 'bits';
  readonly #page: PageContext;
  #scratch: { readonly at: number; readonly taken: number } | undefined;
  #started = false;

  constructor(page: PageContext) {
    this.#page = page;
  }

  decode(window: ValueTarget, count: number): number {
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

const bitmapRoom = (bits: number): number => Math.ceil(bits / 64) * 8 + 8;
