/**
 * The bytes of one page as they are in the file, at one address: where they lie, when one piece of the input holds
 * all of them, else gathered in a slab of their own while they arrive, so that the pieces they came in can go.
 */
import type { Pool } from '../pool/pool.ts';
import type { ChunkInput } from './chunk-input.ts';

export class PageBody {
  /** Chunk offsets. */
  readonly from: number;
  readonly to: number;
  /** Address of the byte at `from`. */
  readonly address: number;
  readonly #pool: Pool;
  readonly #input: ChunkInput;
  readonly #gathered: boolean;
  #copiedTo: number;

  private constructor(pool: Pool, input: ChunkInput, from: number, to: number, address: number, gathered: boolean) {
    this.#pool = pool;
    this.#input = input;
    this.from = from;
    this.to = to;
    this.address = address;
    this.#gathered = gathered;
    this.#copiedTo = from;
  }

  /** Chunk bytes [from, to), arrived or not. Undefined when the pool has no room to gather them now. */
  static open(pool: Pool, input: ChunkInput, from: number, to: number): PageBody | undefined {
    const direct = to > from ? input.addressOf(from, to) : 0;
    if (direct !== 0 || to === from) return new PageBody(pool, input, from, to, direct, false);
    const slab = pool.allocate(to - from);
    return slab === 0 ? undefined : new PageBody(pool, input, from, to, slab, true);
  }

  /** Chunk offset up to which the bytes are at their address. */
  get arrived(): number {
    return this.#gathered ? this.#copiedTo : Math.max(this.from, Math.min(this.#input.arrived, this.to));
  }

  get isComplete(): boolean {
    return this.arrived === this.to;
  }

  /** Takes in what has arrived. */
  advance(): void {
    if (!this.#gathered) {
      this.#input.take(this.arrived);
      return;
    }
    const arrived = Math.min(this.#input.arrived, this.to);
    if (arrived <= this.#copiedTo) return;
    this.#input.copy(this.#copiedTo, arrived, this.address + (this.#copiedTo - this.from));
    this.#copiedTo = arrived;
    this.#input.release(arrived);
  }

  close(): void {
    if (this.#gathered) this.#pool.free(this.address, this.to - this.from);
  }
}
