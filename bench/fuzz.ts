/**
 * `npm run fuzz [-- --seconds n] [--mutants n] [--seed s] [--dir D] [--jobs n] [--json]`: changes Parquet files in all
 * manner of ways and scans them through the product's own path. Every mutant must come to rows or to an error with a
 * code, in bounded time and memory, and leave the process able to scan the next. Scans run in child processes under a
 * watchdog, so that a crash or a hang is put down to its mutant. Files are generated ones, and those of a corpus in D
 * or QANAT_CORPUS when there is one.
 *
 * A mutant is made from the seed and its number alone: `--seed s --first i --mutants 1` (and the same D) replays it,
 * `--keep F` writes it to a file. Exits with 1 when there is a finding.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Bases, randomOf } from './fuzz-bases.ts';
import { makeMutant } from './fuzz-mutants.ts';
import { randomMode } from './fuzz-scan.ts';
import type { FromFuzzWorker, FuzzOrder } from './fuzz-worker.ts';

export interface FuzzOptions {
  readonly seed: number;
  /** The first mutant's number. */
  readonly first?: number;
  readonly mutants: number;
  /** Seconds after which no further mutant is begun. */
  readonly seconds?: number;
  readonly folder?: string | undefined;
  readonly jobs?: number;
  /** Milliseconds without a sign of life after which a process hangs. */
  readonly silenceMs?: number;
  readonly trip?: FuzzOrder['trip'];
  readonly onProgress?: (mutants: number) => void;
}

export interface Finding {
  readonly index: number;
  readonly what: string;
}

export interface FuzzResult {
  readonly mutants: number;
  /** Mutants by what they came to: rows, a code, or rows without end. */
  readonly outcomes: Readonly<Record<string, number>>;
  readonly findings: readonly Finding[];
}

/** A mutant may take ten seconds, and be scanned twice. */
const SILENCE_MS = 30_000;
/** Until the first sign of life: a process that starts is no mutant, however busy the machine is. */
const START_MS = 120_000;
/** Findings after which it is of no use to go on. */
const FINDINGS_MAX = 100;
/** Megabytes: more JavaScript objects than any of these files are worth. */
const HEAP_MEGABYTES = 512;

export async function fuzz(options: FuzzOptions): Promise<FuzzResult> {
  const { first = 0, mutants, jobs = 1 } = options;
  const outcomes: Record<string, number> = {};
  const findings: Finding[] = [];
  let done = 0;
  const began = performance.now();
  const isOver = (): boolean =>
    findings.length >= FINDINGS_MAX || performance.now() - began > (options.seconds ?? Number.POSITIVE_INFINITY) * 1000;
  const work = async (job: number): Promise<void> => {
    for (let from = first + job; from < first + mutants && !isOver(); ) {
      const order: FuzzOrder = {
        seed: options.seed,
        folder: options.folder,
        from,
        to: first + mutants,
        step: jobs,
        ...(options.trip === undefined ? {} : { trip: options.trip }),
      };
      let last = from;
      await watch(order, options.silenceMs ?? SILENCE_MS, (message) => {
        if (message.kind === 'begun') {
          last = message.index;
          done++;
          options.onProgress?.(done);
        } else if (message.kind === 'finding') findings.push({ index: message.index, what: message.what });
        else for (const [name, count] of Object.entries(message.counts)) outcomes[name] = (outcomes[name] ?? 0) + count;
        return !isOver();
      });
      from = last + jobs;
    }
  };
  await Promise.all(Array.from({ length: jobs }, (_, job) => work(job)));
  findings.sort((a, b) => a.index - b.index);
  return { mutants: done, outcomes, findings };
}

