/**
 * Ten columns of ten thousand: opening a file on the local disk whose footer is most of it, and reading ten columns'
 * values, against DuckDB, hyparquet and parquet-wasm (arrow-rs), each with the file opened anew and nothing else. Ours
 * goes up to Arrow record batches, hyparquet's to arrays, parquet-wasm's to Arrow vectors by the way it documents,
 * DuckDB's query touches the values and gives none out. Ratios are our time by theirs. Engines, threads and compiled
 * modules are there before. Also the footer alone, parsed from memory: time, and bytes of heap that its metadata keeps.
 */
import { openAsBlob, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { DuckDBInstance } from '@duckdb/node-api';
import { tableFromIPC, type Vector } from 'apache-arrow';
import { asyncBufferFromFile, parquetMetadata, parquetMetadataAsync, parquetRead } from 'hyparquet';
import { ParquetFile } from 'parquet-wasm';
import { openSource, Scan, ScanEngine } from '../daemon/index.ts';
import { parseFooter, parseTail } from '../decode/index.ts';
import { planScan } from '../fetcher/index.ts';
import { collectGarbage } from './decode-peers.ts';
import { wideColumn, wideFile } from './make-wide.ts';
import { alternate, type BenchOptions, type BenchResult, formatTable, median, RUNS } from './result.ts';

const SIZES = {
  small: { columns: 2000, rowGroups: 3, groupRows: 20 },
  full: { columns: 10_000, rowGroups: 10, groupRows: 100 },
} as const;
const PROJECTED = 10;
/** Bytes. */
const MEMORY_BYTES = 128 << 20;

/** Values of the projected columns as texts, by column. */
type Texts = Record<string, string[]>;

export async function benchFooter(options: BenchOptions = {}): Promise<BenchResult> {
  const size = options.small ? SIZES.small : SIZES.full;
  const file = wideFile(size);
  const names = Array.from({ length: PROJECTED }, (_, k) =>
    wideColumn(Math.floor(((k + 0.5) * size.columns) / PROJECTED)),
  );
  const engine = new ScanEngine({ memoryBytes: MEMORY_BYTES });
  const instance = await DuckDBInstance.create(':memory:');
  const duckdb = await instance.connect();
  try {
    const touched = names.map((name) => `bit_xor(hash(${name}))`).join(', ');
    const sides = {
      ours: () => readOurs(engine, file, names),
      duckdb: async () => void (await duckdb.runAndReadAll(`select ${touched} from '${file}'`)),
      hyparquet: () => readHyparquet(file, names),
      'parquet-wasm': () => readParquetWasm(file, names),
    };
    await checkSame(sides, duckdb, file, names);
    const timed = Object.fromEntries(Object.entries(sides).map(([name, read]) => [name, () => timeOf(read)]));
    const samples = await alternate(options.small ? RUNS.small : RUNS.full, timed);
    const times = Object.fromEntries(Object.entries(samples).map(([name, all]) => [name, median(all)]));
    const parsed = await parseOnly(file, names);
    return {
      table: [
        `${size.columns} columns in ${size.rowGroups} row groups, ${PROJECTED} read; footer of ${parsed.footerBytes} bytes`,
        formatTable([
          ['ms', ...Object.keys(times)],
          ['', ...Object.values(times).map((ms) => ms.toFixed(1))],
        ]),
        '',
        formatTable([
          ['footer alone', 'ms', 'MiB kept'],
          ['ours, planned', parsed.ours.ms.toFixed(1), mebibytes(parsed.ours.keptBytes)],
          ['ours, all read', parsed.oursWhole.ms.toFixed(1), mebibytes(parsed.oursWhole.keptBytes)],
          ['hyparquet', parsed.hyparquet.ms.toFixed(1), mebibytes(parsed.hyparquet.keptBytes)],
        ]),
      ].join('\n'),
      ratios: {
        'duckdb.time': times.ours! / times.duckdb!,
        'hyparquet.time': times.ours! / times.hyparquet!,
        'parquet-wasm.time': times.ours! / times['parquet-wasm']!,
      },
      details: { ...size, projected: PROJECTED, timesMs: times, footerAlone: parsed },
    };
  } finally {
    duckdb.closeSync();
    instance.closeSync();
    await engine.close();
  }
}

const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(1);

async function timeOf(read: () => Promise<unknown>): Promise<number> {
  collectGarbage();
  const began = performance.now();
  await read();
  return performance.now() - began;
}

/** The columns as vectors, one for each batch. */
async function readOurs(engine: ScanEngine, file: string, names: readonly string[]): Promise<Map<string, Vector[]>> {
  const source = await openSource(file);
  const columns = new Map(names.map((name) => [name, [] as Vector[]]));
  for await (const batch of await Scan.open(engine, source, { columns: names })) {
    for (const name of names) columns.get(name)!.push(batch.getChild(name)!);
  }
  await source.close();
  return columns;
}

async function readHyparquet(file: string, names: readonly string[]): Promise<Map<string, ArrayLike<unknown>[]>> {
  const bytes = await asyncBufferFromFile(file);
  const metadata = await parquetMetadataAsync(bytes);
  const columns = new Map(names.map((name) => [name, [] as { rowStart: number; values: ArrayLike<unknown> }[]]));
  await parquetRead({
    file: bytes,
    metadata,
    columns: [...names],
    onChunk: ({ columnName, columnData, rowStart }) => columns.get(columnName)!.push({ rowStart, values: columnData }),
  });
  // row groups come as they get ready
  const inOrder = [...columns].map(([name, parts]) => {
    return [name, parts.sort((a, b) => a.rowStart - b.rowStart).map(({ values }) => values)] as const;
  });
  return new Map(inOrder);
}

async function readParquetWasm(file: string, names: readonly string[]): Promise<Map<string, Vector[]>> {
  const opened = await ParquetFile.fromFile(await openAsBlob(file));
  const table = tableFromIPC((await opened.read({ columns: [...names] })).intoIPCStream());
  opened.free();
  return new Map(names.map((name) => [name, [table.getChild(name)!]]));
}

/** Fails unless all sides have the same values. */
async function checkSame(
  sides: Readonly<Record<string, () => Promise<unknown>>>,
  duckdb: Awaited<ReturnType<DuckDBInstance['connect']>>,
  file: string,
  names: readonly string[],
): Promise<void> {
  const reader = await duckdb.runAndReadAll(
    `select ${names.join(', ')} from read_parquet('${file}', file_row_number = true) order by file_row_number`,
  );
  const expected: Texts = Object.fromEntries(names.map((name, k) => [name, reader.getColumns()[k]!.map(String)]));
  for (const [side, read] of Object.entries(sides)) {
    const columns = await read();
    if (!(columns instanceof Map)) continue; // DuckDB itself
    for (const name of names) {
      const got = (columns.get(name) as Iterable<unknown>[]).flatMap((part) => Array.from(part, String));
      if (JSON.stringify(got) !== JSON.stringify(expected[name])) throw new Error(`${side}: ${name} has other values`);
    }
  }
}

interface Parsed {
  readonly ms: number;
  /** Bytes of heap and buffers that stay for as long as the metadata does, the footer's own bytes included. */
  readonly keptBytes: number;
}

async function parseOnly(
  file: string,
  names: readonly string[],
): Promise<{ footerBytes: number; ours: Parsed; oursWhole: Parsed; hyparquet: Parsed }> {
  const bytes = new Uint8Array(readFileSync(file));
  const { footerStart, footerLength } = parseTail(bytes, bytes.length);
  const policy = { gapBytesMax: 0, requestBytesMax: 1 << 20, amplificationMax: 1 };
  const footer = (): Uint8Array => bytes.slice(footerStart, footerStart + footerLength);
  const tail = bytes.buffer.slice(footerStart);
  const readers = {
    ours: () => {
      const metadata = parseFooter(footer(), bytes.length);
      return [metadata, planScan(metadata, { columns: names, memoryBytes: MEMORY_BYTES, policy })];
    },
    oursWhole: () => {
      const metadata = parseFooter(footer(), bytes.length);
      return [metadata, metadata.rowGroups.map((group) => [...group.columns]), [...metadata.leaves]];
    },
    hyparquet: () => [parquetMetadata(tail)],
  };
  const kept: unknown[] = [];
  const parsed = async (read: () => unknown): Promise<Parsed> => {
    const ms = median(timesOf(read));
    const before = await heldBytes();
    kept.push(read());
    const after = await heldBytes();
    kept.length = 0;
    return { ms, keptBytes: after - before };
  };
  return {
    footerBytes: footerLength,
    ours: await parsed(readers.ours),
    oursWhole: await parsed(readers.oursWhole),
    hyparquet: await parsed(readers.hyparquet),
  };
}

/** In a function of its own: nothing of what was read last is kept when it has returned. */
function timesOf(read: () => unknown): number[] {
  const times: number[] = [];
  for (let run = 0; run < RUNS.small; run++) {
    collectGarbage();
    const began = performance.now();
    read();
    times.push(performance.now() - began);
  }
  return times;
}

/** Several times, with a pause: buffers are freed after the heap is, and what they kept after that. */
const SWEEPS = 5;

async function heldBytes(): Promise<number> {
  for (let round = 0; round < SWEEPS; round++) {
    collectGarbage();
    await setTimeout(20);
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
