/**
 * How a handle is served, pure: what its content wishes, as far as the inode's other open handles and the kernel allow.
 * The kernel's rules (fs/fuse/iomode.c): while a handle is served by passthrough, another may not be cached, and all
 * name the same backing file; while one is cached, none may be passthrough. A direct handle may be mapped into memory,
 * which makes it cached without telling us, so passthrough also waits for the last direct handle. A wrong answer is
 * EIO for the program that opens: each rule here is there to never give one.
 */
import type { Opening, Served } from './content.ts';
import { OpenFlag } from './protocol.ts';

export interface ServingChoice {
  readonly served: Served;
  /** For the answer to OPEN. */
  readonly flags: number;
  /** It goes with the inode's backing file. */
  readonly backed: boolean;
}

/** What an inode's handles are served by now: cached, direct, and with the backing file (backed ones are not among the former). */
export interface ServingState {
  readonly cached: number;
  readonly direct: number;
  readonly passthrough: number;
}

export function chooseServing(wish: Opening, state: ServingState, passthroughWorks: boolean): ServingChoice {
  // our file is read-only: there is nothing to flush
  const always = OpenFlag.FOPEN_NOFLUSH;
  const direct = { served: 'direct' as const, flags: always | OpenFlag.FOPEN_DIRECT_IO, backed: false };
  const cached = { served: 'cached' as const, flags: always | OpenFlag.FOPEN_KEEP_CACHE, backed: false };
  const passthrough = { served: 'passthrough' as const, flags: always | OpenFlag.FOPEN_PASSTHROUGH, backed: true };
  if (state.passthrough > 0) {
    if (wish.serve !== 'direct') return passthrough;
    // reads come to us, maps go to the backing file
    return { ...direct, flags: direct.flags | OpenFlag.FOPEN_PASSTHROUGH, backed: true };
  }
  if (wish.serve !== 'passthrough') return wish.serve === 'direct' ? direct : cached;
  if (state.cached > 0) return cached;
  if (passthroughWorks && state.direct === 0) return passthrough;
  return wish.otherwise === 'direct' ? direct : cached;
}
