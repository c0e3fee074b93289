/** Bad input below the footer, by class: pages, levels, dictionaries and values. */
import type { DecodeErrorCode } from '../errors.ts';
import { Codec, Encoding, nameOf, Physical } from '../format/enums.ts';
import { BITS, BOOLEAN, chunkFile, GAPS, INT64, NUMBERS, OPTIONAL, STRING, STRINGS } from './bad-input-files.ts';
import { nestedFile } from './nested-cases.ts';
import type { Tree } from './thrift-twin.ts';
import { encodeDelta, encodeDeltaLengths } from './writer/delta.ts';
import {
  CODECS,
  type ColumnValue,
  chunkPlan,
  compress,
  type FieldPlan,
  join,
  type PagePlan,
  packedRun,
  rleRun,
  u32,
  varint,
} from './writer/index.ts';

interface BadChunk {
  readonly name: string;
  readonly comes: DecodeErrorCode | 'rows';
  readonly bytes: () => Uint8Array;
}

type Comes = BadChunk['comes'];
const numbers = (name: string, comes: Comes, pages: readonly PagePlan[], codec = 0): BadChunk => ({
  name,
  comes,
  bytes: () => chunkFile(INT64, NUMBERS, pages, codec),
});
const gaps = (name: string, comes: Comes, page: PagePlan, codec = 0): BadChunk => ({
  name,
  comes,
  bytes: () => chunkFile(OPTIONAL, GAPS, [page], codec),
});
const strings = (name: string, comes: Comes, pages: readonly PagePlan[], codec = 0): BadChunk => ({
  name,
  comes,
  bytes: () => chunkFile(STRING, STRINGS, pages, codec),
});
const header = (change: (tree: Tree) => void) => ({ header: change });
const field = (name: string, value: number) =>
  header((tree) => {
    tree[name] = value;
  });
const inner = (struct: string, name: string, value: number | boolean) =>
  header((tree) => {
    (tree[struct] as Tree)[name] = value;
  });
const v1 = (name: string, value: number) => inner('data_page_header', name, value);
const v2 = (name: string, value: number | boolean) => ({
  version: 2 as const,
  ...inner('data_page_header_v2', name, value),
});
const cutBy = (count: number) => (bytes: Uint8Array) => bytes.subarray(0, bytes.length - count);

const DICTIONARY: PagePlan = { type: 'dictionary' };
const INDEXED: PagePlan = { encoding: Encoding.RLE_DICTIONARY };
const entries = (count: number) => inner('dictionary_page_header', 'num_values', count);
const indices = (bytes: Uint8Array): PagePlan[] => [DICTIONARY, { ...INDEXED, values: () => bytes }];

const ZEROS = new Uint8Array(32 << 20);
const COMPRESSED = CODECS.filter((codec) => codec !== Codec.UNCOMPRESSED);

const deltaHeader = (blockSize: number, miniblocks: number, count: number): PagePlan => ({
  encoding: Encoding.DELTA_BINARY_PACKED,
  values: (bytes) => join([varint(blockSize), varint(miniblocks), varint(count), bytes.subarray(4)]),
});
const byteAt = (encoding: number, at: number, byte: number): PagePlan => ({
  encoding,
  values: (bytes) => Uint8Array.from(bytes, (old, k) => (k === at ? byte : old)),
});
const lengthsPage = (lengths: readonly bigint[]): PagePlan => ({
  encoding: Encoding.DELTA_LENGTH_BYTE_ARRAY,
  values: () => join([encodeDelta(lengths, 32), Buffer.from(STRINGS.join(''))]),
});
const incremental = (prefix: bigint): PagePlan => ({
  encoding: Encoding.DELTA_BYTE_ARRAY,
  values: () =>
    join([
      encodeDelta(
        STRINGS.map((_, k) => (k === 1 ? prefix : 0n)),
        32,
      ),
      encodeDeltaLengths(STRINGS.map((value) => Buffer.from(value))),
    ]),
});

/** optional group l (LIST) { repeated group list { optional int64 } } of three rows. */
const LIST: FieldPlan = {
  kind: 'list',
  name: 'l',
  optional: true,
  form: 'three levels',
  element: { kind: 'leaf', name: 'element', optional: true, column: { physical: Physical.INT64 } },
};
const list = (name: string, comes: Comes, page: PagePlan): BadChunk => ({
  name,
  comes,
  bytes: () => nestedFile([LIST], [[[[1n, 2n]], [null], [[3n]]]], (leaf) => chunkPlan(leaf, [page], 0)).bytes,
});

