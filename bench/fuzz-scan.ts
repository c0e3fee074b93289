/**
 * A file's way through the product: engine, scan, batches, Arrow or text; what came of it. What is well-formed of the
 * output is checked on the way, so that an offset gone wrong shows even where no value is known.
 */
import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { DecodeError, FetchError, Scan, type ScanEngine, type ScanOptions } from '../daemon/index.ts';
import { canonicalLines } from '../daemon/output/canonical-text.ts';
import { batchRanges } from '../daemon/scan/slots.ts';
import { columnRows } from '../daemon/tests/arrow-rows.ts';
import { pick } from '../decode/tests/nested-cases.ts';
import type { SeededRandom } from '../decode/tests/random.ts';
import type { FileVersion, ReadOptions, Transport } from '../fetcher/index.ts';
import { MemoryTransport } from '../fetcher/tests/memory-transport.ts';
import { newTransportCounters } from '../fetcher/transport/transport.ts';
import { openSource } from '../vfs/index.ts';

export type Outcome =
  | { readonly kind: 'rows'; readonly rows: number; readonly digest: string }
  | { readonly kind: 'refused'; readonly code: string; readonly message: string }
  | { readonly kind: 'enough'; readonly rows: number }; // rows without end: the scan was left

export interface ScanMode {
  readonly output: 'arrow' | 'text';
  /** Bytes arrive in steps of up to so many; 0 for all at once. */
  readonly stepBytes: number;
  readonly options: ScanOptions;
}

/** Rows after which a scan is left: runs of a few bytes make any number of them. */
const ROWS_MAX = 500_000;
/** Rows of a batch up to which every value is looked at. */
const ROWS_LOOKED_AT_MAX = 20_000;

export function randomMode(random: SeededRandom): ScanMode {
  return {
    output: random.below(2) === 0 ? 'arrow' : 'text',
    stepBytes: random.below(4) === 0 ? 1 + random.below(2000) : 0,
    options: {
      batchRows: pick(random, [1 + random.below(50), 1000, 8192]),
      prefetchDepth: 1 + random.below(3),
      maxGap: pick(random, [0, 1 << 20]),
      dictionary: random.below(3) === 0,
      preserveOrder: random.below(4) > 0,
    },
  };
}

/** Throws what is no error of ours, and when something is not well-formed. */
export async function scanOutcome(engine: ScanEngine, bytes: Uint8Array, mode: ScanMode): Promise<Outcome> {
  const inner = new MemoryTransport({ 'f.parquet': bytes });
  const transport = mode.stepBytes === 0 ? inner : new SteppedTransport(inner, mode.stepBytes);
  const opened = { transport, path: '', counters: newTransportCounters() };
  const source = await openSource('rdma://memory/f.parquet', {}, async () => opened);
  try {
    const scan = await Scan.open(engine, source, mode.options);
    try {
      return await drain(engine, scan, mode);
    } finally {
      await scan.close();
    }
  } catch (error) {
    if (error instanceof DecodeError || error instanceof FetchError) {
      return { kind: 'refused', code: error.code, message: error.message };
    }
    throw error;
  } finally {
    await source.close();
  }
}

async function drain(engine: ScanEngine, scan: Scan, mode: ScanMode): Promise<Outcome> {
  const hashes = scan.fields.map(() => createHash('sha1'));
  let rows = 0;
  for (;;) {
    const batch = await scan.nextBatch();
    if (batch === undefined) break;
    rows += batch.rows;
    try {
      if (mode.output === 'text') {
        const ranges = batchRanges(batch);
        for (const [k, field] of scan.fields.entries()) {
          for (const lines of canonicalLines(engine.pool, field, ranges)) hashes[k]!.update(lines);
        }
      } else {
        const arrow = scan.toArrow(batch);
        if (arrow.numRows > ROWS_LOOKED_AT_MAX) continue;
        for (const [k, hash] of hashes.entries()) {
          for (const row of columnRows(arrow, k)) hash.update(JSON.stringify(row));
        }
      }
    } finally {
      batch.release();
    }
    if (rows > ROWS_MAX) return { kind: 'enough', rows };
  }
  return { kind: 'rows', rows, digest: hashes.map((hash) => hash.digest('hex')).join(' ') };
}

/** Bytes arrive a step at a time. */
class SteppedTransport implements Transport {
  readonly #inner: Transport;
  readonly #stepBytes: number;

  constructor(inner: Transport, stepBytes: number) {
    this.#inner = inner;
    this.#stepBytes = stepBytes;
  }

  list(prefix: string): Promise<readonly FileVersion[]> {
    return this.#inner.list(prefix);
  }

  async read(file: FileVersion, start: number, into: Uint8Array, options: ReadOptions = {}): Promise<void> {
    for (let at = 0; at < into.length; ) {
      await setImmediate();
      if (options.signal?.aborted) throw new FetchError('CANCELLED', 'the read was cancelled');
      const end = Math.min(into.length, at + this.#stepBytes);
      await this.#inner.read(file, start + at, into.subarray(at, end));
      at = end;
      options.onArrived?.(at);
    }
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}
