/**
 * The one error class of decode/: a file, a page or a value that breaks the format's rules, or that this version
 * does not read. It names what a person needs to act: file, column, offset and expectation. Decode steps only know
 * the place inside the chunk; callers add the file and the column with `located`.
 */
export type DecodeErrorCode =
  | 'MAGIC' // not a Parquet file, or the trailing magic is missing
  | 'FOOTER' // footer length or footer bytes are not valid
  | 'ENCRYPTED' // encrypted footer or column
  | 'THRIFT' // a Thrift structure is cut, too deep or of the wrong type
  | 'SCHEMA' // the schema list does not describe a tree, or a type lacks what it needs
  | 'METADATA' // row group or column chunk metadata contradict each other or the file's size
  | 'PAGE_HEADER' // a page header is not valid, or contradicts its chunk
  | 'PAGE' // a page's bytes do not decode
  | 'CODEC' // compressed bytes do not decompress to the declared size
  | 'LEVELS' // repetition or definition levels are not valid
  | 'DICTIONARY' // dictionary missing, twice, or an index outside it
  | 'CHECKSUM' // page CRC does not match
  | 'VALUE' // a value that its type does not allow (UTF-8, range)
  | 'LIMIT' // more than a bound that this process sets
  | 'UNSUPPORTED'; // valid Parquet that this version does not read

/** Where in the input an error was found; every part that is known. */
export interface ErrorPlace {
  file?: string;
  column?: string;
  rowGroup?: number;
  /** Absolute byte offset in the file. */
  offset?: number;
  /** What should have been there, in words. */
  expected?: string;
}

export class DecodeError extends Error {
  override readonly name = 'DecodeError';
  readonly code: DecodeErrorCode;
  readonly place: ErrorPlace;
  readonly reason: string;

  constructor(code: DecodeErrorCode, reason: string, place: ErrorPlace = {}) {
    super(describe(code, reason, place));
    this.code = code;
    this.reason = reason;
    this.place = place;
  }

  /** The same error with the parts of `place` that it does not know yet. */
  located(place: ErrorPlace): DecodeError {
    return new DecodeError(this.code, this.reason, { ...place, ...this.place });
  }
}

function describe(code: DecodeErrorCode, reason: string, place: ErrorPlace): string {
  const where = [
    place.file,
    place.column === undefined ? undefined : `column ${JSON.stringify(place.column)}`,
    place.rowGroup === undefined ? undefined : `row group ${place.rowGroup}`,
    place.offset === undefined ? undefined : `offset ${place.offset}`,
  ].filter((part) => part !== undefined);
  const head = where.length === 0 ? '' : `${where.join(', ')}: `;
  const tail = place.expected === undefined ? '' : ` (expected ${place.expected})`;
  return `decode ${code}: ${head}${reason}${tail}`;
}
