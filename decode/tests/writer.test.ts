/** The test writer itself: other readers must see in its files what was written. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { tableFromIPC } from 'apache-arrow';
import { type Compressors, parquetReadObjects } from 'hyparquet';
import { uncompressSync } from 'lz4-napi';
import { readParquet } from 'parquet-wasm';
import { Codec, Converted, Encoding, nameOf, Physical } from '../format/enums.ts';
import { parseFooter, parseTail } from '../format/parse-footer.ts';
import { type CaseShape, KINDS, type Kind, makePlan, makeValues, waysOf } from './chunk-cases.ts';
import { assertSameValues, expectedValues, makeEnvironments, runChunk, specOf } from './chunk-run.ts';
import { seededRandom } from './random.ts';
import type { Tree } from './thrift-twin.ts';
import { type ChunkPlan, CODECS, type ColumnValue, encodeRuns, type PagePlan, u32, writeFile } from './writer/index.ts';

const random = seededRandom();
let folder: string;
let duckdb: DuckDBConnection;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'qanat-writer-'));
  duckdb = await (await DuckDBInstance.create()).connect();
});
after(() => {
  duckdb.closeSync();
  rmSync(folder, { recursive: true });
});

/** Hadoop's frames, one after the other. */
function lz4Frames(input: Uint8Array): Uint8Array {
  const parts: Uint8Array[] = [];
  const view = new DataView(input.buffer, input.byteOffset, input.byteLength);
  for (let at = 0; at < input.length; at += 8 + view.getUint32(at + 4)) {
    const block = input.subarray(at + 8, at + 8 + view.getUint32(at + 4));
    parts.push(uncompressSync(Buffer.concat([u32(view.getUint32(at)), block])));
  }
  return Buffer.concat(parts);
}

const bytesOf = (data: Uint8Array): Uint8Array => Uint8Array.from(data);
const compressors: Compressors = {
  GZIP: (input) => bytesOf(gunzipSync(input)),
  BROTLI: (input) => bytesOf(brotliDecompressSync(input)),
  ZSTD: (input) => bytesOf(zstdDecompressSync(input)),
  LZ4: (input) => bytesOf(lz4Frames(input)),
  LZ4_RAW: (input, size) => bytesOf(uncompressSync(Buffer.concat([u32(size), input]))),
};

/** INT96 as what it is used for: nanoseconds of a day and a Julian day, at whole milliseconds here. */
const TIMESTAMP: Kind = {
  name: 'int96',
  physical: Physical.INT96,
  make: (from) => {
    const bytes = Buffer.alloc(12);
    bytes.writeBigUInt64LE(BigInt(from.below(86_400_000)) * 1_000_000n, 0);
    bytes.writeUInt32LE(2_440_588 + from.below(20_000), 8);
    return Uint8Array.from(bytes);
  },
};

/** Values of all readers in one form. */
function canonical(kind: Kind, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  if (value instanceof Date) return value.getTime();
  if (value instanceof Uint8Array) {
    if (kind.physical !== Physical.INT96) return Buffer.from(value).toString(kind.utf8 ? 'utf8' : 'hex');
    const view = new DataView(value.buffer, value.byteOffset, 12);
    return (view.getUint32(8, true) - 2_440_588) * 86_400_000 + Number(view.getBigUint64(0, true) / 1_000_000n);
  }
  if (kind.physical === Physical.FLOAT) return Math.fround(value as number);
  return value;
}

async function readByHyparquet(bytes: Uint8Array): Promise<Record<string, unknown>[]> {
  return parquetReadObjects({ file: Uint8Array.from(bytes).buffer, compressors, utf8: false });
}

async function readByDuckdb(bytes: Uint8Array, kinds: readonly Kind[]): Promise<Record<string, unknown>[]> {
  const path = join(folder, 'file.parquet');
  writeFileSync(path, bytes);
  const columns = kinds.map(({ name, physical, utf8 }) => {
    if (physical === Physical.INT96) return `epoch_ms("${name}") AS "${name}"`;
    const isBlob = (physical === Physical.BYTE_ARRAY && !utf8) || physical === Physical.FIXED_LEN_BYTE_ARRAY;
    return isBlob ? `lower(hex("${name}")) AS "${name}"` : `"${name}"`;
  });
  const reader = await duckdb.runAndReadAll(`SELECT ${columns.join(', ')} FROM '${path}'`);
  return reader.getRowObjectsJS().map((row) => {
    const { int96 } = row;
    return typeof int96 === 'bigint' ? { ...row, int96: Number(int96) } : row;
  });
}

function withConverted(plan: ChunkPlan, kind: Kind): ChunkPlan {
  return kind.utf8 ? { ...plan, column: { ...plan.column, converted: Converted.UTF8 } } : plan;
}

