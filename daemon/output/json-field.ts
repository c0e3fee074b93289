/** A cell's value in JSON: quotes, escapes, and NaN and Infinity as texts, which JSON has no numbers for. */
import type { ByteSpan, Cell, CellWriter, TextField } from './cell.ts';
import { COUNTED_TEXT_BYTES } from './limits.ts';

const QUOTE = 34;
const BACKSLASH = 92;
const MINUS = 45;
const I = 73;
const N = 78;

/** For bytes that can't stand in a JSON string: what stands for them, in bytes. */
const ESCAPES: (Uint8Array | undefined)[] = Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH) return undefined;
  return bytesOf(JSON.stringify(String.fromCharCode(byte)).slice(1, -1));
});

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** How a column's values are written; `memory` is what the cell's texts lie in. */
export function jsonField(cell: Cell, memory: Uint8Array): TextField {
  const { span, bytesMax, write } = cell;
  if (cell.kind === 'json') return { bytesMax, write };
  if (span !== undefined) {
    return {
      bytesMax: (row) => escapedMax(memory, span.start(row), span.end(row)) + 2,
      write: (row, out, at) => writeText(span, memory, row, out, at),
    };
  }
  if (cell.kind === 'number' || cell.kind === 'boolean') return { bytesMax, write };
  const withQuotes = typeof bytesMax === 'number' ? bytesMax + 2 : (row: number) => bytesMax(row) + 2;
  return { bytesMax: withQuotes, write: cell.kind === 'float' ? floatWriter(write) : quotedWriter(write) };
}

function quotedWriter(write: CellWriter): CellWriter {
  return (row, out, at) => {
    out[at] = QUOTE;
    const end = write(row, out, at + 1);
    out[end] = QUOTE;
    return end + 1;
  };
}

function floatWriter(write: CellWriter): CellWriter {
  return (row, out, at) => {
    const end = write(row, out, at);
    const first = out[at] === MINUS ? out[at + 1] : out[at];
    if (first !== N && first !== I) return end;
    out.copyWithin(at + 1, at, end);
    out[at] = QUOTE;
    out[end + 1] = QUOTE;
    return end + 2;
  };
}

function escapedMax(memory: Uint8Array, from: number, to: number): number {
  if (to - from <= COUNTED_TEXT_BYTES) return 6 * (to - from);
  let bytes = to - from;
  for (let k = from; k < to; k++) bytes += (ESCAPES[memory[k]!]?.length ?? 1) - 1;
  return bytes;
}

function writeText(span: ByteSpan, memory: Uint8Array, row: number, out: Uint8Array, at: number): number {
  const to = span.end(row);
  let place = at;
  out[place++] = QUOTE;
  for (let k = span.start(row); k < to; k++) {
    const byte = memory[k]!;
    const stand = ESCAPES[byte];
    if (stand === undefined) out[place++] = byte;
    else for (let e = 0; e < stand.length; e++) out[place++] = stand[e]!;
  }
  out[place++] = QUOTE;
  return place;
}
