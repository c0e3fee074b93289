/**
 * What happens to the reads of a source besides bytes: what is tried again, asked for twice, renewed, let through or held
 * back. The counters (transport.ts) count the same; events are for logs at level debug.
 */
import type { FetchErrorCode } from '../errors.ts';

export type TransportEvent =
  /** A read or a listing is tried again; a read goes on behind the bytes that came, if there are any. */
  | { readonly kind: 'retry'; readonly code: FetchErrorCode; readonly reason: string; readonly attempt: number }
  | { readonly kind: 'resume'; readonly path: string; readonly behindBytes: number }
  /** There would be another attempt, but the source has had as many as it may. */
  | { readonly kind: 'retry-denied'; readonly code: FetchErrorCode; readonly reason: string }
  /** A read is asked for a second time, for it is late. */
  | { readonly kind: 'hedge'; readonly path: string; readonly bytes: number; readonly afterMs: number }
  | { readonly kind: 'hedge-ended'; readonly path: string; readonly outcome: HedgeOutcome; readonly bytes: number }
  | { readonly kind: 'stall'; readonly path: string; readonly reason: string }
  | { readonly kind: 'credentials-renewed'; readonly renewals: number }
  | { readonly kind: 'concurrency'; readonly from: number; readonly to: number; readonly why: ConcurrencyReason }
  | { readonly kind: 'connected'; readonly origin: string; readonly connections: number; readonly reused: number };

/** Who was first: the second request, the first one, or the second failed. */
export type HedgeOutcome = 'won' | 'lost' | 'failed';

/** Why other reads than before may be under way: some had to wait, or the source was busy, silent or slow. */
export type ConcurrencyReason = 'demand' | 'busy' | 'stalled' | 'latency';

export type Tell = (event: TransportEvent) => void;
