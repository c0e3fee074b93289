/** What a scan asks of the planner, from its options: the same for a scan that runs and for one that is only explained. */
import { AMPLIFICATION_MAX, type GapEstimator, REQUEST_BYTES_MAX, type ScanRequest } from '../../fetcher/index.ts';

export interface RequestOptions {
  readonly columns?: readonly string[];
  readonly limit?: number;
  readonly batchRows?: number;
}

export function scanRequest(
  { columns, limit, batchRows }: RequestOptions,
  memoryBytes: number,
): Omit<ScanRequest, 'policy'> {
  return {
    memoryBytes,
    ...(columns === undefined ? {} : { columns }),
    ...(limit === undefined ? {} : { limit }),
    ...(batchRows === undefined ? {} : { batchRows }),
  };
}

/** The rules of coalescing as they are now: `auto` follows what the source was measured to be. */
export function coalescePolicy(maxGap: number | 'auto', gap: GapEstimator): ScanRequest['policy'] {
  return {
    gapBytesMax: maxGap === 'auto' ? gap.gapBytes() : maxGap,
    requestBytesMax: REQUEST_BYTES_MAX,
    amplificationMax: AMPLIFICATION_MAX,
  };
}
