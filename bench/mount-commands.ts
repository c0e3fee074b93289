/** `qanat serve` and `qanat mount` in processes of their own, and programs that read what is mounted, each on its core. */
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

const QANAT = new URL('../daemon/bin/qanat.mjs', import.meta.url).pathname;

/** A command that says on its first line of output, as JSON, that it is ready. */
export interface Command extends AsyncDisposable {
  readonly ready: Record<string, unknown>;
  /** Milliseconds of processor time that it has used. */
  cpuMs(): number;
  readonly pid: number;
}

/** Starts `qanat …` on one core. */
export async function startCommand(core: number, args: readonly string[]): Promise<Command> {
  const child = spawn('taskset', ['-c', String(core), process.execPath, QANAT, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (text: Buffer) => {
    errors = (errors + text.toString()).slice(-2000);
  });
  const lines = createInterface({ input: child.stdout });
  const first = await Promise.race([
    once(lines, 'line').then(([line]) => line as string),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`qanat ${args[0]} ended with ${code}: ${errors}`))),
  ]);
  const pid = child.pid!;
  return {
    ready: JSON.parse(first) as Record<string, unknown>,
    pid,
    cpuMs: () => cpuMsOf(pid),
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

/** Runs a query over a file in a process of its own on one core. */
export async function runQuery(
  core: number,
  file: string,
  query: string,
  options: { readonly table?: boolean } = {},
): Promise<QueryFigures> {
  const script = new URL('./mount-query.ts', import.meta.url).pathname;
  const args = ['-c', String(core), process.execPath, script, file, query, '1', ...(options.table ? ['table'] : [])];
  const { stdout } = await promisify(execFile)('taskset', args, { maxBuffer: 16 << 20 });
  return JSON.parse(stdout) as QueryFigures;
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
