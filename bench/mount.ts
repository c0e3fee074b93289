/**
 * DuckDB over mounts, one core for the engine and one for everything of ours, a new process for each query, sides in
 * turn. Cold: a fresh mount before each query, so that neither the kernel nor the daemon has anything of the file; the
 * server's disk is in memory. Warm: another process has run the query before over the same mount.
 *   localSnappy    the file as it is, on local disk          rawCold      through `qanat mount`
 *   localDecoded   what the decoded view shows, as a file    decodedCold  through `qanat mount --view decoded`
 *   inMemory       a table of DuckDB's                       decodedWarm  the same, warm
 */
import { copyFileSync, existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { lineitemFile } from './make-lineitem.ts';
import { benchFolder, type Command, type QueryFigures, runQuery, startCommand } from './mount-commands.ts';
import { QUERIES, type QueryName, SCAN_BOUND, STRING_BOUND } from './mount-queries.ts';
import { alternate, type BenchOptions, type BenchResult, formatTable, median, RUNS } from './result.ts';

const ROWS = { small: 240_000, full: 2_000_000 } as const;
const ENGINE_CORE = 0;
const OUR_CORE = 1;
/** Milliseconds in which a mount that nobody reads puts into the kernel's cache what it has decoded. */
const SETTLE_MS = 400;

const SIDES = ['localSnappy', 'localDecoded', 'inMemory', 'rawCold', 'decodedCold', 'decodedWarm'] as const;
type Side = (typeof SIDES)[number];

export async function benchMount(options: BenchOptions = {}): Promise<BenchResult> {
  const unfit = whyNot();
  if (unfit !== undefined) return { table: '', ratios: {}, skipped: unfit };
  const file = await lineitemFile({ rows: options.rows ?? (options.small ? ROWS.small : ROWS.full) });
  const runs = options.small ? 1 : RUNS.small;
  using folders = benchFolder();
  await using server = await startCommand(OUR_CORE, [
    'serve',
    dirname(file),
    '--listen',
    '127.0.0.1:0',
    '--http',
    'none',
  ]);
  const url = `rdma://${String(server.ready.rdma)}`;
  const mounted = (folder: string): string => join(folder, basename(file));
  const mount = (name: string, view: string): Promise<Command> =>
    startCommand(OUR_CORE, ['mount', url, folders.folder(name), '--view', view, '--metrics', 'none', '--json']);

  const decodedCopy = join(folders.path, 'decoded.parquet');
  {
    await using _ = await mount('copied', 'decoded');
    copyFileSync(mounted(folders.folder('copied')), decodedCopy);
  }
  const figures = {} as Record<QueryName, Record<Side, QueryFigures[]>>;
  await using warm = await mount('warm', 'decoded');
  for (const query of [...SCAN_BOUND, ...STRING_BOUND]) {
    const samples = Object.fromEntries(SIDES.map((side) => [side, []])) as unknown as Record<Side, QueryFigures[]>;
    const local =
      (path: string, table = false) =>
      () =>
        runQuery(ENGINE_CORE, path, query, { table });
    const cold = (view: string) => async () => {
      await using _ = await mount('cold', view);
      return await runQuery(ENGINE_CORE, mounted(folders.folder('cold')), query);
    };
    await runQuery(ENGINE_CORE, mounted(folders.folder('warm')), query);
    await sleep(SETTLE_MS);
    await runQuery(ENGINE_CORE, mounted(folders.folder('warm')), query);
    await sleep(SETTLE_MS);
    const sides: Record<Side, () => Promise<QueryFigures>> = {
      localSnappy: local(file),
      localDecoded: local(decodedCopy),
      inMemory: local(file, true),
      rawCold: cold('raw'),
      decodedCold: cold('decoded'),
      decodedWarm: local(mounted(folders.folder('warm'))),
    };
    const timed = Object.fromEntries(
      SIDES.map((side) => [
        side,
        async () => {
          const one = await sides[side]();
          samples[side].push(one);
          return one.wallMs;
        },
      ]),
    ) as Record<Side, () => Promise<number>>;
    await alternate(runs, timed);
    checkRows(query, samples);
    figures[query] = samples;
  }
  void warm;
  return report(figures, runs);
}

function whyNot(): string | undefined {
  if (process.platform !== 'linux' || !existsSync('/dev/fuse')) return 'there is no /dev/fuse';
  if (availableParallelism() < 2) return 'engine and daemon need a core each';
  return undefined;
}

/** Every side has the same rows. */
function checkRows(query: QueryName, samples: Record<Side, QueryFigures[]>): void {
  const expected = samples.localSnappy[0]!.rows;
  for (const side of SIDES) {
    for (const { rows } of samples[side]) {
      if (rows !== expected) throw new Error(`${query}: ${side} has other rows: ${rows.slice(0, 200)}`);
    }
  }
}

function report(figures: Record<QueryName, Record<Side, QueryFigures[]>>, runs: number): BenchResult {
  const of = (query: QueryName, side: Side, key: 'wallMs' | 'cpuMs' = 'wallMs'): number =>
    median(figures[query][side].map((one) => one[key]));
  const ratio = (query: QueryName, over: Side, under: Side, key: 'wallMs' | 'cpuMs' = 'wallMs'): number =>
    of(query, over, key) / of(query, under, key);
  const names = Object.keys(QUERIES) as QueryName[];
  const rows = names.map((query) => [
    query,
    ...SIDES.map((side) => `${of(query, side).toFixed(1)} (${of(query, side, 'cpuMs').toFixed(0)})`),
  ]);
  return {
    table: [
      `DuckDB, one thread, ${runs} runs; ms of wall time (and of the engine's processor time)`,
      formatTable([['', ...SIDES], ...rows]),
    ].join('\n'),
    ratios: {
      'duckdb.warm.overDecodedLocal.max': Math.max(...SCAN_BOUND.map((q) => ratio(q, 'decodedWarm', 'localDecoded'))),
      'duckdb.warm.speedup.min': Math.min(...SCAN_BOUND.map((q) => ratio(q, 'localSnappy', 'decodedWarm'))),
      'duckdb.cold.cpu.max': Math.max(...SCAN_BOUND.map((q) => ratio(q, 'decodedCold', 'localSnappy', 'cpuMs'))),
      'duckdb.cold.wall.max': Math.max(...SCAN_BOUND.map((q) => ratio(q, 'decodedCold', 'rawCold'))),
      'duckdb.strings.wall.max': Math.max(...STRING_BOUND.map((q) => ratio(q, 'decodedCold', 'rawCold'))),
    },
    details: { runs, figures },
  };
}
