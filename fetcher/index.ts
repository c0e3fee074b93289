/** What other folders may use of fetcher/. */
export type { CoalescePolicy, FetchRange } from './coalesce.ts';
export { coalesceRanges } from './coalesce.ts';
export { chooseColumns } from './columns.ts';
export type { FetchErrorCode } from './errors.ts';
export { FetchError } from './errors.ts';
export type { FetchedFooter } from './footer.ts';
export { fetchFooter } from './footer.ts';
export type { PlannedChunk, PlannedRowGroup, ScanPlan, ScanRequest, SegmentPart } from './plan.ts';
export { planScan } from './plan.ts';
export type { OpenedTransport, OpenTransportOptions } from './transport/open-transport.ts';
export { openTransport } from './transport/open-transport.ts';
export type { FileVersion, ReadOptions, Transport, TransportCounters } from './transport/transport.ts';
export type { FetchPart } from './fetch.ts';
export { RangeFetch } from './fetch.ts';
export type { ByteLedger, WasteReason } from './ledger.ts';
export { ledgerTotal, newLedger, wastedTotal } from './ledger.ts';
