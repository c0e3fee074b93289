/**
 * The plan of a scan of one file: which chunks, in which requests, in which order, in batches of how many rows. Pure
 * and plain data: `--explain` prints it as JSON, tests compare it with literals and count its requests and bytes.
 * It holds what the footer claims; nothing may be allocated from its row counts.
 */
import type { FileMetadata, LeafColumn, Range, RowGroup } from '../decode/index.ts';
import { Physical } from '../decode/index.ts';
import type { CoalescePolicy, FetchRange } from './coalesce.ts';
import { coalesceRanges } from './coalesce.ts';
import { chooseColumns } from './columns.ts';
import { FetchError } from './errors.ts';
import {
  BATCH_MEMORY_SHARE,
  BATCH_ROWS_MAX,
  BATCH_ROWS_MIN,
  LINE_BYTES,
  PLAN_REQUESTS_MAX,
  REQUEST_MEMORY_SHARE,
  SEGMENT_BYTES_MIN,
  SEGMENT_MEMORY_SHARE,
} from './limits.ts';

export interface ScanRequest {
  /** Names of leaves or of groups (all leaves below); absent for all columns. */
  readonly columns?: readonly string[];
  /** Rows wanted from this file. */
  readonly limit?: number;
  /** Rows of a batch; absent to choose it by the memory. */
  readonly batchRows?: number;
  /** What the scan may hold at once: fetched, decoded and delivered bytes. */
  readonly memoryBytes: number;
  readonly policy: CoalescePolicy;
}

/** A piece of a column chunk within a request. */
export interface SegmentPart extends Range {
  /** Index of the leaf. */
  readonly column: number;
  /** Offset of the piece within its chunk; `start` and `end` are offsets in the file. */
  readonly chunkStart: number;
}

export interface PlannedChunk {
  /** Index of the leaf. */
  readonly column: number;
  readonly numValues: number;
  readonly bytes: Range;
  readonly compressed: number;
  readonly uncompressed: number;
  /** Bytes of each of its segments but the last; the whole chunk when it is not split. */
  readonly segmentBytes: number;
  /** Why it can't be read; nothing of it is fetched then. */
  readonly broken?: string;
}

export interface PlannedRowGroup {
  readonly ordinal: number;
  readonly numRows: number;
  readonly firstRow: number;
  /** One for each of the plan's columns, in their order. */
  readonly chunks: readonly PlannedChunk[];
  /** In the order in which they are to be fetched: all columns advance together. */
  readonly fetches: ReadonlyArray<FetchRange<SegmentPart>>;
}

export interface ScanPlan {
  /** In the order of the request, each once; file order when it names none. */
  readonly columns: readonly LeafColumn[];
  readonly batchRows: number;
  readonly limit?: number;
  readonly rowGroups: readonly PlannedRowGroup[];
  readonly totals: { readonly requests: number; readonly bytesNeeded: number; readonly bytesGap: number };
}

/**
 * Plans the scan of one file. Throws FetchError COLUMN for a name that the file does not have, and MEMORY when the
 * memory given would cut the file into more requests than a plan may have.
 */
export function planScan(metadata: FileMetadata, request: ScanRequest): ScanPlan {
  const { limit } = request;
  const columns = chooseColumns(metadata, request.columns);
  const groups = metadata.rowGroups.filter(
    (group) => (limit === undefined || group.firstRow < limit) && (group.numRows > 0 || anyBroken(group, columns)),
  );
  const sizes = segmentSizes(columns.length, request);
  checkRequests(groups, columns, sizes);
  const rowGroups = groups.map((group) => planRowGroup(group, columns, sizes));
  const fetches = rowGroups.flatMap((group) => group.fetches);
  const bytesGap = fetches.reduce((sum, fetch) => sum + fetch.gapBytes, 0);
  return {
    columns,
    batchRows: request.batchRows ?? chooseBatchRows(groups, columns, request.memoryBytes),
    ...(limit === undefined ? {} : { limit }),
    rowGroups,
    totals: {
      requests: fetches.length,
      bytesNeeded: fetches.reduce((sum, fetch) => sum + (fetch.end - fetch.start), 0) - bytesGap,
      bytesGap,
    },
  };
}

function anyBroken(group: RowGroup, columns: readonly LeafColumn[]): boolean {
  return columns.some((column) => group.columns[column.index]!.broken !== undefined);
}

interface Sizes {
  /** Chunks up to this size are fetched whole. */
  readonly segmentBytesMax: number;
  readonly policy: CoalescePolicy;
}

/** Every column needs a segment in memory at once, and a request has to fit beside others. */
function segmentSizes(columns: number, { memoryBytes, policy }: ScanRequest): Sizes {
  const requestBytesMax = Math.min(
    policy.requestBytesMax,
    Math.max(SEGMENT_BYTES_MIN, Math.floor(memoryBytes / REQUEST_MEMORY_SHARE)),
  );
  const share = Math.floor(memoryBytes / (SEGMENT_MEMORY_SHARE * Math.max(1, columns)));
  const segmentBytesMax = Math.min(Math.max(share, SEGMENT_BYTES_MIN), requestBytesMax);
  return { segmentBytesMax, policy: { ...policy, requestBytesMax } };
}

