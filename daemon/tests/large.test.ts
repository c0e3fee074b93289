/** Sizes beyond 32 bits and beyond the memory, on files that take little room: sparse, compressible, or of runs. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Codec, Encoding, Physical } from '../../decode/index.ts';
import { FetchError } from '../../fetcher/index.ts';
import { serveRegion } from '../../storage-server/index.ts';
import { openSource } from '../../vfs/index.ts';
import { ScanEngine } from '../scan/engine.ts';
import { Scan, type ScanOptions } from '../scan/scan.ts';
import { Lake } from './lake.ts';
import { bitRun, booleans, INT64_BYTES, type RawPage, writeRawFile } from './raw-chunk.ts';

const MIB = 1 << 20;
const GIB = 2 ** 30;

/** Goes over a scan's batches and gives their rows; `see` gets each as Arrow. */
async function rowsOf(
  engine: ScanEngine,
  location: string,
  see?: (values: ArrayLike<unknown>, firstRow: number) => void,
  options: ScanOptions = {},
): Promise<number> {
  const source = await openSource(location);
  try {
    const scan = await Scan.open(engine, source, options);
    let rows = 0;
    for (let batch = await scan.nextBatch(); batch !== undefined; batch = await scan.nextBatch()) {
      if (see !== undefined) see(scan.toArrow(batch).getChildAt(0)!.data[0]!.values as ArrayLike<unknown>, rows);
      rows += batch.rows;
      batch.release();
    }
    await scan.close();
    return rows;
  } finally {
    await source.close();
  }
}

const text = { name: 'a', physical: Physical.BYTE_ARRAY, converted: 0 };

/** A page of 64-bit integers: `first` and the ones after it, again and again from 0. */
function integers(count: number): RawPage {
  const values = new BigInt64Array(count);
  for (let k = 0; k < count; k++) values[k] = BigInt(k % 1000);
  return { values: count, plain: new Uint8Array(values.buffer) };
}