/** Runs one child until it ends; `hear` says whether to go on. A death or a silence is a finding. */
function watch(order: FuzzOrder, silenceMs: number, hear: (message: FromFuzzWorker) => boolean): Promise<void> {
  return new Promise((resolve) => {
    const child: ChildProcess = fork(new URL('./fuzz-worker.ts', import.meta.url), {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      execArgv: [...process.execArgv, `--max-old-space-size=${HEAP_MEGABYTES}`],
    });
    let index = order.from;
    let complaints = '';
    let timer: NodeJS.Timeout | undefined;
    let stopped = false;
    const stop = (): void => {
      stopped = true;
      child.kill('SIGKILL');
    };
    const rearm = (ms = silenceMs): void => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        hear({ kind: 'finding', index, what: `hangs: no sign of life for ${ms} ms` });
        stop();
      }, ms);
    };
    child.stderr!.on('data', (bytes: Buffer) => {
      complaints = (complaints + bytes.toString()).slice(-2000);
    });
    child.on('message', (message: FromFuzzWorker) => {
      if (stopped) return;
      rearm();
      if (message.kind === 'begun') index = message.index;
      if (!hear(message)) stop();
    });
    child.once('close', (code, signal) => {
      clearTimeout(timer);
      if (!stopped && code !== 0) {
        hear({ kind: 'finding', index, what: `the process ended with ${signal ?? `code ${code}`}: ${complaints}` });
      }
      resolve();
    });
    rearm(START_MS);
    child.send(order);
  });
}

function defaultFolder(): string | undefined {
  return process.env.QANAT_CORPUS;
}

function keepMutant(path: string, seed: number, index: number, folder: string | undefined): void {
  const random = randomOf(seed, 2, index);
  const { bytes, base, changes } = makeMutant(random, new Bases(seed, folder));
  writeFileSync(path, bytes);
  console.log(
    `mutant ${index}: ${changes.join(', ')} of ${base.name}; scanned as ${JSON.stringify(randomMode(random))}`,
  );
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string' },
      seed: { type: 'string' },
      first: { type: 'string' },
      mutants: { type: 'string' },
      dir: { type: 'string' },
      jobs: { type: 'string' },
      keep: { type: 'string' },
      json: { type: 'boolean' },
    },
  });
  const number = (name: 'seconds' | 'seed' | 'first' | 'mutants' | 'jobs'): number | undefined => {
    const text = values[name];
    if (text === undefined) return undefined;
    if (!/^\d+$/.test(text)) throw new Error(`--${name} ${text}: a whole number is expected`);
    return Number(text);
  };
  const seed = number('seed') ?? Date.now() % 2 ** 31;
  const first = number('first') ?? 0;
  const folder = values.dir ?? defaultFolder();
  if (values.keep !== undefined) return keepMutant(values.keep, seed, first, folder);
  const seconds = number('seconds');
  const mutants = number('mutants') ?? (seconds === undefined ? 2000 : Number.MAX_SAFE_INTEGER);
  const corpus = new Bases(seed, folder).corpusFiles;
  if (!values.json) console.log(`seed ${seed}, ${corpus === 0 ? 'generated files only' : `${corpus} corpus files`}`);
  const began = performance.now();
  const result = await fuzz({
    seed,
    first,
    mutants,
    folder,
    jobs: number('jobs') ?? 1,
    ...(seconds === undefined ? {} : { seconds }),
    onProgress: (done) => {
      if (process.stderr.isTTY && done % 100 === 0) process.stderr.write(`\r${done} mutants`);
    },
  });
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  if (result.findings.length > 0) process.exitCode = 1;
  if (values.json) {
    console.log(JSON.stringify({ seed, first, ...result }));
    return;
  }
  const took = ((performance.now() - began) / 1000).toFixed(0);
  console.log(`${result.mutants} mutants in ${took} s`);
  for (const [name, count] of Object.entries(result.outcomes).sort((a, b) => b[1] - a[1])) {
    console.log(`${String(count).padStart(8)}  ${name}`);
  }
  console.log(`findings: ${result.findings.length === 0 ? 'none' : result.findings.length}`);
  const where = folder === undefined ? '' : ` --dir ${folder}`;
  for (const { index, what } of result.findings) {
    console.log(`  --seed ${seed} --first ${index} --mutants 1${where}\n    ${what}`);
  }
}

if (process.argv[1] === import.meta.filename) await main();
