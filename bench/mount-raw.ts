/**
 * The raw mount as a way for bytes: `dd` and `cat` of a whole file through it, against a program that takes the same
 * bytes from a bare socket; then reads of 64 KiB here and there. On both sides the server reads the file (from the page
 * cache) on one core, and whoever reads has the machine's cores as the system gives them. The kernel knows nothing of
 * the file: each run has a fresh mount, through which another file was read before, so that its code is compiled.
 */
import { randomFillSync } from 'node:crypto';
import { closeSync, copyFileSync, linkSync, openSync, statSync, writeSync } from 'node:fs';
import { basename, join } from 'node:path';
import { lineitemFile } from './make-lineitem.ts';
import { benchFolder, type Command, runProgram, runScript, startCommand, startScript } from './mount-commands.ts';
import type { RandomReads } from './random-reads.ts';
import { alternate, type BenchOptions, type BenchResult, formatTable, median, quantile, RUNS } from './result.ts';
import { whyNoMount } from './why-no-mount.ts';

const ROWS = { small: 100_000, full: 4_000_000 } as const;
const COPIES = { small: 2, full: 6 } as const;
const PLAIN_BYTES = { small: 16 << 20, full: 1 << 30 } as const;
const WARM_BYTES = { small: 4 << 20, full: 128 << 20 } as const;
const READS = { small: 50, full: 1000 } as const;
const SERVER_CORE = 1;
const READER_CORES = '0,1';
const WARM = 'warm.bin';
const MIB = 1 << 20;

const SIDES = ['socket', 'dd', 'cat'] as const;
type Side = (typeof SIDES)[number];

export async function benchMountRaw(options: BenchOptions = {}): Promise<BenchResult> {
  const unfit = whyNoMount();
  if (unfit !== undefined) return { table: '', ratios: {}, skipped: unfit };
  const size = options.small ? 'small' : 'full';
  const runs = options.small ? 1 : RUNS.full;
  using folders = benchFolder();
  const served = folders.folder('served');
  const lineitem = await lineitemFile({ rows: options.rows ?? ROWS[size], copies: COPIES[size] });
  const files = { parquet: join(served, 'lineitem.parquet'), plain: join(served, 'plain.bin') };
  shareFile(lineitem, files.parquet);
  writeRandom(files.plain, PLAIN_BYTES[size]);
  writeRandom(join(served, WARM), WARM_BYTES[size]);
  await using server = await startCommand(SERVER_CORE, [
    ...['serve', served, '--all', '--listen', '127.0.0.1:0', '--http', 'none'],
  ]);
  const url = `rdma://${String(server.ready.rdma)}`;
  const mounted = folders.folder('mounted');
  const mount = async (): Promise<Command> => {
    const command = await startCommand(READER_CORES, ['mount', url, mounted, '--metrics', 'none', '--json']);
    await runProgram(READER_CORES, ['cmp', join(served, WARM), join(mounted, WARM)]);
    return command;
  };

  const sequential: Record<string, Record<Side, number[]>> = {};
  const random: Record<string, Record<'socket' | 'mount', number[]>> = {};
  for (const [name, file] of Object.entries(files)) {
    const fileBytes = statSync(file).size;
    const mountedFile = join(mounted, basename(file));
    {
      await using _ = await mount();
      await runProgram(READER_CORES, ['cmp', file, mountedFile]);
    }
    await using socket = await startScript(SERVER_CORE, './bare-socket-server.ts', [file]);
    const port = String(socket.ready.port);
    const throughMount = async (read: () => Promise<number>): Promise<number> => {
      await using _ = await mount();
      return await read();
    };
    sequential[name] = await alternate(runs, {
      socket: async () =>
        fileBytes /
        1e6 /
        (await runScript<{ ms: number }>(READER_CORES, './bare-socket-client.ts', [port, String(fileBytes)])).ms,
      dd: () =>
        throughMount(async () => {
          const { wallMs } = await runProgram(READER_CORES, ['dd', `if=${mountedFile}`, 'of=/dev/null', 'bs=1M']);
          return fileBytes / 1e6 / wallMs;
        }),
      cat: () =>
        throughMount(async () => {
          const { wallMs } = await runProgram(READER_CORES, ['sh', '-c', 'exec cat "$0" > /dev/null', mountedFile]);
          return fileBytes / 1e6 / wallMs;
        }),
    });
    random[name] = await randomOf(file, runs, READS[size], {
      socket: (reads, seed) =>
        runScript(READER_CORES, './bare-socket-client.ts', [port, String(fileBytes), String(reads), String(seed)]),
      mount: async (reads, seed) => {
        await using _ = await mount();
        return await runScript(READER_CORES, './random-read-client.ts', [mountedFile, String(reads), String(seed)]);
      },
    });
  }
  return report(sequential, random, runs);
}

