/** Which decoder reads a page's values: encodings and the physical types that the specification allows them on. */
import { DecodeError } from '../../errors.ts';
import { Encoding, nameOf, Physical } from '../../format/enums.ts';
import { DeltaBytes } from './delta-bytes.ts';
import { DeltaIntegers } from './delta-integers.ts';
import { DeltaLengthBytes } from './delta-length-bytes.ts';
import { DictionaryIndices } from './dictionary-indices.ts';
import type { LoadedDictionary, PageContext, PageValues } from './page-values.ts';
import { PlainBits, PlainBytes, PlainFixed } from './plain-values.ts';
import { RunBits } from './run-bits.ts';
import { SplitStreams } from './split-streams.ts';

/** The decoder of a data page's values. Throws UNSUPPORTED, DICTIONARY or PAGE_HEADER. */
export function openPageValues(
  page: PageContext,
  encoding: number,
  physical: number,
  dictionary: LoadedDictionary | undefined,
): PageValues {
  switch (encoding) {
    case Encoding.PLAIN:
      if (physical === Physical.BOOLEAN) return new PlainBits(page);
      return physical === Physical.BYTE_ARRAY ? new PlainBytes(page) : new PlainFixed(page);
    case Encoding.PLAIN_DICTIONARY:
    case Encoding.RLE_DICTIONARY:
      if (physical === Physical.BOOLEAN) {
        throw new DecodeError('PAGE_HEADER', 'booleans can not be dictionary-encoded');
      }
      if (dictionary === undefined) {
        throw new DecodeError('DICTIONARY', 'a dictionary-encoded page comes before any dictionary page');
      }
      return new DictionaryIndices(page, dictionary);
    case Encoding.DELTA_BINARY_PACKED:
      if (physical === Physical.INT32 || physical === Physical.INT64) return new DeltaIntegers(page);
      throw misplaced(encoding, physical, 'INT32 or INT64');
    case Encoding.DELTA_LENGTH_BYTE_ARRAY:
      if (physical === Physical.BYTE_ARRAY) return new DeltaLengthBytes(page);
      throw misplaced(encoding, physical, 'BYTE_ARRAY');
    case Encoding.DELTA_BYTE_ARRAY:
      if (physical === Physical.BYTE_ARRAY || physical === Physical.FIXED_LEN_BYTE_ARRAY) return new DeltaBytes(page);
      throw misplaced(encoding, physical, 'BYTE_ARRAY or FIXED_LEN_BYTE_ARRAY');
    case Encoding.BYTE_STREAM_SPLIT:
      if (page.width > 0 && physical !== Physical.INT96) return new SplitStreams(page);
      throw misplaced(encoding, physical, 'a fixed-width type');
    case Encoding.RLE:
      if (physical === Physical.BOOLEAN) return new RunBits(page);
      throw misplaced(encoding, physical, 'BOOLEAN');
    default:
      throw new DecodeError('UNSUPPORTED', `encoding ${nameOf(Encoding, encoding)} is not supported`);
  }
}

function misplaced(encoding: number, physical: number, expected: string): DecodeError {
  const what = `encoding ${nameOf(Encoding, encoding)} on ${nameOf(Physical, physical)}`;
  return new DecodeError('PAGE_HEADER', what, { expected });
}