/** Before anything is made for it: a footer may claim chunks of any size, all in the same place. */
function checkRequests(groups: readonly RowGroup[], columns: readonly LeafColumn[], sizes: Sizes): void {
  let requests = 0;
  for (const group of groups) {
    for (const { index } of columns) {
      const { start, end } = group.columns[index]!.bytes;
      requests += Math.ceil((end - start) / sizes.segmentBytesMax);
    }
    if (requests > PLAN_REQUESTS_MAX) {
      throw new FetchError(
        'MEMORY',
        `the scan would take more than ${PLAN_REQUESTS_MAX} requests of ${sizes.segmentBytesMax} bytes: ` +
          'select fewer columns, or allow more memory or larger requests',
      );
    }
  }
}

function planRowGroup(group: RowGroup, columns: readonly LeafColumn[], sizes: Sizes): PlannedRowGroup {
  const chunks: PlannedChunk[] = [];
  const whole: SegmentPart[] = [];
  const fetches: { fetch: FetchRange<SegmentPart>; fraction: number; place: number }[] = [];
  const places = new Map<number, number>();
  for (const [place, { index }] of columns.entries()) {
    places.set(index, place);
    const chunk = group.columns[index]!;
    const { bytes } = chunk;
    const length = bytes.end - bytes.start;
    const segments = Math.ceil(length / sizes.segmentBytesMax);
    const segmentBytes = segments > 1 ? upToLine(length / segments, sizes.segmentBytesMax) : length;
    chunks.push({
      column: index,
      numValues: chunk.numValues,
      bytes,
      compressed: chunk.totalCompressedSize,
      uncompressed: chunk.totalUncompressedSize,
      segmentBytes,
      ...(chunk.broken === undefined ? {} : { broken: chunk.broken }),
    });
    if (segments <= 1) {
      whole.push({ column: index, chunkStart: 0, start: bytes.start, end: bytes.end });
      continue;
    }
    for (let chunkStart = 0; chunkStart < length; chunkStart += segmentBytes) {
      const start = bytes.start + chunkStart;
      const part = { column: index, chunkStart, start, end: Math.min(start + segmentBytes, bytes.end) };
      const fetch = { start: part.start, end: part.end, parts: [part], gapBytes: 0 };
      fetches.push({ fetch, fraction: chunkStart / length, place });
    }
  }
  for (const fetch of coalesceRanges(whole, sizes.policy)) {
    fetches.push({ fetch, fraction: 0, place: Math.min(...fetch.parts.map((part) => places.get(part.column)!)) });
  }
  fetches.sort((a, b) => a.fraction - b.fraction || a.place - b.place);
  return {
    ordinal: group.ordinal,
    numRows: group.numRows,
    firstRow: group.firstRow,
    chunks,
    fetches: fetches.map(({ fetch }) => fetch),
  };
}

/** Segments end at 64-byte lines of their chunk, where decoding can go on, unless that would make them too large. */
function upToLine(bytes: number, max: number): number {
  const lines = Math.ceil(bytes / LINE_BYTES) * LINE_BYTES;
  return lines <= max ? lines : Math.ceil(bytes);
}

/** The largest power of two of rows whose values in all columns are expected to take their share of the memory. */
function chooseBatchRows(groups: readonly RowGroup[], columns: readonly LeafColumn[], memoryBytes: number): number {
  const rowBytes = columns.reduce((sum, column) => sum + valueBytes(groups, column), 0);
  const rows = memoryBytes / BATCH_MEMORY_SHARE / Math.max(rowBytes, 1 / 8);
  let batchRows = BATCH_ROWS_MAX;
  while (batchRows > BATCH_ROWS_MIN && batchRows > rows) batchRows /= 2;
  return batchRows;
}

/** Expected bytes of a value: what the file says, which dictionaries make too small, or at least the type's width. */
function valueBytes(groups: readonly RowGroup[], column: LeafColumn): number {
  let bytes = 0;
  let values = 0;
  for (const group of groups) {
    bytes += group.columns[column.index]!.totalUncompressedSize;
    values += group.columns[column.index]!.numValues;
  }
  return Math.max(typeBytes(column), values === 0 ? 0 : bytes / values);
}

function typeBytes({ type, typeLength }: LeafColumn): number {
  switch (type) {
    case Physical.BOOLEAN:
      return 1 / 8;
    case Physical.INT32:
    case Physical.FLOAT:
      return 4;
    case Physical.INT96:
      return 12;
    case Physical.BYTE_ARRAY:
      return 16; // an offset and a short string
    case Physical.FIXED_LEN_BYTE_ARRAY:
      return typeLength;
    default:
      return 8;
  }
}
