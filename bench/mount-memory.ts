/**
 * Resident memory of `qanat mount` while eight programs read eight files of 4 GB in all at once, four with DuckDB and
 * four as bytes, in either view and with different caps. `mount.rss.overCap` is the most, in MiB, that a mount's
 * process had beside its cap: all that the system counts for it, the pool and the program's own file included, and the
 * kernel's page cache not. Readers have the bytes and the values of the file on local disk.
 */
import { linkSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { lineitemFile } from './make-lineitem.ts';
import { benchFolder, runProgram, runQuery, startCommand } from './mount-commands.ts';
import type { QueryName } from './mount-queries.ts';
import { type BenchOptions, type BenchResult, formatTable } from './result.ts';
import { whyNoMount } from './why-no-mount.ts';

const ROWS = { small: 100_000, full: 1_000_000 } as const;
const COPIES = { small: 1, full: 11 } as const;
/** One of each file: what a query reads of it is read by nobody else. */
const READERS: readonly (QueryName | 'bytes')[] = ['all', 'bytes', 'q1', 'bytes', 'comment', 'bytes', 'all', 'bytes'];
const VIEWS = ['raw', 'decoded'] as const;
const MEBIBYTES = [256, 64] as const;
const CORES = '0,1';
const SAMPLE_MS = 50;

/** MiB, as /proc/PID/status has them. */
interface Resident {
  readonly total: number;
  readonly anonymous: number;
  readonly shared: number;
  readonly files: number;
}

interface Figures {
  readonly view: string;
  readonly memory: number;
  readonly ready: Resident;
  /** The greatest of the samples. */
  readonly most: Resident;
  /** What the system itself has kept as the greatest. */
  readonly peak: number;
  readonly wallMs: number;
}

export async function benchMountMemory(options: BenchOptions = {}): Promise<BenchResult> {
  const unfit = whyNoMount();
  if (unfit !== undefined) return { table: '', ratios: {}, skipped: unfit };
  const size = options.small ? 'small' : 'full';
  const file = await lineitemFile({ rows: options.rows ?? ROWS[size], copies: COPIES[size] });
  using folders = benchFolder();
  const served = folders.folder('served');
  const names = READERS.map((_, k) => `part-${k}.parquet`);
  for (const name of names) sharedFile(file, join(served, name));
  await using server = await startCommand(CORES, ['serve', served, '--listen', '127.0.0.1:0', '--http', 'none']);
  const url = `rdma://${String(server.ready.rdma)}`;
  const expected = await Promise.all([...new Set(READERS)].map(async (what) => [what, await readAs(what, file)]));
  const local = Object.fromEntries(expected) as Record<QueryName | 'bytes', string>;

  const figures: Figures[] = [];
  for (const view of VIEWS) {
    for (const memory of MEBIBYTES) {
      const mounted = folders.folder(`${view}-${memory}`);
      await using mount = await startCommand(CORES, [
        ...['mount', url, mounted, '--view', view, '--memory', `${memory}MiB`, '--metrics', 'none', '--json'],
      ]);
      const watch = watchResident(mount.pid);
      const began = performance.now();
      const seen = await Promise.all(READERS.map((what, k) => readAs(what, join(mounted, names[k]!))));
      const wallMs = performance.now() - began;
      check(view, seen, local);
      figures.push({ view, memory, ...watch.stop(), wallMs });
    }
  }
  const over = figures.map(({ peak, memory }) => peak - memory);
  return {
    table: [
      "MiB of a mount's process while 8 programs read; most: of samples; peak: as the system has kept it",
      formatTable([
        ['', 'memory', 'ready', 'most', 'anonymous', 'shared', 'files', 'peak', 'over', 'seconds'],
        ...figures.map(({ view, memory, ready, most, peak, wallMs }, k) => [
          view,
          ...[memory, ready.total, most.total, most.anonymous, most.shared, most.files, peak, over[k]!].map((one) =>
            one.toFixed(0),
          ),
          (wallMs / 1000).toFixed(1),
        ]),
      ]),
    ].join('\n'),
    ratios: { 'mount.rss.overCap': Math.max(...over) },
    details: { figures },
  };
}

/** A program's whole reading of a file as a text that can be compared. */
async function readAs(what: QueryName | 'bytes', file: string): Promise<string> {
  if (what !== 'bytes') return (await runQuery(CORES, file, what)).rows;
  const { stdout } = await runProgram(CORES, ['md5sum', file]);
  return stdout.split(' ')[0]!;
}

/** The raw view has the file's bytes; the decoded view has others, but of equal files the same. */
function check(view: string, seen: readonly string[], local: Readonly<Record<string, string>>): void {
  const bytes = view === 'raw' ? local.bytes! : seen[READERS.indexOf('bytes')]!;
  for (const [k, text] of seen.entries()) {
    const what = READERS[k]!;
    const expected = what === 'bytes' ? bytes : local[what]!;
    if (text !== expected) throw new Error(`${view}: ${what} of file ${k} is ${text.slice(0, 200)}`);
  }
}

function watchResident(pid: number): { stop(): Pick<Figures, 'ready' | 'most' | 'peak'> } {
  const ready = residentOf(pid);
  let most = ready;
  const timer = setInterval(() => {
    const now = residentOf(pid);
    if (now.total > most.total) most = now;
  }, SAMPLE_MS);
  return {
    stop() {
      clearInterval(timer);
      return { ready, most, peak: statusOf(pid)('VmHWM') };
    },
  };
}

function residentOf(pid: number): Resident {
  const of = statusOf(pid);
  return { total: of('VmRSS'), anonymous: of('RssAnon'), shared: of('RssShmem'), files: of('RssFile') };
}

/** MiB of a line of /proc/PID/status. */
function statusOf(pid: number): (name: string) => number {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8');
  return (name) => {
    const kilobytes = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1];
    if (kilobytes === undefined) throw new Error(`/proc/${pid}/status has no ${name}`);
    return Number(kilobytes) / 1024;
  };
}

/** The same file under another name. */
function sharedFile(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch {
    symlinkSync(from, to);
  }
}
