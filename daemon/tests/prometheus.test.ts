/**
 * A real Prometheus (Debian's package) scrapes a server and a client that is scanning, and answers queries: those of
 * METRICS.md, the utilisation of decoders, and that every byte is somewhere. Skipped where it is not installed, unless
 * QANAT_PROMETHEUS=required.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CATALOGUE } from '../../metrics/catalogue.ts';
import { METRICS } from '../../metrics/index.ts';
import { QANAT, qanatServe, type Server } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';

const isRequired = process.env.QANAT_PROMETHEUS === 'required';
const missing = ['prometheus', 'promtool'].find((program) => spawnSync(program, ['--version']).error !== undefined);
const skip = missing === undefined || isRequired ? false : `${missing} is not installed`;

/** Bounded: far more than a loaded machine takes. */
const WAIT_MS_MAX = 60_000;

interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [at: number, value: string];
}

describe('Prometheus', { skip }, () => {
  let lake: Lake;
  let server: Server;
  let client: { child: ChildProcess; address: string };
  let prometheus: { child: ChildProcess; url: string };

  before(async () => {
    lake = await Lake.create();
    await lake.write('numbers.parquet', numbersQuery(1_000_000), 'row_group_size 20480');
    server = await qanatServe([lake.folder]);
    client = await startClient(server.ready.rdma);
    prometheus = await startPrometheus(lake, { server: server.ready.http, client: client.address });
  });
  after(async () => {
    for (const child of [prometheus?.child, client?.child]) {
      if (child === undefined || child.exitCode !== null) continue;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await server?.stop();
    await lake?.[Symbol.asyncDispose]();
  });

  const query = async (text: string): Promise<Series[]> => {
    const answer = await fetch(`${prometheus.url}/api/v1/query?query=${encodeURIComponent(text)}`);
    const { status, error, data } = (await answer.json()) as {
      status: string;
      error?: string;
      data: { result: Series[] };
    };
    assert.equal(status, 'success', `${text}: ${error}`);
    return data.result;
  };

  /** Asks until there is an answer. */
  const answered = async (text: string, enough: (series: Series[]) => boolean): Promise<Series[]> => {
    const until = performance.now() + WAIT_MS_MAX;
    for (;;) {
      const series = await query(text);
      if (enough(series)) return series;
      assert.ok(performance.now() < until, `${text}: ${JSON.stringify(series)}`);
      await sleep(100);
    }
  };

  test('promtool finds nothing wrong with either side', async () => {
    for (const address of [server.ready.http, client.address]) {
      const text = await (await fetch(`http://${address}/metrics`)).text();
      assert.equal(execFileSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' }), '');
    }
  });

  test('both are scraped', async () => {
    const up = await answered('up == 1', (series) => series.length === 2);
    assert.deepEqual(up.map(({ metric }) => metric.job).sort(), ['client', 'server']);
  });

  test('it knows the utilisation of each decoder', async () => {
    const [utilisation] = markedQuery('utilisation of each decoder');
    const [series] = await answered(utilisation!.replace(/\[1m\]/g, '[5s]'), (found) =>
      found.some(({ value }) => Number(value[1]) > 0),
    );
    assert.equal(series!.metric.decoder, '0');
    assert.equal(series!.metric.job, 'client');
    assert.ok(Number(series!.value[1]) <= 1.01, `utilisation ${series!.value[1]}`);
    const lifetime = await query(METRICS.decodeUtilization.name);
    assert.ok(lifetime.every(({ value }) => Number(value[1]) > 0 && Number(value[1]) <= 1));
  });

  test('used + wasted + undecided = bytes on the wire', async () => {
    const { fetchUsedBytes, fetchWastedBytes, fetchUndecidedBytes, fetchWireBytes } = METRICS;
    const entered = `sum(${fetchUsedBytes.name}) + sum(${fetchWastedBytes.name}) + sum(${fetchUndecidedBytes.name})`;
    const [difference] = await query(`${entered} - sum(${fetchWireBytes.name})`);
    assert.equal(difference!.value[1], '0');
    assert.ok(Number((await query(fetchWireBytes.name))[0]!.value[1]) > 0);
  });

  test('the queries of METRICS.md are answered', async () => {
    for (const text of markedQuery()) assert.ok(Array.isArray(await query(text)), text);
  });
});

/** The queries of METRICS.md: those below a comment, or all. */
function markedQuery(comment = ''): string[] {
  const [, block] = /Queries:\n\n((?: {4}.*\n)+)/.exec(readFileSync(CATALOGUE, 'utf8'))!;
  const queries = block!.split(/^ {4}# /m).slice(1);
  return queries.filter((one) => one.startsWith(comment)).map((one) => one.slice(one.indexOf('\n')).trim());
}

/** A scan whose reader takes its time, so that it goes on while it is watched. */
async function startClient(rdma: string): Promise<{ child: ChildProcess; address: string }> {
  const scan = ['scan', `rdma://${rdma}/numbers.parquet`, '--format', 'csv', '--decoders', '1'];
  const child = spawn(process.execPath, [QANAT, ...scan, '--metrics', '127.0.0.1:0'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [line] = (await once(createInterface({ input: child.stderr! }), 'line')) as [string];
  child.stdout!.on('data', () => {
    child.stdout!.pause();
    setTimeout(() => child.stdout!.resume(), 20);
  });
  return { child, address: /^metrics: http:\/\/(\S+)\/metrics$/.exec(line)![1]! };
}

async function startPrometheus(
  lake: Lake,
  targets: Readonly<Record<string, string>>,
): Promise<{ child: ChildProcess; url: string }> {
  const jobs = Object.entries(targets).map(([job, target]) => ({
    job_name: job,
    static_configs: [{ targets: [target] }],
  }));
  const configuration = lake.path('prometheus.json'); // JSON is YAML
  writeFileSync(configuration, JSON.stringify({ global: { scrape_interval: '1s' }, scrape_configs: jobs }));
  execFileSync('promtool', ['check', 'config', configuration]);
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(
    'prometheus',
    [`--config.file=${configuration}`, `--storage.tsdb.path=${lake.path('tsdb')}`, `--web.listen-address=${address}`],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let errors = '';
  child.stderr!.on('data', (data) => {
    errors = (errors + data).slice(-4096);
  });
  const until = performance.now() + WAIT_MS_MAX;
  while (
    !(await fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    assert.ok(child.exitCode === null && performance.now() < until, `Prometheus did not get ready: ${errors}`);
    await sleep(50);
  }
  return { child, url: `http://${address}` };
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
