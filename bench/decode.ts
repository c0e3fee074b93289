/**
 * One-thread decode of a DuckDB-written lineitem, column by column, against DuckDB's own scan, parquet-wasm and
 * hyparquet in the same process. Ours is the product's path over chunks that lie in the pool; DuckDB reads the file
 * from the page cache, a small part of its time that ours does not have.
 *
 * Byte arrays: DuckDB gives dictionary vectors where the file has a dictionary, so ours is compared in its dictionary
 * form; parquet-wasm and hyparquet give plain strings, and there ours expands them too. Ratios are their time by ours.
 * `duckdb.fixed` is the fixed-width columns. For the two readers of the JavaScript world, `overall` is what these columns
 * of this file take: parquet-wasm reads every column whatever it is asked for, and that is what its user waits for.
 * `all` is all columns on both sides, `fixed` a file that has no others. parquet-wasm counts up to Arrow vectors that
 * JavaScript can read, as ours are; `inside` is without the way out of its memory that its documentation names.
 * The last table has one file for each encoding, codec, share of nulls and shape (decode-variants.ts).
 */
import type { Table } from 'apache-arrow';
import { type DecodeEnvironment, type LeafColumn, Physical } from '../decode/index.ts';
import { checkDuckdb, checkHyparquet, checkParquetWasm, digestOurs } from './decode-check.ts';
import { type DuckdbScan, openDuckdbScan } from './decode-duckdb.ts';
import { decodeColumn, decodeEnvironment, type LoadedFile, leafNamed, loadFile } from './decode-ours.ts';
import { collectGarbage, readWithHyparquet, readWithParquetWasm } from './decode-peers.ts';
import { timeVariants, variantTable } from './decode-variants.ts';
import { LINEITEM, lineitemFile } from './make-lineitem.ts';
import {
  alternate,
  type BenchOptions,
  type BenchResult,
  formatTable,
  geometricMean,
  median,
  RUNS,
  sum,
} from './result.ts';

const ROWS = { small: 240_000, full: 2_000_000 } as const;
/** Bytes: the largest chunk and its output, many times over. */
const MEMORY_BYTES = 256 << 20;
/** Row groups that hyparquet reads: all of them would take it as long as everything else together. */
const HYPARQUET_GROUPS = 4;
/** Rows of each file of one encoding, codec or shape, at most. */
const VARIANT_ROWS = 1_000_000;
/** Row groups for the scalar kernels. */
const SCALAR_GROUPS = 1;

interface ColumnTimes {
  readonly leaf: LeafColumn;
  readonly megabytes: number;
  /** Milliseconds. */
  readonly ours: number;
  readonly duckdb: number;
}

export async function benchDecode(options: BenchOptions = {}): Promise<BenchResult> {
  const wanted = options.rows ?? (options.small ? ROWS.small : ROWS.full);
  const file = loadFile(await lineitemFile({ rows: wanted }));
  const runs = options.small ? RUNS.small : RUNS.full;
  const environment = decodeEnvironment(MEMORY_BYTES);
  await using duckdb = await openDuckdbScan(file.path);
  const names = [...LINEITEM.fixed, ...LINEITEM.strings];
  const { table } = readWithParquetWasm(file);
  for (const name of names) await checkColumn(environment, duckdb, table, file, name);
  await checkHyparquet(environment, file, names, 1);

  const fixed: ColumnTimes[] = [];
  for (const name of LINEITEM.fixed) fixed.push(await timeColumn(environment, duckdb, file, name, runs));
  const strings: ColumnTimes[] = [];
  for (const name of LINEITEM.strings) strings.push(await timeColumn(environment, duckdb, file, name, runs));
  const peers = await timePeers(environment, file, runs);
  const peersFixed = await timePeers(
    environment,
    loadFile(await lineitemFile({ rows: wanted, fixedOnly: true })),
    runs,
  );
  const scalar = timeScalar(environment, file, names);
  const variants = await timeVariants(environment, Math.min(VARIANT_ROWS, wanted), runs);

  const speedUp = ({ ours, duckdb }: ColumnTimes): number => duckdb / ours;
  const overall = (columns: readonly ColumnTimes[]): number =>
    sum(columns.map((column) => column.duckdb)) / sum(columns.map((column) => column.ours));
  const ratios = {
    'duckdb.fixed.overall': overall(fixed),
    'duckdb.fixed.min': Math.min(...fixed.map(speedUp)),
    'duckdb.fixed.geomean': geometricMean(fixed.map(speedUp)),
    'duckdb.strings.overall': overall(strings),
    'parquet-wasm.overall': peers.parquetWasm.readable / sum(LINEITEM.fixed.map((name) => peers.columns[name]!)),
    'parquet-wasm.all': peers.parquetWasm.readable / peers.ours,
    'parquet-wasm.fixed': peersFixed.parquetWasm.readable / peersFixed.ours,
    'parquet-wasm.inside.all': peers.parquetWasm.inside / peers.ours,
    'parquet-wasm.inside.fixed': peersFixed.parquetWasm.inside / peersFixed.ours,
    'hyparquet.overall': peersFixed.hyparquet / peersFixed.oursOnItsGroups,
    'hyparquet.all': peers.hyparquet / peers.oursOnItsGroups,
  };
  const rows = file.metadata.numRows;
  return {
    table: [
      `${rows} rows, ${runs} runs; GB/s of decoded values; chunks in memory, DuckDB reads from the page cache`,
      columnTable([...fixed, ...strings], scalar),
      '',
      peerTable('all columns, strings expanded, ms', peers),
      '',
      peerTable('a file of the fixed-width columns alone, ms', peersFixed),
      '',
      variantTable(variants),
    ].join('\n'),
    ratios,
    details: {
      rows,
      runs,
      columns: [...fixed, ...strings].map(({ leaf, megabytes, ours, duckdb: theirs }) => ({
        name: leaf.name,
        megabytes,
        oursMs: ours,
        duckdbMs: theirs,
        ratio: theirs / ours,
        scalarSlowdown: scalar[leaf.name],
      })),
      stringsExpandedMs: Object.fromEntries(LINEITEM.strings.map((name) => [name, peers.columns[name]])),
      variants,
      allColumnsMs: peers,
      fixedColumnsMs: peersFixed,
    },
  };
}

