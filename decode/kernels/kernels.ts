/**
 * The kernel seam: the hot loops of decode as functions over one shared memory. Two implementations with the same
 * signatures: WebAssembly with SIMD (`assembly/`, compiled by `build.ts`) and scalar TypeScript (`scalar/`), which is
 * the specification, the fallback and the fuzz oracle.
 *
 * A resumable kernel takes `(state, mark)`: the address of its state (u32 words, see the tables below; the caller
 * writes the documented words and zeroes the rest) and the address up to which input has arrived. It returns
 *   DONE (everything asked for was produced), NEED (input up to the mark is used up and more is to come: call again
 *   with a higher mark), FULL (no room for the next value; take what is there, give room, call again), or a negative
 *   error code. Output and code do not depend on how the input was cut into marks.
 * Reads stay in [ip, mark) and in the dictionary, writes in the documented output. Bytes past the mark are never
 * interpreted. After an error the output is to be thrown away. Addresses and limits in the state are trusted; every
 * byte of input is not.
 *
 * Values may be asked for in pieces: after DONE the caller sets `wanted` (and op) again and goes on with the same
 * input; output, codes and consumption equal those of asking for all at once. A run that is used in part stays in
 * the state; `ip` then is the start of the group of 8 that is used in part. Before new input all words but the
 * documented ones are zeroed, of a hybrid state only the first 64 bytes (the rest is scratch).
 */
export const DONE = 0;
export const NEED = 1;
export const FULL = 2;
/** The input ends inside something. */
export const E_TRUNC = -1;
/** A declared length disagrees with the room or the page. */
export const E_LENGTH = -2;
/** A copy from before the start of the output, or offset 0. */
export const E_OFFSET = -3;
/** Bit width over the type's width. */
export const E_WIDTH = -4;
/** Dictionary index out of range. */
export const E_INDEX = -5;
/** Over-long variable-length integer. */
export const E_VARINT = -6;
/** Delta header values not allowed. */
export const E_HEADER = -7;
/** Not UTF-8. */
export const E_UTF8 = -8;
/** Level over its maximum. */
export const E_VALUE = -9;

/** Word offsets in bytes of each kernel's state; names as in the assembly sources. */
export const SNAPPY = { ip: 0, srcEnd: 4, dst: 8, op: 12, dstEnd: 16, size: 40 } as const;
/** The same words as Snappy's, so that both are set up alike. */
export const LZ4 = { ip: 0, srcEnd: 4, dst: 8, op: 12, dstEnd: 16, size: 40 } as const;
export const HYBRID = {
  ip: 0,
  srcEnd: 4,
  op: 8,
  wanted: 12,
  width: 16,
  dictionary: 20,
  limit: 24,
  runKind: 28,
  runLeft: 32,
  size: 128 + 2048 + 128 + 16384,
} as const;
export const LEVELS = {
  ip: 0,
  srcEnd: 4,
  op: 8,
  wanted: 12,
  ones: 16,
  runKind: 28,
  runLeft: 32,
  pendingBits: 40,
  pendingWord: 48,
  size: 64,
} as const;
export const BYTES = {
  ip: 0,
  srcEnd: 4,
  slot: 8,
  wanted: 12,
  op: 16,
  dataEnd: 20,
  at: 24,
  valueLeft: 28,
  size: 32,
} as const;

/** `wanted` is of this call, `total` of the page: it must be the header's count. */
export const DELTA = {
  ip: 0,
  srcEnd: 4,
  op: 8,
  wanted: 12,
  left: 16,
  total: 20,
  phase: 24,
  miniblocks: 28,
  valuesPerMiniblock: 32,
  miniblock: 36,
  miniblockLeft: 40,
  width: 44,
  widths: 48,
  groupUsed: 52,
  last: 56,
  minimum: 64,
  size: 128 + 512 + 96,
} as const;
/**
 * `prefixes` and `suffixes` are the addresses of the next i32 lengths. `previous` and `previousLength` are the value
 * before: 16 bytes from its start must be readable, and it must start before `op` or in another buffer.
 */
