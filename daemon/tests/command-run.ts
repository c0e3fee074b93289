/** The real command as a child process, as a user runs it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

export const QANAT = join(import.meta.dirname, '../bin/qanat.mjs');

export interface CommandResult {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: Buffer;
  readonly text: string;
  readonly errors: string;
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Called when the process runs; tests send signals or read some of the output. */
  readonly started?: (child: ChildProcess) => void;
  /** Leave standard output unread. */
  readonly unread?: boolean;
  readonly node?: string;
}

/** The environment without variables of ours, which a developer may have set. */
export function cleanEnvironment(): Record<string, string> {
  const entries = Object.entries(process.env).filter(
    ([name, value]) => !name.startsWith('QANAT_') && value !== undefined,
  );
  return Object.fromEntries(entries) as Record<string, string>;
}

/** Runs `qanat` to its end. */
export async function qanat(args: readonly string[], options: CommandOptions = {}): Promise<CommandResult> {
  const child = spawn(options.node ?? process.execPath, [QANAT, ...args], {
    env: { ...cleanEnvironment(), ...options.env },
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const out: Buffer[] = [];
  let errors = '';
  if (!options.unread) child.stdout.on('data', (data: Buffer) => out.push(data));
  child.stderr.on('data', (data) => {
    errors += data;
  });
  options.started?.(child);
  const [code, signal] = (await once(child, options.unread ? 'exit' : 'close')) as [
    number | null,
    NodeJS.Signals | null,
  ];
  child.stdout.destroy();
  const stdout = Buffer.concat(out);
  return { code, signal, stdout, text: stdout.toString('utf8'), errors };
}

export interface Server {
  readonly ready: Readonly<Record<string, unknown>> & { readonly rdma: string; readonly http: string };
  readonly errors: () => string;
  /** Sends SIGHUP. */
  hangup(): void;
  /** Ends it as a crash would. */
  kill(): void;
  /** Sends SIGTERM and returns the exit code and all further lines of standard output. */
  stop(): Promise<{ code: number | null; lines: string[] }>;
}

/** Starts `qanat serve` on a free port; the test stops it. */
export async function qanatServe(args: readonly string[]): Promise<Server> {
  const child = spawn(process.execPath, [QANAT, 'serve', ...args, '--listen', '127.0.0.1:0', '--http', '127.0.0.1:0'], {
    env: cleanEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let errors = '';
  child.stderr.on('data', (data) => {
    errors += data;
  });
  const lines: string[] = [];
  const reader = createInterface({ input: child.stdout });
  const ended = once(child, 'exit').then(() => {
    throw new Error(`serve ended: ${errors}`);
  });
  const [first] = (await Promise.race([once(reader, 'line'), ended])) as [string];
  ended.catch(() => {});
  reader.on('line', (line) => lines.push(line));
  return {
    ready: JSON.parse(first),
    errors: () => errors,
    hangup: () => void child.kill('SIGHUP'),
    kill: () => void child.kill('SIGKILL'),
    async stop() {
      // not 'exit': what it wrote last is read behind that
      const closed = once(child, 'close');
      child.kill('SIGTERM');
      const [code] = (await closed) as [number | null];
      return { code, lines };
    },
  };
}
