/**
 * A program of the soak run that uses the library: one engine, a source that stays open and others for one scan, and the
 * metrics of a client. Scans when it is told to and says what became of it; it may be killed at any time.
 */
import type { RecordBatch } from 'apache-arrow';
import { startEndpoint } from '../daemon/endpoint.ts';
import { FetchError, openSource, Scan, ScanEngine, type Source } from '../daemon/index.ts';
import { ClientMetrics } from '../daemon/scan/client-metrics.ts';
import { runScan, type ScanRecord, type ScanWish, Stale } from './soak-scans.ts';

export type SoakQuestion =
  | { readonly kind: 'start'; readonly url: string; readonly memoryBytes: number; readonly metricsPort: number }
  | { readonly kind: 'scan'; readonly wish: ScanWish; readonly ownSource: boolean };

interface Client {
  readonly url: string;
  readonly engine: ScanEngine;
  readonly metrics: ClientMetrics;
  readonly source: Source;
}

let client: Client | undefined;

process.on('message', ({ id, question }: { id: number; question: SoakQuestion }) => {
  answer(question).then(
    (value) => process.send!({ id, answer: value }),
    (error: unknown) => process.send!({ id, error: error instanceof Error ? error.stack : String(error) }),
  );
});
process.on('disconnect', () => process.exit());

async function answer(question: SoakQuestion): Promise<number | ScanRecord> {
  if (question.kind === 'start') return start(question);
  return question.ownSource ? scanOwnSource(client!, question.wish) : scanSource(client!.source, question.wish);
}

async function start({ url, memoryBytes, metricsPort }: SoakQuestion & { kind: 'start' }): Promise<number> {
  const address = { host: '127.0.0.1', port: metricsPort };
  const endpoint = await startEndpoint({ side: 'client', address, option: '--metrics' });
  const metrics = new ClientMetrics(endpoint.registry);
  const engine = new ScanEngine({ memoryBytes, decoders: 1 });
  metrics.addEngine(engine);
  const source = await openSource(url);
  metrics.addSource(source);
  client = { url, engine, metrics, source };
  return endpoint.address().port;
}

function scanSource(source: Source, wish: ScanWish): Promise<ScanRecord> {
  return runScan(
    (one) => batchesOf(source, one),
    wish,
    () => false,
  );
}

async function scanOwnSource({ url, metrics }: Client, wish: ScanWish): Promise<ScanRecord> {
  const source = await openSource(url);
  const forget = metrics.addSource(source);
  try {
    return await scanSource(source, wish);
  } finally {
    await source.close();
    forget();
  }
}

async function* batchesOf(source: Source, { path, columns, batchRows }: ScanWish): AsyncGenerator<RecordBatch> {
  const prefix = path?.replace('*.parquet', '');
  try {
    const scan = await Scan.open(client!.engine, source, {
      columns,
      batchRows,
      files: (files) => files.filter((file) => prefix === undefined || file.path.startsWith(prefix)),
    });
    for await (const batch of scan) yield batch as RecordBatch;
  } catch (error) {
    if (error instanceof FetchError && error.code === 'STALE') throw new Stale(error.message);
    throw error;
  }
}
