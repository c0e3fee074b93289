/** A progress bar on standard error, on a terminal only: what is done, how fast, how long it will take. */
import { formatBytes, formatCount } from '../argument.ts';
import { PROGRESS_MS } from './limits.ts';

export interface Progress {
  /** Bytes done, and expected in all. */
  readonly bytes: number;
  readonly bytesTotal: number;
  readonly rows?: number;
}

/** Shows a bar until the returned function is called; does nothing unless `shown`. */
export function showProgress(what: string, shown: boolean, look: () => Progress): () => void {
  if (!shown) return () => {};
  const began = performance.now();
  const timer = setInterval(() => {
    const columns = process.stderr.columns ?? 80;
    process.stderr.write(`\r${progressLine(what, look(), performance.now() - began).slice(0, columns - 1)}\x1b[K`);
  }, PROGRESS_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
    process.stderr.write('\r\x1b[K');
  };
}

/** Whether a progress bar would be seen, and not disturb what a terminal shows. */
export function canShowProgress(outputIsTerminal: boolean): boolean {
  return process.stderr.isTTY === true && !outputIsTerminal;
}

const BAR_CHARACTERS = 20;

export function progressLine(what: string, { bytes, bytesTotal, rows }: Progress, elapsedMs: number): string {
  const share = bytesTotal > 0 ? Math.min(1, bytes / bytesTotal) : 0;
  const full = Math.floor(share * BAR_CHARACTERS);
  const bar = '█'.repeat(full) + '░'.repeat(BAR_CHARACTERS - full);
  const parts = [`${what} ${bar} ${String(Math.floor(share * 100)).padStart(3)}%`];
  if (rows !== undefined) parts.push(`${formatCount(rows)} rows`);
  parts.push(`${formatBytes((bytes / Math.max(1, elapsedMs)) * 1000)}/s`.replace(/(\.\d)\d+ B/, '$1 B'));
  if (share > 0.01) parts.push(`${Math.ceil((elapsedMs * (1 - share)) / share / 1000)} s left`);
  return parts.join('  ');
}
