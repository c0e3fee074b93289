/** What `/metrics` says of server and client against what they counted, and how the commands offer it. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after, before, describe, test } from 'node:test';
import { Codec, Encoding } from '../../decode/index.ts';
import { FetchError, ledgerTotal } from '../../fetcher/index.ts';
import { METRICS, type MetricsRegistry, openRegistry } from '../../metrics/index.ts';
import { DECODERS_MAX as DECODERS_LISTED } from '../../metrics/limits.ts';
import { parseExposition, type Sample, sampleValue } from '../../metrics/tests/exposition.ts';
import { type RunningServer, serveRegion } from '../../storage-server/index.ts';
import { WC } from '../../storage-server/protocol/index.ts';
import { openSource, type Source } from '../../vfs/index.ts';
import { DECODERS_MAX } from '../limits.ts';
import { ClientMetrics } from '../scan/client-metrics.ts';
import { ScanEngine } from '../scan/engine.ts';
import { Scan, type ScanOptions } from '../scan/scan.ts';
import { QANAT, qanat, qanatServe } from './command-run.ts';
import { Lake, numbersQuery } from './lake.ts';

const ROWS = 60_000;
const HOSTILE_NAME = 'evil"} 1\\n{x="y.parquet';

const scrape = async (registry: MetricsRegistry): Promise<Sample[]> => parseExposition(await registry.text());
const sum = (samples: readonly Sample[], { name }: { name: string }, labels: Record<string, string> = {}): number =>
  sampleValue(samples, name, labels);

let lake: Lake;
before(async () => {
  lake = await Lake.create();
  await lake.write('numbers.parquet', numbersQuery(ROWS));
  await lake.write(HOSTILE_NAME.replaceAll("'", ''), 'select range as id from range(10)');
});
after(() => lake[Symbol.asyncDispose]());

test('lists of labels are those of the protocol and of Parquet', () => {
  for (const metric of [METRICS.serveCompletions, METRICS.fetchCompletions]) {
    assert.deepEqual([...metric.labels.status], [...Object.keys(WC), 'other']);
  }
  assert.deepEqual([...METRICS.decodeEncodingValues.labels.encoding], [...Object.keys(Encoding), 'other']);
  assert.deepEqual([...METRICS.decodeCodecValues.labels.codec], [...Object.keys(Codec), 'other']);
  assert.equal(DECODERS_LISTED, DECODERS_MAX);
});

const serverRegistry = await openRegistry('server');
const registry = await openRegistry('client');

describe('a server and a client', () => {
  let server: RunningServer;
  let engine: ScanEngine;
  let clients: ClientMetrics;
  before(async () => {
    server = await serveRegion({ roots: [lake.folder], listen: { host: '127.0.0.1', port: 0 } });
    serverRegistry.addCollector(server.collectMetrics);
    engine = new ScanEngine({ memoryBytes: 64 << 20, decoders: 2 });
    clients = new ClientMetrics(registry);
    clients.addEngine(engine);
  });
  after(async () => {
    await engine.close();
    await server.close();
  });

  async function withSource<T>(use: (source: Source) => Promise<T>): Promise<T> {
    const source = await openSource(`rdma://127.0.0.1:${server.address().port}/numbers.parquet`);
    const forget = clients.addSource(source);
    try {
      return await use(source);
    } finally {
      await source.close();
      forget();
    }
  }

  function checkSums(samples: readonly Sample[]): void {
    const used = sum(samples, METRICS.fetchUsedBytes);
    const wasted = sum(samples, METRICS.fetchWastedBytes);
    const undecided = sum(samples, METRICS.fetchUndecidedBytes);
    assert.ok(undecided >= 0);
    assert.equal(used + wasted + undecided, sum(samples, METRICS.fetchWireBytes), 'every byte is somewhere');
  }

  test('every total is what ledger and counters say, during scans and after', async () => {
    const scans: ScanOptions[] = [
      {},
      { columns: ['id', 'note'], maxGap: 1 << 20 },
      { columns: ['d'], limit: 9000, prefetchDepth: 5 },
    ];
    let used = 0;
    let wasted = 0;
    let rows = 0;
    let onWire = 0;
    for (const options of scans) {
      await withSource(async (source) => {
        const scan = await Scan.open(engine, source, options);
        for await (const batch of scan) {
          rows += batch.numRows;
          const during = await scrape(registry);
          checkSums(during);
          assert.equal(sum(during, METRICS.scanOpen), 1);
          assert.equal(sum(during, METRICS.scanRows), rows);
          assert.equal(sum(during, METRICS.fetchQueuePairs, { state: 'RTS' }), 1);
          assert.equal(sum(during, METRICS.prefetchDepth), options.prefetchDepth ?? 2);
          assert.ok(sum(during, METRICS.poolUsed) > 0);
        }
        const { bytes } = scan.report();
        used += bytes.used;
        wasted += bytes.accounted - bytes.used - bytes.metadata;
        onWire += bytes.onWire;
        const rest = await scrape(registry);
        checkSums(rest);
        assert.equal(sum(rest, METRICS.fetchUndecidedBytes), 0);
        assert.equal(sum(rest, METRICS.fetchUsedBytes, { use: 'chunk' }), used);
        assert.equal(sum(rest, METRICS.fetchWastedBytes), wasted);
        assert.equal(sum(rest, METRICS.fetchWireBytes), onWire);
      });
    }
    const { ledger } = engine.activity.totals();
    const samples = await scrape(registry);
    assert.ok(sum(samples, METRICS.fetchWastedBytes, { reason: 'gap' }) > 0, 'gaps were read over');
    assert.equal(sum(samples, METRICS.fetchUsedBytes, { use: 'chunk' }), ledger.used);
    for (const reason of ['gap', 'speculation', 'cancelled', 'evicted'] as const) {
      assert.equal(sum(samples, METRICS.fetchWastedBytes, { reason }), ledger.wasted[reason]);
    }
    const metadata = sum(samples, METRICS.fetchUsedBytes, { use: 'metadata' });
    const discarded = sum(samples, METRICS.fetchWastedBytes, { reason: 'discarded' });
    assert.equal(ledgerTotal(ledger) + metadata + discarded, sum(samples, METRICS.fetchWireBytes));
    assert.equal(sum(samples, METRICS.scans, { outcome: 'complete' }), scans.length);
    assert.equal(sum(samples, METRICS.scanRows), rows);
    assert.equal(sum(samples, { name: `${METRICS.fetchBytes.name}_sum` }), ledgerTotal(ledger), 'planned requests');
    const turns = sum(samples, METRICS.prefetchRowGroups);
    assert.ok(turns >= sum(samples, METRICS.scanRowGroups), 'every row group that was read had its turn');
    assert.ok(sum(samples, METRICS.prefetchRowGroups, { outcome: 'miss' }) >= scans.length, 'the first ones');
  });

  test('the server has sent what the client has got', async () => {
    const ours = await scrape(registry);
    const theirs = await scrape(serverRegistry);
    assert.equal(sum(theirs, METRICS.servePayload), sum(ours, METRICS.fetchWireBytes));
    assert.equal(
      sum(theirs, METRICS.serveCompletions, { status: 'SUCCESS' }),
      sum(ours, METRICS.fetchCompletions, { status: 'SUCCESS' }),
    );
    const count = (name: string): number => sum(theirs, { name: `${name}_count` });
    assert.equal(count(METRICS.serveReadBytes.name), sum(theirs, METRICS.serveCompletions, { status: 'SUCCESS' }));
    assert.equal(count(METRICS.serveReadSeconds.name), count(METRICS.serveReadBytes.name));
    assert.equal(sum(theirs, { name: `${METRICS.serveReadBytes.name}_sum` }), sum(theirs, METRICS.servePayload));
    assert.equal(sum(theirs, METRICS.serveSent), server.counters().bytesSent);
    assert.equal(sum(theirs, METRICS.serveFiles), 2);
    assert.equal(sum(theirs, METRICS.serveGeneration), 1);
    for (const idle of [METRICS.serveReadsQueued, METRICS.serveBursts, METRICS.serveSlabs]) {
      assert.equal(sum(theirs, idle), 0, idle.name);
    }
  });

  test('decoders: times of the four states add up on both sides, values and bytes by encoding and codec', async () => {
    const samples = await scrape(registry);
    const { decoders, encodings, codecs } = engine.readProfile();
    assert.equal(sum(samples, METRICS.decodeDecoders), 2);
    for (const decoder of ['0', '1']) {
      const input = sum(samples, METRICS.decodeSeconds, { decoder, side: 'input' });
      const output = sum(samples, METRICS.decodeSeconds, { decoder, side: 'output' });
      assert.ok(Math.abs(input / output - 1) < 0.01, `${input} s at the input, ${output} s at the output`);
      const ratio = sum(samples, METRICS.decodeUtilization, { decoder });
      const busy = sum(samples, METRICS.decodeSeconds, { decoder, side: 'input', state: 'busy' });
      assert.ok(Math.abs(ratio - busy / input) < 0.01);
      assert.equal(
        sum(samples, METRICS.decodeBeats, { decoder, side: 'input' }),
        decoders[Number(decoder)]!.input.handshakeBeats,
      );
    }
    const values = Object.values(encodings).reduce((total, counts) => total + counts.values, 0);
    assert.ok(values > 0);
    assert.equal(sum(samples, METRICS.decodeEncodingValues), values);
    assert.equal(sum(samples, METRICS.decodeCodecValues), values);
    assert.equal(sum(samples, METRICS.decodeCompressedBytes, { codec: 'SNAPPY' }), codecs.SNAPPY!.compressedBytes);
    assert.equal(sum(samples, METRICS.decodeDecompressedBytes), codecs.SNAPPY!.bytes);
    assert.equal(sum(samples, METRICS.decodeEncodingValues, { encoding: 'other' }), 0);
  });

  test('a scan that fails, and those that are left or cancelled, are counted as such; totals outlive their sources', async () => {
    const before = await scrape(registry);
    await withSource(async (source) => {
      const left = await Scan.open(engine, source, {});
      await left.nextBatch().then((batch) => batch!.release());
      await left.close();
      const failing = await Scan.open(engine, source, { signal: AbortSignal.abort() }).catch(() => undefined);
      await failing?.close();
      const controller = new AbortController();
      const cancelled = await Scan.open(engine, source, { signal: controller.signal });
      controller.abort();
      await assert.rejects(cancelled.nextBatch(), /cancelled/);
      const lost = await Scan.open(engine, source, {});
      for (const scan of engine.scans) scan.fail(new FetchError('LOST', 'the server has gone'));
      await assert.rejects(lost.nextBatch(), /has gone/);
    });
    const after = await scrape(registry);
    checkSums(after);
    const grown = (outcome: string): number =>
      sum(after, METRICS.scans, { outcome }) - sum(before, METRICS.scans, { outcome });
    assert.deepEqual([grown('closed'), grown('failed')], [2, 1]);
    assert.equal(sum(after, METRICS.scanOpen), 0);
    assert.equal(sum(after, METRICS.fetchSources), 0);
    for (const { name, labels, value } of before) {
      if (!/(_total|_bucket|_sum|_count)$/.test(name)) continue;
      assert.ok(sampleValue(after, name, labels) >= value, `${name} ${JSON.stringify(labels)} fell`);
    }
  });

  test('nothing that a file or a peer says becomes a label', async () => {
    const source = await openSource(`rdma://127.0.0.1:${server.address().port}/**`);
    const forget = clients.addSource(source);
    const hostile = (await source.list()).find(({ path }) => path.startsWith('evil'))!;
    await (await source.open(hostile)).footer();
    await source.close();
    forget();
    for (const one of [registry, serverRegistry]) assert.ok(!/evil|numbers|parquet/i.test(await one.text()));
  });
});

describe('commands', () => {
  test('qanat serve --http: named in the ready line, ready, and no file names in what it says', async () => {
    const server = await qanatServe([lake.folder]);
    try {
      const url = `http://${server.ready.http}`;
      assert.deepEqual(await (await fetch(`${url}/readyz`)).text(), 'ready\n');
      assert.equal((await fetch(`${url}/healthz`)).status, 200);
      const samples = parseExposition(await (await fetch(`${url}/metrics`)).text());
      assert.equal(sum(samples, METRICS.serveFiles), 2);
      assert.equal(sum(samples, METRICS.buildInfo), 1);
      const taken = await qanat(['serve', lake.folder, '--listen', '127.0.0.1:0', '--http', server.ready.http]);
      assert.equal(taken.code, 1);
      assert.match(
        taken.errors,
        /^qanat serve: metrics LISTEN: HTTP on [\d.:]+: the address is in use \(EADDRINUSE\): choose another with --http, port 0 takes a free one, --http none does without\n$/,
      );
    } finally {
      await server.stop();
    }
  });

  test('qanat serve --http none, and an address that others reach', async () => {
    const child = spawn(process.execPath, [QANAT, 'serve', lake.folder, '--listen', '127.0.0.1:0', '--http', 'none']);
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    child.kill('SIGTERM');
    await once(child, 'exit');
    assert.ok(!('http' in JSON.parse(line)));
    const exposed = await qanat(['serve', lake.folder, '--listen', '127.0.0.1:0', '--http', '0.0.0.0:0']);
    assert.equal(exposed.code, 2);
    assert.match(exposed.errors, /--insecure-listen/);
  });

  test('qanat scan --metrics: told on standard error, answers while its reader does not read, ends with the scan', async () => {
    const arguments_ = [QANAT, 'scan', lake.path('numbers.parquet'), '--format', 'csv', '--metrics', '127.0.0.1:0'];
    const child = spawn(process.execPath, arguments_, { stdio: ['ignore', 'pipe', 'pipe'] });
    const url = await metricsUrl(child);
    let samples: Sample[] = [];
    do samples = parseExposition(await (await fetch(url)).text());
    while (sum(samples, METRICS.scanRows) === 0);
    assert.equal(sum(samples, METRICS.scanOpen), 1);
    assert.equal(sum(samples, METRICS.fetchSources), 1);
    child.stdout!.resume();
    const [code] = await once(child, 'exit');
    assert.equal(code, 0);
    await assert.rejects(fetch(url));
  });

  test('qanat scan --metrics on an address in use ends with 1 and reads nothing', async () => {
    const server = await qanatServe([lake.folder]);
    const taken = await qanat(['scan', lake.path('numbers.parquet'), '--metrics', server.ready.http]);
    await server.stop();
    assert.equal(taken.code, 1);
    assert.match(taken.errors, /^qanat scan: metrics LISTEN: [^\n]* --metrics none does without\n$/);
    assert.equal(taken.text, '');
  });
});

async function metricsUrl(child: ChildProcess): Promise<string> {
  const [line] = (await once(createInterface({ input: child.stderr! }), 'line')) as [string];
  return /^metrics: (http:\S+)$/.exec(line)![1]!;
}
