/**
 * Counts of pages that were decoded to their end, by encoding and by codec: a few additions a page, never one a value.
 * The counts are one flat array, so that whoever keeps totals elsewhere can add them up without knowing their meaning;
 * `encodingCounts` and `codecCounts` say where they stand. Decode only ever adds.
 */
import { Codec, Encoding } from '../format/enums.ts';

/** Counts of an encoding: pages, values (nulls counted), bytes decompressed. Of a codec: values, bytes in, bytes out. */
const COUNTS_EACH = 3;
const ENCODINGS = Math.max(...Object.values(Encoding)) + 1;
const CODECS = Math.max(...Object.values(Codec)) + 1;

export const PAGE_TALLY_LENGTH = (ENCODINGS + CODECS) * COUNTS_EACH;

export class PageTally {
  readonly counts = new Float64Array(PAGE_TALLY_LENGTH);
  /** Something was counted since the counts were last taken. */
  isChanged = false;

  /** A data page of `values` values, `compressedBytes` in the file, `bytes` decompressed; levels included. */
  addPage(encoding: number, codec: number, values: number, compressedBytes: number, bytes: number): void {
    const { counts } = this;
    const at = encoding * COUNTS_EACH;
    counts[at]! += 1;
    counts[at + 1]! += values;
    counts[at + 2]! += bytes;
    counts[(ENCODINGS + codec) * COUNTS_EACH]! += values;
    this.addBytes(codec, compressedBytes, bytes);
  }

  /** A page without values of rows: a dictionary. */
  addBytes(codec: number, compressedBytes: number, bytes: number): void {
    const at = (ENCODINGS + codec) * COUNTS_EACH;
    this.counts[at + 1]! += compressedBytes;
    this.counts[at + 2]! += bytes;
    this.isChanged = true;
  }
}

/** What `counts`, laid out as a tally's, say of an encoding. */
export function encodingCounts(
  counts: ArrayLike<number>,
  encoding: number,
): { pages: number; values: number; bytes: number } {
  const at = encoding * COUNTS_EACH;
  return { pages: counts[at]!, values: counts[at + 1]!, bytes: counts[at + 2]! };
}

/** What they say of a codec. */
export function codecCounts(
  counts: ArrayLike<number>,
  codec: number,
): { values: number; compressedBytes: number; bytes: number } {
  const at = (ENCODINGS + codec) * COUNTS_EACH;
  return { values: counts[at]!, compressedBytes: counts[at + 1]!, bytes: counts[at + 2]! };
}
