/**
 * Scans corpus files that its parent names, one after the other on one engine, as a user's process would: a file that
 * fails must leave the engine usable for the next. Each top-level field is scanned alone, so that one that fails does not hide
 * the others, then all that can be read are scanned together. Says what came out; the parent judges.
 */
import { createHash, type Hash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DecodeError, FetchError, openSource, Scan, ScanEngine, type Source } from '../daemon/index.ts';
import { canonicalLines } from '../daemon/output/canonical-text.ts';
import { batchRanges } from '../daemon/scan/slots.ts';
import type { FileMetadata, LeafColumn, SchemaNode } from '../decode/index.ts';
import { MEMORY_BYTES } from './corpus-files.ts';
import type { ColumnReading, FileReading, ReadingError, ViewReading } from './corpus-reading.ts';
import { columnDifference, metadataDifference, readView } from './corpus-view.ts';

export type FromWorker = { readonly column: string } | FileReading;

/** What a worker is to read. */
export interface ToWorker {
  readonly path: string;
  /** Its decoded view as well. */
  readonly view: boolean;
}

const engine = new ScanEngine({ memoryBytes: MEMORY_BYTES, decoders: 1 });
const idleBytes = engine.pool.usedBytes;

process.on('message', ({ path, view }: ToWorker) => {
  readFile(path, view).then((reading) => process.send!(reading));
});
process.on('disconnect', () => process.exit());

async function readFile(path: string, isViewed: boolean): Promise<FileReading> {
  startPeak();
  let columns: readonly ColumnReading[] = [];
  let error: ReadingError | undefined;
  let together: string | undefined;
  let view: ViewReading | undefined;
  const source = await openFile(path);
  let metadata: FileMetadata | undefined;
  try {
    const [version] = await source.list();
    metadata = await (await source.open(version!)).footer();
    columns = await readColumns(source, metadata);
    together = await readTogether(source, metadata, columns);
  } catch (cause) {
    error = readingError(cause);
  }
  try {
    if (isViewed) view = await readDecodedView(source, metadata, columns);
  } catch (cause) {
    view = { decoded: 0, errors: [readingError(cause)], difference: 'the view can not be read' };
  }
  await source.close();
  return {
    columns,
    ...(error === undefined ? {} : { error }),
    ...(together === undefined ? {} : { together }),
    ...(view === undefined ? {} : { view }),
    peakRssBytes: peakRssBytes(),
    leakedBytes: engine.pool.usedBytes - idleBytes,
  };
}

function openFile(path: string): Promise<Source> {
  return openSource(`file://${path.split('/').map(encodeURIComponent).join('/')}`);
}