export const DELTA_BYTES = {
  ip: 0,
  srcEnd: 4,
  slot: 8,
  wanted: 12,
  op: 16,
  dataEnd: 20,
  at: 24,
  prefixes: 28,
  suffixes: 32,
  previous: 36,
  previousLength: 40,
  size: 44,
} as const;

export interface Kernels {
  /** Snappy block; output exactly [dst, dstEnd). `op` in the state is the mark of finished output. */
  snappy(state: number, mark: number): number;
  /** LZ4 block, likewise. It ends with literals, if only with none. */
  lz4(state: number, mark: number): number;
  /** RLE / bit-packed hybrid to u32, u16, u8; values must be < limit. */
  hybridU32(state: number, mark: number): number;
  hybridU16(state: number, mark: number): number;
  hybridU8(state: number, mark: number): number;
  /** The same, each value replaced by its 4- or 8-byte dictionary entry. */
  hybridDict4(state: number, mark: number): number;
  hybridDict8(state: number, mark: number): number;
  /**
   * Width-1 hybrid to an Arrow bitmap; `ones` counts the set bits. Runs of several pages may be appended: the caller
   * sets ip, srcEnd, wanted and zeroes runKind/runLeft, and leaves op and the pending bits. DONE does not flush:
   * `flushBits` writes the pending bits, zero-padded to a whole 8-byte word, and leaves the state as it is.
   */
  levelBitmap(state: number, mark: number): number;
  flushBits(state: number): void;
  /** PLAIN BYTE_ARRAY: end offsets from `slot`, data from `op`; FULL when the next value does not fit before dataEnd. */
  plainBytes(state: number, mark: number): number;
  /** `n` bits from bit `srcBit` of [src..) to bit `dstBit` of [dst..); only bits of the target range change. */
  copyBits(src: number, srcBit: number, dst: number, dstBit: number, n: number): void;
  /** Set bits among the first n. */
  countOnes(bitmap: number, n: number): number;
  /**
   * `have` dense values at the start of [at, at + n * width) are spread in place over the set bits of the bitmap
   * (which must have exactly `have` ones, else E_LENGTH); null slots become 0.
   */
  spread1(at: number, bitmap: number, n: number, have: number): number;
  spread2(at: number, bitmap: number, n: number, have: number): number;
  spread4(at: number, bitmap: number, n: number, have: number): number;
  spread8(at: number, bitmap: number, n: number, have: number): number;
  spread16(at: number, bitmap: number, n: number, have: number): number;
  /** The same for any width in bytes. */
  spreadWide(at: number, bitmap: number, n: number, have: number, width: number): number;
  /** The same for bits (booleans); `at` has room for whole 8-byte words. */
  spreadBits(at: number, bitmap: number, n: number, have: number): number;
  /** have + 1 dense offsets at the start of n + 1 slots; a null is an empty value. */
  spreadOffsets(at: number, bitmap: number, n: number, have: number): number;
  /** n entries of `width` bytes gathered by u32 indices that are already checked. */
  gatherWide(indices: number, n: number, dictionary: number, width: number, out: number): void;
  /**
   * Lengths of n dictionary strings as end offsets from `slot`, starting at `start`. Indices are already checked.
   * Returns the last end offset, or E_LENGTH when it would pass 2^31 - 1.
   */
  gatherOffsets(indices: number, n: number, dictionaryOffsets: number, slot: number, start: number): number;
  /**
   * The bytes of n dictionary strings, one after the other, to [out, outEnd); outEnd is exact. The dictionary's data
   * is followed by 64 readable bytes.
   */
  gatherBytes(
    indices: number,
    n: number,
    dictionaryOffsets: number,
    dictionaryData: number,
    out: number,
    outEnd: number,
  ): void;
  /** Whole-buffer UTF-8 validation of [src, end); `scratch` is 16 bytes. DONE or E_UTF8. */
  utf8(src: number, end: number, scratch: number): number;
  /** No value of valid data starts inside a character; n offsets at `offsets` relative to base. */
  utf8Starts(offsets: number, n: number, base: number, dataEnd: number): number;
  /** DELTA_BINARY_PACKED, wrap-around. With the last value ip steps over the last miniblock's padding. */
  delta32(state: number, mark: number): number;
  delta64(state: number, mark: number): number;
  /** n i32 lengths become end offsets in place; E_LENGTH when one is negative or an end is over `limit`. */
  lengthsToOffsets(lengths: number, n: number, start: number, limit: number): number;
  /** Sum of n i32 lengths, up to 2^31 - 1; E_LENGTH when one is negative or the sum is over that. */
  lengthsTotal(lengths: number, n: number): number;
  /** DELTA_BYTE_ARRAY with prefix and suffix lengths already decoded; E_LENGTH when the room does not suffice. */
  deltaBytes(state: number, mark: number): number;
  /** BYTE_STREAM_SPLIT: values [from, to) of n values of `width` bytes, stream k at src + k * n. */
  joinStreams(src: number, n: number, width: number, dst: number, from: number, to: number): number;
  /**
   * Nested columns: n < 2^31 entries, each a repetition and a definition level, u8 in the arrays `rep` and `def`.
   * Address 0 for `rep` stands for repetition levels that are all 0. Levels and bounds are 0 to 255. A row starts where
   * the repetition level is 0: their number, and the entry where row k (from 0) starts, n when there are not so many.
   */
  countRows(rep: number, n: number): number;
  findRow(rep: number, n: number, k: number): number;
  /** A slot of a node of the schema is at each entry with rep <= repMax and def >= defMin: their number. */
  countSlots(rep: number, def: number, n: number, repMax: number, defMin: number): number;
  /**
   * An entry with repetition level r goes on with a list that the entry before it must be in, as it is itself: both
   * their definition levels must be least[r] or more (`least` is a table of 256 bytes, `before` the definition level
   * before the first entry). Returns the first entry where that is not so, or n. `rep` is not 0.
   */
  checkNesting(rep: number, def: number, n: number, least: number, before: number): number;
  /**
   * A bit for each slot: def >= defValid. `bitmap` is written in whole 8-byte words, the last zero-padded. Returns the
   * number of ones.
   */
  nestedValidity(
    rep: number,
    def: number,
    n: number,
    repMax: number,
    defMin: number,
    defValid: number,
    bitmap: number,
  ): number;
  /**
   * Arrow list offsets, slots + 1 of them from 0: the elements before each slot, and in all. An element is an entry with
   * rep <= repElement (which is over repMax) and def >= defElement; the entry of a slot may be its first element.
   * Returns the number of elements, or E_LENGTH when one comes before the first slot.
   */
  nestedOffsets(
    rep: number,
    def: number,
    n: number,
    repMax: number,
    defMin: number,
    repElement: number,
    defElement: number,
    offsets: number,
  ): number;
  /**
   * The deprecated BIT_PACKED encoding of levels: n values of `width` bits (0 to 8, else E_WIDTH), from the most
   * significant bit of each byte down, to u8. E_TRUNC when [src, srcEnd) is too short, E_VALUE when one is >= limit.
   */
  bitPackedLevels(src: number, srcEnd: number, width: number, n: number, dst: number, limit: number): number;
  /** n integers of 4 or 8 bytes, sign-extended to 16, little-endian. `dst` may be `src`. */
  widenDecimal4(src: number, n: number, dst: number): void;
  widenDecimal8(src: number, n: number, dst: number): void;
  /**
   * n big-endian integers of `width` bytes (1 to 16) to 16, little-endian, sign-extended. `dst` may be `src`. Up to 15
   * bytes before `src` are read (and not used).
   */
  reverseDecimal(src: number, n: number, width: number, dst: number): void;
  /**
   * n INT96 timestamps (8 bytes nanoseconds of the day, 4 bytes Julian day) to i64 nanoseconds since 1970; E_VALUE when
   * one does not fit. `dst` may be `src`.
   */
  int96ToNanos(src: number, n: number, dst: number): number;
  copy(dst: number, src: number, n: number): void;
}
