/** Processes of the model of real mounts: readers, which may be killed, and a server that comes and goes behind a proxy. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { QANAT } from './command-run.ts';
import type { ReaderAnswer, ReaderCommand } from './model-reader.ts';
import { type MountRig, within } from './mount-rig.ts';
import type { WeatherProxy } from './weather-proxy.ts';

/** A process that uses a mount (model-reader.ts). */
export class ReaderProcess {
  readonly child: ChildProcess;
  readonly #answers = new Map<number, (answer: ReaderAnswer) => void>();
  #id = 0;

  constructor() {
    this.child = fork(new URL('./model-reader.ts', import.meta.url), { serialization: 'advanced' });
    this.child.on('message', ({ id, answer }: { id: number; answer: ReaderAnswer }) => {
      this.#answers.get(id)?.(answer);
      this.#answers.delete(id);
    });
    this.child.once('exit', () => {
      for (const resolve of this.#answers.values()) resolve({ error: 'KILLED' });
    });
  }

  ask(command: ReaderCommand): Promise<ReaderAnswer> {
    const id = ++this.#id;
    const { promise, resolve } = Promise.withResolvers<ReaderAnswer>();
    if (!this.child.connected) return Promise.resolve({ error: 'KILLED' });
    this.#answers.set(id, resolve);
    this.child.send({ id, command });
    return within(promise, `an answer to ${JSON.stringify(command)}`);
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exit = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await within(exit, 'the end of a reader');
  }
}

/** `qanat serve` behind a proxy: it may be killed and comes back. */
export class ServerBehindProxy {
  readonly proxy: WeatherProxy;
  readonly #rig: MountRig;
  readonly #folder: string;
  #child: ChildProcess | undefined;

  constructor(rig: MountRig, folder: string, proxy: WeatherProxy) {
    this.#rig = rig;
    this.#folder = folder;
    this.proxy = proxy;
  }

  async start(): Promise<void> {
    if (this.#child !== undefined) return;
    const args = [QANAT, 'serve', this.#folder, '--all', '--listen', '127.0.0.1:0', '--http', 'none'];
    const child = this.#rig.spawn(process.execPath, args);
    const line = await within(
      new Promise<string>((resolve) => child.stdout!.once('data', (data) => resolve(String(data)))),
      'a server',
    );
    this.proxy.serverPort = Number((JSON.parse(line) as { rdma: string }).rdma.split(':')[1]);
    this.#child = child;
  }

  /** Looks at the files again. */
  publish(): void {
    const { exitCode, signalCode } = this.#child ?? { exitCode: null, signalCode: null };
    if (exitCode !== null || signalCode !== null) throw new Error(`the server ended with ${exitCode ?? signalCode}`);
    this.#child?.kill('SIGHUP');
  }

  async kill(): Promise<void> {
    const child = this.#child!;
    this.#child = undefined;
    this.proxy.serverPort = undefined;
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
    this.proxy.cut();
  }
}