function assertRows(rows: Record<string, unknown>[], kinds: readonly Kind[], groups: ChunkPlan[][], who: string): void {
  for (const [i, kind] of kinds.entries()) {
    const written = groups.flatMap((group) => group[i]!.values.map((value) => canonical(kind, value)));
    const read = rows.map((row) => canonical(kind, row[kind.name]));
    assert.deepEqual(read, written, `${who}: ${kind.name}`);
  }
}

/** Our footer parser and decoder over the same file. */
function assertOurs(bytes: Uint8Array, groups: ChunkPlan[][]): void {
  const { wasm } = makeEnvironments(8 << 20);
  const { footerStart, footerLength } = parseTail(bytes, bytes.length);
  const metadata = parseFooter(bytes.subarray(footerStart, footerStart + footerLength), bytes.length);
  for (const [g, group] of groups.entries()) {
    for (const [c, plan] of group.entries()) {
      const chunk = metadata.rowGroups[g]!.columns[c]!;
      assert.equal(chunk.broken, undefined);
      const { start, end } = chunk.bytes;
      const body = bytes.subarray(start, end);
      const written = { numValues: chunk.numValues, bytes: body, uncompressedBytes: chunk.totalUncompressedSize };
      const spec = specOf(plan, { ...written, pages: [], encodings: [] });
      assertSameValues(runChunk(wasm, spec, body).values, expectedValues(plan.column, plan.values));
    }
  }
}

const kinds = KINDS.map((kind) => (kind.physical === Physical.INT96 ? TIMESTAMP : kind));

/** DuckDB splits streams of floats only, and knows no LZ4 but the raw one. */
function duckdbReads({ column, pages, codec }: ChunkPlan): boolean {
  const split = pages.some(({ encoding }) => encoding === Encoding.BYTE_STREAM_SPLIT);
  const isFloat = column.physical === Physical.FLOAT || column.physical === Physical.DOUBLE;
  return codec !== Codec.LZ4 && (isFloat || !split);
}

for (const codec of CODECS) {
  for (const version of [1, 2] as const) {
    test(`files in ${nameOf(Codec, codec)} with V${version} pages, read by others`, async () => {
      for (const [turn, nulls] of [-1, 30, -1, 30].entries()) {
        const groups = [0, 1].map((group) =>
          kinds.map((kind, i) => {
            const ways = waysOf(kind);
            const way = ways[(i + group + codec + version + (turn >> 1) * 3) % ways.length]!;
            const shape: CaseShape = {
              kind,
              nulls,
              way,
              codec,
              // the library's zstd, which the readers here share, stops after one frame
              framing: turn % 2 === 0 && codec !== Codec.ZSTD ? 'several' : 'one',
              version,
              rows: group === 0 ? 700 : 33,
              pageRows: [100, 5000, 64][i % 3]!,
              runs: i % 2 === 0 ? 'auto' : 'rle',
              distinct: [1, 40, 300][i % 3]!,
            };
            return withConverted(makePlan(random, shape), kind);
          }),
        );
        const { bytes } = writeFile({ rowGroups: groups, omitDictionaryOffset: nulls >= 0 });
        assertOurs(bytes, groups);
        assertRows(await readByHyparquet(bytes), kinds, groups, 'hyparquet');
        const readable = kinds.filter((_, i) => groups.every((group) => duckdbReads(group[i]!)));
        if (readable.length === 0) continue;
        const rest = groups.map((group) => group.filter((_, i) => readable.includes(kinds[i]!)));
        const without = writeFile({ rowGroups: rest, omitDictionaryOffset: nulls >= 0 });
        assertRows(await readByDuckdb(without.bytes, readable), readable, rest, 'DuckDB');
      }
    });
  }
}

test('every encoding of every kind, in every shape of delta blocks, read by hyparquet', async () => {
  for (const kind of kinds) {
    for (const way of waysOf(kind)) {
      const shape = {
        kind,
        nulls: 20,
        way,
        codec: Codec.UNCOMPRESSED,
        pageRows: 0,
        runs: 'auto',
        distinct: 500,
      } as const;
      const groups = [1, 2].map((version) => [makePlan(random, { ...shape, version: version as 1 | 2, rows: 900 })]);
      const { bytes } = writeFile({
        rowGroups: groups.map(([plan]) => [withConverted(withoutIndexPages(plan!), kind)]),
      });
      assertRows(await readByHyparquet(bytes), [kind], groups, 'hyparquet');
    }
  }
});

/** Which hyparquet does not step over. */
function withoutIndexPages(plan: ChunkPlan): ChunkPlan {
  return { ...plan, pages: plan.pages.filter(({ type }) => type !== 'index') };
}

