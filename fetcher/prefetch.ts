/**
 * How many row groups are in flight. Depth counts as in the paper: 1 is none ahead of the one being read, 2 one
 * ahead. A fixed depth stays; `auto` begins with what the source's latency asks for, deepens while the consumer waits for rows though memory is free, and shrinks
 * when row groups ahead had to be given up or memory runs short. Pure: observations in, depth and reason out.
 */
import { PREFETCH_DEPTH_DEFAULT, PREFETCH_DEPTH_MAX } from './limits.ts';

/** What happened while one row group was read. */
export interface PrefetchObservation {
  readonly wallMs: number;
  /** Milliseconds of it in which the consumer waited for rows. */
  readonly waitedMs: number;
  /** Row groups ahead that were given up for want of memory. */
  readonly evictions: number;
  /** Share of the pool in use, 0 to 1. */
  readonly memoryShare: number;
}

export interface DepthChange {
  readonly depth: number;
  readonly reason: string;
}

/** Share of the time: below it, waiting is the noise of a pipeline that keeps up. */
const WAITED_SHARE = 0.2;

/** Share of the pool: above it a deeper prefetch would only push out. */
const MEMORY_SHARE = 0.5;

/**
 * Round trips whose bytes are asked for at once in the beginning: new connections take two, and the bandwidth is only
 * assumed until requests have shown it.
 */
const TRIPS = 4;

/** Share of the pool that fetched row groups may fill in the beginning: they are decoded beside it. */
const FIRST_SHARE = 0.25;

/** The first depth of `auto`: `tripBytes` come in a round trip, a row group takes `groupBytes` on the wire. */
export function firstDepth(tripBytes: number, groupBytes: number, memoryBytes: number): number {
  if (!(groupBytes > 0)) return PREFETCH_DEPTH_DEFAULT;
  const bytes = Math.min(TRIPS * tripBytes, FIRST_SHARE * memoryBytes);
  return Math.min(PREFETCH_DEPTH_MAX, Math.max(PREFETCH_DEPTH_DEFAULT, Math.floor(bytes / groupBytes) + 1));
}

/** The next depth of `auto` and why; undefined when it stays. */
export function nextDepth(depth: number, seen: PrefetchObservation): DepthChange | undefined {
  if (seen.evictions > 0) {
    if (depth === 1) return undefined;
    return { depth: depth - 1, reason: `${seen.evictions} row groups ahead were given up for want of memory` };
  }
  if (seen.memoryShare > MEMORY_SHARE || depth >= PREFETCH_DEPTH_MAX) return undefined;
  const share = seen.wallMs > 0 ? seen.waitedMs / seen.wallMs : 0;
  if (share <= WAITED_SHARE) return undefined;
  return { depth: depth + 1, reason: `the consumer waited ${Math.round(share * 100)} % of the time` };
}
