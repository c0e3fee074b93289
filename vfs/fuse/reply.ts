/**
 * Replies and notifications to a FUSE kernel, to bytes (linux/fuse.h: struct fuse_out_header and the *_out structs).
 * Builders of bodies give fresh arrays; a header is written into a buffer of the caller's, since each reply needs one.
 */
import { DT_SHIFT, NotifyCode, S_IFDIR, S_IFREG, SizeOf } from './protocol.ts';

/** What stat(2) shows of a node. */
export interface NodeAttributes {
  /** The inode number, also the node's id. */
  readonly ino: number;
  readonly folder: boolean;
  /** Bytes. */
  readonly length: number;
  readonly modifiedMs: number;
  readonly uid: number;
  readonly gid: number;
  /** Folders within it, and itself as "." and in its parent, as file systems count; 1 for files. */
  readonly links: number;
}

export interface InitReply {
  readonly minor: number;
  readonly maxReadahead: number;
  readonly flags: number;
  readonly flags2: number;
  readonly maxBackground: number;
  readonly maxWrite: number;
  readonly maxPages: number;
  readonly maxStackDepth: number;
  /** Seconds; 0 for none. */
  readonly requestTimeoutS: number;
}

const FILE_MODE = 0o444;
const FOLDER_MODE = 0o555;
/** st_blksize: also the unit in which programs choose to read, so no larger than a page. */
const BLOCK_BYTES = 4096;
const SECTOR_BYTES = 512;

class Writer {
  readonly bytes: Uint8Array;
  readonly view: DataView;

  constructor(length: number) {
    this.bytes = new Uint8Array(length);
    this.view = new DataView(this.bytes.buffer);
  }

  u16(at: number, value: number): void {
    this.view.setUint16(at, value, true);
  }

  u32(at: number, value: number): void {
    this.view.setUint32(at, value, true);
  }

  u64(at: number, value: number): void {
    writeU64(this.view, at, value);
  }
}

/** A whole number from 0 to 2^53, or a negative one that is exact, in two's complement. */
function writeU64(view: DataView, at: number, value: number): void {
  view.setUint32(at, value >>> 0, true);
  view.setUint32(at + 4, Math.floor(value / 0x100000000) >>> 0, true);
}

/** struct fuse_out_header: `errno` is 0 or positive. `length` counts the header too. */
export function writeOutHeader(view: DataView, length: number, errno: number, unique: number): void {
  view.setUint32(0, length, true);
  view.setInt32(4, -errno, true);
  writeU64(view, 8, unique);
}

/** struct fuse_init_out. */
export function buildInitOut(reply: InitReply): Uint8Array {
  const out = new Writer(SizeOf.fuse_init_out);
  out.u32(0, 7);
  out.u32(4, reply.minor);
  out.u32(8, reply.maxReadahead);
  out.u32(12, reply.flags);
  out.u16(16, reply.maxBackground);
  out.u16(18, Math.floor((reply.maxBackground * 3) / 4)); // congestion_threshold
  out.u32(20, reply.maxWrite);
  out.u32(24, 1); // time_gran, in nanoseconds
  out.u16(28, reply.maxPages);
  out.u32(32, reply.flags2);
  out.u32(36, reply.maxStackDepth);
  out.u16(40, reply.requestTimeoutS);
  return out.bytes;
}

/** struct fuse_attr at `at`. */
function writeAttr(out: Writer, at: number, node: NodeAttributes): void {
  const seconds = Math.floor(node.modifiedMs / 1000);
  const nanoseconds = Math.floor((node.modifiedMs - seconds * 1000) * 1e6);
  out.u64(at, node.ino);
  out.u64(at + 8, node.length);
  out.u64(at + 16, Math.ceil(node.length / SECTOR_BYTES));
  for (let time = 0; time < 3; time++) {
    out.u64(at + 24 + time * 8, seconds); // atime, mtime, ctime
    out.u32(at + 48 + time * 4, nanoseconds);
  }
  out.u32(at + 60, modeOf(node));
  out.u32(at + 64, node.links);
  out.u32(at + 68, node.uid);
  out.u32(at + 72, node.gid);
  out.u32(at + 80, BLOCK_BYTES);
}

function modeOf(node: NodeAttributes): number {
  return node.folder ? S_IFDIR | FOLDER_MODE : S_IFREG | FILE_MODE;
}

/** struct fuse_attr_out. */
export function buildAttrOut(node: NodeAttributes, validS: number): Uint8Array {
  const out = new Writer(SizeOf.fuse_attr_out);
  out.u64(0, validS);
  writeAttr(out, 16, node);
  return out.bytes;
}

/** struct fuse_statx_out: what stat(2) knows; there is no time of birth. */
export function buildStatxOut(node: NodeAttributes, validS: number): Uint8Array {
  const out = new Writer(SizeOf.fuse_statx_out);
  const stat = 32;
  const seconds = Math.floor(node.modifiedMs / 1000);
  const nanoseconds = Math.floor((node.modifiedMs - seconds * 1000) * 1e6);
  out.u64(0, validS);
  out.u32(stat, 0x7ff); // STATX_BASIC_STATS
  out.u32(stat + 4, BLOCK_BYTES);
  out.u32(stat + 16, node.links);
  out.u32(stat + 20, node.uid);
  out.u32(stat + 24, node.gid);
  out.u16(stat + 28, modeOf(node));
  out.u64(stat + 32, node.ino);
  out.u64(stat + 40, node.length);
  out.u64(stat + 48, Math.ceil(node.length / SECTOR_BYTES));
  for (const time of [64, 96, 112]) {
    out.u64(stat + time, seconds); // atime, ctime, mtime; btime between them is left out
    out.u32(stat + time + 8, nanoseconds);
  }
  return out.bytes;
}