/** Every side has the same values; ours in both forms. */
async function checkColumn(
  environment: DecodeEnvironment,
  duckdb: DuckdbScan,
  table: Table,
  file: LoadedFile,
  name: string,
): Promise<void> {
  const leaf = leafNamed(file, name);
  const ours = digestOurs(environment, file, leaf);
  await checkDuckdb(duckdb, leaf, ours);
  checkParquetWasm(table, leaf, ours);
  if (leaf.type !== Physical.BYTE_ARRAY) return;
  const dictionary = digestOurs(environment, file, leaf, { output: 'dictionary' });
  if (dictionary.text !== ours.text) throw new Error(`${name}: values differ between the two forms`);
}

async function timeColumn(
  environment: DecodeEnvironment,
  duckdb: DuckdbScan,
  file: LoadedFile,
  name: string,
  runs: number,
): Promise<ColumnTimes> {
  const leaf = leafNamed(file, name);
  const samples = await alternate(runs, {
    ours: () => decodeColumn(environment, file, leaf, { output: 'dictionary' }),
    duckdb: () => duckdb.scanMs(name),
  });
  let bytes = 0;
  decodeColumn(environment, file, leaf, {}, ({ layout, rows, width, dataBytes }) => {
    bytes += layout === 'bytes' ? dataBytes + 4 * rows : rows * width;
  });
  return { leaf, megabytes: bytes / 1e6, ours: median(samples.ours), duckdb: median(samples.duckdb) };
}

/** All columns of a file at once, for the readers that give plain strings. */
async function timePeers(environment: DecodeEnvironment, file: LoadedFile, runs: number) {
  const { leaves, rowGroups } = file.metadata;
  const groups = Math.min(HYPARQUET_GROUPS, rowGroups.length);
  const rowEnd = sum(rowGroups.slice(0, groups).map((group) => group.numRows));
  const columns = leaves.map(() => [] as number[]);
  const inside: number[] = [];
  const samples = await alternate(runs, {
    ours: () => {
      const times = leaves.map((leaf) => decodeColumn(environment, file, leaf));
      for (const [k, milliseconds] of times.entries()) columns[k]!.push(milliseconds);
      return sum(times);
    },
    parquetWasm: () => {
      const times = readWithParquetWasm(file);
      inside.push(times.inside);
      collectGarbage();
      return times.readable;
    },
    oursOnItsGroups: () => sum(leaves.map((leaf) => decodeColumn(environment, file, leaf, { groups }))),
    hyparquet: async () => {
      const names = leaves.map((leaf) => leaf.name);
      const milliseconds = await readWithHyparquet(file, names, rowEnd);
      collectGarbage();
      return milliseconds;
    },
  });
  return {
    ours: median(samples.ours),
    columns: Object.fromEntries(leaves.map((leaf, k) => [leaf.name, median(columns[k]!)])),
    parquetWasm: { inside: median(inside), readable: median(samples.parquetWasm) },
    hyparquetRowGroups: groups,
    oursOnItsGroups: median(samples.oursOnItsGroups),
    hyparquet: median(samples.hyparquet),
  };
}

/** How many times slower the scalar kernels are, by column. */
function timeScalar(fast: DecodeEnvironment, file: LoadedFile, names: readonly string[]): Record<string, number> {
  const scalar = decodeEnvironment(MEMORY_BYTES, 'scalar');
  const groups = SCALAR_GROUPS;
  return Object.fromEntries(
    names.map((name) => {
      const leaf = leafNamed(file, name);
      if (digestOurs(scalar, file, leaf, { groups }).text !== digestOurs(fast, file, leaf, { groups }).text) {
        throw new Error(`${name}: the scalar kernels have other values`);
      }
      const [slow, quick] = [scalar, fast].map((one) =>
        median([0, 1, 2].map(() => decodeColumn(one, file, leaf, { groups }))),
      );
      return [name, slow! / quick!];
    }),
  );
}

function peerTable(title: string, peers: Awaited<ReturnType<typeof timePeers>>): string {
  const { ours, parquetWasm, oursOnItsGroups, hyparquet, hyparquetRowGroups } = peers;
  const row = (name: string, own: number, theirs: number): string[] => [
    name,
    own.toFixed(1),
    theirs.toFixed(1),
    (theirs / own).toFixed(2),
  ];
  return formatTable([
    [title, 'qanat', 'theirs', 'ratio'],
    row('parquet-wasm, to vectors that JavaScript reads', ours, parquetWasm.readable),
    row('parquet-wasm, to arrays in its own memory', ours, parquetWasm.inside),
    row(`hyparquet, ${hyparquetRowGroups} row groups`, oursOnItsGroups, hyparquet),
  ]);
}

function columnTable(columns: readonly ColumnTimes[], scalar: Readonly<Record<string, number>>): string {
  const rows = columns.map(({ leaf, megabytes, ours, duckdb }) => [
    leaf.name,
    (megabytes / ours).toFixed(2),
    (megabytes / duckdb).toFixed(2),
    (duckdb / ours).toFixed(2),
    `1/${scalar[leaf.name]!.toFixed(0)}`,
  ]);
  return formatTable([['column', 'qanat', 'duckdb', 'ratio', 'scalar'], ...rows]);
}
