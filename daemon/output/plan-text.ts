/** The plan of a scan for people: what would be asked for, in how many requests. All of it is in the JSON. */
import type { CoalescePolicy, PlannedRowGroup } from '../../fetcher/index.ts';
import { formatBytes, formatCount, formatCounted } from '../argument.ts';
import { PLAN_ROW_GROUPS_SHOWN_MAX } from './limits.ts';
import { alignRows, cutText, printable } from './printable.ts';

/** A plan with what it is about: what `--explain --json` prints, the totals first. */
export interface ExplainedScan {
  readonly file: string;
  readonly fileBytes: number;
  /** Of the file. */
  readonly rows: number;
  /** Of the scan; the plan is of the first. */
  readonly files: number;
  readonly totals: {
    readonly requests: number;
    readonly bytesNeeded: number;
    readonly bytesGap: number;
    readonly bytesRequested: number;
    readonly bytesPerRequest: number;
    readonly amplification: number;
  };
  readonly limit?: number;
  readonly memoryBytes: number;
  readonly batchRows: number;
  readonly policy: CoalescePolicy;
  readonly columns: ReadonlyArray<{ readonly index: number; readonly name: string }>;
  readonly rowGroups: readonly PlannedRowGroup[];
}

/** Characters of the list of columns. */
const COLUMNS_CHARACTERS = 100;

export function planText(plan: ExplainedScan): string {
  const { totals, rowGroups, columns, policy } = plan;
  const { requests, bytesNeeded, bytesGap, bytesRequested, bytesPerRequest, amplification } = totals;
  const names = cutText(printable(columns.map(({ name }) => name).join(', ')), COLUMNS_CHARACTERS);
  const head = alignRows([
    ['file', `${printable(plan.file)}${plan.files === 1 ? '' : `, the first of ${formatCounted(plan.files, 'file')}`}`],
    ['columns', `${formatCount(columns.length)}: ${names}`],
    [
      'rows',
      `${formatCount(plan.rows)}${plan.limit === undefined ? '' : `, at most ${formatCount(plan.limit)} wanted`}; ` +
        `${formatCounted(rowGroups.length, 'row group')} to read, batches of ${formatCounted(plan.batchRows, 'row')}`,
    ],
    ['requests', `${formatCount(requests)}${requests === 0 ? '' : `, ${formatBytes(bytesPerRequest)} each`}`],
    ['bytes', `${formatBytes(bytesRequested)} of ${formatBytes(plan.fileBytes)}`],
    ['needed', formatBytes(bytesNeeded)],
    ['gaps', `${formatBytes(bytesGap)}, a gap up to ${formatBytes(policy.gapBytesMax)} is read over`],
    ['read per byte needed', amplification.toFixed(3)],
  ]);
  const shown = rowGroups.slice(0, PLAN_ROW_GROUPS_SHOWN_MAX);
  const rows = shown.map(({ ordinal, numRows, fetches }) => {
    const bytes = fetches.reduce((sum, { start, end }) => sum + (end - start), 0);
    const gaps = fetches.reduce((sum, { gapBytes }) => sum + gapBytes, 0);
    return [String(ordinal), formatCount(numRows), formatCount(fetches.length), formatBytes(bytes), formatBytes(gaps)];
  });
  const header = ['row group', 'rows', 'requests', 'bytes', 'of them gaps'];
  const more = rowGroups.length - shown.length;
  return `${head}\n${alignRows([header, ...rows], new Set([0, 1, 2, 3, 4]))}${
    more > 0 ? `${formatCounted(more, 'more row group')}; ` : ''
  }--json shows every request\n`;
}
