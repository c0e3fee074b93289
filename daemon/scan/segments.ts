/**
 * Decoded segments on their way to the consumer: counted references, so that a batch may take a part of a segment,
 * and a dictionary outlives the segments that name it. Freeing gives the slab back to the pool.
 */
import { type DictionaryValues, freeSegment, type LeafColumn, type Pool, type Segment } from '../../decode/index.ts';

/** The dictionary of one chunk: freed when its flow is over and no segment names it. */
export class SharedDictionary {
  readonly values: DictionaryValues;
  readonly #pool: Pool;
  #references = 1; // the flow's own

  constructor(pool: Pool, values: DictionaryValues) {
    this.#pool = pool;
    this.values = values;
  }

  retain(): void {
    this.#references++;
  }

  release(): void {
    if (--this.#references === 0) this.#pool.free(this.values.slab, this.values.slabBytes);
  }
}

export class SharedSegment {
  readonly segment: Segment;
  readonly #pool: Pool;
  readonly #dictionary: SharedDictionary | undefined;
  readonly #onFreed: () => void;
  #references = 1; // the queue's

  constructor(pool: Pool, segment: Segment, dictionary: SharedDictionary | undefined, onFreed: () => void) {
    this.#pool = pool;
    this.segment = segment;
    this.#dictionary = dictionary;
    this.#onFreed = onFreed;
    dictionary?.retain();
  }

  retain(): void {
    this.#references++;
  }

  release(): void {
    if (--this.#references > 0) return;
    freeSegment(this.#pool, this.segment);
    this.#dictionary?.release();
    this.#onFreed();
  }
}

/** Rows [start, start + rows) of a segment. */
export interface ColumnSlice {
  readonly column: LeafColumn;
  readonly segment: Segment;
  readonly start: number;
  readonly rows: number;
}

/**
 * Rows of all projected columns, still in the pool. Whoever holds it must release it once; until then its memory
 * counts against the cap.
 */
export class Batch {
  readonly rows: number;
  readonly columns: readonly ColumnSlice[];
  readonly #shared: readonly SharedSegment[];
  readonly #onReleased: () => void;
  #released = false;

  constructor(rows: number, columns: readonly ColumnSlice[], shared: readonly SharedSegment[], onReleased: () => void) {
    this.rows = rows;
    this.columns = columns;
    this.#shared = shared;
    this.#onReleased = onReleased;
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    for (const segment of this.#shared) segment.release();
    this.#onReleased();
  }

  [Symbol.dispose](): void {
    this.release();
  }
}
