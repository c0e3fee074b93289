/**
 * Which byte ranges are fetched by one request. Pure: ranges and a policy in, requests out.
 * A request may read bytes nobody asked for (the gap between two ranges) when that costs less than another round trip;
 * three guards keep that honest: the gap, the request's size, and the bytes read for each byte needed. No range is
 * split here (the planner does that), and ranges that overlap go into different requests, so that every byte of a
 * request belongs to one range or to a gap: hostile footers put many chunks on one place.
 */
import type { Range } from '../decode/index.ts';

export interface CoalescePolicy {
  /** Bytes between two ranges that are read and thrown away rather than asked around. */
  readonly gapBytesMax: number;
  /** Bytes of a request of more than one range; a single larger range is still one request. */
  readonly requestBytesMax: number;
  /** Bytes read for each byte needed; at least 1. */
  readonly amplificationMax: number;
}

/** One request: [start, end), and the ranges in it in the order of their bytes. */
export interface FetchRange<P extends Range = Range> extends Range {
  readonly parts: readonly P[];
  /** Bytes between the parts. */
  readonly gapBytes: number;
}

/**
 * Merges ranges into requests, in the order of their starts; the input's order does not matter. Parts of the result
 * are the very objects of the input. Empty ranges need no bytes and are left out.
 */
export function coalesceRanges<P extends Range>(ranges: readonly P[], policy: CoalescePolicy): FetchRange<P>[] {
  const requests: FetchRange<P>[] = [];
  let parts: P[] = [];
  let start = 0;
  let end = 0;
  let needed = 0;
  const finish = () => {
    if (parts.length > 0) requests.push({ start, end, parts, gapBytes: end - start - needed });
  };
  for (const range of ranges.filter((one) => one.end > one.start).sort((a, b) => a.start - b.start || a.end - b.end)) {
    const bytes = range.end - range.start;
    const gap = range.start - end;
    const merged = range.end - start;
    if (
      parts.length > 0 &&
      gap >= 0 &&
      gap <= policy.gapBytesMax &&
      merged <= policy.requestBytesMax &&
      merged <= policy.amplificationMax * (needed + bytes)
    ) {
      parts.push(range);
      end = range.end;
      needed += bytes;
      continue;
    }
    finish();
    parts = [range];
    start = range.start;
    end = range.end;
    needed = bytes;
  }
  finish();
  return requests;
}