type ReadRandomly = (reads: number, seed: number) => Promise<RandomReads>;

/** Milliseconds of all reads of each side; throws when a side has other bytes than the file. */
async function randomOf<Name extends string>(
  file: string,
  runs: number,
  reads: number,
  sides: Readonly<Record<Name, ReadRandomly>>,
): Promise<Record<Name, number[]>> {
  const times = {} as Record<Name, number[]>;
  for (let run = 0; run < runs; run++) {
    const seed = 1000 + run;
    const expected = await runScript<RandomReads>(READER_CORES, './random-read-client.ts', [
      ...[file, String(reads), String(seed)],
    ]);
    for (const name of Object.keys(sides) as Name[]) {
      const figures = await sides[name](reads, seed);
      if (figures.crc !== expected.crc) throw new Error(`${name}: other bytes than those of ${file}`);
      times[name] = [...(times[name] ?? []), ...figures.times];
    }
  }
  return times;
}

function report(
  sequential: Readonly<Record<string, Record<Side, number[]>>>,
  random: Readonly<Record<string, Record<'socket' | 'mount', number[]>>>,
  runs: number,
): BenchResult {
  const names = Object.keys(sequential);
  const ratios = names.flatMap((name) => {
    const { socket, dd, cat } = sequential[name]!;
    return [dd, cat].map((side) => median(side) / median(socket));
  });
  const quantiles = (times: readonly number[]): string[] =>
    [0.5, 0.99].map((share) => (quantile(times, share) * 1000).toFixed(0));
  return {
    table: [
      `a whole file in order, GB/s, ${runs} runs`,
      formatTable([
        ['', ...SIDES],
        ...names.map((name) => [name, ...SIDES.map((side) => median(sequential[name]![side]).toFixed(2))]),
      ]),
      '',
      'reads of 64 KiB, microseconds',
      formatTable([
        ['', 'socket p50', 'p99', 'mount p50', 'p99'],
        ...names.map((name) => [name, ...quantiles(random[name]!.socket), ...quantiles(random[name]!.mount)]),
      ]),
    ].join('\n'),
    ratios: {
      'socket.sequential': Math.min(...ratios),
      'socket.random.p50': Math.max(
        ...names.map((name) => quantile(random[name]!.mount, 0.5) / quantile(random[name]!.socket, 0.5)),
      ),
    },
    details: { runs, sequential, random: Object.fromEntries(names.map((name) => [name, summaryOf(random[name]!)])) },
  };
}

function summaryOf(sides: Readonly<Record<string, readonly number[]>>): Record<string, { p50: number; p99: number }> {
  return Object.fromEntries(
    Object.entries(sides).map(([side, times]) => [side, { p50: quantile(times, 0.5), p99: quantile(times, 0.99) }]),
  );
}

/** The same file under another name, without its bytes a second time where that is possible. */
function shareFile(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}

function writeRandom(path: string, bytes: number): void {
  const piece = Buffer.alloc(Math.min(bytes, 16 * MIB));
  const file = openSync(path, 'w');
  for (let at = 0; at < bytes; at += piece.byteLength) writeSync(file, randomFillSync(piece));
  closeSync(file);
}
