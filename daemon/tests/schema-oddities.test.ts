/** Schemas that are legal, or nearly so, and that few writers make: names, nothing at all, orders and counts. */
import assert from 'node:assert/strict';
import { writeFile as writeBytes } from 'node:fs/promises';
import { after, before, describe, test } from 'node:test';
import { DecodeError, type DecodeErrorCode, Physical } from '../../decode/index.ts';
import type { Tree } from '../../decode/tests/thrift-twin.ts';
import { type ChunkPlan, writeFile } from '../../decode/tests/writer/index.ts';
import { FetchError } from '../../fetcher/index.ts';
import { ScanEngine } from '../scan/engine.ts';
import type { ScanOptions } from '../scan/scan.ts';
import { Lake } from './lake.ts';
import { type Scanned, scanBytes, scanFile, valuesAt } from './table-file.ts';

const { INT32, INT64 } = Physical;

/** An INT32 column of `rows` values that follow from its place. */
function column(name: string, place: number, rows = 10): ChunkPlan {
  return {
    column: { name, physical: INT32 },
    values: Array.from({ length: rows }, (_, row) => place * 1000 + row),
    pages: [{}],
  };
}

function valuesOf(place: number, rows = 10): number[] {
  return Array.from({ length: rows }, (_, row) => place * 1000 + row);
}

const groupsOf = (footer: Tree): Tree[] => footer.row_groups as Tree[];

