/**
 * The classes of bad input that Parquet readers have been brought down by, each with what it must come to here: an
 * error of just that code, or the right values where a reader has no business refusing. Every file is read from its
 * tail to its last value, as a scan does, by both kernels. Classes that other tests go through in more places name
 * these tests.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { test } from 'node:test';
import { DecodeError, type DecodeErrorCode } from '../errors.ts';
import { Converted, Physical } from '../format/enums.ts';
import { bytesFrom, footerFile, footerOf, INT64, NUMBERS, STRING, withFooterBytes } from './bad-input-files.ts';
import { BAD_CHUNKS } from './bad-input-pages.ts';
import { readWhole } from './bad-input-read.ts';
import { makeEnvironments } from './chunk-run.ts';
import type { Tree, Value } from './thrift-twin.ts';
import { type ChunkPlan, type WriterColumn, writeFile } from './writer/index.ts';

type Comes = DecodeErrorCode | 'rows';

interface Case {
  readonly name: string;
  readonly bytes: Uint8Array | (() => Uint8Array);
  readonly comes: Comes;
}

interface BadClass {
  readonly name: string;
  readonly cases: readonly Case[];
  /** Tests that go through the class too: file below the repository's root, and a part of a test's name. */
  readonly alsoIn?: ReadonlyArray<readonly [file: string, name: string]>;
}

const { wasm, scalar, pool } = makeEnvironments(64 << 20);
const sound = footerFile(() => {});
const lengthField = (value: number) =>
  bytesFrom(sound, (bytes) => new DataView(bytes.buffer).setUint32(bytes.length - 8, value, true));
/** A file whose footer was changed; `chunk` is the first one's metadata. */
const footer = (name: string, comes: Comes, change: (tree: Tree, chunk: Tree, element: Tree) => void): Case => ({
  name,
  comes,
  bytes: footerFile((tree) => {
    const group = (tree.row_groups as Tree[])[0]!;
    const chunk = (group.columns as Tree[])[0]!;
    change(tree, chunk.meta_data as Tree, (tree.schema as Tree[])[1]!);
  }),
});
const firstGroup = (tree: Tree): Tree => (tree.row_groups as Tree[])[0]!;
const columnsOf = (tree: Tree): Tree[] => firstGroup(tree).columns as Tree[];
const set = (tree: Tree, name: string, value: Value): void => {
  tree[name] = value;
};

const column = (name: string, comes: Comes, one: WriterColumn, values: ChunkPlan['values']): Case => ({
  name,
  comes,
  bytes: writeFile({ rowGroups: [[{ column: one, values, pages: [{}] }]] }).bytes,
});

