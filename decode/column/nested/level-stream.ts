/** The repetition or definition levels of one page: hybrid runs to one byte a level, at most `max`. */
import { DecodeError } from '../../errors.ts';
import { E_INDEX, HYBRID, NEED } from '../../kernels/kernels.ts';
import type { LevelRange } from '../data-page.ts';
import type { DecodeEnvironment } from '../environment.ts';
import { kernelError } from '../kernel-error.ts';

/** Bytes of a hybrid state that levels use: no table of pairs. */
export const LEVEL_STATE_BYTES = 2304;

export class LevelStream {
  readonly #environment: DecodeEnvironment;
  readonly #state: number;
  readonly #max: number;
  readonly #what: string;

  constructor(environment: DecodeEnvironment, state: number, max: number, what: string) {
    this.#environment = environment;
    this.#state = state;
    this.#max = max;
    this.#what = what;
  }

  /** A new page's levels. */
  begin({ start, end, width }: LevelRange): void {
    const { u32 } = this.#environment.pool;
    const word = this.#state >>> 2;
    u32.fill(0, word, word + 32);
    u32[word + (HYBRID.ip >>> 2)] = start;
    u32[word + (HYBRID.srcEnd >>> 2)] = end;
    u32[word + (HYBRID.width >>> 2)] = width;
    u32[word + (HYBRID.limit >>> 2)] = this.#max + 1;
  }

  /** Decodes up to `count` levels to `target` as far as `mark`; the number decoded. Throws LEVELS. */
  decode(target: number, count: number, mark: number): number {
    const { pool, kernels } = this.#environment;
    const { u32 } = pool;
    const word = this.#state >>> 2;
    const end = u32[word + (HYBRID.srcEnd >>> 2)]!;
    if (mark < u32[word + (HYBRID.ip >>> 2)]!) return 0; // what comes before is still arriving
    u32[word + (HYBRID.op >>> 2)] = target;
    u32[word + (HYBRID.wanted >>> 2)] = count;
    const code = kernels.hybridU8(this.#state, Math.min(mark, end));
    if (code === E_INDEX) {
      throw new DecodeError('LEVELS', `${this.#what} has a level over its maximum`, {
        expected: `at most ${this.#max}`,
      });
    }
    if (code < 0) throw kernelError('LEVELS', code, this.#what);
    return code === NEED ? count - u32[word + (HYBRID.wanted >>> 2)]! : count;
  }
}
