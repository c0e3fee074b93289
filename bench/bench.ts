/**
 * `npm run bench -- <decode|scan|serve|memory|footer|mount|cache|objects|…|all> [--small] [--json] [--rows n]`: runs benchmarks and
 * prints a table of each and its ratios beside what they should be. With `--json` stdout holds one object and nothing else:
 * { ratios: { name: number }, benchmarks: { name: details } }. Below a target is no failure: only wrong values are.
 */
import { parseArgs } from 'node:util';
import { benchCache } from './cache.ts';
import { benchDecode } from './decode.ts';
import { benchFooter } from './footer.ts';
import { benchMemory } from './memory.ts';
import { benchMount } from './mount.ts';
import { benchMountLatency } from './mount-latency.ts';
import { benchMountMemory } from './mount-memory.ts';
import { benchMountRaw } from './mount-raw.ts';
import { benchObjects } from './objects.ts';
import { type BenchOptions, type BenchResult, formatTable } from './result.ts';
import { benchScan } from './scan.ts';
import { benchServe } from './serve.ts';

const BENCHMARKS: Readonly<Record<string, (options: BenchOptions) => Promise<BenchResult>>> = {
  decode: benchDecode,
  scan: benchScan,
  serve: ({ small = false }) => benchServe({ small }),
  memory: benchMemory,
  footer: benchFooter,
  mount: benchMount,
  'mount-raw': benchMountRaw,
  'mount-latency': benchMountLatency,
  'mount-memory': benchMountMemory,
  cache: benchCache,
  objects: benchObjects,
};

/** What each ratio is to reach: at least, or at most. */
const TARGETS: Readonly<Record<string, readonly [direction: 'least' | 'most', value: number]>> = {
  'duckdb.fixed.overall': ['least', 1.8],
  'duckdb.fixed.min': ['least', 1.7],
  'duckdb.fixed.geomean': ['least', 2.5],
  'duckdb.strings.overall': ['least', 2],
  'parquet-wasm.overall': ['least', 12],
  'hyparquet.overall': ['least', 70],
  'wall.overBound': ['most', 1.25],
  'profiler.cost.scan': ['most', 1.03],
  'profiler.cost.decode': ['most', 1.03],
  'profiler.cost.cpu': ['most', 1.03],
  'nginx.throughput.large': ['least', 0.8],
  'nginx.throughput.small': ['least', 0.4],
  'nginx.throughput.pinned.large': ['least', 1],
  'nginx.throughput.pinned.small': ['least', 0.7],
  'rss.overCap': ['most', 1],
  'duckdb.time': ['most', 1],
  'hyparquet.time': ['most', 1],
  'parquet-wasm.time': ['most', 1],
  'duckdb.warm.overDecodedLocal.max': ['most', 1.1],
  'duckdb.warm.speedup.min': ['least', 1.5],
  'duckdb.cold.cpu.max': ['most', 0.65],
  'duckdb.cold.wall.max': ['most', 1.25],
  'duckdb.strings.wall.max': ['most', 1.1],
  'socket.sequential': ['least', 0.6],
  'mount.rss.overCap': ['most', 200],
  'objects.dominated': ['most', 0],
  'objects.time.max': ['most', 1],
};

const USAGE = `usage: npm run bench -- <${Object.keys(BENCHMARKS).join('|')}|all> [--small] [--json] [--rows n] [--svg file]`;

function readArguments(): { names: string[]; json: boolean; options: BenchOptions } {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      small: { type: 'boolean' },
      json: { type: 'boolean' },
      rows: { type: 'string' },
      svg: { type: 'string' },
    },
  });
  const rows = values.rows === undefined ? undefined : Number(values.rows);
  if (rows !== undefined && !(Number.isSafeInteger(rows) && rows > 0)) throw new Error(`--rows ${values.rows}`);
  const names = positionals.includes('all') ? Object.keys(BENCHMARKS) : positionals;
  const unknown = names.find((name) => BENCHMARKS[name] === undefined);
  if (names.length === 0 || unknown !== undefined) throw new Error(`no benchmark ${unknown ?? 'was named'}`);
  return {
    names,
    json: values.json ?? false,
    options: {
      small: values.small ?? false,
      ...(rows === undefined ? {} : { rows }),
      ...(values.svg === undefined ? {} : { svg: values.svg }),
    },
  };
}

function ratioTable(ratios: Readonly<Record<string, number>>): string {
  const rows = Object.entries(ratios).map(([name, ratio]) => {
    const [direction, value] = TARGETS[name] ?? [];
    if (direction === undefined || value === undefined) return [name, ratio.toFixed(2), '', ''];
    const met = direction === 'least' ? ratio >= value : ratio <= value;
    return [name, ratio.toFixed(2), `at ${direction} ${value}`, met ? '' : 'missed'];
  });
  return formatTable([['ratio', '', 'target', ''], ...rows]);
}

async function run(): Promise<void> {
  const { names, json, options } = readArguments();
  const ratios: Record<string, number> = {};
  const benchmarks: Record<string, unknown> = {};
  for (const name of names) {
    const result = await BENCHMARKS[name]!(options);
    Object.assign(ratios, result.ratios);
    benchmarks[name] = result.skipped === undefined ? (result.details ?? {}) : { skipped: result.skipped };
    if (json) continue;
    console.log(`## ${name}`);
    if (result.skipped === undefined) console.log(`${result.table}\n\n${ratioTable(result.ratios)}\n`);
    else console.log(`skipped: ${result.skipped}\n`);
  }
  if (json) console.log(JSON.stringify({ ratios, benchmarks }));
}

try {
  await run();
} catch (error) {
  console.error(error instanceof Error ? (error.stack ?? error.message) : String(error));
  console.error(USAGE);
  process.exitCode = 1;
}