const CLASSES: readonly BadClass[] = [
  {
    name: 'a file too short to be one',
    cases: [
      { name: 'nothing', bytes: new Uint8Array(0), comes: 'MAGIC' },
      { name: 'one magic', bytes: Buffer.from('PAR1'), comes: 'MAGIC' },
      { name: 'two magics', bytes: Buffer.from('PAR1PAR1'), comes: 'MAGIC' },
      { name: 'eleven bytes', bytes: Buffer.from('PAR1\0\0\0PAR1'), comes: 'MAGIC' },
      { name: 'twelve bytes without a footer', bytes: Buffer.from('PAR1\0\0\0\0PAR1'), comes: 'FOOTER' },
    ],
  },
  {
    name: 'magic missing',
    cases: [
      { name: 'the last', bytes: bytesFrom(sound, (bytes) => bytes.fill(0, -4)), comes: 'MAGIC' },
      { name: 'the first', bytes: bytesFrom(sound, (bytes) => bytes.fill(0, 0, 4)), comes: 'MAGIC' },
      {
        name: 'that of an encrypted footer',
        bytes: bytesFrom(sound, (bytes) => bytes.set([0x45], bytes.length - 1)),
        comes: 'ENCRYPTED',
      },
      { name: 'right, around garbage', bytes: withFooterBytes(new Uint8Array(50).fill(0xa5)), comes: 'THRIFT' },
    ],
  },
  {
    name: 'footer length that lies',
    cases: [0, sound.length - 11, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1].map((length) => ({
      name: `${length}`,
      bytes: lengthField(length),
      comes: 'FOOTER' as const,
    })),
  },
  {
    name: 'footer cut or garbled',
    cases: [
      { name: 'without its last byte', bytes: withFooterBytes(footerOf(sound).subarray(0, -1)), comes: 'THRIFT' },
      { name: 'without its half', bytes: withFooterBytes(footerOf(sound).subarray(0, 60)), comes: 'THRIFT' },
      { name: 'shifted by a byte', bytes: withFooterBytes(footerOf(sound).subarray(1)), comes: 'FOOTER' },
    ],
    alsoIn: [['decode/tests/footer.test.ts', 'every way to cut or flip a footer']],
  },
  {
    name: 'Thrift integer without an end',
    cases: [
      { name: 'eleven bytes', bytes: withFooterBytes([0x36, ...new Uint8Array(10).fill(0xff), 1, 0]), comes: 'THRIFT' },
      {
        name: 'more than 64 bits',
        bytes: withFooterBytes([0x36, ...new Uint8Array(9).fill(0xff), 2, 0]),
        comes: 'THRIFT',
      },
    ],
    alsoIn: [['decode/tests/compact.test.ts', 'hostile bytes are refused with a place']],
  },
  {
    name: 'Thrift list, map or string longer than what is left',
    cases: [
      {
        name: 'a list of 2^31 elements',
        bytes: withFooterBytes([0x29, 0xfc, 0x80, 0x80, 0x80, 0x80, 8, 0]),
        comes: 'THRIFT',
      },
      { name: 'a string of 4 GiB', bytes: withFooterBytes([0x68, 0xff, 0xff, 0xff, 0xff, 0x0f, 0]), comes: 'THRIFT' },
      {
        name: 'a map of 2^31 pairs',
        bytes: withFooterBytes([0x7b, 0x80, 0x80, 0x80, 0x80, 8, 0x88, 0]),
        comes: 'THRIFT',
      },
      {
        name: 'a length over 32 bits',
        bytes: withFooterBytes([0x68, ...new Uint8Array(5).fill(0xff), 1, 0]),
        comes: 'THRIFT',
      },
    ],
    alsoIn: [['decode/tests/footer.test.ts', 'lists that would take far more memory than bytes']],
  },
  {
    name: 'Thrift nested without end',
    cases: [
      { name: 'structs', bytes: withFooterBytes(new Uint8Array(20_000).fill(0x9c)), comes: 'THRIFT' },
      { name: 'lists of lists', bytes: withFooterBytes(new Uint8Array(20_000).fill(0x19)), comes: 'THRIFT' },
    ],
    alsoIn: [['decode/tests/compact.test.ts', 'nesting deeper than the bound is refused without deep recursion']],
  },
  {
    name: 'Thrift of another type than the field has',
    cases: [
      { name: 'a schema that is a string', bytes: withFooterBytes([0x28, 1, 65, 0]), comes: 'THRIFT' },
      { name: 'a schema of numbers', bytes: withFooterBytes([0x29, 0x15, 2, 0]), comes: 'THRIFT' },
      { name: 'a row count that is a struct', bytes: withFooterBytes([0x3c, 0, 0]), comes: 'THRIFT' },
    ],
  },
  {
    name: 'enumerations that do not exist',
    cases: [
      footer('a physical type', 'METADATA', (_, chunk, element) => {
        set(element, 'type', 99);
        set(chunk, 'type', 99);
      }),
      footer('a codec', 'UNSUPPORTED', (_, chunk) => set(chunk, 'codec', 99)),
      footer('a repetition', 'SCHEMA', (_, __, element) => set(element, 'repetition_type', 7)),
      footer('a converted type, which only describes', 'rows', (_, __, element) => set(element, 'converted_type', 99)),
      footer('a logical type, which only describes', 'rows', (_, __, element) =>
        set(element, 'logicalType', { FROM_THE_FUTURE: { parameter: 1 } }),
      ),
      footer('an encoding that no page has', 'rows', (_, chunk) => set(chunk, 'encodings', [99])),
      ...BAD_CHUNKS.enumerations,
    ],
  },
  {
    name: 'schema that is no tree',
    cases: [
      footer('more children than there are', 'SCHEMA', (tree) => set((tree.schema as Tree[])[0]!, 'num_children', 9)),
      footer('fewer children than there are', 'SCHEMA', (tree) => set((tree.schema as Tree[])[0]!, 'num_children', 1)),
      footer('-1 children', 'SCHEMA', (tree) => set((tree.schema as Tree[])[0]!, 'num_children', -1)),
      footer('2^31 - 1 children', 'SCHEMA', (tree) => set((tree.schema as Tree[])[0]!, 'num_children', 2 ** 31 - 1)),
      footer('no elements', 'SCHEMA', (tree) => set(tree, 'schema', [])),
      footer('groups in groups in groups', 'LIMIT', (tree) => {
        const groups = Array.from({ length: 1000 }, () => ({ name: 'g', num_children: 1, repetition_type: 1 }));
        set(tree, 'schema', [{ name: 'root', num_children: 1 }, ...groups, { name: 'leaf', type: 1 }]);
      }),
    ],
    alsoIn: [['decode/tests/schema.test.ts', 'lists of elements that are no tree']],
  },
  {
    name: 'annotation or length that does not fit the type',
    cases: [
      footer('FIXED_LEN_BYTE_ARRAY without a length', 'METADATA', (_, chunk, element) => {
        set(element, 'type', Physical.FIXED_LEN_BYTE_ARRAY);
        set(chunk, 'type', Physical.FIXED_LEN_BYTE_ARRAY);
      }),
      footer('FIXED_LEN_BYTE_ARRAY of length -1', 'METADATA', (_, chunk, element) => {
        set(element, 'type', Physical.FIXED_LEN_BYTE_ARRAY);
        set(element, 'type_length', -1);
        set(chunk, 'type', Physical.FIXED_LEN_BYTE_ARRAY);
      }),
      footer('UTF8 on a number', 'rows', (_, __, element) => set(element, 'converted_type', Converted.UTF8)),
      footer('a date of 64 bits', 'METADATA', (_, __, element) => set(element, 'converted_type', Converted.DATE)),
    ],
    alsoIn: [['decode/tests/schema.test.ts', 'annotations that do not fit']],
  },
  {
    name: 'chunk outside of the file',
    cases: [-1n, 0n, 3n, 2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 63n - 1n, -(2n ** 63n)]
      .map((offset) => footer(`data at ${offset}`, 'METADATA', (_, chunk) => set(chunk, 'data_page_offset', offset)))
      .concat(
        [-1n, 2n ** 31n, 2n ** 62n, 2n ** 63n - 1n].map((size) =>
          footer(`${size} bytes`, 'METADATA', (_, chunk) => set(chunk, 'total_compressed_size', size)),
        ),
        [
          footer('a dictionary at -5, which then is where data begins', 'rows', (_, chunk) =>
            set(chunk, 'dictionary_page_offset', -5n),
          ),
        ],
      ),
  },
  {
    name: 'chunks on one another',
    cases: [
      footer('two columns on the same bytes, which is two equal columns', 'rows', (tree) => {
        const [a, b] = columnsOf(tree) as [Tree, Tree];
        const path = (b.meta_data as Tree).path_in_schema!;
        columnsOf(tree)[1] = { ...a, meta_data: { ...(a.meta_data as Tree), path_in_schema: path } };
        const elements = tree.schema as Tree[];
        elements[2] = { ...elements[1]!, name: elements[2]!.name! };
      }),
      footer('a thousand row groups on the same bytes, read one after the other', 'rows', (tree) => {
        set(
          tree,
          'row_groups',
          Array.from({ length: 1000 }, () => firstGroup(tree)),
        );
        set(tree, 'num_rows', BigInt(NUMBERS.length * 1000));
      }),
    ],
    alsoIn: [['fetcher/tests/plan.test.ts', 'chunks that claim to be endless are refused before a plan is made']],
  },
  {
    name: 'row group that does not match the schema',
    cases: [
      footer('a chunk too few', 'METADATA', (tree) => void columnsOf(tree).pop()),
      footer('a chunk too many', 'METADATA', (tree) => void columnsOf(tree).push(columnsOf(tree)[0]!)),
      footer('none at all', 'METADATA', (tree) => set(firstGroup(tree), 'columns', [])),
      footer('another path', 'METADATA', (_, chunk) => set(chunk, 'path_in_schema', ['other'])),
      footer('another type', 'METADATA', (_, chunk) => set(chunk, 'type', Physical.DOUBLE)),
      footer('a path to another file', 'METADATA', (tree) => set(columnsOf(tree)[0]!, 'file_path', '/etc/passwd')),
      footer('without metadata', 'METADATA', (tree) => void delete columnsOf(tree)[0]!.meta_data),
    ],
  },
  {
    name: 'row counts that lie',
    cases: [
      ...[-1n, 2n ** 62n, 2n ** 63n - 1n, -(2n ** 63n)].map((rows) =>
        footer(`${rows} rows in the row group`, 'METADATA', (tree) => set(firstGroup(tree), 'num_rows', rows)),
      ),
      footer('other rows than values', 'METADATA', (tree) => set(firstGroup(tree), 'num_rows', 2n ** 40n)),
      footer('-1 rows in the file', 'METADATA', (tree) => set(tree, 'num_rows', -1n)),
      footer('other rows in the file than in its row groups, which have the last word', 'rows', (tree) =>
        set(tree, 'num_rows', 7n),
      ),
    ],
  },
  { name: 'page counts that lie', cases: BAD_CHUNKS.counts },
  { name: 'page sizes that lie', cases: BAD_CHUNKS.sizes },
  { name: 'V2 pages that lie', cases: BAD_CHUNKS.v2 },
  {
    name: 'decompression bombs',
    cases: BAD_CHUNKS.bombs,
    alsoIn: [['decode/tests/codec.test.ts', 'a bomb is stopped at the declared size']],
  },
  {
    name: 'compressed bytes that are damaged',
    cases: BAD_CHUNKS.compressed,
    alsoIn: [
      ['decode/tests/codec.test.ts', 'damaged bytes give the declared number of bytes or an error'],
      ['decode/tests/column-hostile-pages.test.ts', 'every cut of a '],
    ],
  },
  {
    name: 'LZ4 framings and gzip members',
    cases: BAD_CHUNKS.framings,
    alsoIn: [['decode/tests/codec.test.ts', 'several gzip members and several zstd frames are one page']],
  },
  {
    name: 'levels',
    cases: BAD_CHUNKS.levels,
    alsoIn: [['decode/tests/column-hostile-encodings.test.ts', 'an element of a null list']],
  },
  { name: 'runs', cases: BAD_CHUNKS.runs },
  { name: 'dictionaries', cases: BAD_CHUNKS.dictionaries },
  { name: 'plain values', cases: BAD_CHUNKS.plain },
  {
    name: 'delta integers',
    cases: BAD_CHUNKS.delta,
    alsoIn: [['decode/tests/column-hostile-encodings.test.ts', 'delta: widths of miniblocks behind the last value']],
  },
  { name: 'delta byte arrays', cases: BAD_CHUNKS.deltaBytes },
  { name: 'split streams', cases: BAD_CHUNKS.split },
  {
    name: 'statistics and indexes that lie',
    cases: [
      footer('more nulls than values, minima over maxima', 'rows', (_, chunk) =>
        set(chunk, 'statistics', {
          null_count: 2n ** 60n,
          min_value: Uint8Array.of(255, 255, 255, 255, 255, 255, 255, 127),
          max_value: new Uint8Array(8),
        }),
      ),
      footer('bounds of another width, and negative counts', 'rows', (_, chunk) =>
        set(chunk, 'statistics', {
          null_count: -1n,
          distinct_count: -1n,
          min_value: new Uint8Array(1),
          max: new Uint8Array(0),
        }),
      ),
      footer('indexes and Bloom filters outside of the file', 'rows', (tree, chunk) => {
        const [first] = columnsOf(tree);
        set(first!, 'offset_index_offset', 2n ** 62n);
        set(first!, 'offset_index_length', 2 ** 31 - 1);
        set(first!, 'column_index_offset', -1n);
        set(first!, 'column_index_length', -1);
        set(chunk, 'bloom_filter_offset', 2n ** 63n - 1n);
        set(chunk, 'bloom_filter_length', -1);
      }),
    ],
    alsoIn: [['decode/tests/footer.test.ts', 'hints of impossible shape are left out']],
  },
  {
    name: 'texts, names and values',
    cases: [
      column('a string that is not UTF-8', 'VALUE', { ...STRING, converted: Converted.UTF8 }, [Uint8Array.of(0xff)]),
      column('bytes that are not UTF-8', 'rows', STRING, [Uint8Array.of(0xff)]),
      column('U+FEFF and NUL', 'rows', { ...STRING, converted: Converted.UTF8 }, ['\ufeff', 'a\0b', '\ufeffx']),
      column('a date beyond any calendar', 'rows', { name: 'd', physical: Physical.INT32, converted: Converted.DATE }, [
        2 ** 31 - 1,
        -(2 ** 31),
      ]),
      column('a column called __proto__', 'rows', { ...INT64, name: '__proto__' }, [1n]),
      footer('columns of one name', 'rows', (tree) => {
        const name = (tree.schema as Tree[])[1]!.name!;
        set((tree.schema as Tree[])[2]!, 'name', name);
        set(columnsOf(tree)[1]!.meta_data as Tree, 'path_in_schema', [name]);
      }),
    ],
    alsoIn: [
      ['daemon/tests/scan-errors.test.ts', 'names that repeat and names that objects have'],
      ['daemon/tests/schema-oddities.test.ts', ''],
    ],
  },
];

