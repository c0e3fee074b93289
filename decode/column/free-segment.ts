/** How the receiver of a segment gives its memory back. */
import type { Pool } from '../pool/pool.ts';
import type { Segment } from './spec.ts';

/** Gives back a segment's slabs; its dictionary is not one of them, nor values that were put where the caller said. */
export function freeSegment(pool: Pool, segment: Segment): void {
  if (segment.slabBytes > 0) pool.free(segment.slab, segment.slabBytes);
  for (const { address, bytes } of segment.nested?.slabs ?? []) pool.free(address, bytes);
}
