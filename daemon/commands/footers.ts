/** What footers alone answer: how many rows, and which requests a scan would make. No column chunk is read for it. */
import { BLOCK_BYTES, type FileMetadata } from '../../decode/index.ts';
import { chooseColumns, FetchError, type FileVersion, GapEstimator, planScan } from '../../fetcher/index.ts';
import type { Source } from '../../vfs/index.ts';
import type { OptionValues } from '../options.ts';
import type { ExplainedScan } from '../output/plan-text.ts';
import { MEMORY_BYTES_DEFAULT } from '../scan/engine.ts';
import { coalescePolicy, scanRequest } from '../scan/scan-request.ts';
import { FOOTERS_AT_A_TIME } from './limits.ts';

/** The rows of all files, at most `limit`. Checks the columns of the first file, as a scan would. */
export async function countRows(
  source: Source,
  { columns, limit }: OptionValues,
): Promise<{ rows: number; files: number }> {
  const files = await source.list();
  let rows = 0;
  let next = 0;
  const work = async (): Promise<void> => {
    for (let k = next++; k < files.length; k = next++) {
      if (limit !== undefined && rows >= limit) return;
      const metadata = await footerOf(source, files[k]!);
      if (k === 0) inFile(files[k]!, () => chooseColumns(metadata, columns));
      rows += metadata.numRows;
    }
  };
  await Promise.all(Array.from({ length: Math.min(FOOTERS_AT_A_TIME, files.length) }, work));
  return { rows: Math.min(rows, limit ?? Number.POSITIVE_INFINITY), files: files.length };
}

/** What goes wrong with a file's columns names the file. */
function inFile<T>(file: FileVersion, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof FetchError ? error.located(file.path) : error;
  }
}

async function footerOf(source: Source, file: FileVersion): Promise<FileMetadata> {
  return (await source.open(file)).footer();
}

/** The plan of the first file, as plain data, the totals before the parts. */
export async function explainScan(source: Source, options: OptionValues): Promise<ExplainedScan> {
  const files = await source.list();
  const file = files[0]!;
  const gap = new GapEstimator();
  const { metadata, latencyMs } = await (await source.open(file)).fetchedFooter();
  gap.observe(1, latencyMs);
  const memoryBytes = Math.floor((options.memory ?? MEMORY_BYTES_DEFAULT) / BLOCK_BYTES) * BLOCK_BYTES;
  const policy = coalescePolicy(options.maxGap ?? 'auto', gap);
  const plan = inFile(file, () => planScan(metadata, { ...scanRequest(options, memoryBytes), policy }));
  const { requests, bytesNeeded, bytesGap } = plan.totals;
  return {
    file: file.path,
    fileBytes: file.length,
    rows: metadata.numRows,
    files: files.length,
    totals: {
      ...plan.totals,
      bytesRequested: bytesNeeded + bytesGap,
      bytesPerRequest: requests === 0 ? 0 : Math.round((bytesNeeded + bytesGap) / requests),
      amplification: bytesNeeded === 0 ? 1 : (bytesNeeded + bytesGap) / bytesNeeded,
    },
    ...(plan.limit === undefined ? {} : { limit: plan.limit }),
    memoryBytes,
    batchRows: plan.batchRows,
    policy,
    columns: plan.columns.map(({ index, name }) => ({ index, name })),
    rowGroups: plan.rowGroups,
  };
}
