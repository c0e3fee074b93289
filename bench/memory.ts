/**
 * Resident memory of a client that scans a file of 2 GB over the network to Arrow batches, with a cap of 256 MiB: the
 * process may take 200 MiB beside the cap. `rss.overCap` is its peak over the sum of both.
 */
import { existsSync, statSync } from 'node:fs';
import { DuckDBInstance } from '@duckdb/node-api';
import { lineitemFile } from './make-lineitem.ts';
import type { MemoryFigures, MemoryQuestion } from './memory-client.ts';
import { startPeer } from './peer-process.ts';
import { type BenchOptions, type BenchResult, formatTable } from './result.ts';
import type { ServerQuestion } from './scan-server.ts';

/** Rows that are made, and how many times they are written: 2.1 GB with Snappy. */
const ROWS = { small: 1_000_000, full: 4_000_000 } as const;
const COPIES = { small: 4, full: 11 } as const;
/** Bytes. */
const MEMORY_BYTES = 256 << 20;
/** Bytes that the process may take beside its cap: the runtime, its heap, and the batch in the consumer's hands. */
const BESIDE_BYTES = 200 << 20;

export async function benchMemory(options: BenchOptions = {}): Promise<BenchResult> {
  if (!existsSync('/proc/self/status')) return { table: '', ratios: {}, skipped: 'no /proc to read the peak from' };
  const size = options.small ? 'small' : 'full';
  const file = await lineitemFile({ rows: options.rows ?? ROWS[size], copies: COPIES[size] });
  await using server = startPeer('./scan-server.ts');
  await using client = startPeer('./memory-client.ts');
  const port = await server.ask<number>({ kind: 'serve', file } satisfies ServerQuestion);
  const question: MemoryQuestion = { url: `rdma://127.0.0.1:${port}/`, memoryBytes: MEMORY_BYTES };
  const figures = await client.ask<MemoryFigures>(question);
  await checkRows(file, figures);

  const limit = MEMORY_BYTES + BESIDE_BYTES;
  const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(0);
  const fileBytes = statSync(file).size;
  return {
    table: formatTable([
      ['MiB', 'file', 'Arrow bytes', 'cap', 'pool at most', 'process at most', 'allowed'],
      [
        '',
        ...[fileBytes, figures.arrowBytes, MEMORY_BYTES, figures.poolPeakBytes, figures.rssPeakBytes, limit].map(
          mebibytes,
        ),
      ],
    ]),
    ratios: { 'rss.overCap': figures.rssPeakBytes / limit },
    details: { fileBytes, memoryBytes: MEMORY_BYTES, ...figures, orderKeySum: String(figures.orderKeySum) },
  };
}

/** The scan gave every row, and the order keys that DuckDB finds. */
async function checkRows(file: string, { rows, orderKeySum }: MemoryFigures): Promise<void> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const reader = await connection.runAndReadAll(`select count(*), sum(l_orderkey)::varchar from '${file}'`);
  const [expectedRows, expectedSum] = reader.getRows()[0]!;
  connection.closeSync();
  instance.closeSync();
  if (String(expectedRows) !== String(rows)) throw new Error(`${rows} rows, expected ${expectedRows}`);
  if (expectedSum !== String(orderKeySum))
    throw new Error(`order keys add up to ${orderKeySum}, expected ${expectedSum}`);
}
