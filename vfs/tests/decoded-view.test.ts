/** The decoded view of files that DuckDB wrote, read by readers that know nothing of it: the same rows as the file's. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { parquetReadObjects } from 'hyparquet';
import { readParquet } from 'parquet-wasm';
import { Codec, Encoding, parseTail } from '../../decode/index.ts';
import { planDecodedFile } from '../decoded/layout.ts';
import { layoutOf, materialize } from './materialize.ts';
import { VIEW_COLUMNS } from './view-columns.ts';

const ROWS = 3001;

describe('decoded view', () => {
  let folder: string;
  let instance: DuckDBInstance;
  let duckdb: DuckDBConnection;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'qanat-decoded-'));
    instance = await DuckDBInstance.create();
    duckdb = await instance.connect();
  });
  after(() => {
    duckdb.closeSync();
    instance.closeSync();
    rmSync(folder, { recursive: true, force: true });
  });

  async function write(name: string, options: string): Promise<string> {
    const path = join(folder, `${name}.parquet`);
    await duckdb.run(
      `COPY (SELECT ${VIEW_COLUMNS} FROM range(${ROWS}) t(i)) TO '${path}' (FORMAT parquet, KV_METADATA {who: 'us'}, ${options})`,
    );
    return path;
  }

  async function differences(left: string, right: string): Promise<unknown> {
    const both = `SELECT count(*) FROM ((FROM '${left}' EXCEPT ALL FROM '${right}')
      UNION ALL (FROM '${right}' EXCEPT ALL FROM '${left}'))`;
    return (await duckdb.runAndReadAll(both)).value(0, 0);
  }

  for (const [name, options] of [
    ['snappy', 'COMPRESSION snappy, ROW_GROUP_SIZE 2048'],
    ['zstd_v2', "COMPRESSION zstd, PARQUET_VERSION 'V2'"],
    ['uncompressed', 'COMPRESSION uncompressed, DICTIONARY_SIZE_LIMIT 1'],
  ] as const) {
    // SEMANTICS 10
    test(`readers find the rows of a ${name} file`, async () => {
      const path = await write(name, options);
      const file = read(path);
      const view = materialize(file, { windowRows: 700 })!;
      const shown = join(folder, `${name}-view.parquet`);
      assert.ok(Buffer.compare(view, materialize(file)!) === 0, 'the same with values put in their places');
      writeFileSync(shown, view);
      assert.equal(await differences(path, shown), 0n, 'DuckDB');

      // hyparquet by itself knows no zstd
      if (name !== 'zstd_v2') {
        const [before, now] = [await objects(file), await objects(view)];
        assert.equal(before.length, ROWS);
        assert.deepEqual(now, before, 'hyparquet');
      }
      assert.deepEqual(
        Buffer.from(readParquet(view).intoIPCStream()),
        Buffer.from(readParquet(file).intoIPCStream()),
        'parquet-wasm',
      );
    });
  }

  // SEMANTICS 11
  test('fixed-width columns are plain and uncompressed, all else is as it was', async () => {
    const file = read(await write('kinds', 'COMPRESSION snappy'));
    const [metadata] = layoutOf(file);
    const [shown] = layoutOf(materialize(file)!);
    for (const group of shown.rowGroups) {
      for (const leaf of shown.leaves) {
        const chunk = group.columns[leaf.index]!;
        const old = metadata.rowGroups[group.ordinal]!.columns[leaf.index]!;
        assert.equal(chunk.broken, undefined);
        const decoded = leaf.type !== 6 && leaf.path.length === 1;
        assert.equal(chunk.codec, decoded ? Codec.UNCOMPRESSED : Codec.SNAPPY, leaf.name);
        assert.deepEqual(chunk.statistics, old.statistics, leaf.name);
        assert.equal(chunk.bloomFilter, undefined);
        assert.equal(chunk.columnIndex, undefined);
        if (!decoded) assert.equal(chunk.bytes.end - chunk.bytes.start, old.bytes.end - old.bytes.start);
      }
    }
    assert.deepEqual(shown.schema, metadata.schema);
    assert.deepEqual(shown.keyValues, metadata.keyValues);
    assert.deepEqual(
      shown.rowGroups.map((group) => group.numRows),
      metadata.rowGroups.map((group) => group.numRows),
    );
  });

  // SEMANTICS 12
  test('levels of a writer that packed them wrongly pass through', async () => {
    const file = read(await write('impala', 'COMPRESSION snappy'));
    const [metadata, layout] = layoutOf(file);
    const { footerStart, footerLength } = parseTail(file, file.length);
    const footer = file.subarray(footerStart, footerStart + footerLength);
    const rowGroups = metadata.rowGroups.map((group) => ({
      ...group,
      columns: group.columns.map((chunk) =>
        chunk.column === 0 ? { ...chunk, encodings: [Encoding.BIT_PACKED] } : chunk,
      ),
    }));
    const decodedOf = (createdBy: string): number[] => {
      const shown = planDecodedFile({ ...metadata, createdBy, rowGroups }, footer, { chunkBytesMax: 64 << 20 })!;
      return [...shown.decoded.get(0)!.keys()];
    };
    assert.deepEqual(decodedOf('parquet-mr'), [...layout!.decoded.get(0)!.keys()]);
    assert.deepEqual(decodedOf('impala version 2.0'), decodedOf('parquet-mr').slice(1));
  });

  test('chunks of several pages, pages and windows ending at different rows', async () => {
    const path = join(folder, 'pages.parquet');
    await duckdb.run(`COPY (SELECT CASE WHEN hash(i) % 3 = 0 THEN NULL ELSE i END AS id,
        CASE WHEN i < 200000 THEN NULL ELSE (i % 7)::INTEGER END AS few, i % 11 = 0 AS bit, i::HUGEINT::DECIMAL(38) AS d
      FROM range(300000) t(i)) TO '${path}' (FORMAT parquet, ROW_GROUP_SIZE 300000)`);
    const file = read(path);
    const pages = layoutOf(file)[1]!.sections.flatMap((one) => (one.kind === 'decoded' ? [one.pages.count] : []));
    assert.ok(pages.filter((count) => count > 1).length >= 2, `pages: ${pages}`);
    const shown = join(folder, 'pages-view.parquet');
    const copied = materialize(file, { windowRows: 32_003 })!;
    assert.ok(Buffer.compare(copied, materialize(file)!) === 0, 'the same with values put in their places');
    writeFileSync(shown, copied);
    assert.equal(await differences(path, shown), 0n);
  });

  // SEMANTICS 12
  test('chunks over the bound pass through; a file without any other has no view', async () => {
    const file = read(await write('bound', 'COMPRESSION snappy'));
    const [, layout] = layoutOf(file, 8 * ROWS);
    const decoded = layout!.sections.flatMap((section) => (section.kind === 'decoded' ? [section.column] : []));
    assert.ok(decoded.length > 0);
    assert.ok(!decoded.includes(6), 'the 16-byte decimal passes through');
    assert.equal(layoutOf(file, 10)[1], undefined);
    const view = materialize(file, { chunkBytesMax: 8 * ROWS })!;
    assert.deepEqual(await objects(view), await objects(file));
  });
});

function read(path: string): Uint8Array {
  return new Uint8Array(readFileSync(path));
}

function objects(bytes: Uint8Array): Promise<Record<string, unknown>[]> {
  return parquetReadObjects({ file: bytes.slice().buffer });
}
