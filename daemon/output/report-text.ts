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
      ['bytes', `${formatBytes(bytes.onWire)} over the wire${cachedText(report)}`],
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
    [
      'bytes',
      `${formatBytes(bytes.onWire)} over the wire, ${formatBytes(perSecond(bytes.onWire))}/s${cachedText(report)}`,
    ],
    ['used', `${formatBytes(bytes.used)} data, ${formatBytes(bytes.metadata)} footers`],
    ['wasted', wasted.length === 0 ? 'nothing' : wasted.join(', ')],
    ['read per byte used', report.amplification.toFixed(3)],
    ['fetching', `${formatMs(report.fetchMs)} summed over requests`],
    ['decoding', `${report.decodeMs.map(formatMs).join(' + ') || '0 ms'} (one per decoder)`],
    ['decoded', decodedText(report)],
    ['memory', `${formatBytes(report.peakMemoryBytes)} at most`],
    trouble,
  ];
}

function cachedText({ bytes: { cached } }: ScanReport): string {
  return cached === 0 ? '' : `, ${formatBytes(cached)} from the disk cache`;
}

function decodedText({ encodings }: ScanReport): string {
  const byCount = Object.entries(encodings).sort(([, a], [, b]) => b.values - a.values);
  return byCount.map(([name, { values }]) => `${formatCount(values)} ${name}`).join(', ') || 'no values';
}

/** A line for each decoder: the shares of its time, beats of 64 bytes in and out. */
function decoderLines(report: ScanReport): string[][] {
  const percent = (ms: number, wallMs: number): string => `${((ms / Math.max(1e-6, wallMs)) * 100).toFixed(0)} %`;
  const lines = report.decoders.map(({ busyMs, starvedMs, stalledMs, idleMs, input, output }, ordinal) => {
    const wallMs = busyMs + starvedMs + stalledMs + idleMs;
    const shares = [busyMs, starvedMs, stalledMs, idleMs].map((ms) => percent(ms, wallMs));
    return [`  ${ordinal}`, ...shares, formatCount(input.handshakeBeats), formatCount(output.handshakeBeats)];
  });
  return [['decoder', 'busy', 'starved', 'stalled', 'idle', 'lines in', 'lines out'], ...lines];
}

export function reportText(report: ScanReport): string {
  const columns = Object.entries(report.columnMs).sort(([, a], [, b]) => b - a);
  const costly = columns.slice(0, 10).map(([name, ms]) => [`  ${printable(name)}`, formatMs(ms)]);
  const head = columns.length === 0 ? '' : `decoding by column${columns.length > 10 ? ', the ten longest' : ''}\n`;
  const decoders = report.decoders.length === 0 ? '' : alignRows(decoderLines(report), new Set([1, 2, 3, 4, 5, 6]));
  return alignRows(reportLines(report)) + decoders + head + alignRows(costly, new Set([1]));
}
