/**
 * The demo's second half: the table on a mount, in either view, as an engine sees it that knows nothing of Qanat. DuckDB
 * answers a query over the file, and over both mounts; the answers must be equal. Then a look at the mount's metrics.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { CommandError } from '../errors.ts';
import type { View } from '../mount/view.ts';
import { CommandProcess } from './command-process.ts';

export interface ViewFigures {
  /** Milliseconds of the query, the first and the second time. */
  readonly firstMs: number;
  readonly secondMs: number;
  readonly equal: boolean;
  /** Series at the mount's `/metrics`. */
  readonly series: number;
}

export interface MountFigures {
  /** Milliseconds of the query over the file itself. */
  readonly fileMs: number;
  readonly views: Readonly<Record<View, ViewFigures>>;
}

/** What DuckDB answers is the first row, and how long it took. */
interface Answer {
  readonly row: string;
  readonly ms: number;
}

/** Mounts `url`'s folder twice below `folder`. Where the machine does not allow it, says why. */
export async function demoMount(
  url: string,
  file: string,
  folder: string,
  signal: AbortSignal,
): Promise<MountFigures | { readonly skipped: string }> {
  const instance = await DuckDBInstance.create(':memory:');
  try {
    const expected = await ask(instance, file);
    const views: Partial<Record<View, ViewFigures>> = {};
    for (const view of ['raw', 'decoded'] as const) {
      const place = join(folder, view);
      await mkdir(place);
      const args = ['mount', url, place, '--view', view, '--json', '--metrics', '127.0.0.1:0', '--no-allow-other'];
      const mounted = await CommandProcess.start(args, signal).catch((error: unknown) => error);
      if (mounted instanceof CommandError && !signal.aborted) return { skipped: reasonOf(mounted) };
      if (!(mounted instanceof CommandProcess)) throw mounted;
      try {
        views[view] = await readView(instance, join(place, 'lineitem.parquet'), expected, mounted, signal);
      } finally {
        await mounted.stop();
      }
    }
    return { fileMs: expected.ms, views: views as Record<View, ViewFigures> };
  } finally {
    instance.closeSync();
  }
}

async function readView(
  instance: DuckDBInstance,
  path: string,
  expected: Answer,
  { ready }: CommandProcess,
  signal: AbortSignal,
): Promise<ViewFigures> {
  const first = await ask(instance, path);
  signal.throwIfAborted();
  const second = await ask(instance, path);
  const metrics = await (await fetch(`http://${String(ready.metrics)}/metrics`, { signal })).text();
  const series = metrics.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
  const equal = first.row === expected.row && second.row === expected.row;
  return { firstMs: first.ms, secondMs: second.ms, equal, series };
}

/** TPC-H's sixth query, with what it counts beside it. */
async function ask(instance: DuckDBInstance, path: string): Promise<Answer> {
  const connection = await instance.connect();
  try {
    await connection.run('set enable_external_file_cache = false');
    const began = performance.now();
    const reader = await connection.runAndReadAll(
      `select count(*), sum(l_extendedprice * l_discount), min(l_shipdate)
       from '${path.replaceAll("'", "''")}'
       where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
         and l_discount between 0.05 and 0.07 and l_quantity < 24`,
    );
    return { row: JSON.stringify(reader.getRowsJson()), ms: performance.now() - began };
  } finally {
    connection.closeSync();
  }
}

/** The last line that a command wrote, without its name. */
function reasonOf({ message }: CommandError): string {
  const line = message.trim().split('\n').at(-1)!;
  return line.replace(/^.*qanat mount: /, '');
}
