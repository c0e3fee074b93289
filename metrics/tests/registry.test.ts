import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BucketCounts } from '../bucket-counts.ts';
import { DEFINITIONS, METRICS } from '../definitions.ts';
import { MetricsError } from '../errors.ts';
import { LABEL_TEXT_MAX } from '../limits.ts';
import { seriesMax } from '../metric.ts';
import { processCollector } from '../process-metrics.ts';
import { addRecorded, SampleRecorder } from '../recording.ts';
import { MetricsRegistry, type Samples } from '../registry.ts';
import { parseExposition, sampleValue } from './exposition.ts';

const HOSTILE = [
  '/etc/passwd',
  '../..',
  'a"b',
  'a\nb 1',
  '{x="y"}',
  '',
  '\0',
  '__proto__',
  'SUCCESS ',
  'é'.repeat(5000),
];

async function scrape(side: 'server' | 'client', collect: (samples: Samples) => void): Promise<string> {
  const registry = new MetricsRegistry(side);
  registry.addCollector(collect);
  return registry.text();
}

describe('definitions', () => {
  test('names follow the conventions', () => {
    assert.equal(new Set(DEFINITIONS.map(({ name }) => name)).size, DEFINITIONS.length, 'names are unique');
    for (const { name, kind, unit, help, labels, buckets } of DEFINITIONS) {
      assert.match(name, /^(qanat|process|nodejs)_[a-z]+(_[a-z]+)*$/);
      assert.equal(name.endsWith('_total'), kind === 'counter', `${name}: counters, and only they, end with _total`);
      const base = name.replace(/_total$/, '');
      if (unit === 'seconds' || unit === 'bytes' || unit === 'ratio') assert.ok(base.endsWith(`_${unit}`), name);
      assert.match(help, /^[A-Z].*[^.]\.$/, `${name}: help is a sentence`);
      assert.equal(buckets !== undefined, kind === 'histogram', name);
      if (buckets !== undefined)
        assert.deepEqual(
          [...buckets],
          [...buckets].sort((a, b) => a - b),
        );
      for (const label of Object.keys(labels)) assert.match(label, /^[a-z]+$/);
    }
  });

  test('the number of series is bounded', () => {
    for (const side of ['server', 'client'] as const) {
      const series = DEFINITIONS.filter(({ sides }) => sides.includes(side)).map(
        (one) => seriesMax(one) * (one.buckets === undefined ? 1 : one.buckets.length + 3),
      );
      const total = series.reduce((sum, count) => sum + count, 0);
      assert.ok(total <= (side === 'server' ? 200 : 6000), `${side}: ${total} series`);
    }
  });
});