for (const { name, cases } of CLASSES) {
  for (const one of cases) {
    test(`${name}: ${one.name}`, () => {
      const bytes = typeof one.bytes === 'function' ? one.bytes() : one.bytes;
      for (const environment of [wasm, scalar]) {
        if (one.comes === 'rows') readWhole(environment, bytes);
        else {
          assert.throws(
            () => readWhole(environment, bytes),
            (error) => {
              assert.ok(error instanceof DecodeError, String((error as Error)?.stack));
              assert.equal(error.code, one.comes, error.message);
              return true;
            },
          );
        }
        assert.equal(pool.usedBytes, 0, 'nothing is left in the pool');
        readWhole(environment, sound);
      }
    });
  }
}

test('30 classes, each with a case, and the tests that are named are there', () => {
  assert.equal(CLASSES.length, 30);
  assert.equal(new Set(CLASSES.map(({ name }) => name)).size, 30);
  const root = joinPath(import.meta.dirname, '../..');
  for (const { name, cases, alsoIn = [] } of CLASSES) {
    assert.ok(cases.length > 0, name);
    for (const [file, part] of alsoIn) {
      assert.ok(readFileSync(joinPath(root, file), 'utf8').includes(part), `${file} has a test ${part}`);
    }
  }
  assert.ok(CLASSES.some(({ cases }) => cases.some(({ comes }) => comes === 'rows')));
});