describe('odd schemas', () => {
  let lake: Lake;
  let engine: ScanEngine;
  before(async () => {
    lake = await Lake.create();
    engine = new ScanEngine({ memoryBytes: 32 << 20, decoders: 1 });
  });
  after(async () => {
    await engine.close();
    await lake[Symbol.asyncDispose]();
  });
  const scan = (bytes: Uint8Array, options: ScanOptions = {}): Promise<Scanned> =>
    scanBytes(engine, lake.folder, bytes, options);
  const namesOf = ({ schema }: Scanned): string[] => schema.fields.map((field) => field.name);
  const refused = async (bytes: Uint8Array, code: DecodeErrorCode, reason: RegExp): Promise<void> => {
    await assert.rejects(scan(bytes), (error) => {
      assert.ok(error instanceof DecodeError, String(error));
      assert.equal(error.code, code);
      assert.match(error.message, reason);
      return true;
    });
  };

  test('names occur twice: all are read, a name asked for gives both', async () => {
    const { bytes } = writeFile({ rowGroups: [['a', 'b', 'a', 'A'].map((name, place) => column(name, place))] });
    const all = await scan(bytes);
    assert.deepEqual(namesOf(all), ['a', 'b', 'a', 'A']);
    for (const place of [0, 1, 2, 3]) assert.deepEqual(valuesAt(all, place), valuesOf(place));
    const both = await scan(bytes, { columns: ['a'] });
    assert.deepEqual(namesOf(both), ['a', 'a']);
    assert.deepEqual(valuesAt(both, 1), valuesOf(2));
    const other = await scan(bytes, { columns: ['A', 'a'] });
    assert.deepEqual(namesOf(other), ['A', 'a', 'a']);
    assert.deepEqual(valuesAt(other, 0), valuesOf(3));
  });

  test('a file with names that occur twice beside another of its kind', async () => {
    const { bytes } = writeFile({ rowGroups: [['a', 'b', 'a'].map((name, place) => column(name, place))] });
    for (const name of ['twice-1.parquet', 'twice-2.parquet']) await writeBytes(lake.path(name), bytes);
    const scanned = await scanFile(engine, lake.path('twice-*.parquet'), { columns: ['a', 'b'] });
    assert.deepEqual(namesOf(scanned), ['a', 'a', 'b']);
    for (const [k, place] of [0, 2, 1].entries()) {
      assert.deepEqual(valuesAt(scanned, k), [...valuesOf(place), ...valuesOf(place)]);
    }
  });

  test('names with dots, slashes, spaces, quotes, other scripts, and none at all', async () => {
    const names = ['a.b', 'a', '.', '..', 'x/y', '/', '', ' ', 'naïve', '漢字', '🎈', '"', "'", 'a\nb', 'a\0b', '*'];
    const { bytes } = writeFile({ rowGroups: [names.map((name, place) => column(name, place))] });
    const all = await scan(bytes);
    assert.deepEqual(namesOf(all), names);
    for (const [place, name] of names.entries()) {
      assert.deepEqual(valuesAt(all, place), valuesOf(place), name);
      const one = await scan(bytes, { columns: [name] });
      assert.deepEqual(namesOf(one), [name]);
      assert.deepEqual(valuesAt(one, 0), valuesOf(place), name);
    }
  });

  test('a dotted name means a column of that name and one in a group', async () => {
    const { bytes } = writeFile({
      rowGroups: [['a.b', 'b', 'c'].map((name, place) => column(name, place))],
      footer: (footer) => {
        const [root, dotted, inner, last] = footer.schema as Tree[];
        const group = { name: 'a', repetition_type: 0, num_children: 1 };
        footer.schema = [{ ...root!, num_children: 3 }, dotted!, group, inner!, last!];
        const chunk = (groupsOf(footer)[0]!.columns as Tree[])[1]!;
        (chunk.meta_data as Tree).path_in_schema = ['a', 'b'];
      },
    });
    const scanned = await scan(bytes, { columns: ['a.b'] });
    assert.deepEqual(namesOf(scanned), ['a.b', 'a']);
    assert.deepEqual(valuesAt(scanned, 0), valuesOf(0));
    assert.deepEqual(
      valuesAt(scanned, 1).map((struct) => (struct as { b: number }).b),
      valuesOf(1),
    );
  });

  test('no columns', async () => {
    const noGroups = writeFile({ rowGroups: [] }).bytes;
    assert.deepEqual([(await scan(noGroups)).rows, namesOf(await scan(noGroups))], [0, []]);
    const rows = writeFile({
      rowGroups: [],
      footer: (footer) => {
        footer.num_rows = 12n;
        footer.row_groups = [7n, 5n].map((num_rows) => ({ columns: [], total_byte_size: 0n, num_rows }));
      },
    }).bytes;
    const scanned = await scan(rows);
    assert.deepEqual([scanned.rows, namesOf(scanned)], [12, []]);
    await assert.rejects(
      scan(noGroups, { columns: ['a'] }),
      (error) => error instanceof FetchError && error.code === 'COLUMN',
    );
  });

  test('no rows: no row group, an empty one, empty ones between others', async () => {
    const plan = (rows: number[]): Uint8Array =>
      writeFile({
        rowGroups: rows.map((count) => [column('a', 0, count), column('b', 1, count)]),
      }).bytes;
    const none = writeFile({
      rowGroups: [[column('a', 0), column('b', 1)]],
      footer: (footer) => {
        footer.row_groups = [];
        footer.num_rows = 0n;
      },
    }).bytes;
    for (const bytes of [none, plan([0]), plan([0, 0])]) {
      const scanned = await scan(bytes);
      assert.equal(scanned.rows, 0);
      assert.deepEqual(namesOf(scanned), ['a', 'b']);
    }
    const scanned = await scan(plan([0, 10, 0, 0, 5, 0]));
    assert.deepEqual(valuesAt(scanned, 1), [...valuesOf(1, 10), ...valuesOf(1, 5)]);
    const limited = await scan(plan([0, 10, 0, 5]), { limit: 12 });
    assert.deepEqual(valuesAt(limited, 0), [...valuesOf(0, 10), ...valuesOf(0, 2)]);
  });

  test('an empty row group whose chunks have no pages and impossible offsets', async () => {
    const { bytes } = writeFile({
      rowGroups: [[column('a', 0, 0)], [column('a', 0)]],
      footer: (footer) => {
        const meta = (groupsOf(footer)[0]!.columns as Tree[])[0]!.meta_data as Tree;
        Object.assign(meta, { total_compressed_size: 0n, data_page_offset: 0n, dictionary_page_offset: 0n });
      },
    });
    assert.deepEqual(valuesAt(await scan(bytes), 0), valuesOf(0));
  });

  test('chunks in another order than the schema are found by their paths', async () => {
    const names = ['a', 'b', 'c', 'd'];
    const shuffled = (change: (chunks: Tree[]) => void): Uint8Array =>
      writeFile({
        rowGroups: [names.map((name, place) => column(name, place)), names.map((name, place) => column(name, place))],
        footer: (footer) => change(groupsOf(footer)[1]!.columns as Tree[]),
      }).bytes;
    const scanned = await scan(shuffled((chunks) => void chunks.unshift(chunks.pop()!)));
    for (const place of names.keys()) {
      assert.deepEqual(valuesAt(scanned, place), [...valuesOf(place), ...valuesOf(place)]);
    }
    const twice = shuffled((chunks) => {
      chunks[1] = chunks[3]!;
      chunks[3] = chunks[0]!;
    });
    await refused(twice, 'METADATA', /column "b", row group 1.*path_in_schema is that of another column/);
    // of "d" there is one chunk, "a" is at its place
    assert.deepEqual(valuesAt(await scan(twice, { columns: ['a', 'd'] }), 1), [...valuesOf(3), ...valuesOf(3)]);
  });

  test('chunks at places in the file that are not in the order of the columns', async () => {
    const { bytes } = writeFile({
      rowGroups: [['a', 'b', 'c'].map((name, place) => column(name, place))],
      footer: (footer) => {
        const [a, b, c] = groupsOf(footer)[0]!.columns as Tree[];
        const place = (chunk: Tree) => (chunk.meta_data as Tree).data_page_offset!;
        const [first, , last] = [place(a!), place(b!), place(c!)];
        (a!.meta_data as Tree).data_page_offset = last;
        (c!.meta_data as Tree).data_page_offset = first;
      },
    });
    const scanned = await scan(bytes);
    for (const [k, place] of [2, 1, 0].entries()) assert.deepEqual(valuesAt(scanned, k), valuesOf(place));
  });

  test('two columns that share the bytes of one chunk', async () => {
    const { bytes } = writeFile({
      rowGroups: [['a', 'b'].map((name, place) => column(name, place))],
      footer: (footer) => {
        const [a, b] = groupsOf(footer)[0]!.columns as Tree[];
        (b!.meta_data as Tree).data_page_offset = (a!.meta_data as Tree).data_page_offset!;
      },
    });
    const scanned = await scan(bytes);
    for (const k of [0, 1]) assert.deepEqual(valuesAt(scanned, k), valuesOf(0));
  });

  test('num_children missing, zero, too small, too large, negative', async () => {
    const rowGroups = [['a', 'b'].map((name, place) => column(name, place))];
    const withRoot = (num_children: number | undefined): Uint8Array =>
      writeFile({
        rowGroups,
        footer: (footer) => {
          const [root, ...leaves] = footer.schema as Tree[];
          footer.schema = [{ name: root!.name!, ...(num_children === undefined ? {} : { num_children }) }, ...leaves];
        },
      }).bytes;
    assert.equal((await scan(withRoot(2))).rows, 10);
    await refused(withRoot(undefined), 'SCHEMA', /2 schema elements belong to no group/);
    await refused(withRoot(0), 'SCHEMA', /belong to no group/);
    await refused(withRoot(1), 'SCHEMA', /1 schema elements belong to no group/);
    await refused(withRoot(3), 'SCHEMA', /says it has 3 children/);
    await refused(withRoot(-1), 'SCHEMA', /-1 children/);
    const withLeaf = (num_children: number): Uint8Array =>
      writeFile({
        rowGroups,
        footer: (footer) => {
          const leaf = (footer.schema as Tree[])[2]!;
          leaf.num_children = num_children;
        },
      }).bytes;
    assert.deepEqual(valuesAt(await scan(withLeaf(0)), 1), valuesOf(1));
    await refused(withLeaf(1), 'SCHEMA', /group "b" says it has 1 children/);
  });

  test('a group without fields, beside columns', async () => {
    const { bytes } = writeFile({
      rowGroups: [['a', 'b'].map((name, place) => column(name, place))],
      footer: (footer) => {
        const [root, a, b] = footer.schema as Tree[];
        footer.schema = [{ ...root!, num_children: 3 }, a!, { name: 'empty', repetition_type: 1, num_children: 0 }, b!];
      },
    });
    const scanned = await scan(bytes);
    assert.deepEqual(namesOf(scanned), ['a', 'b']);
    assert.deepEqual(valuesAt(scanned, 1), valuesOf(1));
  });

  test('more names than are looked up one by one', async () => {
    const names = Array.from({ length: 300 }, (_, k) => `column ${k}`);
    const { bytes } = writeFile({ rowGroups: [names.map((name, place) => column(name, place, 3))] });
    const wanted = names.filter((_, k) => k % 3 === 0).reverse();
    for (const columns of [wanted, wanted.slice(0, 5)]) {
      const scanned = await scan(bytes, { columns });
      assert.deepEqual(namesOf(scanned), columns);
      const last = columns.length - 1;
      assert.deepEqual(valuesAt(scanned, last), valuesOf(names.indexOf(columns[last]!), 3));
    }
    await assert.rejects(
      scan(bytes, { columns: ['column 3000'] }),
      /did you mean "column 300?"|no column "column 3000"/,
    );
  });

  test('a required column of another type than its chunk says', async () => {
    const { bytes } = writeFile({
      rowGroups: [[column('a', 0)]],
      footer: (footer) => {
        (footer.schema as Tree[])[1]!.type = INT64;
      },
    });
    await refused(bytes, 'METADATA', /the chunk's type is INT32, the schema's INT64/);
  });
});