/** struct fuse_entry_out at `at`. */
function writeEntry(out: Writer, at: number, node: NodeAttributes, validS: number): void {
  out.u64(at, node.ino); // generation stays 0: ids are never used again
  out.u64(at + 16, validS);
  out.u64(at + 24, validS);
  writeAttr(out, at + 40, node);
}

/** struct fuse_entry_out. */
export function buildEntryOut(node: NodeAttributes, validS: number): Uint8Array {
  const out = new Writer(SizeOf.fuse_entry_out);
  writeEntry(out, 0, node, validS);
  return out.bytes;
}

/** An entry that says that there is no such name, and for how long that is so. */
export function buildNegativeEntry(validS: number): Uint8Array {
  const out = new Writer(SizeOf.fuse_entry_out);
  out.u64(16, validS);
  return out.bytes;
}

/** struct fuse_open_out. */
export function buildOpenOut(handle: number, flags: number, backingId = 0): Uint8Array {
  const out = new Writer(SizeOf.fuse_open_out);
  out.u64(0, handle);
  out.u32(8, flags);
  out.u32(12, backingId);
  return out.bytes;
}

/** struct fuse_kstatfs of a file system that is full. */
export function buildStatfsOut(bytes: number, files: number): Uint8Array {
  const out = new Writer(SizeOf.fuse_kstatfs);
  out.u64(0, Math.ceil(bytes / BLOCK_BYTES));
  out.u64(24, files);
  out.u32(40, BLOCK_BYTES);
  out.u32(44, 255);
  out.u32(48, BLOCK_BYTES);
  return out.bytes;
}

/** struct fuse_getxattr_out: the size that was asked for. */
export function buildXattrSize(size: number): Uint8Array {
  const out = new Writer(SizeOf.fuse_getxattr_out);
  out.u32(0, size);
  return out.bytes;
}

/** An entry of a directory; `node` is what it refers to, or just its number where it is not known or not looked up. */
export interface DirectoryEntry {
  readonly name: string;
  readonly ino: number;
  readonly folder: boolean;
}

/**
 * The buffer that a READDIR or READDIRPLUS fills, of at most `size` bytes. Of the latter, an entry without attributes
 * has node id 0: it tells the name and is not a lookup.
 */
export class DirectoryBuffer {
  readonly #out: Writer;
  readonly #plus: boolean;
  #used = 0;

  constructor(size: number, plus: boolean) {
    this.#out = new Writer(size);
    this.#plus = plus;
  }

  get bytes(): Uint8Array {
    return this.#out.bytes.subarray(0, this.#used);
  }

  /** Adds an entry, after which reading goes on at `next`; false, and nothing is added, when there is no room. */
  add(entry: DirectoryEntry, next: number, attributes?: NodeAttributes, validS = 0): boolean {
    const name = Buffer.from(entry.name);
    const fixed = this.#plus ? SizeOf.fuse_direntplus : SizeOf.fuse_dirent;
    const length = (fixed + name.length + 7) & ~7;
    if (this.#used + length > this.#out.bytes.length) return false;
    if (attributes !== undefined) writeEntry(this.#out, this.#used, attributes, validS);
    const at = this.#used + fixed - SizeOf.fuse_dirent;
    this.#out.u64(at, entry.ino);
    this.#out.u64(at + 8, next);
    this.#out.u32(at + 16, name.length);
    this.#out.u32(at + 20, (entry.folder ? S_IFDIR : S_IFREG) >> DT_SHIFT);
    this.#out.bytes.set(name, at + SizeOf.fuse_dirent);
    this.#used += length;
    return true;
  }
}

/** FUSE_NOTIFY_STORE's headers; the data of `size` bytes follows. */
export function buildStoreHeader(nodeId: number, offset: number, size: number): Uint8Array {
  const out = new Writer(SizeOf.fuse_out_header + 24);
  out.u32(0, out.bytes.length + size);
  out.u32(4, NotifyCode.FUSE_NOTIFY_STORE);
  out.u64(16, nodeId);
  out.u64(24, offset);
  out.u32(32, size);
  return out.bytes;
}

/** FUSE_NOTIFY_INVAL_ENTRY: what the kernel knows of a name, that it is there or that it is not, is no longer so. */
export function buildInvalEntry(parent: number, name: string): Uint8Array {
  const bytes = Buffer.from(name);
  const out = new Writer(SizeOf.fuse_out_header + SizeOf.fuse_notify_inval_entry_out + bytes.length + 1);
  out.u32(0, out.bytes.length);
  out.u32(4, NotifyCode.FUSE_NOTIFY_INVAL_ENTRY);
  out.u64(16, parent);
  out.u32(24, bytes.length);
  out.bytes.set(bytes, 32);
  return out.bytes;
}

/** FUSE_NOTIFY_INVAL_INODE of the attributes alone (`off` below 0). */
export function buildInvalAttributes(nodeId: number): Uint8Array {
  const out = new Writer(SizeOf.fuse_out_header + 24);
  out.u32(0, out.bytes.length);
  out.u32(4, NotifyCode.FUSE_NOTIFY_INVAL_INODE);
  out.u64(16, nodeId);
  out.u64(24, -1);
  return out.bytes;
}
