/**
 * The units in which the bytes of one version of a file are fetched and kept: pieces of its column chunks, and of what
 * lies between them. A file that is not Parquet, or whose footer can't be read, is blocks of one size. Pure.
 * A kernel that keeps pages asks for whole ones, and beyond the end of what is read. Units for it begin with a page: that
 * in which a chunk begins is the first of that chunk, not the last of the one before; and a chunk's first unit is small.
 * Chunks that overlap (hostile footers put many on one place) give their bytes to the first of them.
 */
import type { FileMetadata, Range } from '../../decode/index.ts';
import { CHUNKS_KNOWN_MAX, FIRST_UNIT_BYTES, UNIT_BYTES } from '../limits.ts';

/** A column chunk: row group and leaf column. */
export interface ChunkPlace {
  readonly group: number;
  readonly column: number;
}

/** A span of the file, of a chunk or of none, cut into units of one size. */
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
  readonly #byChunk = new Map<string, Range>();
  /** Bytes of the chunks of each row group. */
  readonly #groupBytes: Float64Array;

  private constructor(
    length: number,
    rowGroups = 0,
    chunks: readonly (Range & { chunk: ChunkPlace })[] = [],
    pageBytes = 1,
  ) {
    this.length = length;
    this.rowGroups = rowGroups;
    this.#groupBytes = new Float64Array(rowGroups);
    const spans: Span[] = [];
    let count = 0;
    let at = 0;
    const add = (end: number, chunk: ChunkPlace | undefined): void => {
      if (end <= at) return;
      spans.push({ start: at, end, chunk, first: count });
      count += Math.ceil((end - at) / UNIT_BYTES);
      at = end;
    };
    for (const { start, end: last, chunk } of chunks) {
      const end = Math.min(last, length);
      if (end <= start) continue;
      this.#byChunk.set(key(chunk), { start, end });
      this.#groupBytes[chunk.group]! += end - start;
      add(start - (start % pageBytes), undefined);
      if (pageBytes > 1) add(Math.min(end - (end % pageBytes), at + FIRST_UNIT_BYTES), chunk);
      add(end - (end % pageBytes), chunk);
    }
    add(length, undefined);
    this.count = count;
    this.#spans = spans;
    this.#starts = Float64Array.from(spans, (span) => span.start);
  }

  /** Blocks without meaning. */
  static blocks(length: number): FileUnits {
    return new FileUnits(length);
  }

  /**
   * By the chunks of a Parquet file; blocks when it has so many that knowing them all costs more than it gives. With
   * `pageBytes` for a kernel that keeps pages.
   */
  static parquet(metadata: FileMetadata, length: number, pageBytes = 1): FileUnits {
    const { rowGroups, leaves } = metadata;
    if (rowGroups.length * leaves.length > CHUNKS_KNOWN_MAX) return FileUnits.blocks(length);
    const chunks = rowGroups.flatMap((group) =>
      group.columns
        .filter(({ bytes }) => bytes.end > bytes.start)
        .map(({ bytes, column }) => ({ ...bytes, chunk: { group: group.ordinal, column } })),
    );
    chunks.sort((a, b) => a.start - b.start);
    return new FileUnits(length, rowGroups.length, chunks, pageBytes);
  }

  /** The number of the unit that holds the byte at `offset`, which is in the file. */
  find(offset: number): number {
    const span = this.#spans[this.#spanAt(offset)]!;
    return span.first + Math.floor((offset - span.start) / UNIT_BYTES);
  }

  /** The bytes of a unit. */
  range(unit: number): Range {
    const span = this.#spans[lastAtOrBefore(this.#spans.length, (i) => this.#spans[i]!.first <= unit)]!;
    const start = span.start + (unit - span.first) * UNIT_BYTES;
    return { start, end: Math.min(span.end, start + UNIT_BYTES) };
  }

  /** The chunks that have units in a range of the file, in its order. */
  chunksIn({ start, end }: Range): ChunkPlace[] {
    const found: ChunkPlace[] = [];
    if (end <= start) return found;
    for (let k = this.#spanAt(start); k < this.#spans.length && this.#spans[k]!.start < end; k++) {
      const { chunk } = this.#spans[k]!;
      if (chunk !== undefined && chunk !== found.at(-1)) found.push(chunk);
    }
    return found;
  }

  /** The bytes of a chunk; undefined for one without any. */
  bytesOf(chunk: ChunkPlace): Range | undefined {
    return this.#byChunk.get(key(chunk));
  }

  /** Bytes of the chunks of a row group. */
  groupBytes(group: number): number {
    return this.#groupBytes[group] ?? 0;
  }

  #spanAt(offset: number): number {
    return lastAtOrBefore(this.#starts.length, (i) => this.#starts[i]! <= offset);
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