test('LZ4 in a frame of Hadoop and without one, read by arrow-rs', () => {
  for (const framing of ['one', 'bare'] as const) {
    for (const kind of kinds.filter(({ name }) => name === 'int64' || name === 'string')) {
      const way = kind.name === 'int64' ? 'delta' : 'delta bytes';
      const shape = { kind, nulls: 30, way, codec: Codec.LZ4, framing, version: 1, rows: 900, pageRows: 300 } as const;
      const plan = makePlan(random, { ...shape, runs: 'auto', distinct: 90 });
      const { bytes } = writeFile({ rowGroups: [[withConverted(plan, kind)]] });
      const column = tableFromIPC(readParquet(bytes).intoIPCStream()).getChildAt(0)!;
      assert.deepEqual([...column], plan.values);
    }
  }
});

test('index pages and empty pages are stepped over', async () => {
  const kind = KINDS[2]!;
  const values = makeValues(random, { kind, nulls: -1, rows: 100, distinct: 10 });
  const pages: PagePlan[] = [
    { type: 'dictionary' },
    { type: 'index' },
    { rows: 0, encoding: Encoding.RLE_DICTIONARY },
    { rows: 40, encoding: Encoding.RLE_DICTIONARY },
    { rows: 0 },
    { type: 'index' },
    { rows: 60 },
  ];
  const plan = { column: { name: kind.name, physical: kind.physical }, values };
  const { bytes, chunks } = writeFile({ rowGroups: [[{ ...plan, pages }]] });
  assertOurs(bytes, [[{ ...plan, pages }]]);
  assert.equal(chunks[0]![0]!.pages.length, 7);
  // DuckDB does not step over index pages
  const groups = [[{ ...plan, pages: pages.filter((page) => page.type !== 'index') }]];
  const without = writeFile({ rowGroups: groups });
  assertRows(await readByDuckdb(without.bytes, [kind]), [kind], groups, 'DuckDB');
});

test('hooks change what they name and nothing else', () => {
  const column = { name: 'a', physical: Physical.INT32 };
  const values: ColumnValue[] = [1, 2, 3];
  const plain = writeFile({ rowGroups: [[{ column, values, pages: [{}] }]] });
  const header = (tree: Tree): void => {
    assert.equal(tree.compressed_page_size, 12);
    tree.crc = 7;
  };
  const footer = (tree: Tree): void => {
    tree.created_by = 'someone else';
  };
  const changed = writeFile({ rowGroups: [[{ column, values, pages: [{ header }] }]], footer });
  const [a, b] = [plain.chunks[0]![0]!, changed.chunks[0]![0]!];
  assert.deepEqual(b.bytes.subarray(b.pages[0]!.body), a.bytes.subarray(a.pages[0]!.body));
  assert.equal(b.bytes.length, a.bytes.length + 2);
  const { footerStart, footerLength } = parseTail(changed.bytes, changed.bytes.length);
  const metadata = parseFooter(changed.bytes.subarray(footerStart, footerStart + footerLength), changed.bytes.length);
  assert.equal(metadata.createdBy, 'someone else');
});

test('runs of every style hold the same values', () => {
  for (let turn = 0; turn < 200; turn++) {
    const width = random.below(33);
    const count = random.below(200);
    const values: number[] = [];
    while (values.length < count) {
      const value = random.below(2 ** width);
      for (let k = random.below(30); k >= 0 && values.length < count; k--) values.push(value);
    }
    for (const style of ['auto', 'rle', 'packed', 'mixed'] as const) {
      assert.deepEqual(readRuns(encodeRuns(values, width, style), width, count), values, style);
    }
  }
});

/** The grammar of the hybrid, read bit by bit. */
function readRuns(bytes: Uint8Array, width: number, count: number): number[] {
  const values: number[] = [];
  let at = 0;
  while (values.length < count) {
    let header = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++]!;
      header += (byte & 127) * 2 ** shift;
      if (byte < 128) break;
    }
    const bit = (index: number): number => (bytes[at + (index >>> 3)]! >>> (index & 7)) & 1;
    const valueAt = (index: number): number => {
      let value = 0;
      for (let k = 0; k < width; k++) value += bit(index + k) * 2 ** k;
      return value;
    };
    if (header % 2 === 1) {
      const groups = (header - 1) / 2;
      for (let k = 0; k < groups * 8; k++) values.push(valueAt(k * width));
      at += groups * width;
    } else {
      const value = valueAt(0);
      for (let k = 0; k < header / 2; k++) values.push(value);
      at += Math.ceil(width / 8);
    }
  }
  return values.slice(0, count);
}
