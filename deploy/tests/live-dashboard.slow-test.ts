/**
 * The configuration, the rules and every query of the dashboard in a real Prometheus that scrapes a server and a daemon
 * at work. Only the scrape interval and the targets are others than in the files.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { QANAT, qanatServe, type Server } from '../../daemon/tests/command-run.ts';
import { Lake, numbersQuery } from '../../daemon/tests/lake.ts';
import { PrometheusProcess, skipPrometheus } from '../../daemon/tests/prometheus-process.ts';
import { DEPLOY } from './command-check.ts';
import { queries } from './dashboard-file.ts';

const RATES_OVER = '5s';
/** Panels that show what should not happen: no data is good news. */
const MAY_BE_EMPTY = /^annotations$/;

describe('the dashboard on a real Prometheus', { skip: skipPrometheus, timeout: 180_000 }, () => {
  let lake: Lake;
  let server: Server;
  let daemon: ChildProcess;
  let prometheus: PrometheusProcess;
  let working = true;
  let scans: Promise<void> = Promise.resolve();

  before(async () => {
    lake = await Lake.create();
    await lake.write('numbers.parquet', numbersQuery(200_000), 'row_group_size 20480, compression snappy');
    server = await qanatServe([lake.folder, '--http', '127.0.0.1:0']);
    const source = `lake=rdma://${server.ready.rdma}`;
    const args = [
      'daemon',
      '--decoders',
      '2',
      '--source',
      source,
      '--listen',
      '127.0.0.1:0',
      '--metrics',
      '127.0.0.1:0',
    ];
    daemon = spawn(process.execPath, [QANAT, ...args], { stdio: ['ignore', 'pipe', 'ignore'] });
    const [line] = (await once(createInterface({ input: daemon.stdout! }), 'line')) as [string];
    const ready = JSON.parse(line) as { http: string; metrics: string };
    scans = scanOn(ready.http);
    prometheus = await startPrometheus(lake, String(server.ready.http), ready.metrics);
    await prometheus.answered('up == 1', (series) => series.length === 2);
    // until rates need not guess about a time from which they have nothing
    await prometheus.answered('count_over_time(up[20s])', (series) =>
      series.every(({ value }) => Number(value[1]) > 14),
    );
  });

  after(async () => {
    working = false;
    await scans;
    await prometheus?.stop();
    daemon?.kill('SIGKILL');
    await server?.stop();
    await lake?.[Symbol.asyncDispose]();
  });

  /** Scans one after another, with a pause so that the machine is not all theirs. */
  async function scanOn(http: string): Promise<void> {
    const headers = { 'content-type': 'application/json' };
    while (working) {
      const body = JSON.stringify({ source: 'lake' });
      const answer = await fetch(`http://${http}/v1/scan`, { method: 'POST', body, headers });
      assert.equal(answer.status, 200);
      await answer.bytes();
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  test('every query is answered, with data', async () => {
    const empty: string[] = [];
    for (const { panel, expr } of queries(RATES_OVER)) {
      const series = await prometheus.query(expr);
      if (series.length === 0 && !MAY_BE_EMPTY.test(panel)) empty.push(`${panel}: ${expr}`);
    }
    assert.deepEqual(empty, []);
  });

  test('times of decoders add up: the stacks reach 1', async () => {
    for (const title of ['Input side', 'Output side']) {
      const { expr } = queries(RATES_OVER).find(({ panel }) => panel === title)!;
      const series = await prometheus.query(expr);
      assert.equal(series.length, 4);
      const total = series.reduce((sum, { value }) => sum + Number(value[1]), 0);
      // rates over a window of some scrapes, between whose ends time is estimated
      assert.ok(Math.abs(total - 1) < 0.1, `${title}: ${total}`);
    }
  });

  test('the rules are loaded and evaluate; nothing is wrong', async () => {
    const { groups } = await prometheus.get<{
      groups: { rules: { name: string; health: string; lastError?: string; state: string }[] }[];
    }>('/api/v1/rules');
    const rules = groups.flatMap((group) => group.rules);
    assert.ok(rules.length > 10);
    for (const { name, health, lastError, state } of rules) {
      assert.notEqual(health, 'err', `${name}: ${lastError}`);
      assert.notEqual(state, 'firing', name);
    }
  });
});

/** The files of deploy/prometheus, scraping every half second what is here. */
async function startPrometheus(lake: Lake, served: string, client: string): Promise<PrometheusProcess> {
  const folder = lake.path('prometheus');
  cpSync(join(DEPLOY, 'prometheus'), folder, { recursive: true });
  writeFileSync(join(folder, 'targets/serve.yml'), JSON.stringify([{ targets: [served] }]));
  writeFileSync(join(folder, 'targets/client.yml'), JSON.stringify([{ targets: [client] }]));
  const configuration = join(folder, 'prometheus.yml');
  const text = readFileSync(configuration, 'utf8');
  const often = text.replace(/^( {2}scrape_(?:interval|timeout)|( {2})evaluation_interval): .*$/gm, '$1: 500ms');
  assert.notEqual(often, text);
  writeFileSync(configuration, often);
  return PrometheusProcess.start(configuration, lake.path('tsdb'));
}
