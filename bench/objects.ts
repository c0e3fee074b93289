/**
 * Projections of a Parquet file in an S3 server that nobody here wrote (rclone's): requests, bytes, those by the bytes of
 * the column chunks, and time, through a proxy that is far away (object-proxy-server.ts). Ours with gap 0, a fixed gap,
 * and `auto`, against whatever of pyarrow, DuckDB, ClickHouse and Polars is there, each reading all values of the columns in
 * a process of its own, which has read another object before, through a proxy that is near. Then the processor time of our way to a bucket's bytes, against plain undici's.
 * QANAT_STORES and QANAT_INTEROP_PYTHON name what the tests' setup.sh files make.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, existsSync, linkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DuckDBInstance } from '@duckdb/node-api';
import { lineChart } from './line-chart.ts';
import { LINEITEM, lineitemFile } from './make-lineitem.ts';
import { wideColumn, wideFile } from './make-wide.ts';
import { benchFolder, runProgram, startScript } from './mount-commands.ts';
import { alternate, type BenchOptions, type BenchResult, formatTable, median } from './result.ts';

const ROWS = { small: 60_000, full: 2_000_000 } as const;
const WIDE = {
  small: { columns: 400, rowGroups: 2, groupRows: 100 },
  full: { columns: 2000, rowGroups: 4, groupRows: 1000 },
} as const;
/** Milliseconds that a request takes longer. */
const LATENCIES = { small: [2], full: [0, 10, 50] } as const;
const RUNS = { small: 1, full: 5 } as const;
const CLIENT_CORE = 0;
const STORE_CORE = 1;
const BUCKET = 'bucket';
/** Objects like them that are read before. */
const BEFORE = 'before-';
const FIXED_GAP = 64 * 1024;
const OURS = { 'gap 0': '0', 'gap 64 KiB': String(FIXED_GAP), auto: 'auto' } as const;
const PEERS = ['pyarrow', 'pyarrow-plain', 'duckdb', 'clickhouse', 'polars'] as const;
const PIECES = { small: [1 << 20, 1], full: [8 << 20, 8] } as const;
const KEYS = {
  AWS_ACCESS_KEY_ID: 'AKIDEXAMPLE',
  AWS_SECRET_ACCESS_KEY: 'secretsecret',
  AWS_EC2_METADATA_DISABLED: 'true',
};
const FIRST_BYTE = { headers: { range: 'bytes=0-0' } } as const;
const MIB = 1 << 20;

interface Projection {
  readonly name: string;
  readonly key: string;
  readonly columns: readonly string[];
  /** Compressed bytes of the column chunks. */
  readonly needed: number;
}

interface Sample {
  readonly ms: number;
  readonly requests: number;
  readonly connections: number;
  readonly bytes: number;
}

interface Cell {
  readonly projection: Projection;
  readonly addedMs: number;
  readonly samples: Readonly<Record<string, readonly Sample[]>>;
  /** Peers that can't read it from this server, and what they say. */
  readonly failed: Readonly<Record<string, string>>;
}

export async function benchObjects(options: BenchOptions = {}): Promise<BenchResult> {
  const python = process.env.QANAT_INTEROP_PYTHON ?? '';
  const rclone = join(process.env.QANAT_STORES ?? '', 'rclone');
  const unfit = whyNot(python, rclone);
  if (unfit !== undefined) return { table: '', ratios: {}, skipped: unfit };
  const size = options.small ? 'small' : 'full';
  using folders = benchFolder();
  const bucket = folders.folder(`data/${BUCKET}`);
  const lineitem = await lineitemFile({ rows: options.rows ?? ROWS[size] });
  const wide = wideFile(WIDE[size]);
  const objects = {
    'lineitem.parquet': lineitem,
    'wide.parquet': wide,
    [`${BEFORE}lineitem.parquet`]: lineitem,
    [`${BEFORE}wide.parquet`]: wide,
  };
  for (const [key, file] of Object.entries(objects)) place(file, join(bucket, key));
  const all = await Promise.all([
    projection('1 of 16', 'lineitem.parquet', lineitem, ['l_extendedprice']),
    projection('4 of 16', 'lineitem.parquet', lineitem, ['l_quantity', 'l_extendedprice', 'l_discount', 'l_shipdate']),
    projection('all 16', 'lineitem.parquet', lineitem, [...LINEITEM.fixed, ...LINEITEM.strings]),
    projection(`10 of ${WIDE[size].columns}`, 'wide.parquet', wide, wideColumns(WIDE[size].columns)),
  ]);
  const projections = options.small ? [all[0]!, all[3]!] : all;
  await using store = await startStore(rclone, join(folders.path, 'data'));
  const direct = `http://127.0.0.1:${store.port}`;
  await using nearby = await startScript(STORE_CORE, './object-proxy-server.ts', [store.port, '0']);
  const near = `http://127.0.0.1:${String(nearby.ready.port)}`;
  // it reads an object through for its ETag when it is first asked for it
  for (const key of Object.keys(objects)) await (await fetch(`${direct}/${BUCKET}/${key}`, FIRST_BYTE)).arrayBuffer();
  const cells: Cell[] = [];
  for (const addedMs of LATENCIES[size]) {
    await using proxy = await startScript(STORE_CORE, './object-proxy-server.ts', [store.port, String(addedMs)]);
    const { port, control } = proxy.ready as { port: number; control: number };
    const far = { endpoint: `http://127.0.0.1:${port}`, control: `http://127.0.0.1:${control}`, near, python };
    for (const one of projections) cells.push(await measure(one, addedMs, far, RUNS[size]));
  }
  const cpu = await processorTime(direct, PIECES[size], options.small ? 1 : 5);
  if (options.svg !== undefined) writeFileSync(options.svg, picture(cells));
  return report(cells, cpu, RUNS[size]);
}

