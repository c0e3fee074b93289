/**
 * The decoded view of a corpus file: read through the mount's own contents, stores and decoder threads as a kernel would
 * read it, front to back, and kept as a file that is scanned like any other. What can't be read is zeros in it, and the
 * error is kept. Compares what the view says and holds with the file that it is of.
 */
import { isDeepStrictEqual } from 'node:util';
import { FetchError, type FileVersion, type ScanEngine, type Source } from '../daemon/index.ts';
import { MountContents } from '../daemon/mount/mount-contents.ts';
import { type FileMetadata, parseFooter, parseTail } from '../decode/index.ts';
import { measure, newSignal, readContent } from '../vfs/tests/view-rig.ts';
import type { ColumnReading } from './corpus-reading.ts';

/** Bytes of a read, as kernels ask for at most. */
const READ_BYTES = 1 << 20;
/** Bytes of a view: a hostile footer may claim more values than a disk holds. */
const VIEW_BYTES_MAX = 1 << 30;

export interface ReadView {
  readonly bytes: Uint8Array;
  /** Chunks that were decoded, and given up because of an error. */
  readonly decoded: number;
  /** Reads that failed. */
  readonly errors: readonly unknown[];
}

/** Undefined when the view is larger than anybody would read whole. */
export async function readView(
  engine: ScanEngine,
  source: Source,
  version: FileVersion,
): Promise<ReadView | undefined> {
  const contents = new MountContents({
    source,
    pool: engine.pool,
    engine,
    view: 'decoded',
    prefetchDepth: 2,
    maxGap: 'auto',
    versionOf: () => version,
    push: async () => false,
    onDepth: () => {},
  });
  const { path, etag, modifiedMs } = version;
  const content = contents.contentOf({ path, length: undefined, etag, modifiedMs });
  try {
    const length = await measure(content);
    if (length > VIEW_BYTES_MAX) return undefined;
    const bytes = new Uint8Array(length);
    const errors: unknown[] = [];
    for (let at = 0; at < length; at += READ_BYTES) {
      const wanted = Math.min(READ_BYTES, length - at);
      try {
        bytes.set(await readContent(content, at, wanted), at);
      } catch (error) {
        errors.push(error);
        await readPages(content, bytes.subarray(at, at + wanted), at);
      }
    }
    return { bytes, decoded: contents.chunks!.counts.decoded, errors };
  } finally {
    content.close?.();
    contents.close(new FetchError('CLOSED', 'read'));
  }

  /** What of a failed read can be read, as a kernel finds it out: page by page. */
  async function readPages(of: typeof content, into: Uint8Array, start: number): Promise<void> {
    for (let at = 0; at < into.length; at += 4096) {
      const wanted = Math.min(4096, into.length - at);
      const page = await readContent(of, start + at, wanted, newSignal()).catch(() => undefined);
      if (page !== undefined) into.set(page, at);
    }
  }
}

/** What a view says otherwise than its file, in rows, schema, statistics and key-values; undefined when nothing. */
export function metadataDifference(file: FileMetadata, view: Uint8Array): string | undefined {
  const { footerStart, footerLength } = parseTail(view, view.length);
  const shown = parseFooter(view.subarray(footerStart, footerStart + footerLength), view.length);
  for (const key of ['version', 'createdBy', 'numRows', 'schema', 'keyValues'] as const) {
    if (!isDeepStrictEqual(shown[key], file[key])) return `other ${key} in the view`;
  }
  if (shown.rowGroups.length !== file.rowGroups.length) return 'another number of row groups in the view';
  for (const [g, group] of file.rowGroups.entries()) {
    const other = shown.rowGroups[g]!;
    if (other.numRows !== group.numRows) return `another number of rows of row group ${g} in the view`;
    for (const { index, name } of file.leaves) {
      const [chunk, otherChunk] = [group.columns[index]!, other.columns[index]!];
      const where = `row group ${g}, ${name}`;
      if (otherChunk.broken !== chunk.broken) return `${where}: ${otherChunk.broken} in the view`;
      if (otherChunk.numValues !== chunk.numValues) return `${where}: other number of values in the view`;
      if (!isDeepStrictEqual(otherChunk.statistics, chunk.statistics)) return `${where}: other statistics in the view`;
    }
  }
  return undefined;
}

/** The first column that has other values in the view than in the file; undefined when none has. */
export function columnDifference(
  columns: readonly ColumnReading[],
  shown: readonly ColumnReading[],
): string | undefined {
  if (columns.length !== shown.length) return `${shown.length} columns in the view of ${columns.length}`;
  for (const [k, column] of columns.entries()) {
    const other = shown[k]!;
    const { name, error } = column;
    if (error !== undefined) {
      if (other.error === undefined) return `${name}: read from the view though it is ${error.message}`;
      continue;
    }
    if (other.error !== undefined) return `${name}: in the view ${other.error.message}`;
    if (other.rows !== column.rows) return `${name}: ${other.rows} rows in the view, ${column.rows} in the file`;
    if (other.nulls !== column.nulls) return `${name}: ${other.nulls} nulls in the view, ${column.nulls} in the file`;
    if (other.sha256 !== column.sha256) return `${name}: other values in the view`;
  }
  return undefined;
}