describe('registry', () => {
  test('every metric of a side is there, with zero where its labels are listed', async () => {
    for (const side of ['server', 'client'] as const) {
      const text = await new MetricsRegistry(side).text();
      const samples = parseExposition(text);
      for (const { name, kind, sides, help, labels } of DEFINITIONS) {
        assert.equal(text.includes(`# TYPE ${name} ${kind}\n`), sides.includes(side), name);
        assert.equal(text.includes(`# HELP ${name} ${help}\n`), sides.includes(side), name);
        if (!sides.includes(side) || Object.values(labels).some((rule) => !Array.isArray(rule))) continue;
        assert.equal(sampleValue(samples, kind === 'histogram' ? `${name}_count` : name), 0);
      }
    }
  });

  test('samples of several collectors add up, anew at every scrape', async () => {
    const registry = new MetricsRegistry('client');
    let reads = 3;
    const end = registry.addCollector((samples) => samples.add(METRICS.fetchReads, reads, { state: 'active' }));
    registry.addCollector((samples) => samples.add(METRICS.fetchReads, 4, { state: 'active' }));
    const active = async (): Promise<number> =>
      sampleValue(parseExposition(await registry.text()), METRICS.fetchReads.name, { state: 'active' });
    assert.equal(await active(), 7);
    reads = 10;
    assert.equal(await active(), 14);
    end();
    assert.equal(await active(), 4);
  });

  test('histograms are cumulative and keep their sums', async () => {
    const counts = new BucketCounts(METRICS.fetchBytes.buckets);
    for (const bytes of [1, 256, 257, 5000, 1 << 30]) counts.observe(bytes);
    const samples = parseExposition(
      await scrape('client', (into) => {
        into.addCounts(METRICS.fetchBytes, counts);
        into.addCounts(METRICS.fetchBytes, counts);
      }),
    );
    const { name } = METRICS.fetchBytes;
    const bucket = (le: string): number => sampleValue(samples, `${name}_bucket`, { le });
    assert.deepEqual(['256', '1024', '16384', '16777216', '+Inf'].map(bucket), [4, 6, 8, 8, 10]);
    assert.equal(sampleValue(samples, `${name}_count`), 10);
    assert.equal(sampleValue(samples, `${name}_sum`), 2 * (1 + 256 + 257 + 5000 + 2 ** 30));
  });

  test('who asks at the same time gets the same scrape', async () => {
    let collections = 0;
    const registry = new MetricsRegistry('server');
    registry.addCollector(() => collections++);
    const texts = await Promise.all([registry.text(), registry.text(), registry.text()]);
    assert.equal(collections, 1);
    assert.equal(new Set(texts).size, 1);
    await registry.text();
    assert.equal(collections, 2);
  });

  test('what takes its time is awaited before a scrape', async () => {
    const registry = new MetricsRegistry('client');
    let fetched = 0;
    registry.addCollector((samples) => samples.add(METRICS.poolUsed, fetched));
    const forget = registry.addPreparation(async () => {
      await new Promise((resolve) => setImmediate(resolve));
      fetched += 5;
    });
    const used = async (): Promise<number> =>
      sampleValue(parseExposition(await registry.text()), METRICS.poolUsed.name);
    assert.equal(await used(), 5);
    forget();
    assert.equal(await used(), 5);
  });

  test('what a recorder has of another thread reads as if it were collected here', async () => {
    const seconds = new BucketCounts(METRICS.fetchSeconds.buckets);
    for (const value of [0.0001, 0.3, 100]) seconds.observe(value);
    const collect = (samples: Samples): void => {
      samples.add(METRICS.poolUsed, 7);
      samples.add(METRICS.fetchWastedBytes, 11, { reason: 'gap' });
      samples.add(METRICS.decodeFlows, 3, { decoder: 2 });
      samples.addCounts(METRICS.fetchSeconds, seconds);
    };
    const recorder = new SampleRecorder();
    recorder.addCollector(collect);
    const posted = structuredClone(recorder.record());
    const lines = (text: string): string => text.replaceAll(/^qanat_metrics_collect_seconds .*$/gm, '');
    assert.equal(
      lines(await scrape('client', (samples) => addRecorded(posted, samples))),
      lines(await scrape('client', collect)),
    );
  });

  test('a value that is no number is left out', async () => {
    const samples = parseExposition(await scrape('client', (into) => into.add(METRICS.poolUsed, Number.NaN)));
    assert.equal(sampleValue(samples, METRICS.poolUsed.name), 0);
  });

  test('hostile texts never become labels', async () => {
    const text = await scrape('server', (samples) => {
      for (const status of HOSTILE) samples.add(METRICS.serveCompletions, 1, { status });
    });
    assert.equal(
      sampleValue(parseExposition(text), METRICS.serveCompletions.name, { status: 'other' }),
      HOSTILE.length,
    );
    assert.ok(!text.includes('passwd') && !text.includes('é') && !text.includes('__proto__'));
  });

  test('a value outside a list without `other`, or outside a bound, is a bug that is told', async () => {
    const wrong: ((samples: Samples) => void)[] = [
      ...HOSTILE.map((state) => (samples: Samples) => samples.add(METRICS.fetchReads, 1, { state: state as 'active' })),
      ...[-1, 256, 1.5, Number.NaN, Number.POSITIVE_INFINITY].map(
        (decoder) => (samples: Samples) => samples.add(METRICS.decodeFlows, 1, { decoder }),
      ),
      (samples) => samples.add(METRICS.serveFiles, 1), // the server's
      (samples) => samples.addCounts(METRICS.fetchBytes, new BucketCounts(METRICS.fetchSeconds.buckets)),
    ];
    for (const collect of wrong) {
      await assert.rejects(
        scrape('client', collect),
        (error) => error instanceof MetricsError && error.code === 'LABEL',
      );
    }
  });

  test('texts of our own are short and harmless', async () => {
    const samples = parseExposition(await scrape('client', processCollector(`0.1"\n${'x'.repeat(100)}`)));
    const info = samples.find(({ name }) => name === METRICS.buildInfo.name)!;
    assert.equal(info.labels.version, `0.1__${'x'.repeat(LABEL_TEXT_MAX - 5)}`);
    assert.equal(info.labels.node, process.versions.node);
  });

  test('what the process uses', async () => {
    const samples = parseExposition(await scrape('client', processCollector('0.1.0')));
    const value = (name: string): number => sampleValue(samples, name);
    assert.ok(value(METRICS.processResident.name) > 1 << 20);
    assert.ok(value(METRICS.processCpu.name) > 0);
    assert.ok(value(METRICS.processStart.name) <= Date.now() / 1000);
    assert.ok(value(METRICS.processOpenFds.name) >= 3);
    assert.ok(value(METRICS.processMaxFds.name) >= value(METRICS.processOpenFds.name));
  });
});