/** Scans the view as a file of its own, and compares; what can't be opened has to come through byte for byte. */
async function readDecodedView(
  source: Source,
  metadata: FileMetadata | undefined,
  columns: readonly ColumnReading[],
): Promise<ViewReading> {
  process.send!({ column: 'its view' });
  const [version] = await source.list();
  const view = await readView(engine, source, version!);
  if (view === undefined) return { decoded: 0, errors: [] };
  const { bytes, decoded, errors } = view;
  const said = (difference: string | undefined): ViewReading => ({
    decoded,
    errors: errors.map(readingError),
    ...(difference === undefined ? {} : { difference }),
  });
  if (metadata === undefined || decoded === 0) {
    const stored = await (await source.open(version!)).read({ start: 0, end: version!.length });
    const isSame = Buffer.compare(stored, bytes) === 0;
    if (isSame || metadata === undefined) return said(isSame ? undefined : 'other bytes, though nothing is decoded');
  }
  const difference = metadataDifference(metadata, bytes);
  if (difference !== undefined) return said(difference);
  const folder = mkdtempSync(join(tmpdir(), 'qanat-corpus-'));
  try {
    writeFileSync(join(folder, 'view.parquet'), bytes);
    const shown = await openFile(join(folder, 'view.parquet'));
    try {
      const [file] = await shown.list();
      return said(columnDifference(columns, await readColumns(shown, await (await shown.open(file!)).footer())));
    } finally {
      await shown.close();
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function readColumns(source: Source, metadata: FileMetadata): Promise<ColumnReading[]> {
  const readings: ColumnReading[] = [];
  for (const [topLevel, node] of metadata.root.children.entries()) {
    const leaves = leavesOf(node);
    if (leaves.length === 0) continue; // a group without fields has no bytes in the file
    process.send!({ column: node.name });
    const values = new ColumnValues();
    let error: ReadingError | undefined;
    try {
      await scanInto(source, columnsFor(metadata, leaves), new Map([[leaves[0]!.index, values]]));
    } catch (cause) {
      error = readingError(cause);
    }
    readings.push({
      leaf: leaves[0]!.index,
      topLevel,
      name: node.name,
      ...values.digest(),
      ...(error === undefined ? {} : { error }),
    });
  }
  return readings;
}

function leavesOf(node: SchemaNode): LeafColumn[] {
  return node.leaf === undefined ? node.children.flatMap(leavesOf) : [node.leaf];
}

/** Names that choose just these leaves; undefined, which is all of them, when names are not unique. */
function columnsFor(metadata: FileMetadata, leaves: readonly LeafColumn[]): string[] | undefined {
  const names = leaves.map(({ name }) => name);
  const isUnique = names.every((name) => metadata.leaves.filter((leaf) => leaf.name === name).length === 1);
  return isUnique ? names : undefined;
}

/** The columns that can be read, in one scan: what differs from reading each alone. */
async function readTogether(
  source: Source,
  metadata: FileMetadata,
  alone: readonly ColumnReading[],
): Promise<string | undefined> {
  const readable = alone.filter(({ error }) => error === undefined);
  const leaves = readable.flatMap(({ topLevel }) => leavesOf(metadata.root.children[topLevel]!));
  const columns = columnsFor(metadata, leaves);
  if (readable.length < 2 || columns === undefined) return undefined;
  // columns of different lengths are refused only when they are read together
  if (new Set(readable.map(({ rows }) => rows)).size > 1) return undefined;
  process.send!({ column: `${readable.length} columns together` });
  const values = new Map(readable.map(({ leaf }) => [leaf, new ColumnValues()]));
  await scanInto(source, columns, values);
  for (const { leaf, name, rows, sha256 } of readable) {
    const now = values.get(leaf)!.digest();
    if (now.sha256 !== sha256) return `${name}: ${now.rows} rows together, ${rows} alone, or other values`;
  }
  return undefined;
}

class ColumnValues {
  readonly #hash: Hash = createHash('sha256');
  rows = 0;
  #nulls = 0;

  add(text: string): void {
    this.#hash.update(text);
    // a string is in quotes, so that only a null is this line
    if (text.includes('null\n')) this.#nulls += text.split('\n').filter((line) => line === 'null').length;
  }

  digest(): { rows: number; nulls: number; sha256: string } {
    return { rows: this.rows, nulls: this.#nulls, sha256: this.#hash.copy().digest('hex') };
  }
}

/** Scans the columns, all of them when none are named; values go by a field's first leaf. */
async function scanInto(
  source: Source,
  columns: readonly string[] | undefined,
  values: ReadonlyMap<number, ColumnValues>,
): Promise<void> {
  const scan = await Scan.open(engine, source, columns === undefined ? {} : { columns });
  try {
    for (;;) {
      const batch = await scan.nextBatch();
      if (batch === undefined) return;
      try {
        const ranges = batchRanges(batch);
        for (const field of scan.fields) {
          const of = values.get(field.leaves[0]!.index);
          if (of === undefined) continue;
          of.rows += batch.rows;
          for (const lines of canonicalLines(engine.pool, field, ranges)) of.add(lines);
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
