/**
 * A real Prometheus (Debian's package) scrapes a server and a client that is scanning, and answers queries: those of
 * METRICS.md, the utilisation of decoders, and that every byte is somewhere. Skipped where it is not installed, unless
 * QANAT_PROMETHEUS=required.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { CATALOGUE } from '../../metrics/catalogue.ts';
import { METRICS } from '../../metrics/index.ts';
import { QANAT, qanatServe, type Server } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';
import { PrometheusProcess, type Series, skipPrometheus } from './prometheus-process.ts';

describe('Prometheus', { skip: skipPrometheus }, () => {
  let lake: Lake;
  let server: Server;
  let client: { child: ChildProcess; address: string };
  let prometheus: PrometheusProcess;

  before(async () => {
    lake = await Lake.create();
    await lake.write('numbers.parquet', numbersQuery(1_000_000), 'row_group_size 20480');
    server = await qanatServe([lake.folder]);
    client = await startClient(server.ready.rdma);
    prometheus = await startPrometheus(lake, { server: server.ready.http, client: client.address });
  });
  after(async () => {
    await prometheus?.stop();
    if (client !== undefined && client.child.exitCode === null) {
      client.child.kill('SIGKILL');
      await once(client.child, 'exit');
    }
    await server?.stop();
    await lake?.[Symbol.asyncDispose]();
  });

  const query = (text: string): Promise<Series[]> => prometheus.query(text);

  test('promtool finds nothing wrong with either side', async () => {
    for (const address of [server.ready.http, client.address]) {
      const text = await (await fetch(`http://${address}/metrics`)).text();
      assert.equal(execFileSync('promtool', ['check', 'metrics'], { input: text, encoding: 'utf8' }), '');
    }
  });

  test('both are scraped', async () => {
    const up = await prometheus.answered('up == 1', (series) => series.length === 2);
    assert.deepEqual(up.map(({ metric }) => metric.job).sort(), ['client', 'server']);
  });

  test('it knows the utilisation of each decoder', async () => {
    const [utilisation] = markedQuery('utilisation of each decoder');
    const [series] = await prometheus.answered(utilisation!.replace(/\[1m\]/g, '[5s]'), (found) =>
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

function startPrometheus(lake: Lake, targets: Readonly<Record<string, string>>): Promise<PrometheusProcess> {
  const jobs = Object.entries(targets).map(([job, target]) => ({
    job_name: job,
    static_configs: [{ targets: [target] }],
  }));
  const configuration = lake.path('prometheus.json'); // JSON is YAML
  writeFileSync(configuration, JSON.stringify({ global: { scrape_interval: '1s' }, scrape_configs: jobs }));
  execFileSync('promtool', ['check', 'config', configuration]);
  return PrometheusProcess.start(configuration, lake.path('tsdb'));
}