describe('large files', () => {
  let lake: Lake;
  let engine: ScanEngine;
  before(async () => {
    lake = await Lake.create();
    engine = new ScanEngine({ memoryBytes: 256 * MIB, decoders: 1 });
  });
  after(async () => {
    await engine.close();
    await lake[Symbol.asyncDispose]();
  });

  test('more than 2^31 rows, in one row group and in all', async () => {
    const path = lake.path('rows.parquet');
    const run = (values: number) => ({ values, encoding: Encoding.RLE, plain: bitRun(values, true) });
    const pageRows = 2 ** 30;
    const chunk = { column: booleans('a'), pages: [{ page: run(pageRows), times: 2 }, { page: run(5) }] };
    const after = { column: booleans('a'), pages: [{ page: run(7) }] };
    const { rows } = await writeRawFile(path, [chunk, after]);
    assert.ok(rows > 2 ** 31);
    assert.equal(await rowsOf(engine, path), rows);
    const limit = 2 ** 31 + 1;
    assert.equal(await rowsOf(engine, path, undefined, { limit }), limit);
  });

  test('a chunk past 4 GiB in a file, locally and from a server', async (t) => {
    const path = lake.path('sparse.parquet');
    const page = integers(100_000);
    const chunk = { column: { name: 'a', physical: Physical.INT64 }, codec: Codec.SNAPPY, pages: [{ page, times: 3 }] };
    await writeRawFile(path, [chunk, chunk], 5 * GIB + 12_345);
    const server = await serveRegion({ roots: [path], listen: { host: '127.0.0.1', port: 0 } });
    t.after(() => server.close());
    const { host, port } = server.address();
    for (const location of [path, `rdma://${host}:${port}/sparse.parquet`]) {
      let sum = 0n;
      const rows = await rowsOf(engine, location, (values) => {
        for (const value of values as BigInt64Array) sum += value;
      });
      assert.equal(rows, 600_000);
      assert.equal(sum, 600n * 499_500n);
    }
  });

  test('a row group of 1 GiB in 256 MiB of memory', async () => {
    const path = lake.path('group.parquet');
    const page = integers(MIB / INT64_BYTES);
    const column = { name: 'a', physical: Physical.INT64 };
    await writeRawFile(path, [{ column, codec: Codec.SNAPPY, pages: [{ page, times: 1024 }] }]);
    let last = -1n;
    const rows = await rowsOf(engine, path, (values, firstRow) => {
      const inPage = firstRow % page.values;
      assert.equal((values as BigInt64Array)[0], BigInt(inPage % 1000));
      last = (values as BigInt64Array).at(-1)!;
    });
    assert.equal(rows, GIB / INT64_BYTES);
    assert.equal(last, BigInt((page.values - 1) % 1000));
    assert.ok(engine.pool.peakBytes <= 256 * MIB);
  });

  for (const [name, codec] of Object.entries({
    UNCOMPRESSED: Codec.UNCOMPRESSED,
    SNAPPY: Codec.SNAPPY,
    ZSTD: Codec.ZSTD,
  })) {
    test(`pages of 100 MiB, ${name}`, async () => {
      const path = lake.path(`page-${name}.parquet`);
      const page = integers((100 * MIB) / INT64_BYTES);
      const column = { name: 'a', physical: Physical.INT64 };
      await writeRawFile(path, [{ column, codec, pages: [{ page, times: 2 }] }]);
      const rows = await rowsOf(engine, path, (values, firstRow) => {
        for (const k of [0, values.length - 1]) {
          assert.equal((values as BigInt64Array)[k], BigInt(((firstRow + k) % page.values) % 1000));
        }
      });
      assert.equal(rows, 2 * page.values);
    });
  }

  test('a page of 100 MiB of short strings, and one of values that may be null', async () => {
    const word = 'a word of some length';
    const one = Buffer.alloc(4 + word.length);
    one.writeUInt32LE(word.length, 0);
    one.write(word, 4);
    const count = Math.floor((100 * MIB) / one.length);
    const words = { values: count, plain: Buffer.alloc(count * one.length, one) };
    const integer = integers((100 * MIB) / INT64_BYTES);
    const levels = bitRun(integer.values, true);
    const optional = { ...integer, plain: Buffer.concat([levels, integer.plain]) };
    for (const codec of [Codec.SNAPPY, Codec.ZSTD]) {
      const path = lake.path('page-of-strings.parquet');
      await writeRawFile(path, [{ column: text, codec, pages: [{ page: words }] }]);
      let bytes = 0;
      const rows = await rowsOf(engine, path, (values) => {
        bytes += values.length;
      });
      assert.deepEqual([rows, bytes], [count, count * word.length]);
      const column = { name: 'a', physical: Physical.INT64, optional: true };
      await writeRawFile(path, [{ column, codec, pages: [{ page: optional }] }]);
      assert.equal(await rowsOf(engine, path), integer.values);
    }
  });

  test('a page that does not fit says how much memory it takes', async () => {
    const path = lake.path('too-large.parquet');
    const page = integers((100 * MIB) / INT64_BYTES);
    const column = { name: 'a', physical: Physical.INT64 };
    await writeRawFile(path, [{ column, codec: Codec.ZSTD, pages: [{ page }] }]);
    const small = new ScanEngine({ memoryBytes: 32 * MIB, decoders: 1 });
    try {
      await assert.rejects(rowsOf(small, path), (error) => {
        assert.ok(error instanceof FetchError, String(error));
        assert.equal(error.code, 'MEMORY');
        assert.match(error.message, /--memory \d+/);
        return true;
      });
    } finally {
      await small.close();
    }
  });

  const STRING_BYTES = 16 * MIB;
  const longText = (letter: number): Buffer => {
    const text = Buffer.alloc(4 + STRING_BYTES, 97 + letter);
    text.writeUInt32LE(STRING_BYTES, 0);
    text[4] = 65 + letter;
    return text;
  };
  async function checkTexts(path: string, count: number): Promise<void> {
    const source = await openSource(path);
    try {
      let row = 0;
      for await (const batch of await Scan.open(engine, source)) {
        const [data] = batch.getChildAt(0)!.data;
        const offsets = data!.valueOffsets as Int32Array;
        const bytes = data!.values as Uint8Array;
        for (let k = 0; k < batch.numRows; k++, row++) {
          assert.equal(offsets[k + 1]! - offsets[k]!, STRING_BYTES);
          assert.deepEqual([bytes[offsets[k]!], bytes[offsets[k + 1]! - 1]], [65 + (row % 4), 97 + (row % 4)]);
        }
      }
      assert.equal(row, count);
    } finally {
      await source.close();
    }
  }

  test('strings of 16 MiB, one in a page, several in one', async () => {
    const one = [0, 1, 2, 3].map((letter) => ({ page: { values: 1, plain: longText(letter) } }));
    for (const [name, codec] of Object.entries({ plain: Codec.UNCOMPRESSED, zstd: Codec.ZSTD })) {
      const path = lake.path(`texts-${name}.parquet`);
      await writeRawFile(path, [{ column: text, codec, pages: one }]);
      await checkTexts(path, 4);
      const four = { values: 4, plain: Buffer.concat([0, 1, 2, 3].map(longText)) };
      await writeRawFile(path, [{ column: text, codec, pages: [{ page: four }] }]);
      await checkTexts(path, 4);
    }
  });

  test('strings of 16 MiB in a dictionary', async () => {
    const path = lake.path('text-dictionary.parquet');
    const dictionary = { values: 4, plain: Buffer.concat([0, 1, 2, 3].map(longText)), dictionary: true } as const;
    // width 2, one bit-packed group of eight: 0 1 2 3 0 1 2 3
    const indices = { values: 8, encoding: Encoding.RLE_DICTIONARY, plain: Buffer.of(2, 3, 0b11100100, 0b11100100) };
    await writeRawFile(path, [{ column: text, codec: Codec.ZSTD, pages: [{ page: dictionary }, { page: indices }] }]);
    await checkTexts(path, 8);
  });
});