export const BAD_CHUNKS: Readonly<Record<string, readonly BadChunk[]>> & {
  readonly [K in
    | 'enumerations'
    | 'counts'
    | 'sizes'
    | 'v2'
    | 'bombs'
    | 'compressed'
    | 'framings'
    | 'levels'
    | 'runs'
    | 'dictionaries'
    | 'plain'
    | 'delta'
    | 'deltaBytes'
    | 'split']: readonly BadChunk[];
} = {
  enumerations: [
    numbers('an encoding', 'UNSUPPORTED', [v1('encoding', 99)]),
    numbers('an encoding that was never given out', 'UNSUPPORTED', [v1('encoding', 1)]),
    numbers('a page type', 'PAGE_HEADER', [field('type', 9)]),
    gaps('an encoding of levels', 'LEVELS', v1('definition_level_encoding', 99)),
    numbers('an encoding that its type can not have', 'PAGE_HEADER', [v1('encoding', Encoding.RLE)]),
  ],
  counts: [
    numbers('-1 values', 'PAGE_HEADER', [v1('num_values', -1)]),
    numbers('2^31 - 1 values', 'PAGE_HEADER', [v1('num_values', 2 ** 31 - 1)]),
    numbers('a value more than the chunk has', 'PAGE_HEADER', [v1('num_values', 101)]),
    numbers('a value fewer than the chunk has', 'METADATA', [v1('num_values', 99)]),
    numbers('more values than bytes', 'PAGE', [{ values: cutBy(8) }]),
  ],
  sizes: [
    numbers('-1 compressed', 'PAGE_HEADER', [field('compressed_page_size', -1)]),
    numbers('-1 uncompressed', 'PAGE_HEADER', [field('uncompressed_page_size', -1)]),
    numbers('0 compressed', 'PAGE_HEADER', [field('compressed_page_size', 0)]),
    numbers('past the end of the chunk', 'PAGE_HEADER', [field('compressed_page_size', 801)]),
    numbers('2 GiB', 'PAGE_HEADER', [field('compressed_page_size', 2 ** 31 - 1)]),
    numbers('other uncompressed than compressed, without a codec', 'PAGE_HEADER', [
      field('uncompressed_page_size', 799),
    ]),
    ...COMPRESSED.flatMap((codec) =>
      [-1, 1].map((by) =>
        numbers(
          `${nameOf(Codec, codec)} that yields ${by} bytes more`,
          'CODEC',
          [field('uncompressed_page_size', 800 - by)],
          codec,
        ),
      ),
    ),
    numbers('a header that is cut', 'PAGE_HEADER', [
      { rows: 50 },
      { headerBytes: (bytes) => bytes.subarray(0, 3), body: () => new Uint8Array(0) },
    ]),
  ],
  v2: [
    gaps('levels longer than the page', 'PAGE_HEADER', v2('definition_levels_byte_length', 5000)),
    gaps('levels of -1 bytes', 'PAGE_HEADER', v2('definition_levels_byte_length', -1)),
    gaps('levels whose sum wraps around', 'PAGE_HEADER', {
      version: 2,
      ...header((tree) => {
        const page = tree.data_page_header_v2 as Tree;
        page.definition_levels_byte_length = 2 ** 31 - 1;
        page.repetition_levels_byte_length = 2 ** 31 - 1;
      }),
    }),
    gaps('more nulls than values', 'PAGE_HEADER', v2('num_nulls', 101)),
    gaps(
      'stored bytes that say they are compressed',
      'CODEC',
      { ...v2('is_compressed', true), stored: true },
      Codec.GZIP,
    ),
    gaps('compressed bytes that say they are not', 'PAGE_HEADER', v2('is_compressed', false), Codec.GZIP),
    {
      name: 'no bytes at all where every value is null',
      comes: 'rows',
      bytes: () => {
        const nulls: ColumnValue[] = GAPS.map(() => null);
        const page: PagePlan = {
          version: 2,
          body: (body) => body.subarray(0, 2),
          ...field('uncompressed_page_size', 2),
        };
        return chunkFile(
          OPTIONAL,
          nulls,
          [{ ...page, levels: () => rleRun(0, 100, 1).subarray(0, 3), ...v2Sizes(3) }],
          Codec.SNAPPY,
        );
      },
    },
  ],
  bombs: [
    ...COMPRESSED.map((codec) =>
      numbers(
        `32 MiB of zeros in a page of 800 bytes, ${nameOf(Codec, codec)}`,
        'CODEC',
        [{ body: () => compress(codec, ZEROS) }],
        codec,
      ),
    ),
    ...[Codec.SNAPPY, Codec.GZIP, Codec.LZ4_RAW, Codec.LZ4].map((codec) =>
      numbers(
        `a page that declares 1 GiB, ${nameOf(Codec, codec)}`,
        'CODEC',
        [field('uncompressed_page_size', 2 ** 30)],
        codec,
      ),
    ),
  ],
  compressed: [
    ...COMPRESSED.flatMap((codec) => [
      numbers(`cut, ${nameOf(Codec, codec)}`, 'CODEC', [{ body: cutBy(4) }], codec),
      numbers(
        `garbage, ${nameOf(Codec, codec)}`,
        'CODEC',
        [{ body: (bytes) => bytes.map((_, k) => (k * 77 + 200) & 255) }],
        codec,
      ),
    ]),
    numbers(
      'a Snappy copy from before the start',
      'CODEC',
      [{ body: () => Uint8Array.of(0xa0, 6, 0x01, 0x10, ...new Uint8Array(40)) }],
      Codec.SNAPPY,
    ),
    numbers(
      'a Snappy literal past the end',
      'CODEC',
      [{ body: () => Uint8Array.of(0xa0, 6, 0xf4, 0x1f, 3, ...new Uint8Array(40)) }],
      Codec.SNAPPY,
    ),
  ],
  framings: [
    ...(['one', 'several', 'bare'] as const).map((framing) =>
      numbers(`LZ4 of ${framing} frame`, 'rows', [{ framing }], Codec.LZ4),
    ),
    numbers('gzip of several members', 'rows', [{ framing: 'several' }], Codec.GZIP),
    numbers('zstd of several frames', 'rows', [{ framing: 'several' }], Codec.ZSTD),
    numbers(
      'an LZ4 frame that declares 4 GiB',
      'CODEC',
      [{ body: (bytes) => Uint8Array.from(bytes, (old, k) => (k < 4 ? 255 : old)) }],
      Codec.LZ4,
    ),
    numbers(
      'a frame of Hadoop in a raw page',
      'CODEC',
      [{ body: () => compress(Codec.LZ4, new Uint8Array(800)) }],
      Codec.LZ4_RAW,
    ),
    numbers('LZO', 'UNSUPPORTED', [{}], Codec.LZO),
  ],
  levels: [
    gaps('that end too early', 'LEVELS', { levels: () => rleRun(1, 99, 1) }),
    gaps('over their maximum', 'LEVELS', { levels: () => rleRun(2, 100, 1) }),
    gaps('longer than the page', 'LEVELS', { plain: (body) => join([u32(2 ** 32 - 1), body.subarray(4)]) }),
    gaps('that say more values than there are', 'PAGE', { levels: () => rleRun(1, 100, 1) }),
    gaps('that say fewer values than there are, which are then not looked at', 'rows', {
      levels: () => rleRun(0, 100, 1),
    }),
    gaps('BIT_PACKED, longer than the page', 'LEVELS', { bitPackedLevels: true, plain: () => new Uint8Array(3) }),
    list('a row that begins in a list', 'LEVELS', { repetition: () => rleRun(1, 4, 1) }),
    list('an element of a null list', 'LEVELS', { levels: () => join([rleRun(0, 1, 2), rleRun(3, 3, 2)]) }),
    list('repetition that ends too early', 'LEVELS', { repetition: () => rleRun(0, 3, 1) }),
    list('repetition over its maximum', 'LEVELS', { repetition: () => rleRun(3, 4, 1) }),
  ],
  runs: [
    numbers(
      'of nothing, before others',
      'rows',
      indices(join([Uint8Array.of(4), varint(0), Uint8Array.of(0), varint(1), rleRun(1, 100, 4)])),
    ),
    numbers('longer than the page', 'rows', indices(join([Uint8Array.of(4), rleRun(1, 2 ** 30, 4)]))),
    numbers('shorter than the page', 'DICTIONARY', indices(join([Uint8Array.of(4), rleRun(1, 99, 4)]))),
    numbers('of no bits', 'rows', indices(join([Uint8Array.of(0), rleRun(0, 100, 0)]))),
    numbers('of 33 bits', 'DICTIONARY', indices(join([Uint8Array.of(33), new Uint8Array(500)]))),
    numbers('of 255 bits', 'DICTIONARY', indices(join([Uint8Array.of(255), new Uint8Array(500)]))),
    numbers(
      'packed, past the end of the page',
      'DICTIONARY',
      indices(join([Uint8Array.of(4), varint(1001), new Uint8Array(9)])),
    ),
    numbers('with a header without an end', 'DICTIONARY', indices(new Uint8Array(60).fill(0xff).fill(4, 0, 1))),
    {
      name: 'of booleans, without a length',
      comes: 'PAGE',
      bytes: () => chunkFile(BOOLEAN, BITS, [{ encoding: Encoding.RLE, values: cutBy(100) }]),
    },
  ],
  dictionaries: [
    numbers('index past the end', 'DICTIONARY', indices(join([Uint8Array.of(4), rleRun(10, 100, 4)]))),
    numbers(
      'index past the end, packed',
      'DICTIONARY',
      indices(join([Uint8Array.of(4), packedRun(new Array(100).fill(15), 0, 100, 4)])),
    ),
    numbers('none', 'DICTIONARY', [INDEXED]),
    numbers('after the page that needs it', 'DICTIONARY', [{ ...INDEXED, rows: 50 }, DICTIONARY, INDEXED]),
    numbers('two', 'DICTIONARY', [DICTIONARY, { ...INDEXED, rows: 50 }, DICTIONARY, INDEXED]),
    numbers('empty', 'DICTIONARY', [{ ...DICTIONARY, ...entries(0), values: () => new Uint8Array(0) }, INDEXED]),
    numbers('of more entries than bytes', 'DICTIONARY', [{ ...DICTIONARY, ...entries(11) }, INDEXED]),
    numbers('of 2^31 - 1 entries', 'DICTIONARY', [{ ...DICTIONARY, ...entries(2 ** 31 - 1) }, INDEXED]),
    strings('of a string past its end', 'DICTIONARY', [
      { ...DICTIONARY, values: (bytes) => join([u32(1000), bytes.subarray(4)]) },
      INDEXED,
    ]),
    {
      name: 'empty, where every value is null',
      comes: 'rows',
      bytes: () =>
        chunkFile(
          OPTIONAL,
          GAPS.map(() => null),
          [DICTIONARY, INDEXED],
        ),
    },
    { name: 'of booleans', comes: 'DICTIONARY', bytes: () => chunkFile(BOOLEAN, BITS, [DICTIONARY, {}]) },
  ],
  plain: [
    ...[1000, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1].map((length) =>
      strings(`a string of ${length} bytes`, 'PAGE', [{ values: (bytes) => join([u32(length), bytes.subarray(4)]) }]),
    ),
    strings('strings that end too early', 'PAGE', [{ values: cutBy(1) }]),
    numbers('numbers that end too early', 'PAGE', [{ values: cutBy(1) }]),
    {
      name: 'booleans that end too early',
      comes: 'PAGE',
      bytes: () => chunkFile(BOOLEAN, BITS, [{ values: cutBy(1) }]),
    },
  ],
  delta: [
    numbers('0 miniblocks', 'PAGE', [deltaHeader(128, 0, 100)]),
    numbers('a block size that is no multiple of 128', 'PAGE', [deltaHeader(100, 4, 100)]),
    numbers('a block of 2^31 values', 'PAGE', [deltaHeader(2 ** 31, 4, 100)]),
    numbers('a count over the page', 'PAGE', [deltaHeader(128, 4, 101)]),
    numbers('a count below the page', 'PAGE', [deltaHeader(128, 4, 99)]),
    numbers('a count of 2^53', 'PAGE', [deltaHeader(128, 4, 2 ** 53)]),
    numbers('a width over 64 bits', 'PAGE', [byteAt(Encoding.DELTA_BINARY_PACKED, 6, 65)]),
    {
      name: 'sums that wrap around',
      comes: 'rows',
      bytes: () => chunkFile(INT64, [2n ** 63n - 1n, -(2n ** 63n), 0n], [{ encoding: Encoding.DELTA_BINARY_PACKED }]),
    },
  ],
  deltaBytes: [
    strings('a negative length', 'PAGE', [
      lengthsPage(STRINGS.map((value, k) => (k === 0 ? -1n : BigInt(value.length)))),
    ]),
    strings('lengths whose sum wraps around', 'PAGE', [lengthsPage(STRINGS.map(() => 2n ** 31n - 1n))]),
    strings('lengths past the end', 'PAGE', [lengthsPage(STRINGS.map(() => 9n))]),
    strings('a prefix longer than the value before', 'PAGE', [incremental(9n)]),
    strings('a negative prefix', 'PAGE', [incremental(-1n)]),
    strings('a prefix of 2 GiB', 'PAGE', [incremental(2n ** 31n - 1n)]),
  ],
  split: [
    numbers('a byte fewer than whole values', 'PAGE', [{ encoding: Encoding.BYTE_STREAM_SPLIT, values: cutBy(1) }]),
    numbers('a value fewer than the page has', 'PAGE', [{ encoding: Encoding.BYTE_STREAM_SPLIT, values: cutBy(8) }]),
    numbers('a value more than the page has', 'PAGE', [
      { encoding: Encoding.BYTE_STREAM_SPLIT, values: (bytes) => join([bytes, new Uint8Array(8)]) },
    ]),
  ],
};

/** A V2 page that ends with its levels. */
function v2Sizes(levelBytes: number): Pick<PagePlan, 'header' | 'body'> {
  return {
    body: (body) => body.subarray(0, levelBytes),
    header: (tree) => {
      tree.uncompressed_page_size = levelBytes;
    },
  };
}
