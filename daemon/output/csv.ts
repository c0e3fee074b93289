/**
 * CSV with a header line: RFC 4180's quotes, lines that end with LF. A null is an empty field, an empty text is `""`; groups, lists
 * and maps are JSON.
 */
import type { Field } from '../../decode/index.ts';
import { type ByteSpan, type Cell, copyBytes, type TextField } from './cell.ts';
import type { LineFormat } from './row-text.ts';

const QUOTE = 34;
const COMMA = 44;

/** Characters that put a field in quotes. */
const SPECIAL = new Uint8Array(256);
for (const c of '",\n\r') SPECIAL[c.charCodeAt(0)] = 1;

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

export function csvFormat(fields: readonly Field[]): LineFormat {
  return {
    head: bytesOf(`${fields.map((field) => csvText(field.name)).join(',')}\n`),
    before: fields.map((_, k) => (k === 0 ? new Uint8Array(0) : Uint8Array.of(COMMA))),
    after: bytesOf('\n'),
    nothing: new Uint8Array(0),
    field: csvField,
  };
}

function csvField(cell: Cell, pool: Uint8Array): TextField {
  const { span, bytesMax, memory = pool } = cell;
  if (span === undefined) {
    if (typeof bytesMax === 'number') return { bytesMax, write: cell.write };
    return {
      bytesMax: (row) => bytesMax(row) + 2,
      write: (row, out, at) => orEmpty(out, at, cell.write(row, out, at)),
    };
  }
  return {
    bytesMax: (row) => 2 * (span.end(row) - span.start(row)) + 2,
    write: (row, out, at) => writeText(span, memory, row, out, at),
  };
}

/** Bytes without any are not a null. */
function orEmpty(out: Uint8Array, at: number, end: number): number {
  if (end > at) return end;
  out[at] = QUOTE;
  out[at + 1] = QUOTE;
  return at + 2;
}

function writeText(span: ByteSpan, memory: Uint8Array, row: number, out: Uint8Array, at: number): number {
  const from = span.start(row);
  const to = span.end(row);
  let special = from === to;
  for (let k = from; k < to && !special; k++) special = SPECIAL[memory[k]!] === 1;
  if (!special) return copyBytes(memory, from, to, out, at);
  let place = at;
  out[place++] = QUOTE;
  for (let k = from; k < to; k++) {
    const byte = memory[k]!;
    if (byte === QUOTE) out[place++] = QUOTE;
    out[place++] = byte;
  }
  out[place++] = QUOTE;
  return place;
}

function csvText(text: string): string {
  return text === '' || /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
