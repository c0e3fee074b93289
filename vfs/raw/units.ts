/**
 * The units in which the bytes of one version of a file are fetched and kept: pieces of its column chunks, and of what
 * lies between them. A file that is not Parquet, or whose footer can't be read, is blocks of one size. Pure.
 * Chunks that overlap (hostile footers put many on one place) give their bytes to the first of them.
 */
import type { FileMetadata, Range } from '../../decode/index.ts';
import { CHUNKS_KNOWN_MAX, UNIT_BYTES } from '../limits.ts';

/** A column chunk: row group and leaf column. */
export interface ChunkPlace {
  readonly group: number;
  readonly column: number;
}

/** A span of the file: a chunk, or bytes of none. */
interface Span extends Range {
  readonly chunk: ChunkPlace | undefined;
  /** Number of its first unit. */
  readonly first: number;
}

export class FileUnits {
  readonly length: number;
  readonly count: number;
  readonly rowGroups: number;
  readonly #spans: readonly Span[];
  /** Starts of spans, for the search. */
  readonly #starts: Float64Array;
  readonly #byChunk: ReadonlyMap<string, Span>;
  /** Bytes of the chunks of each row group. */
  readonly #groupBytes: Float64Array;

  private constructor(length: number, rowGroups: number, chunks: readonly (Range & { chunk: ChunkPlace })[]) {
    this.length = length;
    this.rowGroups = rowGroups;
    const spans: Span[] = [];
    let count = 0;
    let at = 0;
    const add = (end: number, chunk: ChunkPlace | undefined): void => {
      if (end <= at) return;
      spans.push({ start: at, end, chunk, first: count });
      count += Math.ceil((end - at) / UNIT_BYTES);
      at = end;
    };
    for (const { start, end, chunk } of chunks) {
      add(Math.min(start, length), undefined);
      add(Math.min(end, length), chunk);
    }
    add(length, undefined);
    this.count = count;
    this.#spans = spans;
    this.#starts = Float64Array.from(spans, (span) => span.start);
    this.#byChunk = new Map(spans.flatMap((span) => (span.chunk === undefined ? [] : [[key(span.chunk), span]])));
    this.#groupBytes = new Float64Array(rowGroups);
    for (const { chunk, start, end } of spans) if (chunk !== undefined) this.#groupBytes[chunk.group]! += end - start;
  }

  /** Blocks without meaning. */
  static blocks(length: number): FileUnits {
    return new FileUnits(length, 0, []);
  }

  /** By the chunks of a Parquet file; blocks when it has so many that knowing them all costs more than it gives. */
  static parquet(metadata: FileMetadata, length: number): FileUnits {
    const { rowGroups, leaves } = metadata;
    if (rowGroups.length * leaves.length > CHUNKS_KNOWN_MAX) return FileUnits.blocks(length);
    const chunks = rowGroups.flatMap((group) =>
      group.columns
        .filter(({ bytes }) => bytes.end > bytes.start)
        .map(({ bytes, column }) => ({ ...bytes, chunk: { group: group.ordinal, column } })),
    );
    chunks.sort((a, b) => a.start - b.start);
    return new FileUnits(length, rowGroups.length, chunks);
  }

  /** The number of the unit that holds the byte at `offset`, which is in the file. */
  find(offset: number): number {
    const span = this.#spanAt(offset);
    return span.first + Math.floor((offset - span.start) / UNIT_BYTES);
  }

  /** The bytes of a unit. */
  range(unit: number): Range {
    const span = this.#spanOf(unit);
    const start = span.start + (unit - span.first) * UNIT_BYTES;
    return { start, end: Math.min(span.end, start + UNIT_BYTES) };
  }

  /** The chunk that a unit is of. */
  chunkOf(unit: number): ChunkPlace | undefined {
    return this.#spanOf(unit).chunk;
  }

  /** Numbers of the units of a chunk, [first, end); empty for a chunk without bytes of its own. */
  unitsOf(chunk: ChunkPlace): Range {
    const span = this.#byChunk.get(key(chunk));
    if (span === undefined) return { start: 0, end: 0 };
    return { start: span.first, end: span.first + Math.ceil((span.end - span.start) / UNIT_BYTES) };
  }

  /** Bytes of the chunks of a row group. */
  groupBytes(group: number): number {
    return this.#groupBytes[group] ?? 0;
  }

  #spanAt(offset: number): Span {
    return this.#spans[lastAtOrBefore(this.#starts.length, (i) => this.#starts[i]! <= offset)]!;
  }

  #spanOf(unit: number): Span {
    return this.#spans[lastAtOrBefore(this.#spans.length, (i) => this.#spans[i]!.first <= unit)]!;
  }
}

function key({ group, column }: ChunkPlace): string {
  return `${group} ${column}`;
}

/** The last index for which `holds`, which is true up to some index; 0 if for none. */
function lastAtOrBefore(length: number, holds: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}
