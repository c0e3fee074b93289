/** A real Prometheus (Debian's package) for tests: started on a free port of this machine, asked, ended. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Bounded: far more than a loaded machine takes. */
const WAIT_MS_MAX = 60_000;

const isRequired = process.env.QANAT_PROMETHEUS === 'required';
const missing = ['prometheus', 'promtool'].find((program) => spawnSync(program, ['--version']).error !== undefined);

/** Why tests with it are skipped; never where QANAT_PROMETHEUS is `required`. */
export const skipPrometheus = missing === undefined || isRequired ? false : `${missing} is not installed`;

export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [at: number, value: string];
}

export class PrometheusProcess {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  /** Starts it with a configuration; resolves when it is ready. What it stores goes to `data`. */
  static async start(configuration: string, data: string): Promise<PrometheusProcess> {
    const address = `127.0.0.1:${await freePort()}`;
    const args = [`--config.file=${configuration}`, `--storage.tsdb.path=${data}`, `--web.listen-address=${address}`];
    const child = spawn('prometheus', args, { stdio: ['ignore', 'ignore', 'pipe'] });
    let errors = '';
    child.stderr.on('data', (data) => {
      errors = (errors + data).slice(-4096);
    });
    const until = performance.now() + WAIT_MS_MAX;
    const isReady = (): Promise<boolean> =>
      fetch(`http://${address}/-/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    while (!(await isReady())) {
      assert.ok(child.exitCode === null && performance.now() < until, `Prometheus did not get ready: ${errors}`);
      await sleep(50);
    }
    return new PrometheusProcess(child, `http://${address}`);
  }

  /** What an endpoint of its API gives as `data`. */
  async get<T>(path: string): Promise<T> {
    const answer = await fetch(`${this.url}${path}`);
    const { status, error, data } = (await answer.json()) as { status: string; error?: string; data: T };
    assert.equal(status, 'success', `${path}: ${error}`);
    return data;
  }

  async query(text: string): Promise<Series[]> {
    return (await this.get<{ result: Series[] }>(`/api/v1/query?query=${encodeURIComponent(text)}`)).result;
  }

  /** Asks until there is an answer. */
  async answered(text: string, enough: (series: Series[]) => boolean): Promise<Series[]> {
    const until = performance.now() + WAIT_MS_MAX;
    for (;;) {
      const series = await this.query(text);
      if (enough(series)) return series;
      assert.ok(performance.now() < until, `${text}: ${JSON.stringify(series)}`);
      await sleep(100);
    }
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}

/** It does not tell which port it took for 0, so that one is chosen for it. */
async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}