function whyNot(python: string, rclone: string): string | undefined {
  if (!existsSync(rclone)) return 'QANAT_STORES names no folder with rclone (daemon/tests/stores/setup.sh makes one)';
  if (!existsSync(python)) return 'QANAT_INTEROP_PYTHON names no interpreter (daemon/tests/interop/setup.sh makes one)';
  return undefined;
}

/** Spread over the table, so that they do not lie side by side. */
function wideColumns(count: number): string[] {
  return Array.from({ length: 10 }, (_, k) => wideColumn(Math.floor((k * count) / 10) + 3));
}

async function projection(name: string, key: string, file: string, columns: readonly string[]): Promise<Projection> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const names = columns.map((column) => `'${column}'`).join(', ');
  const reader = await connection.runAndReadAll(
    `select sum(total_compressed_size)::double from parquet_metadata('${file}') where path_in_schema in (${names})`,
  );
  connection.closeSync();
  instance.closeSync();
  return { name, key, columns, needed: Number(reader.getRows()[0]![0]) };
}

function place(file: string, path: string): void {
  try {
    linkSync(file, path);
  } catch {
    copyFileSync(file, path); // another file system
  }
}

async function startStore(rclone: string, folder: string): Promise<{ readonly port: string } & AsyncDisposable> {
  // it would wait for 20 ms whether somebody asks for the bytes in front of a range
  const options = ['--addr', '127.0.0.1:0', '--config', join(folder, '../none'), '--vfs-read-wait', '0s', '-v'];
  const child = spawn('taskset', ['-c', String(STORE_CORE), rclone, 'serve', 's3', folder, ...options], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const port = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`rclone ended with ${code}`)));
    createInterface({ input: child.stderr }).on('line', (line) => {
      const found = /http:\/\/127\.0\.0\.1:(\d+)/.exec(line)?.[1];
      if (found !== undefined) resolve(found);
    });
  });
  return {
    port,
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

interface Far {
  readonly endpoint: string;
  /** The store through a proxy that adds nothing. */
  readonly near: string;
  readonly control: string;
  readonly python: string;
}

async function measure(one: Projection, addedMs: number, far: Far, runs: number): Promise<Cell> {
  const samples: Record<string, Sample[]> = {};
  const failed: Record<string, string> = {};
  const script = (name: string): string => new URL(name, import.meta.url).pathname;
  const columns = one.columns.join(',');
  const sides: Record<string, readonly string[]> = {};
  for (const [name, gap] of Object.entries(OURS)) {
    const url = `s3://${BUCKET}/${one.key}`;
    const before = `s3://${BUCKET}/${BEFORE}${one.key}`;
    sides[name] = [
      process.execPath,
      script('./object-client.ts'),
      'scan',
      far.endpoint,
      url,
      gap,
      far.near,
      before,
      columns,
    ];
  }
  for (const peer of PEERS) {
    const where = [far.endpoint, BUCKET, one.key, far.near, BEFORE + one.key, columns];
    sides[peer] = [far.python, script('./object-peer.py'), peer, ...where];
  }
  let rows: number | undefined;
  const timed = Object.entries(sides).map(([name, argv]) => [
    name,
    async () => {
      if (failed[name] !== undefined) return Number.NaN;
      await fetch(far.control);
      const ran = await runProgram(CLIENT_CORE, ['env', ...pairs(KEYS), ...argv]).catch((error: Error) => error);
      if (ran instanceof Error) {
        // what a peer can't read from this server is no comparison; ours must
        if (name in OURS) throw ran;
        failed[name] = lastLine(ran.message);
        delete samples[name];
        return Number.NaN;
      }
      const read = JSON.parse(ran.stdout) as { ms: number; rows: number | null };
      const counted = (await (await fetch(far.control)).json()) as Omit<Sample, 'ms'>;
      rows ??= read.rows ?? undefined;
      if (read.rows !== null && read.rows !== rows) throw new Error(`${name} has ${read.rows} rows, not ${rows}`);
      samples[name] ??= [];
      samples[name].push({ ...counted, ms: read.ms });
      return read.ms;
    },
  ]);
  await alternate(runs, Object.fromEntries(timed) as Record<string, () => Promise<number>>);
  return { projection: one, addedMs, samples, failed };
}

const lastLine = (text: string): string => text.trim().split('\n').at(-1)!;

const pairs = (variables: Readonly<Record<string, string>>): string[] =>
  Object.entries(variables).map(([name, value]) => `${name}=${value}`);

/** Processor seconds for each GB (10^9 bytes) of an object that is read in pieces. */
async function processorTime(
  endpoint: string,
  [piece, passes]: readonly [number, number],
  runs: number,
): Promise<Record<'ours' | 'undici', number>> {
  const side = (what: string, where: string) => async (): Promise<number> => {
    const script = new URL('./object-client.ts', import.meta.url).pathname;
    const argv = [process.execPath, script, what, endpoint, where, String(piece), String(passes)];
    const { stdout } = await runProgram(CLIENT_CORE, ['env', ...pairs(KEYS), ...argv]);
    const { cpuMs, bytes } = JSON.parse(stdout) as { cpuMs: number; bytes: number };
    return cpuMs / 1000 / (bytes / 1e9);
  };
  const key = 'lineitem.parquet';
  const samples = await alternate(runs, {
    ours: side('bytes', `s3://${BUCKET}/${key}`),
    undici: side('undici', `${BUCKET}/${key}`),
  });
  return { ours: median(samples.ours), undici: median(samples.undici) };
}

function report(cells: readonly Cell[], cpu: Record<'ours' | 'undici', number>, runs: number): BenchResult {
  const of = (cell: Cell, side: string, key: keyof Sample): number =>
    median(cell.samples[side]!.map((one) => one[key]));
  const sides = [...Object.keys(OURS), ...PEERS];
  const peersOf = ({ samples }: Cell) => PEERS.filter((peer) => samples[peer] !== undefined);
  const blocks = cells.map((one) => {
    const there = sides.filter((side) => one.samples[side] !== undefined);
    const rows = there.map((side) => [
      side,
      of(one, side, 'ms').toFixed(0),
      of(one, side, 'requests').toFixed(0),
      of(one, side, 'connections').toFixed(0),
      (of(one, side, 'bytes') / MIB).toFixed(2),
      (of(one, side, 'bytes') / one.projection.needed).toFixed(2),
    ]);
    const title = `${one.projection.name} columns, ${one.addedMs} ms`;
    const table = formatTable([[title, 'ms', 'requests', 'connections', 'MiB', 'amplification'], ...rows]);
    return [table, ...Object.entries(one.failed).map(([peer, why]) => `${peer} does not read it: ${why}`)].join('\n');
  });
  const dominated = cells.reduce((sum, one) => {
    const beaten = peersOf(one).filter((peer) =>
      (['requests', 'bytes'] as const).every((key) => of(one, peer, key) < of(one, 'auto', key)),
    );
    return sum + beaten.length;
  }, 0);
  const far = cells.filter(({ addedMs }) => addedMs >= 10);
  const times = far.map((one) => of(one, 'auto', 'ms') / Math.min(...peersOf(one).map((peer) => of(one, peer, 'ms'))));
  const perGb = `Processor time of reading the object in pieces: ${cpu.ours.toFixed(2)} s a GB, plain undici ${cpu.undici.toFixed(2)}`;
  return {
    table: [`An object in rclone's S3 server, ${runs} runs`, ...blocks, perGb].join('\n\n'),
    ratios: {
      'objects.dominated': dominated,
      ...(times.length === 0 ? {} : { 'objects.time.max': Math.max(...times) }),
      'objects.cpu.overUndici': cpu.ours / cpu.undici,
    },
    details: { runs, cells, cpu },
  };
}

const LINES = {
  auto: ['Qanat', '#d1495b'],
  pyarrow: ['pyarrow', '#30638e'],
  duckdb: ['DuckDB', '#e0a100'],
  clickhouse: ['ClickHouse', '#2a9d5c'],
  polars: ['Polars', '#7a5195'],
} as const;

function picture(cells: readonly Cell[]): string {
  const projections = [...new Set(cells.map(({ projection }) => projection))];
  const latencies = [...new Set(cells.map(({ addedMs }) => addedMs))];
  const row = (unit: string, figure: (sample: Sample) => number) =>
    projections.map((one) => ({
      title: `${one.name} columns`,
      unit,
      lines: Object.entries(LINES).map(([side, [name, colour]]) => ({
        name,
        colour,
        dashed: false,
        values: cells
          .filter(({ projection }) => projection === one)
          .map(({ samples }) => (samples[side] === undefined ? undefined : median(samples[side].map(figure)))),
      })),
    }));
  return lineChart({
    title: 'Columns of an object in an S3 server',
    axis: 'milliseconds added to each request',
    places: latencies.map(String),
    panels: [
      row('milliseconds', ({ ms }) => ms),
      row('requests', ({ requests }) => requests),
      row('MiB', ({ bytes }) => bytes / MIB),
    ],
  });
}
