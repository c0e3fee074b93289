/**
 * The seam between the FUSE session and what it serves: a tree of files of one generation, and for each version of a
 * file a content that opens and reads. The session knows inodes, handles and the kernel; a view (raw, decoded) knows
 * bytes. Nothing here awaits: a content may answer inside the call or later, from the thread that the session runs on.
 */

/** One file of a generation. Equal path and etag in the next generation: the same file, its inode and handles go on. */
export interface TreeFile {
  /** Path below the mount, no leading slash, segments separated by "/". */
  readonly path: string;
  /** Bytes; undefined while only its content can tell (`FileContent.measure`), as with a decoded view. */
  readonly length: number | undefined;
  /** Opaque and strong: equal etags mean equal bytes. */
  readonly etag: string;
  readonly modifiedMs: number;
  /** More extended attributes, by their whole names (`user.qanat.view`); etag, generation and path are there anyway. */
  readonly attributes?: Readonly<Record<string, string>>;
}

/** What is mounted, replaced as a whole. */
export interface FileTree {
  /** Names the generation, for people and for `user.qanat.generation`. */
  readonly generation: string;
  readonly files: readonly TreeFile[];
}

/** Makes the content of a version at its first use; called once for each, and `close` is called when nobody can read it any more. */
export type ContentFactory = (file: TreeFile) => FileContent;

/**
 * How the kernel is to serve a handle. The session gives what the inode's other open handles and the kernel allow:
 * - cached: through the page cache, kept across opens of the version; reads come in the kernel's read-ahead sizes
 * - direct: every read is asked for as the program made it, nothing is kept by the kernel
 * - passthrough: by the kernel alone from `backing`, a descriptor of a regular file or memfd that holds the whole
 *   content; it must stay open until the content is closed. Where that is not possible (no privilege, an older
 *   kernel, other handles are open) `otherwise` is taken.
 */
export type Opening =
  | { readonly serve: 'cached' | 'direct' }
  | { readonly serve: 'passthrough'; readonly backing: number; readonly otherwise: 'cached' | 'direct' };

/** How a handle came to be served. */
export type Served = Opening['serve'];

/** Tells that nobody waits for an answer any more: interrupted, timed out, its file replaced, or the session stops. */
export interface RequestSignal {
  readonly aborted: boolean;
  /** The handle that is read through, as `opened` and `released` name it; 0 in `open` and `measure`. */
  readonly handle: number;
  /** The process that asks, as the kernel names it; 0 for read-ahead. */
  readonly pid: number;
  /** Called at most once, at the abort; set it only while not aborted. The answer that may still come is dropped. */
  onAbort: (() => void) | undefined;
  /** The same as a standard signal, made when it is first asked for. */
  readonly abortSignal: AbortSignal;
}

/**
 * The answer to a read: an error (errno.ts says what becomes of it), or views that hold exactly the asked bytes, in
 * order. They are written to the kernel before it returns, so they need be valid only during the call. To be called
 * once; later calls, and those after an abort, do nothing. Returns whether the kernel took the bytes.
 */
export type ReadDone = (error: unknown, views?: readonly Uint8Array[]) => boolean;

/** One version of one file. All calls come from the session's thread. A method that throws has answered with that error. */
export interface FileContent {
  /**
   * How an open is to be served. May take its time (a footer to read first); `done` is called once. The default, when
   * it is absent, is cached.
   */
  open?(signal: RequestSignal, done: (error: unknown, opening?: Opening) => void): void;
  /** Bytes of the version, where the tree does not say; asked for until it answered once without error. */
  measure?(signal: RequestSignal, done: (error: unknown, length?: number) => void): void;
  /** A handle exists now, served so. */
  opened?(handle: number, served: Served): void;
  /** Never empty and never beyond the end: the session clips. At most READ_REQUEST_BYTES_MAX bytes. */
  read(offset: number, length: number, signal: RequestSignal, done: ReadDone): void;
  released?(handle: number): void;
  /** Nobody can read it any more: reads have been aborted and handles released. */
  close?(): void;
}
