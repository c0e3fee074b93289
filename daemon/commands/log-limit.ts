/**
 * Bounds what peers can make a server log: of each of their events so many lines in a while, and then how many more there
 * were. Who can only connect must not be able to fill a disk.
 */
import { PEER_LINES_MAX, PEER_LINES_MS } from './limits.ts';

type Write = (event: string, peer: string, detail: string) => void;

interface Window {
  lines: number;
  more: number;
}

/** Passes on what is not about a peer, and of what is as much as the bound allows. */
export function limitPeerLines(write: Write, linesMax = PEER_LINES_MAX, windowMs = PEER_LINES_MS): Write {
  const windows = new Map<string, Window>();
  return (event, peer, detail) => {
    if (peer === '') return write(event, peer, detail);
    let window = windows.get(event);
    if (window === undefined) {
      const opened = { lines: 0, more: 0 };
      window = opened;
      windows.set(event, opened);
      setTimeout(() => {
        windows.delete(event);
        if (opened.more > 0) write(event, '', `${opened.more} more within ${windowMs / 1000} s, not logged`);
      }, windowMs).unref();
    }
    if (window.lines < linesMax) {
      window.lines++;
      write(event, peer, detail);
    } else window.more++;
  };
}
