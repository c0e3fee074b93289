/**
 * Rows as a table for people: aligned, cut to the terminal's width, columns that do not fit named below. The first rows
 * decide the widths, so that any number of rows can go through; control characters in values are shown, not sent.
 */
import type { Field, Pool } from '../../decode/index.ts';
import type { Batch } from '../scan/segments.ts';
import { fieldCells } from './field-cells.ts';
import { TABLE_CELL_CHARACTERS, TABLE_SAMPLE_ROWS } from './limits.ts';
import type { Output } from './output.ts';
import { cutText, padText, printable, textWidth } from './printable.ts';
import type { Sink } from './sink.ts';

const GAP = '  ';

export class TableSink implements Sink {
  readonly #pool: Pool;
  readonly #fields: readonly Field[];
  readonly #names: readonly string[];
  readonly #output: Output;
  /** Columns of the terminal; Infinity where there is none. */
  readonly #width: number;
  readonly #right: boolean[] = [];
  #sample: string[][] = [];
  #widths: number[] | undefined;

  constructor(pool: Pool, fields: readonly Field[], output: Output, width: number) {
    this.#pool = pool;
    this.#fields = fields;
    this.#names = fields.map((field) => cutText(printable(field.name), TABLE_CELL_CHARACTERS));
    this.#output = output;
    this.#width = width;
  }

  async begin(): Promise<void> {}

  async write(batch: Batch): Promise<void> {
    const cells = fieldCells(this.#pool, this.#fields, batch);
    for (const [k, { cell }] of cells.entries()) this.#right[k] = cell.kind === 'number' || cell.kind === 'float';
    const { u8 } = this.#pool;
    for (let row = 0; row < batch.rows; row++) {
      const texts = cells.map(({ cell, first, validity }) => {
        const place = first + row;
        if (validity !== 0 && ((u8[validity + (place >>> 3)]! >>> (place & 7)) & 1) === 0) return 'NULL';
        const { bytesMax, span, memory = u8 } = cell;
        // Of a long text only the beginning is looked at: a character takes at most four bytes.
        if (span !== undefined) {
          const from = span.start(place);
          const bytes = memory.slice(from, Math.min(span.end(place), from + 4 * TABLE_CELL_CHARACTERS + 4));
          return cutText(printable(Buffer.from(bytes).toString('utf8')), TABLE_CELL_CHARACTERS);
        }
        const out = Buffer.allocUnsafe(typeof bytesMax === 'number' ? bytesMax : bytesMax(place));
        return cutText(out.toString('latin1', 0, cell.write(place, out, 0)), TABLE_CELL_CHARACTERS);
      });
      await this.#row(texts);
    }
  }

  async end(): Promise<void> {
    if (this.#widths === undefined) await this.#startTable();
    const shown = this.#shown;
    const hidden = this.#names.slice(shown);
    if (hidden.length === 0) return;
    const names = cutText(hidden.join(', '), Math.max(20, Math.min(this.#width, 200) - 45));
    await this.#print(`${hidden.length} more columns, --columns chooses: ${names}\n`);
  }

  get #shown(): number {
    let used = 0;
    for (const [k, width] of this.#widths!.entries()) {
      used += width + (k === 0 ? 0 : GAP.length);
      if (used > this.#width && k > 0) return k;
    }
    return this.#widths!.length;
  }

  async #row(texts: string[]): Promise<void> {
    if (this.#widths === undefined) {
      this.#sample.push(texts);
      if (this.#sample.length >= TABLE_SAMPLE_ROWS) await this.#startTable();
    } else await this.#print(this.#line(texts));
  }

  async #startTable(): Promise<void> {
    this.#widths = this.#names.map((name, k) => {
      const widest = this.#sample.reduce((most, row) => Math.max(most, textWidth(row[k]!)), textWidth(name));
      return Math.min(widest, this.#width);
    });
    const rules = this.#widths.map((width) => '─'.repeat(width));
    const lines = [this.#names, rules, ...this.#sample].map((row) => this.#line(row));
    this.#sample = [];
    await this.#print(lines.join(''));
  }

  #line(texts: readonly string[]): string {
    const cells = texts.slice(0, this.#shown).map((text, k) => {
      const width = this.#widths![k]!;
      return padText(cutText(text, width), width, this.#right[k] ?? false);
    });
    return `${cells.join(GAP).trimEnd()}\n`;
  }

  async #print(text: string): Promise<void> {
    await this.#output.write(Buffer.from(text));
  }
}
