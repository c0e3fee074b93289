/** Files made to order by the test writer, scanned from a folder of the test's own. */
import { writeFile as writeBytes } from 'node:fs/promises';
import { join } from 'node:path';
import type { RecordBatch, Schema } from 'apache-arrow';
import { openSource } from '../../vfs/index.ts';
import type { ScanEngine } from '../scan/engine.ts';
import { Scan, type ScanOptions } from '../scan/scan.ts';

export interface Scanned {
  readonly schema: Schema;
  readonly batches: RecordBatch[];
  readonly rows: number;
}

/** Writes the bytes to a file and scans it to Arrow. */
export async function scanBytes(
  engine: ScanEngine,
  folder: string,
  bytes: Uint8Array,
  options: ScanOptions = {},
): Promise<Scanned> {
  const path = join(folder, 'made.parquet');
  await writeBytes(path, bytes);
  return scanFile(engine, path, options);
}

export async function scanFile(engine: ScanEngine, path: string, options: ScanOptions = {}): Promise<Scanned> {
  const source = await openSource(path);
  try {
    const scan = await Scan.open(engine, source, options);
    const batches: RecordBatch[] = [];
    for await (const batch of scan) batches.push(batch);
    return { schema: scan.schema, batches, rows: batches.reduce((sum, batch) => sum + batch.numRows, 0) };
  } finally {
    await source.close();
  }
}

/** The values of a scan's column, by its place: names may occur twice. */
export function valuesAt({ batches }: Scanned, place: number): unknown[] {
  return batches.flatMap((batch) => [...batch.getChildAt(place)!]);
}
