/**
 * Where every byte of column chunks that came over the wire went. Each landed byte is entered exactly once, as used or as wasted with
 * its reason, so that used + wasted = landed holds by construction and is asserted against the transport's own count.
 */
export type WasteReason =
  | 'gap' // between ranges that one request took together
  | 'speculation' // fetched ahead for rows that nobody asked for in the end
  | 'cancelled' // landed for a read that was given up before its end
  | 'evicted'; // fetched ahead, dropped for want of memory, fetched again later

export interface ByteLedger {
  /** Bytes of column chunks that were decoded or handed on. */
  used: number;
  wasted: Record<WasteReason, number>;
}

export function newLedger(): ByteLedger {
  return { used: 0, wasted: { gap: 0, speculation: 0, cancelled: 0, evicted: 0 } };
}

/** All that was entered. */
export function ledgerTotal(ledger: ByteLedger): number {
  return ledger.used + wastedTotal(ledger);
}

export function wastedTotal(ledger: ByteLedger): number {
  const { gap, speculation, cancelled, evicted } = ledger.wasted;
  return gap + speculation + cancelled + evicted;
}

/**
 * Moves everything of `part` into `total`. With `unused`, nothing came of what was decoded: it was fetched ahead and
 * its rows were never given out, so that its used bytes are wasted for that reason.
 */
export function mergeLedger(total: ByteLedger, part: ByteLedger, unused?: WasteReason): void {
  if (unused === undefined) total.used += part.used;
  else total.wasted[unused] += part.used;
  part.used = 0;
  for (const reason of ['gap', 'speculation', 'cancelled', 'evicted'] as const) {
    total.wasted[reason] += part.wasted[reason];
    part.wasted[reason] = 0;
  }
}
