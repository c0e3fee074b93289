/** A mount's report for people. */
import { formatBytes, formatCount, formatMs } from '../argument.ts';
import { alignRows } from '../output/printable.ts';
import type { MountReport, StoreReads } from './mount-report.ts';

export function mountReportText(report: MountReport): string {
  const { bytes, opens, reads, raw, decoded } = report;
  const lines = [
    ['mounted', `${formatMs(report.mountedMs)}, ${report.view} view, ${formatCount(report.files)} files`],
    ['requests', counts(report.requests)],
    ['errors', counts(report.errors)],
    ['opens', counts(opens)],
    ['reads', `${counts(reads)}; ${formatBytes(report.readBytes)}`],
    ['raw bytes', `${storeText(raw)}; ${formatCount(raw.requests)} requests, ${formatCount(raw.evicted)} evicted`],
    ...(decoded === undefined
      ? []
      : [
          [
            'decoded',
            `${storeText(decoded)}; ${formatCount(decoded.chunks)} chunks, ${formatCount(decoded.evicted)} evicted`,
          ],
          ['page cache', `${formatBytes(decoded.pushedBytes)} put there`],
        ]),
    ['bytes', `${formatBytes(bytes.onWire)} over the wire, ${formatBytes(bytes.metadata)} of it metadata`],
    ...(bytes.cached === 0 ? [] : [['from the disk cache', formatBytes(bytes.cached)]]),
    ['used', formatBytes(bytes.used)],
    ['wasted', counts(bytes.wasted, formatBytes)],
    ['prefetch depth', String(report.prefetchDepth)],
    ['memory', `${formatBytes(report.peakMemoryBytes)} at most`],
    [
      'trouble',
      `${report.retries} retries, ${report.reconnects} reconnects, ${report.timeouts} timeouts, ${report.interrupts} interrupts`,
    ],
    ['generations', `${report.generations} new ones`],
  ];
  return alignRows(lines);
}

function storeText({ there, late, absent }: StoreReads): string {
  return `${formatCount(there)} there, ${formatCount(late)} late, ${formatCount(absent)} absent`;
}

/** `3 READ, 1 OPEN`, the largest first, without what did not occur. */
function counts(of: Readonly<Record<string, number>>, format: (count: number) => string = formatCount): string {
  const sorted = Object.entries(of)
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a);
  return sorted.map(([name, count]) => `${format(count)} ${name}`).join(', ') || 'none';
}
