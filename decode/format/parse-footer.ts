/**
 * The footer: bytes at the end of a file to `FileMetadata`, plain data that every later stage reads.
 *   file = "PAR1" { page } FileMetaData:thrift footer-length:u32le "PAR1"      (or "PARE": the footer is encrypted)
 * A footer that contradicts itself throws; a single column chunk that does (outside the file, of another column, in
 * another file, encrypted) is marked and the other columns still scan. Counts of rows are what the footer says: the
 * truth comes from the pages, and nothing may be allocated from them.
 * What a wide table has many of (schema nodes, leaves, column chunks) is found by one pass and made when it is read; the
 * metadata keeps the footer's bytes for that, and for statistics, which are views of them: they must not be reused.
 */
import { DecodeError } from '../errors.ts';
import { CompactReader, Wire } from './compact.ts';
import { FOOTER_BYTES_MAX, KEY_VALUES_MAX } from './limits.ts';
import type { FileMetadata } from './metadata.ts';
import { indexRowGroups, type RowGroupIndex, rowGroupsOf } from './row-groups.ts';
import { parseSchema, type Schema } from './schema.ts';

/** Bytes after the footer: its length and the magic. */
export const TAIL_BYTES = 8;
/** The shortest file: magic, no footer, length, magic. */
const FILE_BYTES_MIN = 12;

/**
 * Where the footer is, from the last bytes of the file (at least 8, or the whole file).
 * Throws MAGIC, ENCRYPTED or FOOTER.
 */
export function parseTail(tail: Uint8Array, fileLength: number): { footerStart: number; footerLength: number } {
  if (fileLength < FILE_BYTES_MIN) {
    throw new DecodeError('MAGIC', `the file has ${fileLength} bytes`, { expected: 'at least 12, as Parquet has' });
  }
  if (tail.length < TAIL_BYTES || tail.length > fileLength) {
    throw new RangeError(`a tail of ${tail.length} bytes of a file of ${fileLength}`);
  }
  const at = tail.length - TAIL_BYTES;
  const magic = latin1(tail, at + 4);
  const magicOffset = fileLength - 4;
  if (magic === 'PARE') {
    const why = 'the footer is encrypted (PARE), and there is no way to give keys: nothing of the file can be read';
    throw new DecodeError('ENCRYPTED', why, { offset: magicOffset });
  }
  if (magic !== 'PAR1') {
    throw new DecodeError('MAGIC', `the file ends with ${JSON.stringify(magic)}: not Parquet, or cut short`, {
      offset: magicOffset,
      expected: '"PAR1"',
    });
  }
  if (tail.length === fileLength && latin1(tail, 0) !== 'PAR1') {
    throw new DecodeError('MAGIC', `the file begins with ${JSON.stringify(latin1(tail, 0))}`, {
      offset: 0,
      expected: '"PAR1"',
    });
  }
  const footerLength = (tail[at]! | (tail[at + 1]! << 8) | (tail[at + 2]! << 16) | (tail[at + 3]! << 24)) >>> 0;
  const room = fileLength - FILE_BYTES_MIN;
  if (footerLength === 0 || footerLength > room) {
    throw new DecodeError('FOOTER', `the footer's length is ${footerLength}`, {
      offset: fileLength - TAIL_BYTES,
      expected: `1 to ${room} bytes, as the file has`,
    });
  }
  if (footerLength > FOOTER_BYTES_MAX) {
    throw new DecodeError('LIMIT', `the footer has ${footerLength} bytes`, { expected: `at most ${FOOTER_BYTES_MAX}` });
  }
  return { footerStart: fileLength - TAIL_BYTES - footerLength, footerLength };
}

function latin1(bytes: Uint8Array, at: number): string {
  return String.fromCharCode(bytes[at]!, bytes[at + 1]!, bytes[at + 2]!, bytes[at + 3]!);
}

/**
 * The metadata in a footer's Thrift bytes, exactly those between `footerStart` and the tail of a file of
 * `fileLength` bytes (parquet.thrift, FileMetaData). Bytes after the structure are allowed: signed footers have them.
 */
