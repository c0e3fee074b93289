/** What every decoder of a thread shares: the pool, that thread's kernels, and settings. */
import type { Kernels } from '../kernels/kernels.ts';
import type { Pool } from '../pool/pool.ts';

export interface DecodeEnvironment {
  readonly pool: Pool;
  readonly kernels: Kernels;
  /** Check the CRC-32 of pages that carry one before a byte of them is used. */
  readonly verifyChecksums: boolean;
}
