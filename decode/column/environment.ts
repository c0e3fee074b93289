/** What every decoder of a thread shares: the pool, that thread's kernels, and settings. */
import type { Kernels } from '../kernels/kernels.ts';
import type { Pool } from '../pool/pool.ts';
import type { PageTally } from './page-tally.ts';

export interface DecodeEnvironment {
  readonly pool: Pool;
  readonly kernels: Kernels;
  /** Check the CRC-32 of pages that carry one before a byte of them is used. */
  readonly verifyChecksums: boolean;
  /** Where decoded pages are counted, if anybody wants to know. */
  readonly tally?: PageTally;
}
