/**
 * Rows as lines of text: runs a format's field writers over a batch, row by row, into one of two buffers; while one is
 * being handed over the other is filled. The rows' loop is synchronous and makes no objects.
 */
import type { Field, Pool } from '../../decode/index.ts';
import type { Batch } from '../scan/segments.ts';
import type { Cell, TextField } from './cell.ts';
import { fieldCells } from './field-cells.ts';
import { TEXT_CHUNK_BYTES } from './limits.ts';
import type { Output } from './output.ts';
import type { Sink } from './sink.ts';
import { Turns } from './turns.ts';

/** A format of lines: CSV, NDJSON. */
export interface LineFormat {
  /** Before the first row. */
  readonly head: Uint8Array;
  /** What stands before each field. */
  readonly before: readonly Uint8Array[];
  /** After the last field. */
  readonly after: Uint8Array;
  readonly nothing: Uint8Array;
  field(cell: Cell, memory: Uint8Array): TextField;
}

/** A field of a batch: rows count from the segment's first. */
interface BatchField extends TextField {
  readonly first: number;
  readonly validity: number;
  readonly before: Uint8Array;
}

export class LineSink implements Sink {
  readonly #pool: Pool;
  readonly #fields: readonly Field[];
  readonly #format: LineFormat;
  readonly #output: Output;
  #out = new Uint8Array(TEXT_CHUNK_BYTES);
  #spare = new Uint8Array(TEXT_CHUNK_BYTES);
  #at = 0;
  #handing: Promise<void> = Promise.resolve();
  readonly #turns = new Turns();

  constructor(pool: Pool, fields: readonly Field[], format: LineFormat, output: Output) {
    this.#pool = pool;
    this.#fields = fields;
    this.#format = format;
    this.#output = output;
  }

  async begin(): Promise<void> {
    await this.#output.write(this.#format.head);
  }

  async write(batch: Batch): Promise<void> {
    const fields = fieldCells(this.#pool, this.#fields, batch).map(({ cell, first, validity }, k): BatchField => {
      return { ...this.#format.field(cell, this.#pool.u8), first, validity, before: this.#format.before[k]! };
    });
    for (let row = 0; row < batch.rows; ) {
      row = this.#fill(fields, row, batch.rows);
      if (row < batch.rows) await this.#handOver();
    }
  }

  async end(): Promise<void> {
    await this.#handOver();
    await this.#handing;
  }

  /** Writes rows until the buffer is full; returns the first row that is still to be written. */
  #fill(fields: readonly BatchField[], from: number, rows: number): number {
    const { after, nothing } = this.#format;
    const { u8 } = this.#pool;
    let fixed = after.length;
    for (const field of fields) {
      fixed += field.before.length + nothing.length;
      if (typeof field.bytesMax === 'number') fixed += field.bytesMax;
    }
    const variable = fields.filter((field) => typeof field.bytesMax !== 'number');
    let at = this.#at;
    for (let row = from; row < rows; row++) {
      let need = fixed;
      for (const field of variable) need += (field.bytesMax as (row: number) => number)(field.first + row);
      if (at + need > this.#out.length) {
        if (at > 0) {
          this.#at = at;
          return row;
        }
        this.#out = new Uint8Array(need); // one row that is larger than a buffer
      }
      const out = this.#out;
      for (const field of fields) {
        at = put(field.before, out, at);
        const place = field.first + row;
        const isNull = field.validity !== 0 && ((u8[field.validity + (place >>> 3)]! >>> (place & 7)) & 1) === 0;
        at = isNull ? put(nothing, out, at) : field.write(place, out, at);
      }
      at = put(after, out, at);
    }
    this.#at = at;
    return rows;
  }

  async #handOver(): Promise<void> {
    await this.#handing;
    await this.#turns.give();
    const full = this.#out.subarray(0, this.#at);
    this.#out = this.#spare;
    this.#spare =
      full.buffer.byteLength > TEXT_CHUNK_BYTES ? new Uint8Array(TEXT_CHUNK_BYTES) : new Uint8Array(full.buffer);
    this.#at = 0;
    this.#handing = this.#output.write(full);
    this.#handing.catch(() => {}); // told by the next await
  }
}

function put(bytes: Uint8Array, out: Uint8Array, at: number): number {
  for (let k = 0; k < bytes.length; k++) out[at + k] = bytes[k]!;
  return at + bytes.length;
}
