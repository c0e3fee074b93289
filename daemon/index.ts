/**
 * The library: `import { openSource, Scan, scan, ScanEngine } from 'qanat'`.
 *
 *   for await (const batch of scan('rdma://host:7400/lake/*.parquet', { columns: ['a', 'b'] })) { ... }
 */
import type { RecordBatch } from 'apache-arrow';
import { openSource } from '../vfs/index.ts';
import { type EngineOptions, ScanEngine } from './scan/engine.ts';
import { type DisposableBatch, Scan, type ScanOptions } from './scan/scan.ts';

export { DecodeError, type DecodeErrorCode } from '../decode/index.ts';
export {
  DiskCache,
  type DiskCacheOptions,
  FetchError,
  type FetchErrorCode,
  type FileVersion,
} from '../fetcher/index.ts';
export { openSource, Source, type SourceOptions, type VirtualFile } from '../vfs/index.ts';
export { type EngineOptions, ScanEngine } from './scan/engine.ts';
export type { ScanReport } from './scan/report.ts';
export { type DisposableBatch, Scan, type ScanOptions } from './scan/scan.ts';

/**
 * Scans a location with an engine of its own, which lives as long as the loop. Yields Arrow record batches that own
 * their memory (with `zeroCopy`: views that must be disposed). Throws FetchError and DecodeError.
 */
export async function* scan(
  location: string,
  options: ScanOptions & EngineOptions = {},
): AsyncGenerator<RecordBatch | DisposableBatch> {
  const source = await openSource(location);
  try {
    const engine = new ScanEngine(options);
    try {
      yield* await Scan.open(engine, source, options);
    } finally {
      await engine.close();
    }
  } finally {
    await source.close();
  }
}
