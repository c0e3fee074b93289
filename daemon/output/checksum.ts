/** A SHA-256 of the canonical texts of each column's values (canonical-text.ts), and how many there are. */
import { createHash } from 'node:crypto';
import type { Field, Pool } from '../../decode/index.ts';
import type { Batch } from '../scan/segments.ts';
import { batchRanges, rangeOf, validityOf } from '../scan/slots.ts';
import { canonicalLines } from './canonical-text.ts';
import type { Sink } from './sink.ts';
import { Turns } from './turns.ts';

export interface ColumnChecksum {
  readonly name: string;
  readonly rows: number;
  readonly nulls: number;
  readonly sha256: string;
}

export class ChecksumSink implements Sink {
  readonly #pool: Pool;
  readonly #fields: readonly Field[];
  readonly #columns: ReadonlyArray<{ readonly name: string; rows: number; nulls: number }>;
  readonly #hashes;
  readonly #turns = new Turns();

  constructor(pool: Pool, fields: readonly Field[]) {
    this.#pool = pool;
    this.#fields = fields;
    this.#columns = fields.map(({ name }) => ({ name, rows: 0, nulls: 0 }));
    this.#hashes = fields.map(() => createHash('sha256'));
  }

  async begin(): Promise<void> {}

  async write(batch: Batch): Promise<void> {
    const ranges = batchRanges(batch);
    for (const [k, field] of this.#fields.entries()) {
      const hash = this.#hashes[k]!;
      for (const lines of canonicalLines(this.#pool, field, ranges)) {
        hash.update(lines);
        await this.#turns.give();
      }
      const { segment, start, count } = rangeOf(field, ranges);
      const column = this.#columns[k]!;
      column.rows += count;
      const validity = field.kind === 'leaf' ? segment.validity : validityOf(field, ranges);
      column.nulls += countNulls(this.#pool, validity, start, count);
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
