/**
 * What goes in and out of a column chunk's decoder, as plain data that can be posted between threads. Decode knows
 * physical layouts only; what a value means (decimal, timestamp, ...) is applied where record batches are made.
 */
import type { Codec, Physical } from '../format/enums.ts';

/** How a byte-array column leaves the decoder. */
export type BytesOutput =
  | 'values' // offsets and data, dictionaries expanded
  | 'dictionary'; // indices into the chunk's dictionary where the file has one, else offsets and data

/** Everything a decoder has to know of one column chunk. */
export interface ChunkSpec {
  /** For messages. */
  readonly columnName: string;
  readonly physical: Physical;
  /** Bytes of a FIXED_LEN_BYTE_ARRAY value, else 0. */
  readonly typeLength: number;
  /** Of a flat column 0 (required) or 1 (optional). */
  readonly maxDefinitionLevel: number;
  /** What a nested column's levels mean; absent for flat columns. */
  readonly nested?: NestedShape;
  readonly codec: Codec;
  /** Values (nulls counted) that the chunk claims; never trusted for an allocation. */
  readonly numValues: number;
  /** Bytes of all its pages as they are in the file. */
  readonly byteLength: number;
  /** File offset of its first byte, for messages. */
  readonly fileOffset: number;
  readonly uncompressedBytes: number;
  /** Check that every value is UTF-8. */
  readonly utf8: boolean;
  readonly bytesOutput: BytesOutput;
  /** The writer is one that packed BIT_PACKED levels from the wrong end: they would come out in the wrong places. */
  readonly wrongBitPacking?: boolean;
  /** Of a flat fixed-width column: values stay as they are in the file, nulls left out, not spread to their rows. */
  readonly dense?: boolean;
  /**
   * Of such a column: where the values of each window go, room that is the caller's and has WINDOW_SLACK_BYTES before and
   * after it. Their segments have them there, and nothing but validity in slabs of their own.
   */
  readonly place?: WindowPlaces;
  /** Rows of an output window; the decoder never makes a longer segment. */
  readonly windowRows: number;
}

/**
 * A group or list on the way from the root to a nested leaf. Entries (pairs of levels) with a repetition level up to
 * `repetition` and a definition level from `slot` on are its slots: one for each value of what it lies in.
 */
export interface NestedNode {
  readonly kind: 'struct' | 'list';
  readonly repetition: number;
  readonly slot: number;
  /** Definition level from which a slot is not null; equal to `slot` when it can't be null. */
  readonly valid: number;
  /** Lists: definition level from which an entry with a repetition level up to `repetition` + 1 is an element. */
  readonly element: number;
}

export interface NestedShape {
  readonly maxRepetitionLevel: number;
  /** From the outermost in. */
  readonly nodes: readonly NestedNode[];
  /** Definition level from which an entry is a slot of the leaf. */
  readonly leafSlot: number;
  /** Rows that the row group claims: only to guess how many entries a row has. */
  readonly rowsHint: number;
}

/** Values of window k are at `values` + k * `stride`, those of the last of `count` windows at `last`. */
export interface WindowPlaces {
  readonly values: number;
  readonly stride: number;
  readonly count: number;
  readonly last: number;
}

/** A piece of the chunk's bytes in the pool: chunk offsets [start, end) at `address`. */
export interface InputPiece {
  readonly address: number;
  readonly start: number;
  readonly end: number;
}

/** A dictionary of byte arrays: `count` + 1 offsets, then data, in a slab of its own. */
export interface DictionaryValues {
  readonly slab: number;
  readonly slabBytes: number;
  readonly count: number;
  readonly offsets: number;
  readonly data: number;
  readonly dataBytes: number;
}

export type SegmentLayout =
  | 'fixed' // `width` bytes a value
  | 'bits' // booleans, one bit a value
  | 'bytes' // rows + 1 u32 offsets, data
  | 'indices'; // u32 indices into `dictionary`

/**
 * Decoded values of consecutive rows, in Arrow layout in one slab of the pool. Who receives it frees the slab; the
 * dictionary lives until its chunk's decoder is closed and the last segment that names it is freed.
 */
export interface Segment {
  readonly rows: number;
  readonly nullCount: number;
  readonly layout: SegmentLayout;
  /** Bytes of a value in `values` (1 for bits, 4 for indices and offsets). */
  readonly width: number;
  readonly slab: number;
  readonly slabBytes: number;
  /** Address of the validity bitmap; 0 when no value is null. */
  readonly validity: number;
  /** Address of values, bits, offsets or indices. */
  readonly values: number;
  readonly data: number;
  readonly dataBytes: number;
  readonly dictionary?: DictionaryValues;
  /** Of a nested column: `validity`, `values` and `nullCount` above are of the leaf's slots, not of rows. */
  readonly nested?: NestedStructure;
}

/** Arrow's structure above a nested leaf, in slabs of the segment. */
export interface NestedStructure {
  /** Values of the leaf, nulls counted. */
  readonly slots: number;
  /** In the order of the shape's nodes. */
  readonly nodes: ReadonlyArray<{
    readonly slots: number;
    readonly nullCount: number;
    /** Address of the validity bitmap; 0 when no slot is null. */
    readonly validity: number;
    /** Lists: address of slots + 1 u32 offsets; 0 for structs. */
    readonly offsets: number;
  }>;
  /** Slabs beside the segment's own, to be freed with it. */
  readonly slabs: ReadonlyArray<{ readonly address: number; readonly bytes: number }>;
}

/** What a step came to. */
export type StepResult =
  | 'input' // needs bytes past the mark
  | 'memory' // a slab did not fit; ask again when some was freed
  | 'segment' // `takeSegment` has one
  | 'end'; // every value of the chunk has been given out
