/** What sources do when they are in trouble shows: each retry, resumption, renewal and connection in metrics and as a line at level debug. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isolateSdk, startS3Store } from '../../fetcher/tests/s3-store.ts';
import { makeFolder, pattern } from '../../fetcher/tests/transport-fixtures.ts';
import { METRICS, openRegistry } from '../../metrics/index.ts';
import { parseExposition, sampleValue } from '../../metrics/tests/exposition.ts';
import { openSource } from '../../vfs/index.ts';
import { createLog } from '../log.ts';
import { ClientMetrics } from '../scan/client-metrics.ts';
import { logEvents } from '../source-log.ts';

isolateSdk({ AWS_ACCESS_KEY_ID: 'AKIATEST', AWS_SECRET_ACCESS_KEY: 'secret' });

const BYTES = pattern(200_000, 5);

/** Not what a file is looked at with. */
function isRead(range: string | undefined): boolean {
  return range?.endsWith(`-${BYTES.length - 1}`) ?? false;
}

test('a read that is busy, cut and refused for old credentials shows in metrics and in the log', async (t) => {
  let trouble = 0;
  const store = await startS3Store(t, makeFolder(t, { 'f.parquet': BYTES }), {
    refuse: ({ headers }) => {
      if (!isRead(headers.range)) return undefined;
      return ++trouble === 1 ? { status: 400, code: 'ExpiredToken' } : undefined;
    },
    fault: (request) => {
      if (!isRead(request.headers.range)) return undefined;
      return trouble === 2 ? 'busy' : trouble === 3 ? 'truncate' : undefined;
    },
  });
  const lines: Record<string, unknown>[] = [];
  const log = createLog({
    command: 'test',
    level: 'debug',
    format: 'json',
    write: (line) => lines.push(JSON.parse(line) as Record<string, unknown>),
  });
  const source = await openSource(`s3://${store.bucket}/f.parquet`, {
    s3: { endpoint: store.origin },
    retry: { baseMs: 1, capMs: 1 },
    onEvent: logEvents(log, { source: 'lake' }),
  });
  const registry = await openRegistry('client');
  const forget = new ClientMetrics(registry).addSource(source);
  const [file] = await source.list();
  const into = Buffer.alloc(BYTES.length);
  await source.transport.read(file!, 0, into);
  assert.ok(into.equals(BYTES));

  const check = async (): Promise<void> => {
    const samples = parseExposition(await registry.text());
    const value = (name: string, labels: Record<string, string> = {}): number => sampleValue(samples, name, labels);
    assert.equal(value(METRICS.fetchRetries.name), 2);
    assert.equal(value(METRICS.fetchFailures.name, { code: 'SERVER' }), 1);
    assert.equal(value(METRICS.fetchFailures.name, { code: 'LOST' }), 1);
    assert.equal(value(METRICS.fetchResumes.name), 1);
    assert.equal(value(METRICS.fetchRenewals.name), 1);
    assert.equal(value(METRICS.fetchConcurrencyChanges.name, { direction: 'lowered' }), 1);
    assert.equal(value(METRICS.fetchConnections.name), store.connections());
    assert.ok(value(METRICS.fetchReusing.name) >= 1);
  };
  await check();
  const written = lines.map(({ msg, code }) => (code === undefined ? msg : `${String(msg)} ${String(code)}`));
  for (const line of ['credentials renewed', 'trying again SERVER', 'trying again LOST', 'connected']) {
    assert.ok(written.includes(line), `${line} in ${written.join(', ')}`);
  }
  assert.ok(written.includes('going on behind what has come') && written.includes('other reads may be under way'));
  assert.ok(lines.every(({ level, source: name }) => level === 'debug' && name === 'lake'));
  await source.close();
  forget();
  // totals never fall
  await check();
});
