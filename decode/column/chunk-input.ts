/**
 * The bytes of one column chunk as they arrive: pieces in the pool, in order, and a mark up to which bytes are there.
 * A large chunk comes in several pieces; what lies across a border is copied by who needs it in one piece. It owns
 * nothing: the pieces belong to the fetch side, which frees them when `consumed` has passed them.
 */
import { LINE_BYTES } from '../limits.ts';
import type { Pool } from '../pool/pool.ts';
import type { InputPiece } from './spec.ts';

export class ChunkInput {
  /** Chunk bytes [0, consumed) are not needed any more. */
  consumed = 0;
  /** Chunk bytes [0, taken) have gone into pages. */
  #taken = 0;
  readonly #pool: Pool;
  #pieces: InputPiece[] = [];
  #arrived = 0;
  /** End of the last piece that was added. */
  #end = 0;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /** Chunk bytes [0, arrived) are there. */
  get arrived(): number {
    return this.#arrived;
  }

  /** Never past the last piece: the mark may be seen before the message that brings its piece. */
  set arrived(bytes: number) {
    this.#arrived = Math.min(bytes, this.#end);
  }

  /** Lines of the chunk that have been taken in, a begun one counted whole. */
  get beats(): number {
    return Math.ceil(this.#taken / LINE_BYTES);
  }

  /** A page goes on with the chunk bytes before `taken`. */
  take(taken: number): void {
    if (taken > this.#taken) this.#taken = taken;
  }

  /** The next piece; it begins where the last one ended. */
  add(piece: InputPiece): void {
    this.#pieces.push(piece);
    this.#end = piece.end;
  }

  /** Forgets pieces that end at or before `consumed`. */
  release(consumed: number): void {
    this.consumed = consumed;
    this.take(consumed);
    while (this.#pieces.length > 0 && this.#pieces[0]!.end <= consumed) this.#pieces.shift();
  }

  /** Address of chunk bytes [start, end) when they lie in one piece that is already here or on its way, else 0. */
  addressOf(start: number, end: number): number {
    for (const piece of this.#pieces) {
      if (start < piece.start) return 0;
      if (start < piece.end) return end <= piece.end ? piece.address + (start - piece.start) : 0;
    }
    return 0;
  }

  /** End of the piece that holds chunk byte `at`, or `at` when there is none. */
  pieceEnd(at: number): number {
    for (const piece of this.#pieces) if (at >= piece.start && at < piece.end) return piece.end;
    return at;
  }

  /** Copies the arrived chunk bytes [start, end) to the pool at `target`. */
  copy(start: number, end: number, target: number): void {
    for (const piece of this.#pieces) {
      const from = Math.max(start, piece.start);
      const to = Math.min(end, piece.end);
      if (from >= to) continue;
      const source = piece.address + (from - piece.start);
      this.#pool.u8.copyWithin(target + (from - start), source, source + (to - from));
    }
  }

  /** A private copy of the arrived chunk bytes [start, end). */
  slice(start: number, end: number): Uint8Array {
    const copy = new Uint8Array(end - start);
    for (const piece of this.#pieces) {
      const from = Math.max(start, piece.start);
      const to = Math.min(end, piece.end);
      if (from >= to) continue;
      const source = piece.address + (from - piece.start);
      copy.set(this.#pool.u8.subarray(source, source + (to - from)), from - start);
    }
    return copy;
  }
}
