/**
 * Scans corpus files that its parent names, one after the other on one engine, as a user's process would: a file that
 * fails must leave the engine usable for the next. Each column is scanned alone, so that one that fails does not hide
 * the others, then all that can be read are scanned together. Says what came out; the parent judges.
 */
import { createHash, type Hash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { DecodeError, FetchError, openSource, Scan, ScanEngine, type Source } from '../daemon/index.ts';
import { canonicalLines } from '../daemon/output/canonical-text.ts';
import type { FileMetadata, LeafColumn } from '../decode/index.ts';
import { MEMORY_BYTES } from './corpus-files.ts';

export interface ColumnReading {
  /** Index among the leaves, and among the top-level fields when it is one itself. */
  readonly leaf: number;
  readonly topLevel: number | undefined;
  readonly name: string;
  readonly rows: number;
  readonly nulls: number;
  readonly sha256: string;
  readonly error?: ReadingError;
}

export interface ReadingError {
  /** Absent when it is not an error of ours, which is a bug. */
  readonly code?: string;
  readonly message: string;
  readonly reason: string;
}

export interface FileReading {
  readonly columns: readonly ColumnReading[];
  /** The file could not be opened. */
  readonly error?: ReadingError;
  /** What differs when the columns are scanned together. */
  readonly together?: string;
  readonly peakRssBytes: number;
  /** Pool bytes that did not come back. */
  readonly leakedBytes: number;
}

export type FromWorker = { readonly column: string } | FileReading;

const engine = new ScanEngine({ memoryBytes: MEMORY_BYTES, decoders: 1 });
const idleBytes = engine.pool.usedBytes;

process.on('message', (path: string) => {
  readFile(path).then((reading) => process.send!(reading));
});
process.on('disconnect', () => process.exit());

async function readFile(path: string): Promise<FileReading> {
  startPeak();
  let columns: readonly ColumnReading[] = [];
  let error: ReadingError | undefined;
  let together: string | undefined;
  try {
    const source = await openSource(`file://${path.split('/').map(encodeURIComponent).join('/')}`);
    try {
      const [version] = await source.list();
      const metadata = await (await source.open(version!)).footer();
      columns = await readColumns(source, metadata);
      together = await readTogether(source, metadata, columns);
    } finally {
      await source.close();
    }
  } catch (cause) {
    error = readingError(cause);
  }
  return {
    columns,
    ...(error === undefined ? {} : { error }),
    ...(together === undefined ? {} : { together }),
    peakRssBytes: peakRssBytes(),
    leakedBytes: engine.pool.usedBytes - idleBytes,
  };
}

async function readColumns(source: Source, metadata: FileMetadata): Promise<ColumnReading[]> {
  const readings: ColumnReading[] = [];
  for (const leaf of metadata.leaves) {
    process.send!({ column: leaf.name });
    const topLevel = metadata.root.children.findIndex((node) => node.leaf === leaf);
    const values = new ColumnValues();
    let error: ReadingError | undefined;
    try {
      await scanInto(source, [leaf.name], new Map([[leaf.index, values]]));
    } catch (cause) {
      error = readingError(cause);
    }
    readings.push({
      leaf: leaf.index,
      topLevel: topLevel < 0 ? undefined : topLevel,
      name: leaf.name,
      ...values.digest(),
      ...(error === undefined ? {} : { error }),
    });
  }
  return readings;
}

/** The columns that can be read, in one scan: what differs from reading each alone. */
async function readTogether(
  source: Source,
  metadata: FileMetadata,
  alone: readonly ColumnReading[],
): Promise<string | undefined> {
  const names = new Map<string, LeafColumn[]>();
  for (const leaf of metadata.leaves) names.set(leaf.name, [...(names.get(leaf.name) ?? []), leaf]);
  const readable = alone.filter(({ name, error }) => error === undefined && names.get(name)!.length === 1);
  if (readable.length < 2) return undefined;
  // columns of different lengths are refused only when they are read together
  if (new Set(readable.map(({ rows }) => rows)).size > 1) return undefined;
  process.send!({ column: `${readable.length} columns together` });
  const values = new Map(readable.map(({ leaf }) => [leaf, new ColumnValues()]));
  await scanInto(
    source,
    readable.map(({ name }) => name),
    values,
  );
  for (const { leaf, name, rows, sha256 } of readable) {
    const now = values.get(leaf)!.digest();
    if (now.sha256 !== sha256) return `${name}: ${now.rows} rows together, ${rows} alone, or other values`;
  }
  return undefined;
}

class ColumnValues {
  readonly #hash: Hash = createHash('sha256');
  #rows = 0;
  #nulls = 0;

  add(text: string, rows: number): void {
    this.#hash.update(text);
    this.#rows += rows;
    // a string is in quotes, so that only a null is this line
    if (text.includes('null\n')) this.#nulls += text.split('\n').filter((line) => line === 'null').length;
  }

  digest(): { rows: number; nulls: number; sha256: string } {
    return { rows: this.#rows, nulls: this.#nulls, sha256: this.#hash.copy().digest('hex') };
  }
}

async function scanInto(source: Source, columns: readonly string[], values: ReadonlyMap<number, ColumnValues>) {
  const scan = await Scan.open(engine, source, { columns });
  try {
    for (;;) {
      const batch = await scan.nextBatch();
      if (batch === undefined) return;
      try {
        for (const slice of batch.columns) {
          values.get(slice.column.index)?.add(canonicalLines(engine.pool, slice), slice.rows);
        }
      } finally {
        batch.release();
      }
    }
  } finally {
    await scan.close();
  }
}

function readingError(cause: unknown): ReadingError {
  if (cause instanceof DecodeError) return { code: cause.code, message: cause.message, reason: cause.reason };
  if (cause instanceof FetchError) return { code: cause.code, message: cause.message, reason: cause.message };
  const text = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
  return { message: text, reason: text };
}

function startPeak(): void {
  try {
    writeFileSync('/proc/self/clear_refs', '5');
  } catch {
    // not allowed here: the peak is that of the process so far
  }
}

function peakRssBytes(): number {
  const kilobytes = /VmHWM:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  return Number(kilobytes ?? 0) * 1024;
}
