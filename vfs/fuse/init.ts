/** The first request: which version and abilities of the protocol both sides use. Pure. */
import {
  BACKGROUND_REQUESTS_MAX,
  KERNEL_TIMEOUT_EXTRA_S,
  PAGE_BYTES,
  READ_REQUEST_BYTES_MAX,
  WRITE_BYTES_MAX,
} from './limits.ts';
import { FUSE_KERNEL_MINOR_VERSION, FUSE_KERNEL_VERSION, InitFlag, InitFlag2 } from './protocol.ts';
import { buildInitOut } from './reply.ts';
import type { RequestBody } from './request.ts';

/** What the kernel and the session agreed on. */
export interface KernelOffer {
  readonly minor: number;
  readonly passthrough: boolean;
  /** Seconds after which the kernel cuts the connection if a request is not answered; 0 for never. */
  readonly requestTimeoutS: number;
}

/** Before 7.28 (Linux 4.20) reads end at 128 KiB. */
const MINOR_NEEDED = 28;

/**
 * ASYNC_READ: read-ahead has several requests under way. PARALLEL_DIROPS: lookups do not wait for each other.
 * READDIRPLUS: listing and looking up in one. EXPLICIT_INVAL_DATA without AUTO_INVAL_DATA: the page cache of an inode is
 * kept whatever its attributes say. No EXPORT_SUPPORT: numbers are not valid beyond the mount. No CACHE_SYMLINKS: there
 * are none. DIRECT_IO_ALLOW_MMAP: readers that map files work on directly served ones too. ABORT_ERROR: an aborted
 * connection can be told from an unmount.
 */
const WANTED =
  InitFlag.FUSE_ASYNC_READ |
  InitFlag.FUSE_ASYNC_DIO |
  InitFlag.FUSE_PARALLEL_DIROPS |
  InitFlag.FUSE_DO_READDIRPLUS |
  InitFlag.FUSE_READDIRPLUS_AUTO |
  InitFlag.FUSE_MAX_PAGES |
  InitFlag.FUSE_EXPLICIT_INVAL_DATA |
  InitFlag.FUSE_ABORT_ERROR;
const WANTED_2 =
  InitFlag2.FUSE_DIRECT_IO_ALLOW_MMAP |
  InitFlag2.FUSE_PASSTHROUGH |
  InitFlag2.FUSE_NO_EXPORT_SUPPORT |
  InitFlag2.FUSE_REQUEST_TIMEOUT;

/** File systems that may lie below a backing file and above the mount: one, so that plain files can back it. */
const STACK_DEPTH = 1;

/** No reply: the kernel is too old. A reply without an offer: it is to ask again in our version. */
export function answerInit(
  init: Extract<RequestBody, { op: 'INIT' }>,
  answerMs: number,
): { reply?: Uint8Array; offer?: KernelOffer } {
  const refusal = { minor: FUSE_KERNEL_MINOR_VERSION, maxReadahead: 0, flags: 0, flags2: 0, maxBackground: 0 };
  const none = { maxWrite: 0, maxPages: 0, maxStackDepth: 0, requestTimeoutS: 0 };
  if (init.major > FUSE_KERNEL_VERSION) return { reply: buildInitOut({ ...refusal, ...none }) };
  if (init.major < FUSE_KERNEL_VERSION || init.minor < MINOR_NEEDED) return {};
  const extended = (init.flags & InitFlag.FUSE_INIT_EXT) !== 0;
  const flags = init.flags & (WANTED | InitFlag.FUSE_INIT_EXT);
  const flags2 = extended ? init.flags2 & WANTED_2 : 0;
  const passthrough = (flags2 & InitFlag2.FUSE_PASSTHROUGH) !== 0;
  const timed = (flags2 & InitFlag2.FUSE_REQUEST_TIMEOUT) !== 0;
  const requestTimeoutS = timed ? Math.min(0xffff, Math.ceil(answerMs / 1000) + KERNEL_TIMEOUT_EXTRA_S) : 0;
  const minor = Math.min(init.minor, FUSE_KERNEL_MINOR_VERSION);
  const reply = buildInitOut({
    minor,
    maxReadahead: init.maxReadahead,
    flags,
    flags2,
    maxBackground: BACKGROUND_REQUESTS_MAX,
    maxWrite: WRITE_BYTES_MAX,
    maxPages: READ_REQUEST_BYTES_MAX / PAGE_BYTES,
    maxStackDepth: passthrough ? STACK_DEPTH : 0,
    requestTimeoutS,
  });
  return { reply, offer: { minor, passthrough, requestTimeoutS } };
}
