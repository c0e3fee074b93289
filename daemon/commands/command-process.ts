/** A `qanat …` of our own in a process of its own: started, waited for until it is ready, stopped. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { CommandError } from '../errors.ts';
import { COMMAND_READY_MS } from './limits.ts';

/** The command is not compiled: it stands where it does, beside the sources or beside what was made of them. */
const COMMAND = join(
  import.meta.dirname,
  import.meta.filename.endsWith('.ts') ? '..' : '../../../daemon',
  'bin/qanat.mjs',
);

export class CommandProcess {
  /** What it said when it was ready. */
  readonly ready: Readonly<Record<string, unknown>>;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, ready: Readonly<Record<string, unknown>>) {
    this.#child = child;
    this.ready = ready;
  }

  /** Starts a command that says that it is ready in a line of JSON. Throws CommandError SERVER when it does not. */
  static async start(args: readonly string[], signal: AbortSignal): Promise<CommandProcess> {
    const child = spawn(process.execPath, [COMMAND, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // Ctrl-C is for us: it is stopped when we are done with it.
      detached: true,
    });
    // a mount takes itself away
    process.on('exit', () => child.kill('SIGTERM'));
    let errors = '';
    child.stderr.on('data', (data) => {
      errors = (errors + data).slice(-4096);
    });
    try {
      const within = AbortSignal.any([signal, AbortSignal.timeout(COMMAND_READY_MS)]);
      const ready = once(createInterface({ input: child.stdout }), 'line', { signal: within });
      const ended = once(child, 'close', { signal: within }).then(() => {
        throw new Error(errors.trim());
      });
      const [line] = (await Promise.race([ready, ended])) as [string];
      ended.catch(() => {});
      return new CommandProcess(child, JSON.parse(line) as Record<string, unknown>);
    } catch (cause) {
      child.kill('SIGKILL');
      const { message } = cause as Error;
      throw new CommandError('SERVER', `qanat ${args[0]} did not get ready: ${message}`, { cause });
    }
  }

  /** Asks it to end and returns its exit code. */
  async stop(): Promise<number | null> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = once(this.#child, 'exit');
      this.#child.kill('SIGTERM');
      await ended;
    }
    return this.#child.exitCode;
  }
}