export function parseFooter(bytes: Uint8Array, fileLength: number): FileMetadata {
  const footerStart = fileLength - TAIL_BYTES - bytes.length;
  const r = new CompactReader(bytes, footerStart);
  let version = 0;
  let createdBy: string | undefined;
  let declaredRows: number | undefined;
  let hasRowGroups = false;
  let schema: Schema | undefined;
  let keyValues: [string, string | undefined][] = [];
  let rowGroupsAt = -1;
  let rowGroupsWire = 0;
  let index: readonly RowGroupIndex[] = [];
  for (let last = 0; ; ) {
    const wire = r.field(last);
    if (wire === Wire.STOP) break;
    last = r.id;
    switch (last) {
      case 1:
        version = r.i32(wire);
        break;
      case 2:
        if (schema !== undefined) r.fail('a second schema');
        schema = parseSchema(r, wire);
        break;
      case 3:
        declaredRows = r.i64(wire);
        break;
      case 4:
        hasRowGroups = true;
        if (schema !== undefined) {
          index = indexRowGroups(r, wire, schema.leaves.length);
          break;
        }
        // the schema may come after them
        rowGroupsAt = r.pos;
        rowGroupsWire = wire;
        r.skip(wire);
        break;
      case 5:
        keyValues = parseKeyValues(r, wire);
        break;
      case 6:
        createdBy = r.string(wire);
        break;
      default:
        r.skip(wire);
    }
  }
  if (schema === undefined) throw new DecodeError('FOOTER', 'the footer has no schema', { offset: footerStart });
  // both are required: a footer without them is damaged, not empty
  if (declaredRows === undefined || !hasRowGroups) {
    const what = declaredRows === undefined ? 'number of rows' : 'list of row groups';
    throw new DecodeError('FOOTER', `the footer has no ${what}`, { offset: footerStart });
  }
  if (!Number.isSafeInteger(declaredRows) || declaredRows < 0) {
    throw new DecodeError('METADATA', `the file says it has ${declaredRows} rows`, { expected: 'zero or more' });
  }
  if (rowGroupsAt >= 0) {
    r.pos = rowGroupsAt;
    r.id = 4;
    index = indexRowGroups(r, rowGroupsWire, schema.leaves.length);
  }
  const rowGroups = rowGroupsOf(index, r.fork(), {
    schema,
    footerStart,
    shortChunks: leavesOutDictionaryHeader(createdBy),
  });
  const lastGroup = rowGroups.at(-1);
  if (lastGroup === undefined && declaredRows > 0) {
    throw new DecodeError('METADATA', `the file says it has ${declaredRows} rows and has no row group`);
  }
  return {
    version,
    ...(createdBy === undefined ? {} : { createdBy }),
    // Where the total and the row groups disagree, readers go by the row groups.
    numRows: lastGroup === undefined ? declaredRows : lastGroup.firstRow + lastGroup.numRows,
    schema: schema.elements,
    root: schema.root,
    leaves: schema.leaves,
    rowGroups,
    keyValues,
    footerBytes: bytes.length,
  };
}

/** parquet-mr before 1.2.9, which the oldest writers do not tell. */
function leavesOutDictionaryHeader(createdBy: string | undefined): boolean {
  const version = /^parquet-mr(?: version (\d+)\.(\d+)\.(\d+))?/.exec(createdBy ?? '');
  if (version === null) return false;
  const [major = 0, minor = 0, patch = 0] = version.slice(1).map((part) => Number(part ?? 0));
  return major < 1 || (major === 1 && (minor < 2 || (minor === 2 && patch < 9)));
}

function parseKeyValues(r: CompactReader, wire: number): [string, string | undefined][] {
  const size = r.list(wire, Wire.STRUCT);
  if (size > KEY_VALUES_MAX) {
    throw new DecodeError('LIMIT', `the footer lists ${size} key-value pairs`, {
      expected: `at most ${KEY_VALUES_MAX}`,
    });
  }
  const pairs: [string, string | undefined][] = [];
  for (let i = 0; i < size; i++) {
    let key: string | undefined;
    let value: string | undefined;
    for (let last = 0; ; ) {
      const field = r.field(last);
      if (field === Wire.STOP) break;
      last = r.id;
      if (last === 1) key = r.string(field);
      else if (last === 2 && field === Wire.BINARY) value = r.string(field);
      else r.skip(field);
    }
    if (key === undefined) r.fail('a key-value pair has no key');
    pairs.push([key, value]);
  }
  return pairs;
}
