/** `qanat serve` and `qanat mount` in processes of their own, and programs that read what is mounted, each on its core. */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

const QANAT = new URL('../daemon/bin/qanat.mjs', import.meta.url).pathname;

/** Characters: a report of `--stats --json`, and a few lines of the log. */
const ERRORS_KEPT = 16_384;

/** A command that says on its first line of output, as JSON, that it is ready. */
export interface Command extends AsyncDisposable {
  readonly ready: Record<string, unknown>;
  /** Milliseconds of processor time that it has used. */
  cpuMs(): number;
  readonly pid: number;
  /** The end of what it wrote to standard error. */
  errors(): string;
}

/** Cores as taskset has them: `1`, `0,1`. */
export type Cores = number | string;

/** Starts `qanat …` on some cores. */
export function startCommand(
  cores: Cores,
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<Command> {
  return startProgram(cores, [QANAT, ...args], variables);
}

/** Starts a script of this folder. */
export function startScript(cores: Cores, script: string, args: readonly string[]): Promise<Command> {
  return startProgram(cores, [scriptPath(script), ...args]);
}

const scriptPath = (script: string): string => new URL(script, import.meta.url).pathname;

async function startProgram(
  cores: Cores,
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<Command> {
  const child = spawn('taskset', ['-c', String(cores), process.execPath, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...variables },
  });
  let errors = '';
  child.stderr.on('data', (text: Buffer) => {
    errors = (errors + text.toString()).slice(-ERRORS_KEPT);
  });
  const lines = createInterface({ input: child.stdout });
  const first = await Promise.race([
    once(lines, 'line').then(([line]) => line as string),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`${args.join(' ')} ended with ${code}: ${errors}`))),
  ]);
  const pid = child.pid!;
  return {
    ready: JSON.parse(first) as Record<string, unknown>,
    pid,
    cpuMs: () => cpuMsOf(pid),
    errors: () => errors,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** Clock ticks of user and system time, from /proc: 100 a second on Linux. */
function cpuMsOf(pid: number): number {
  const text = execFileSync('cat', [`/proc/${pid}/stat`], { encoding: 'utf8' });
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

export interface QueryFigures {
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly rows: string;
}

/** Runs a query over a file in a process of its own. */
export function runQuery(
  cores: Cores,
  file: string,
  query: string,
  options: { readonly table?: boolean } = {},
): Promise<QueryFigures> {
  return runScript(cores, './mount-query-client.ts', [file, query, '1', ...(options.table ? ['table'] : [])]);
}

/** Runs a script of this folder that prints figures as JSON. */
export async function runScript<Figures>(cores: Cores, script: string, args: readonly string[]): Promise<Figures> {
  const { stdout } = await runProgram(cores, [process.execPath, scriptPath(script), ...args]);
  return JSON.parse(stdout) as Figures;
}

/** Runs a program to its end. */
export async function runProgram(
  cores: Cores,
  argv: readonly string[],
): Promise<{ readonly stdout: string; readonly stderr: string; readonly wallMs: number }> {
  const began = performance.now();
  const { stdout, stderr } = await promisify(execFile)('taskset', ['-c', String(cores), ...argv], {
    maxBuffer: 16 << 20,
  });
  return { stdout, stderr, wallMs: performance.now() - began };
}

/** A folder for mounts that goes with what is in it. */
export function benchFolder(): { readonly path: string; folder(name: string): string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'qanat-bench-mount-'));
  return {
    path,
    folder(name) {
      const folder = join(path, name);
      mkdirSync(folder, { recursive: true });
      return folder;
    },
    [Symbol.dispose]() {
      rmSync(path, { recursive: true, force: true });
    },
  };
}
