/**
 * Scans as the library and the commands see them: a source's files through footer, plan, fetch and decode to batches.
 *
 *   for await (const batch of scan('rdma://host:7400/lake/*.parquet', { columns: ['a', 'b'] })) { ... }
 *
 * Batches are Arrow record batches that own their memory, unless `zeroCopy` asks for views of the pool.
 */
import type { RecordBatch, Schema } from 'apache-arrow';
import type { Field } from '../../decode/index.ts';
import {
  type DepthChange,
  FetchError,
  type FileVersion,
  firstDepth,
  GapEstimator,
  PREFETCH_DEPTH_DEFAULT,
  PREFETCH_DEPTH_MAX,
  REQUEST_BYTES_MAX,
  type ScanPlan,
} from '../../fetcher/index.ts';
import type { Source } from '../../vfs/index.ts';
import { ArrowBatchBuilder } from '../arrow/arrow-batch.ts';
import { arrowNode, hintsFor, schemaMetadata } from '../arrow/arrow-type.ts';
import type { ScanEngine } from './engine.ts';
import { FileSource, type ScanFile } from './file-source.ts';
import { baselineOf, reportOf, type ScanBaseline, type ScanReport } from './report.ts';
import { coalescePolicy, scanRequest } from './scan-request.ts';
import { ScanRun } from './scan-run.ts';
import type { Batch } from './segments.ts';

export interface ScanOptions {
  /** Names of columns, in the order wanted; all when absent. */
  readonly columns?: readonly string[];
  /** Chooses among the source's files, which come in byte order of their paths; all of them when absent. */
  readonly files?: (files: readonly FileVersion[]) => readonly FileVersion[];
  /** Rows at most. */
  readonly limit?: number;
  /** Rows of a batch at most; chosen by the memory when absent. */
  readonly batchRows?: number;
  /** Row groups in flight, the one being read included (1 is none ahead), or `auto`. Default 2. */
  readonly prefetchDepth?: number | 'auto';
  /** Bytes between two ranges that one request may read over, or `auto` (latency times bandwidth, the default). */
  readonly maxGap?: number | 'auto';
  /** Rows in the order of the files (default), or as they get ready. */
  readonly preserveOrder?: boolean;
  /** Byte-array columns come as Arrow dictionaries. Default false: Utf8 and Binary. */
  readonly dictionary?: boolean;
  /** Record batches are views of the pool and must be disposed. Default false: copies of their own. */
  readonly zeroCopy?: boolean;
  readonly signal?: AbortSignal;
  readonly onDepth?: (change: DepthChange) => void;
}

/** A record batch whose memory goes back to the pool when it is disposed. */
export type DisposableBatch = RecordBatch & Disposable;

export class Scan {
  /** Of the first file, which gives the scan its columns. */
  readonly plan: ScanPlan;
  /** The columns as the file means them: leaves, groups, lists and maps, in the order of the scan. */
  readonly fields: readonly Field[];
  readonly schema: Schema;
  readonly #engine: ScanEngine;
  readonly #source: Source;
  readonly #run: ScanRun;
  readonly #builder: ArrowBatchBuilder;
  readonly #zeroCopy: boolean;
  readonly #baseline: ScanBaseline;

  private constructor(
    engine: ScanEngine,
    source: Source,
    run: ScanRun,
    plan: ScanPlan,
    builder: ArrowBatchBuilder,
    zeroCopy: boolean,
    baseline: ScanBaseline,
  ) {
    this.#engine = engine;
    this.#source = source;
    this.#run = run;
    this.plan = plan;
    this.fields = builder.fields;
    this.schema = builder.schema;
    this.#builder = builder;
    this.#zeroCopy = zeroCopy;
    this.#baseline = baseline;
  }

  /**
   * Reads the first footer and starts fetching. Throws FetchError (BAD_URL, NOT_FOUND, ...) and DecodeError; the
   * source stays open and is the caller's.
   */
  static async open(engine: ScanEngine, source: Source, options: ScanOptions = {}): Promise<Scan> {
    const { dictionary = false, zeroCopy = false, maxGap = 'auto', limit, signal } = options;
    checkOptions(options);
    if (engine.isClosed) throw new FetchError('CLOSED', 'the engine was closed');
    const baseline = baselineOf(source, engine);
    const gap = new GapEstimator();
    const files = chosenFiles(await orAborted(source.list(), signal), options);
    const opened = scanFiles(source, files, gap);
    const rowGroups = new FileSource(opened, {
      request: scanRequest(options, engine.pool.capacityBytes),
      policy: () => coalescePolicy(maxGap, gap),
      dictionary,
      gap,
    });
    const plan = (await orAborted(rowGroups.firstPlan(), signal))!;
    // rows of another file may be null where the first file's are required
    const nullable = files.length > 1;
    const keyValues = rowGroups.firstKeyValues;
    const hints = hintsFor(rowGroups.firstFields, keyValues);
    const types = { dictionary, nullable, hints, countHints: files.length === 1 };
    const arrow = rowGroups.firstFields.map((field) => arrowNode(field, types));
    const builder = new ArrowBatchBuilder(engine.pool, arrow, schemaMetadata(keyValues), { zeroCopy });
    const run = new ScanRun(engine, rowGroups, {
      depth: options.prefetchDepth ?? PREFETCH_DEPTH_DEFAULT,
      firstDepth: firstDepth(gap.tripBytes, groupBytes(plan), engine.pool.capacityBytes),
      preserveOrder: options.preserveOrder ?? true,
      limit: limit ?? Number.POSITIVE_INFINITY,
      batchRows: plan.batchRows,
      ...(signal === undefined ? {} : { signal }),
      ...(options.onDepth === undefined ? {} : { onDepth: options.onDepth }),
    });
    return new Scan(engine, source, run, plan, builder, zeroCopy, baseline);
  }

