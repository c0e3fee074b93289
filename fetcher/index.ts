/** What other folders may use of fetcher/. */
export type { CoalescePolicy, FetchRange } from './coalesce.ts';
export { coalesceRanges } from './coalesce.ts';
export { chooseColumns } from './columns.ts';
export type { DiskCacheCounters, DiskCacheOptions } from './disk-cache/disk-cache.ts';
export { DiskCache } from './disk-cache/disk-cache.ts';
export { CACHE_BYTES_DEFAULT, CACHE_BYTES_MIN } from './disk-cache/limits.ts';
export type { FetchErrorCode } from './errors.ts';
export { FetchError } from './errors.ts';
export type { FetchPart } from './fetch.ts';
export { RangeFetch } from './fetch.ts';
export type { FetchedFooter } from './footer.ts';
export { fetchFooter } from './footer.ts';
export { GapEstimator } from './gap.ts';
export type { ByteLedger, WasteReason } from './ledger.ts';
export { ledgerTotal, mergeLedger, newLedger, wastedTotal } from './ledger.ts';
export {
  AMPLIFICATION_MAX,
  FOOTER_TAIL_BYTES,
  PREFETCH_DEPTH_DEFAULT,
  PREFETCH_DEPTH_MAX,
  REQUEST_BYTES_MAX,
} from './limits.ts';
export type { S3Options } from './objects/open-s3.ts';
export type { PlannedChunk, PlannedRowGroup, ScanPlan, ScanRequest, SegmentPart } from './plan.ts';
export { planScan } from './plan.ts';
export type { DepthChange, PrefetchObservation } from './prefetch.ts';
export { firstDepth, nextDepth } from './prefetch.ts';
export type { TransportEvent } from './transport/events.ts';
export { findFile, passFind } from './transport/find-file.ts';
export { STALL_MS } from './transport/limits.ts';
export type { OpenedTransport, OpenTransportOptions } from './transport/open-transport.ts';
export { openTransport } from './transport/open-transport.ts';
export type {
  FileVersion,
  ReadOptions,
  Transport,
  TransportActivity,
  TransportCounters,
} from './transport/transport.ts';
export { newTransportCounters } from './transport/transport.ts';
export type { OnTransport, TransportName, TransportOutcome } from './transport/verbs-choice.ts';
export { TRANSPORTS } from './transport/verbs-choice.ts';
