/**
 * NDJSON: an object per row and line. Integers and decimals are JSON numbers with all their digits (readers that know
 * only doubles round them, the text does not); NaN and Infinity, which JSON lacks, are the texts "NaN", "Infinity" and
 * "-Infinity". A second column of the same name is called `name_1`, so that no value is lost.
 */
import type { LeafColumn } from '../../decode/index.ts';
import type { ByteSpan, Cell, CellWriter } from './cell.ts';
import { COUNTED_TEXT_BYTES } from './limits.ts';
import type { Field, LineFormat } from './row-text.ts';

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

export function ndjsonFormat(columns: readonly LeafColumn[]): LineFormat {
  const names = uniqueNames(columns.map((column) => column.name));
  return {
    head: new Uint8Array(0),
    before: names.map((name, k) => bytesOf(`${k === 0 ? '{' : ','}${JSON.stringify(name)}:`)),
    after: bytesOf(columns.length === 0 ? '{}\n' : '}\n'),
    nothing: bytesOf('null'),
    field: ndjsonField,
  };
}

/** The names, repeated ones with a number behind them that makes them unlike all others. */
export function uniqueNames(names: readonly string[]): string[] {
  const given = new Set(names);
  const used = new Set<string>();
  return names.map((name) => {
    let unique = name;
    for (let k = 1; used.has(unique); k++) {
      const candidate = `${name}_${k}`;
      if (!given.has(candidate)) unique = candidate;
    }
    used.add(unique);
    return unique;
  });
}

function ndjsonField(cell: Cell, memory: Uint8Array): Field {
  const { span, bytesMax, write } = cell;
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