  /** The next rows, still in the pool; undefined at the end. The caller releases them. */
  async nextBatch(): Promise<Batch | undefined> {
    return this.#run.next();
  }

  /** A batch as an Arrow record batch (the batch stays the caller's). */
  toArrow(batch: Batch): RecordBatch {
    return this.#builder.build(batch);
  }

  /** Every batch, in turn; leaving the loop ends the scan. */
  async *[Symbol.asyncIterator](): AsyncGenerator<RecordBatch | DisposableBatch> {
    try {
      for (;;) {
        const batch = await this.nextBatch();
        if (batch === undefined) return;
        if (this.#zeroCopy) {
          yield Object.assign(this.toArrow(batch), { [Symbol.dispose]: () => batch.release() });
          continue;
        }
        let arrow: RecordBatch;
        try {
          arrow = this.toArrow(batch);
        } finally {
          batch.release();
        }
        yield arrow;
      }
    } finally {
      await this.close();
    }
  }

  /** What the scan did so far. */
  report(): ScanReport {
    return reportOf(this.#run.totals, this.#source, this.#engine, this.#baseline);
  }

  /** Stops requests and decoders and gives memory back; batches still held stay valid until they are released. */
  async close(): Promise<void> {
    await this.#run.close();
  }
}

/** Bytes of the requests of a row group, on average. */
function groupBytes({ rowGroups, totals }: ScanPlan): number {
  return rowGroups.length === 0 ? 0 : (totals.bytesNeeded + totals.bytesGap) / rowGroups.length;
}

function chosenFiles(files: readonly FileVersion[], { files: choose }: ScanOptions): readonly FileVersion[] {
  const chosen = choose?.(files) ?? files;
  if (chosen.length === 0) throw new FetchError('NOT_FOUND', 'none of the files of the source was chosen');
  return chosen;
}

/** The promise, or CANCELLED as soon as the signal says so; what was under way then ends by its own timers. */
async function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  let onAbort = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(new FetchError('CANCELLED', 'the scan was cancelled'));
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
    promise.catch(() => {}); // told already, or nobody's any more
  }
}

function checkOptions({ columns, prefetchDepth, maxGap, limit, batchRows }: ScanOptions): void {
  if (columns !== undefined && !(Array.isArray(columns) && columns.every((name) => typeof name === 'string'))) {
    throw new FetchError('OPTION', 'columns must be a list of names');
  }
  const whole = (name: string, value: number | string | undefined, least: number, most: number): void => {
    if (value === undefined || value === 'auto') return;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most) return;
    throw new FetchError('OPTION', `${name} is ${value}; expected a whole number from ${least} to ${most}`);
  };
  whole('prefetchDepth', prefetchDepth, 1, PREFETCH_DEPTH_MAX);
  whole('maxGap', maxGap, 0, REQUEST_BYTES_MAX);
  whole('limit', limit, 0, Number.MAX_SAFE_INTEGER);
  whole('batchRows', batchRows, 1, 1 << 20);
}

/** The files with their footers, each footer asked for while the file before it is being scanned. */
async function* scanFiles(source: Source, files: readonly FileVersion[], gap: GapEstimator): AsyncGenerator<ScanFile> {
  const load = async (file: FileVersion): Promise<ScanFile> => {
    const handle = await source.open(file);
    const { metadata, latencyMs } = await handle.fetchedFooter();
    gap.observe(1, latencyMs);
    return { transport: source.transport, file, metadata };
  };
  let ahead: Promise<ScanFile> | undefined;
  for (const [k, file] of files.entries()) {
    const current = await (ahead ?? load(file));
    const next = files[k + 1];
    ahead = next === undefined ? undefined : load(next);
    ahead?.catch(() => {}); // told when its turn comes
    yield current;
  }
}
