/**
 * The processes of the soak run: `qanat serve --watch`, `qanat daemon`, a program that uses the library, Prometheus. Each
 * can be frozen, killed and stopped; what their logs say that the run has to know is read off as it comes.
 */
import { type ChildProcess, fork, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { QANAT } from '../daemon/tests/command-run.ts';
import type { SoakQuestion } from './soak-client.ts';

/** Milliseconds for a process to get ready: far more than a loaded machine takes. */
const READY_MS = 60_000;
/** Lines of a log that a failure shows. */
const LINES_SHOWN = 20;

/** A child process with its log's last lines. It is killed with this process. */
export class SoakProcess {
  readonly name: string;
  readonly child: ChildProcess;
  readonly #lines: string[] = [];
  #isExpectedToEnd = false;

  constructor(name: string, child: ChildProcess, onLine: (line: string) => void = () => {}) {
    this.name = name;
    this.child = child;
    process.on('exit', this.kill);
    child.once('exit', () => process.off('exit', this.kill));
    createInterface({ input: child.stderr! }).on('line', (line) => {
      this.#lines.push(line);
      if (this.#lines.length > LINES_SHOWN) this.#lines.shift();
      onLine(line);
    });
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** How it ended, if it did and nobody asked it to. */
  get unexpectedEnd(): string | undefined {
    if (this.isRunning || this.#isExpectedToEnd) return undefined;
    const { exitCode, signalCode } = this.child;
    return `${this.name} ended with ${signalCode ?? exitCode}: ${this.#lines.join('\n')}`;
  }

  freeze(): void {
    this.child.kill('SIGSTOP');
  }

  thaw(): void {
    this.child.kill('SIGCONT');
  }

  readonly kill = (): void => {
    this.#isExpectedToEnd = true;
    this.child.kill('SIGKILL');
  };

  /** Asks it to end; throws when it does not do so with 0. */
  async stop(): Promise<void> {
    if (!this.isRunning) return;
    this.#isExpectedToEnd = true;
    // not its exit: then there may be lines of its log to come
    const ended = once(this.child, 'close');
    this.child.kill('SIGTERM');
    const [code] = (await ended) as [number | null];
    if (code !== 0) throw new Error(`${this.name} ended with ${code}: ${this.#lines.join('\n')}`);
  }

  async died(): Promise<void> {
    if (this.isRunning) await once(this.child, 'exit');
  }

  /** The first line of its standard output, as JSON. */
  async ready<Ready>(): Promise<Ready> {
    const line = once(createInterface({ input: this.child.stdout! }), 'line', {
      signal: AbortSignal.timeout(READY_MS),
    });
    const ended = once(this.child, 'exit').then(() => {
      throw new Error(`${this.name} did not get ready: ${this.#lines.join('\n')}`);
    });
    ended.catch(() => {});
    const [text] = (await Promise.race([line, ended])) as [string];
    return JSON.parse(text) as Ready;
  }
}

function spawnQanat(name: string, args: readonly string[], onLine: (line: string) => void): SoakProcess {
  const clean = Object.entries(process.env).filter(([variable]) => !variable.startsWith('QANAT_'));
  const child = spawn(process.execPath, [QANAT, ...args], {
    env: Object.fromEntries(clean),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return new SoakProcess(name, child, onLine);
}

export interface SoakServer {
  readonly process: SoakProcess;
  readonly rdma: string;
  readonly metrics: string;
}

/**
 * `onPublished` hears of each generation but the first, with the time that the server's log gives, and `onTrouble` of what
 * the log calls an error.
 */
export async function startServer(
  folder: string,
  onPublished: (at: number) => void,
  onTrouble: (line: string) => void,
): Promise<SoakServer> {
  const settings = ['--watch', '--log-format', 'json', '--listen', '127.0.0.1:0', '--http', '127.0.0.1:0'];
  const server = spawnQanat('serve', ['serve', folder, ...settings], (line) => {
    const { level, event, time } = JSON.parse(line) as { level: string; event?: string; time: string };
    if (event === 'published') onPublished(Date.parse(time));
    if (level === 'error') onTrouble(line);
  });
  const { rdma, http } = await server.ready<{ rdma: string; http: string }>();
  return { process: server, rdma, metrics: http };
}

export interface SoakDaemon {
  readonly process: SoakProcess;
  readonly http: string;
  readonly metrics: string;
  /** Scans by what the daemon's log says of them, with the error's code where there is one. */
  readonly logged: ReadonlyMap<string, number>;
}

export async function startDaemon(name: string, rdma: string, memory: string): Promise<SoakDaemon> {
  const logged = new Map<string, number>();
  const addresses = ['--listen', '127.0.0.1:0', '--metrics', '127.0.0.1:0'];
  const settings = ['--memory', memory, '--decoders', '1', '--log-format', 'json', '--source', `lake=rdma://${rdma}`];
  const daemon = spawnQanat(name, ['daemon', ...addresses, ...settings], (line) => {
    const { msg, err, code } = JSON.parse(line) as { msg: string; err?: { code?: string }; code?: string };
    const of = err?.code ?? code;
    const text = `${msg.startsWith('scan: ') ? msg : code === undefined ? '' : 'refused'}${of === undefined ? '' : ` ${of}`}`;
    if (text !== '') logged.set(text, (logged.get(text) ?? 0) + 1);
  });
  const { http, metrics } = await daemon.ready<{ http: string; metrics: string }>();
  return { process: daemon, http, metrics, logged };
}

/** A program that uses the library (soak-client.ts); any number of questions may be under way. */
export class SoakProgram {
  readonly process: SoakProcess;
  metrics = '';
  readonly #pending = new Map<number, { resolve(answer: never): void; reject(error: Error): void }>();
  #questions = 0;

  private constructor() {
    const child = fork(new URL('./soak-client.ts', import.meta.url), { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] });
    this.process = new SoakProcess('program', child);
    child.on('message', ({ id, answer, error }: { id: number; answer: never; error?: string }) => {
      const { resolve, reject } = this.#pending.get(id)!;
      this.#pending.delete(id);
      if (error === undefined) resolve(answer);
      else reject(new Error(error));
    });
    child.once('exit', () => {
      for (const { reject } of this.#pending.values()) reject(new Error('the program has ended'));
    });
  }

  static async start(rdma: string, memoryBytes: number, metricsPort: number): Promise<SoakProgram> {
    const program = new SoakProgram();
    const url = `rdma://${rdma}`;
    const port = await program.ask<number>({ kind: 'start', url, memoryBytes, metricsPort });
    program.metrics = `127.0.0.1:${port}`;
    return program;
  }

  ask<Answer>(question: SoakQuestion): Promise<Answer> {
    const id = this.#questions++;
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.process.child.send({ id, question });
    });
  }

  async stop(): Promise<void> {
    const ended = this.process.died();
    this.process.child.disconnect();
    await ended;
  }
}

export interface SoakPrometheus {
  readonly process: SoakProcess;
  readonly url: string;
}

/** Undefined where it is not installed. */
export async function startPrometheus(
  pathOf: (name: string) => string,
  targets: Readonly<Record<string, string>>,
): Promise<SoakPrometheus | undefined> {
  if (spawnSync('prometheus', ['--version']).error !== undefined) return undefined;
  const jobs = Object.entries(targets).map(([job, target]) => ({
    job_name: job,
    static_configs: [{ targets: [target] }],
  }));
  const configuration = pathOf('prometheus.json'); // JSON is YAML
  writeFileSync(configuration, JSON.stringify({ global: { scrape_interval: '1s' }, scrape_configs: jobs }));
  const address = `127.0.0.1:${await freePort()}`;
  const args = [`--config.file=${configuration}`, `--storage.tsdb.path=${pathOf('tsdb')}`];
  const child = spawn('prometheus', [...args, `--web.listen-address=${address}`], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const prometheus = new SoakProcess('prometheus', child);
  const url = `http://${address}`;
  const until = performance.now() + READY_MS;
  const isReady = (): Promise<boolean> =>
    fetch(`${url}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) {
    const ended = prometheus.unexpectedEnd;
    if (ended !== undefined || performance.now() > until) throw new Error(ended ?? 'Prometheus did not get ready');
    await sleep(50);
  }
  return { process: prometheus, url };
}

/** Of programs that do not tell which port they took for 0, or that are to be found again at the same. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}
