/** Bounds and defaults of the FUSE session: each with its unit and the reason for its value. */

/** Bytes of a name in a request: FUSE_NAME_MAX of the kernel is 1024, that of extended attributes 255; more is no name. */
export const FUSE_NAME_BYTES_MAX = 4096;

/** Bytes of the buffer that requests are read into. Ours are small; BATCH_FORGET fills what there is, and 4000 at a time are enough. */
export const REQUEST_BUFFER_BYTES = 64 * 1024;

/** Forgets in one message: as many as fit into the buffer. */
export const BATCH_FORGET_MAX = REQUEST_BUFFER_BYTES / 16;

/** max_write of INIT, in bytes: nothing is ever written, but the kernel wants a buffer that holds that and two headers. */
export const WRITE_BYTES_MAX = 32 * 1024;

/** Bytes of one read: max_read of the mount and max_pages of INIT; kernels stop at 256 pages unless told otherwise. */
export const READ_REQUEST_BYTES_MAX = 1024 * 1024;

/** Page size that max_pages counts in, in bytes. Where the kernel's is larger it asks for no more than max_read. */
export const PAGE_BYTES = 4096;

/** max_background of INIT: requests that the kernel has under way for read-ahead, 64 MiB of them. */
export const BACKGROUND_REQUESTS_MAX = 64;

/** Requests that contents work on at a time; more wait in order. Each holds at most READ_REQUEST_BYTES_MAX of reply. */
export const ACTIVE_REQUESTS_MAX = 256;

/** Requests that wait for their turn or their answer, some 300 bytes each; beyond it they are refused with EAGAIN. */
export const PENDING_REQUESTS_MAX = 65_536;

/** Milliseconds until a request that its content has not answered gets ETIMEDOUT: longer than a source's stall timer and retries. */
export const ANSWER_MS = 120_000;

/** Milliseconds between looks at the oldest pending request. */
export const ANSWER_CHECK_MS = 1000;

/** Milliseconds that a request may still be answered in after a signal that does not end its process. */
export const INTERRUPT_GRACE_MS = 1000;

/** Seconds beyond ANSWER_MS after which the kernel itself cuts the connection, as a last guard: it costs the mount. */
export const KERNEL_TIMEOUT_EXTRA_S = 60;

/** Seconds that the kernel may keep entries and attributes: they do not change within a generation, and a new one says so. */
export const VALID_S = 3600;

/** Bytes of a name in a folder: NAME_MAX of Linux, which programs rely on. */
export const ENTRY_NAME_BYTES_MAX = 255;

/** Files of a tree: some 400 bytes of memory each. */
export const TREE_FILES_MAX = 4_000_000;

/** Folders in folders: paths end at PATH_MAX (4096) bytes anyway. */
export const TREE_DEPTH_MAX = 256;

/** Parts of one message: UIO_MAXIOV of Linux, less the header. */
export const REPLY_PARTS_MAX = 1023;

/** Requests taken from the device in a row before other work of the thread gets its turn. */
export const REQUESTS_IN_A_ROW_MAX = 64;

/** Milliseconds for a child to start and ask a mount whether it lives; a busy machine starts processes slowly. */
export const PROBE_MS = 5000;

/** Milliseconds for fusermount3, which does little. */
export const FUSERMOUNT_MS = 10_000;

/** Milliseconds for looking at the folder to mount on: longer means that it lies in a mount that hangs. */
export const FOLDER_MS = 5000;

/** Milliseconds between attempts to unmount what is in use. */
export const UNMOUNT_RETRY_MS = 50;

/** Milliseconds until a mounted kernel has said its first word: it does so at once. */
export const READY_MS = 10_000;

/** Milliseconds that an unmount waits for those who use the mount, before it is detached under them. */
export const UNMOUNT_GRACE_MS = 2000;

/** Milliseconds for the kernel to let go of the descriptor after an unmount: at once, unless files of it are open. */
export const RELEASE_MS = 500;

/**
 * Bytes that the kernel reads ahead on a mount, where we may say so: more makes copies of files a little faster, and
 * comes for nothing behind the end of each column chunk that somebody reads.
 */
export const READ_AHEAD_BYTES = 256 * 1024;
