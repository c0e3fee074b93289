/** What a scan did, as plain data: for `--stats`, `--json`, benchmarks and tests. */
import { ledgerTotal, type WasteReason, wastedTotal } from '../../fetcher/index.ts';
import type { Source } from '../../vfs/index.ts';
import type { ScanEngine } from './engine.ts';
import type { ScanTotals } from './scan-run.ts';

export interface ScanReport {
  readonly rows: number;
  readonly batches: number;
  readonly rowGroups: number;
  readonly wallMs: number;
  /** Milliseconds in which the consumer waited for rows. */
  readonly waitedMs: number;
  /** Requests for column chunks, and for footers. */
  readonly requests: number;
  readonly footerRequests: number;
  readonly bytes: {
    /** Payload that came over the wire, as the transport counted it. */
    readonly onWire: number;
    readonly metadata: number;
    readonly used: number;
    readonly wasted: Readonly<Record<WasteReason, number>>;
    /** used + wasted + metadata. */
    readonly accounted: number;
  };
  /** Bytes over the wire for each byte used. */
  readonly amplification: number;
  /** Sum over requests of the time from asking to the last byte. */
  readonly fetchMs: number;
  /** Milliseconds of work of each decoder stream since the engine started. */
  readonly decodeMs: readonly number[];
  /** Milliseconds of decoding by column. */
  readonly columnMs: Readonly<Record<string, number>>;
  readonly retries: number;
  readonly reconnects: number;
  /** Row groups given up for want of memory and fetched again. */
  readonly evictions: number;
  readonly peakMemoryBytes: number;
}

export function reportOf(totals: ScanTotals, source: Source, engine: ScanEngine, wallMs: number): ScanReport {
  const ledger = { ...totals.ledger, metadata: totals.ledger.metadata + source.footers.bytes };
  const useful = ledger.used + ledger.metadata;
  return {
    rows: totals.rows,
    batches: totals.batches,
    rowGroups: totals.rowGroups,
    wallMs,
    waitedMs: totals.waitedMs,
    requests: totals.requests,
    footerRequests: source.footers.requests,
    bytes: {
      onWire: source.counters.bytesOnWire,
      metadata: ledger.metadata,
      used: ledger.used,
      wasted: { ...ledger.wasted },
      accounted: ledgerTotal(ledger),
    },
    amplification: useful === 0 ? 1 : (useful + wastedTotal(ledger)) / useful,
    fetchMs: totals.fetchMs,
    decodeMs: engine.streams.busyMs(),
    columnMs: Object.fromEntries(totals.columnBusyMs),
    retries: source.counters.retries,
    reconnects: source.counters.reconnects,
    evictions: totals.evictions,
    peakMemoryBytes: totals.peakMemoryBytes,
  };
}
