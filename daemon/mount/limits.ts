/** The bounds of mount/, each with its unit and its reason. */

/**
 * Milliseconds between looks at a source for other versions. A server tells of generations by itself while it is
 * connected, nobody tells of local files, and to list a bucket takes a request for each thousand objects, which is paid.
 */
export const LOOK_MS = { rdma: 5000, rdmas: 5000, http: 5000, https: 5000, s3: 60_000, file: 2000 } as const;

/** Milliseconds between two looks when reads find that files have changed: readers in a loop must not cause more. */
export const LOOK_GAP_MS = 250;

/** Milliseconds without a read after which decoded chunks are put into the kernel's page cache. */
export const PUSH_IDLE_MS = 300;

/** Bytes that are put into the page cache at once: a read that comes meanwhile waits for no more. */
export const PUSH_PIECE_BYTES = 1024 * 1024;

/** Milliseconds for the kernel to take a piece; without an answer the mount ends without it. */
export const PUSH_MS = 5000;

/** Milliseconds between two changes of the prefetch depth. */
export const DEPTH_LOOK_MS = 500;

/** Reads in that time without which nothing can be said of the depth. */
export const DEPTH_READS_MIN = 8;

/** Stall times after which a request of the kernel gets ETIMEDOUT, where that is longer than usual: stalls are tried again. */
export const ANSWER_STALLS = 4;

/** Milliseconds for a mount that has begun to answer its first question. */
export const ANSWER_MS = 10_000;

/** Milliseconds for the mount thread to give its figures to a scrape; without an answer the last ones hold. */
export const FIGURES_MS = 1000;

/** Milliseconds beyond the time for an unmount after which the mount thread counts as stuck and is left behind. */
export const UNMOUNT_MARGIN_MS = 3000;

/** Milliseconds for a background process that is asked to end, after which it is killed. */
export const BACKGROUND_END_MS = 10_000;

/** Programs that an unmount which is refused names: enough to know whom to ask. */
export const USERS_SHOWN_MAX = 5;

/**
 * Bytes of the memory that are made present before the mount is: the first readers would pay for every page of it, which
 * is a third of what a scan of a fresh mount took. At most half of the memory.
 */
export const PRESENT_BYTES = 256 * 1024 * 1024;

/** Times that a mount reads its warm-up file at most: after as many, reading it again is hardly any faster. */
export const WARM_UP_ROUNDS = 20;

/** Milliseconds of warming up after which the mount begins without the rest: nobody wants to wait for speed. */
export const WARM_UP_MS = 250;

/**
 * MiB of young JavaScript objects of the mount thread: what files hold is in the pool, and V8's default, which grows with
 * the rate of requests, fills 100 MiB more with what nobody uses any longer.
 */
export const MOUNT_YOUNG_MEBIBYTES = 12;
