/** A `qanat serve` of our own in a process of its own: started, waited for until it is ready, stopped. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { CommandError } from '../errors.ts';
import { SERVER_READY_MS } from './limits.ts';

/** The command is not compiled: it stands where it does, beside the sources or beside what was made of them. */
const COMMAND = join(
  import.meta.dirname,
  import.meta.filename.endsWith('.ts') ? '..' : '../../../daemon',
  'bin/qanat.mjs',
);

export class ServerProcess {
  /** host:port of its queue pairs. */
  readonly rdma: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, rdma: string) {
    this.#child = child;
    this.rdma = rdma;
  }

  /** Starts a server of `folder` on a free port of this machine. Throws CommandError SERVER. */
  static async start(folder: string, signal: AbortSignal): Promise<ServerProcess> {
    const child = spawn(process.execPath, [COMMAND, 'serve', folder, '--listen', '127.0.0.1:0', '--http', 'none'], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // Ctrl-C is for us: the server is stopped when we are done with it.
      detached: true,
    });
    process.on('exit', () => child.kill('SIGKILL'));
    let errors = '';
    child.stderr.on('data', (data) => {
      errors = (errors + data).slice(-4096);
    });
    try {
      const within = AbortSignal.any([signal, AbortSignal.timeout(SERVER_READY_MS)]);
      const ready = once(createInterface({ input: child.stdout }), 'line', { signal: within });
      const ended = once(child, 'exit', { signal: within }).then(() => {
        throw new Error(`it ended: ${errors.trim()}`);
      });
      const [line] = (await Promise.race([ready, ended])) as [string];
      ended.catch(() => {});
      const { rdma } = JSON.parse(line) as { rdma: string };
      return new ServerProcess(child, rdma);
    } catch (cause) {
      child.kill('SIGKILL');
      throw new CommandError('SERVER', `the server did not get ready: ${(cause as Error).message}`, { cause });
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
