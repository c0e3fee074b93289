/** A scan's report for people. */
import { formatBytes, formatCount, formatMs } from '../argument.ts';
import type { ScanReport } from '../scan/report.ts';
import { alignRows, printable } from './printable.ts';

/** Name and value of each line, the rows first. */
export function reportLines(report: ScanReport): string[][] {
  const { bytes, wallMs } = report;
  const trouble = [
    'trouble',
    `${report.retries} retries, ${report.reconnects} reconnects, ${report.evictions} row groups fetched twice`,
  ];
  if (report.batches === 0 && report.requests === 0) {
    return [
      ['rows', `${formatCount(report.rows)}, no data was read`],
      ['time', formatMs(wallMs)],
      ['requests', `${formatCount(report.footerRequests)} for footers`],
      ['bytes', `${formatBytes(bytes.onWire)} over the wire`],
      trouble,
    ];
  }
  const perSecond = (amount: number): number => (amount / Math.max(1, wallMs)) * 1000;
  const wasted = Object.entries(bytes.wasted)
    .filter(([, amount]) => amount > 0)
    .map(([reason, amount]) => `${reason} ${formatBytes(amount)}`);
  return [
    [
      'rows',
      `${formatCount(report.rows)} in ${formatCount(report.batches)} batches, ${formatCount(Math.round(perSecond(report.rows)))} rows/s`,
    ],
    ['time', `${formatMs(wallMs)}, ${formatMs(report.waitedMs)} of it waiting for rows`],
    ['requests', `${formatCount(report.requests)} for data, ${formatCount(report.footerRequests)} for footers`],
    ['bytes', `${formatBytes(bytes.onWire)} over the wire, ${formatBytes(perSecond(bytes.onWire))}/s`],
    ['used', `${formatBytes(bytes.used)} data, ${formatBytes(bytes.metadata)} footers`],
    ['wasted', wasted.length === 0 ? 'nothing' : wasted.join(', ')],
    ['read per byte used', report.amplification.toFixed(3)],
    ['fetching', `${formatMs(report.fetchMs)} summed over requests`],
    ['decoding', `${report.decodeMs.map(formatMs).join(' + ') || '0 ms'} (one per decoder)`],
    ['memory', `${formatBytes(report.peakMemoryBytes)} at most`],
    trouble,
  ];
}

export function reportText(report: ScanReport): string {
  const columns = Object.entries(report.columnMs).sort(([, a], [, b]) => b - a);
  const costly = columns.slice(0, 10).map(([name, ms]) => [`  ${printable(name)}`, formatMs(ms)]);
  const head = columns.length === 0 ? '' : `decoding by column${columns.length > 10 ? ', the ten longest' : ''}\n`;
  return alignRows(reportLines(report)) + head + alignRows(costly, new Set([1]));
}
