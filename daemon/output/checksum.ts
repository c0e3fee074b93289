/** A SHA-256 of the canonical texts of each column's values (canonical-text.ts), and how many there are. */
import { createHash } from 'node:crypto';
import type { LeafColumn, Pool } from '../../decode/index.ts';
import type { Batch } from '../scan/segments.ts';
import { canonicalLines } from './canonical-text.ts';
import type { Sink } from './sink.ts';

export interface ColumnChecksum {
  readonly name: string;
  readonly rows: number;
  readonly nulls: number;
  readonly sha256: string;
}

export class ChecksumSink implements Sink {
  readonly #pool: Pool;
  readonly #columns: ReadonlyArray<{ readonly name: string; rows: number; nulls: number }>;
  readonly #hashes;

  constructor(pool: Pool, columns: readonly LeafColumn[]) {
    this.#pool = pool;
    this.#columns = columns.map(({ name }) => ({ name, rows: 0, nulls: 0 }));
    this.#hashes = columns.map(() => createHash('sha256'));
  }

  async begin(): Promise<void> {}

  async write(batch: Batch): Promise<void> {
    for (const [k, slice] of batch.columns.entries()) {
      this.#hashes[k]!.update(canonicalLines(this.#pool, slice));
      const column = this.#columns[k]!;
      column.rows += slice.rows;
      column.nulls += countNulls(this.#pool, slice.segment.validity, slice.start, slice.rows);
    }
  }

  async end(): Promise<void> {}

  /** After `end`; once. */
  checksums(): ColumnChecksum[] {
    return this.#columns.map((column, k) => ({ ...column, sha256: this.#hashes[k]!.digest('hex') }));
  }
}

function countNulls({ u8 }: Pool, validity: number, start: number, rows: number): number {
  if (validity === 0) return 0;
  let nulls = 0;
  for (let row = start; row < start + rows; row++) nulls += 1 - ((u8[validity + (row >>> 3)]! >>> (row & 7)) & 1);
  return nulls;
}
