/**
 * One read of a file over queue pairs: cut into READs, its contiguous front reported as it grows, settled once. Keeps the
 * books on bytes: what landed beyond the reported front of a read that failed is of no use to anybody.
 */
import type { FetchError } from '../errors.ts';
import type { FileVersion, ReadOptions } from './transport.ts';

export interface Piece {
  readonly task: ReadTask;
  readonly start: number;
  readonly length: number;
  /** Bytes from its start that have landed and may be used. */
  arrived: number;
  done: boolean;
}

export class ReadTask {
  readonly file: FileVersion;
  /** Of the file. */
  readonly start: number;
  readonly into: Uint8Array;
  /** Address of the first byte in the region that is served now. */
  address: number;
  /** Pieces cut off so far, in order; those before `#front` are complete and dropped. */
  readonly #pieces: Piece[] = [];
  #cut = 0;
  #arrived = 0;
  #landed = 0;
  #error: FetchError | undefined;
  #settled = false;
  /** Pieces that were given up and whose destination is still in use. */
  #busy = 0;
  readonly #options: ReadOptions;
  readonly #done: (error: FetchError | undefined, discarded: number) => void;

  constructor(
    read: { file: FileVersion; start: number; into: Uint8Array; address: number },
    options: ReadOptions,
    done: (error: FetchError | undefined, discarded: number) => void,
  ) {
    this.file = read.file;
    this.start = read.start;
    this.into = read.into;
    this.address = read.address;
    this.#options = options;
    this.#done = done;
  }

  get path(): string {
    return this.file.path;
  }

  /** Whether there still are bytes to ask for. */
  get hasMore(): boolean {
    return this.#error === undefined && this.#cut < this.into.byteLength;
  }

  get settled(): boolean {
    return this.#settled;
  }

  /** The next piece of at most `bytesMax`. */
  cut(bytesMax: number): Piece {
    const start = this.#cut;
    const length = Math.min(bytesMax, this.into.byteLength - start);
    this.#cut += length;
    const piece = { task: this, start, length, arrived: 0, done: false };
    this.#pieces.push(piece);
    return piece;
  }

  /** The first `bytes` of a piece may be used. */
  progress(piece: Piece, bytes: number): void {
    piece.arrived = bytes;
    if (piece === this.#pieces[0] && this.#error === undefined) this.#report(piece.start + bytes);
  }

  /** A piece has completed with success. */
  complete(piece: Piece, landed: number): void {
    this.#landed += landed;
    piece.arrived = piece.length;
    piece.done = true;
    if (this.#error !== undefined) return;
    while (this.#pieces[0]?.done) this.#pieces.shift();
    const front = this.#pieces[0];
    this.#report(front === undefined ? this.#cut : front.start + front.arrived);
    if (front === undefined && this.#cut === this.into.byteLength) this.#settle();
  }

  /** The read can't succeed any more; `landed` bytes came for the piece that failed. The first error counts. */
  fail(error: FetchError, landed: number): void {
    this.#landed += landed;
    this.#error ??= error;
  }

  /** Bytes that came for a piece that was given up. */
  count(landed: number): void {
    this.#landed += landed;
  }

  /** A piece is given up; the read settles after what is returned has been called: nothing lands in it any more. */
  hold(): () => void {
    this.#busy++;
    return () => {
      this.#busy--;
      this.settleIfFree();
    };
  }

  /** Settles a failed read when its destination is not in use any more. */
  settleIfFree(): void {
    if (this.#error !== undefined && this.#busy === 0) this.#settle();
  }

  #report(arrived: number): void {
    if (arrived <= this.#arrived) return;
    this.#arrived = arrived;
    this.#options.onArrived?.(arrived);
  }

  #settle(): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#done(this.#error, this.#landed - (this.#error === undefined ? this.#landed : this.#arrived));
  }
}
