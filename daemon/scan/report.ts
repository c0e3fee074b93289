/** What a scan did, as plain data: for `--stats`, `--json`, benchmarks and tests. */
import { ledgerTotal, type TransportCounters, type WasteReason, wastedTotal } from '../../fetcher/index.ts';
import { type StreamProfile, utilisation } from '../../metrics/index.ts';
import type { Source } from '../../vfs/index.ts';
import type { ScanEngine } from './engine.ts';
import { type CodecCounts, type EncodingCounts, type EngineProfile, profileSince } from './engine-profile.ts';
import type { ScanTotals } from './scan-run.ts';

/** What a decoder stream did while the scan was open, for whichever scans; ARCHITECTURE.md defines the states. */
export interface DecoderReport {
  /** Share of the time in which it was busy. */
  readonly utilisation: number;
  readonly busyMs: number;
  readonly starvedMs: number;
  readonly stalledMs: number;
  readonly idleMs: number;
  readonly input: StreamProfile;
  readonly output: StreamProfile;
}

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
    /** Bytes that came from the disk cache instead. */
    readonly cached: number;
    /** Directory and footers. */
    readonly metadata: number;
    /** Bytes of column chunks that were decoded. */
    readonly used: number;
    /** `discarded`: payload of reads that had ended already (cancelled, failed), dropped by the transport. */
    readonly wasted: Readonly<Record<WasteReason | 'discarded', number>>;
    /** metadata + used + wasted: equal to onWire + cached when nothing is under way. */
    readonly accounted: number;
  };
  /** Bytes over the wire for each byte used. */
  readonly amplification: number;
  /** Sum over requests of the time from asking to the last byte. */
  readonly fetchMs: number;
  /** Milliseconds of work of each decoder stream. */
  readonly decodeMs: readonly number[];
  /** Where the time of each decoder stream went. */
  readonly decoders: readonly DecoderReport[];
  /** Pages that were decoded while the scan was open, by the names of the specification. */
  readonly encodings: Readonly<Record<string, EncodingCounts>>;
  readonly codecs: Readonly<Record<string, CodecCounts>>;
  /** Milliseconds of decoding by column. */
  readonly columnMs: Readonly<Record<string, number>>;
  readonly retries: number;
  readonly reconnects: number;
  /** Row groups given up for want of memory and fetched again. */
  readonly evictions: number;
  readonly peakMemoryBytes: number;
}

/** What had been counted when the scan began: sources and engines outlive scans. */
export interface ScanBaseline {
  readonly counters: TransportCounters;
  readonly footers: { readonly bytes: number; readonly requests: number };
  readonly decodeMs: readonly number[];
  readonly profile: EngineProfile;
  readonly atMs: number;
}

export function baselineOf(source: Source, engine: ScanEngine): ScanBaseline {
  return {
    counters: { ...source.counters },
    footers: { ...source.footers },
    decodeMs: engine.streams.busyMs(),
    profile: engine.readProfile(),
    atMs: performance.now(),
  };
}

export function reportOf(totals: ScanTotals, source: Source, engine: ScanEngine, since: ScanBaseline): ScanReport {
  const { counters, footers } = source;
  const { ledger } = totals;
  const metadata = footers.bytes - since.footers.bytes + (counters.bytesDirectory - since.counters.bytesDirectory);
  const discarded = counters.bytesDiscarded - since.counters.bytesDiscarded;
  const accounted = metadata + ledgerTotal(ledger) + discarded;
  const useful = ledger.used + metadata;
  const { decoders, encodings, codecs } = profileSince(engine.readProfile(), since.profile);
  return {
    rows: totals.rows,
    batches: totals.batches,
    rowGroups: totals.rowGroups,
    wallMs: performance.now() - since.atMs,
    waitedMs: totals.waitedMs,
    requests: totals.requests,
    footerRequests: footers.requests - since.footers.requests,
    bytes: {
      onWire: counters.bytesOnWire - since.counters.bytesOnWire,
      cached: counters.bytesCached - since.counters.bytesCached,
      metadata,
      used: ledger.used,
      wasted: { ...ledger.wasted, discarded },
      accounted,
    },
    amplification: useful === 0 ? 1 : (useful + wastedTotal(ledger) + discarded) / useful,
    fetchMs: totals.fetchMs,
    decodeMs: engine.streams.busyMs().map((ms, stream) => ms - since.decodeMs[stream]!),
    decoders: decoders.map(decoderReport),
    encodings,
    codecs,
    columnMs: Object.fromEntries(totals.columnBusyMs),
    retries: counters.retries - since.counters.retries,
    reconnects: counters.reconnects - since.counters.reconnects,
    evictions: totals.evictions,
    peakMemoryBytes: totals.peakMemoryBytes,
  };
}

function decoderReport({ input, output }: EngineProfile['decoders'][number]): DecoderReport {
  return {
    utilisation: utilisation(input),
    busyMs: input.busyNs / 1e6,
    starvedMs: input.starvedNs / 1e6,
    stalledMs: input.stalledNs / 1e6,
    idleMs: input.idleNs / 1e6,
    input,
    output,
  };
}

/** The report of a source that was asked for nothing but footers since it was opened, `wallMs` ago. */
export function footersReport(source: Source, rows: number, wallMs: number): ScanReport {
  const { counters, footers } = source;
  const metadata = footers.bytes + counters.bytesDirectory;
  return {
    rows,
    batches: 0,
    rowGroups: 0,
    wallMs,
    waitedMs: 0,
    requests: 0,
    footerRequests: footers.requests,
    bytes: {
      onWire: counters.bytesOnWire,
      cached: counters.bytesCached,
      metadata,
      used: 0,
      wasted: { gap: 0, speculation: 0, cancelled: 0, evicted: 0, discarded: counters.bytesDiscarded },
      accounted: metadata + counters.bytesDiscarded,
    },
    amplification: 1,
    fetchMs: 0,
    decodeMs: [],
    decoders: [],
    encodings: {},
    codecs: {},
    columnMs: {},
    retries: counters.retries,
    reconnects: counters.reconnects,
    evictions: 0,
    peakMemoryBytes: 0,
  };
}
