/**
 * Numbers of the FUSE kernel protocol 7.x, named as linux/fuse.h names them, and sizes of its structs. All integers on
 * the device are in the machine's order, which is little-endian wherever we run (device.ts checks). Only what we speak:
 * the rest of the header is refused or ignored by number.
 */

export const FUSE_KERNEL_VERSION = 7;
/** The newest minor version whose messages we know. */
export const FUSE_KERNEL_MINOR_VERSION = 45;
export const FUSE_ROOT_ID = 1;

/** enum fuse_opcode. */
export const Opcode = {
  FUSE_LOOKUP: 1,
  FUSE_FORGET: 2,
  FUSE_GETATTR: 3,
  FUSE_SETATTR: 4,
  FUSE_READLINK: 5,
  FUSE_SYMLINK: 6,
  FUSE_MKNOD: 8,
  FUSE_MKDIR: 9,
  FUSE_UNLINK: 10,
  FUSE_RMDIR: 11,
  FUSE_RENAME: 12,
  FUSE_LINK: 13,
  FUSE_OPEN: 14,
  FUSE_READ: 15,
  FUSE_WRITE: 16,
  FUSE_STATFS: 17,
  FUSE_RELEASE: 18,
  FUSE_FSYNC: 20,
  FUSE_SETXATTR: 21,
  FUSE_GETXATTR: 22,
  FUSE_LISTXATTR: 23,
  FUSE_REMOVEXATTR: 24,
  FUSE_FLUSH: 25,
  FUSE_INIT: 26,
  FUSE_OPENDIR: 27,
  FUSE_READDIR: 28,
  FUSE_RELEASEDIR: 29,
  FUSE_FSYNCDIR: 30,
  FUSE_ACCESS: 34,
  FUSE_CREATE: 35,
  FUSE_INTERRUPT: 36,
  FUSE_DESTROY: 38,
  FUSE_IOCTL: 39,
  FUSE_NOTIFY_REPLY: 41,
  FUSE_BATCH_FORGET: 42,
  FUSE_FALLOCATE: 43,
  FUSE_READDIRPLUS: 44,
  FUSE_RENAME2: 45,
  FUSE_LSEEK: 46,
  FUSE_COPY_FILE_RANGE: 47,
  FUSE_TMPFILE: 51,
  FUSE_STATX: 52,
} as const;

/** INIT flags, bits 0 to 31. */
export const InitFlag = {
  FUSE_ASYNC_READ: 1 << 0,
  FUSE_EXPORT_SUPPORT: 1 << 4,
  FUSE_AUTO_INVAL_DATA: 1 << 12,
  FUSE_DO_READDIRPLUS: 1 << 13,
  FUSE_READDIRPLUS_AUTO: 1 << 14,
  FUSE_ASYNC_DIO: 1 << 15,
  FUSE_PARALLEL_DIROPS: 1 << 18,
  FUSE_ABORT_ERROR: 1 << 21,
  FUSE_MAX_PAGES: 1 << 22,
  FUSE_CACHE_SYMLINKS: 1 << 23,
  FUSE_EXPLICIT_INVAL_DATA: 1 << 25,
  FUSE_INIT_EXT: 1 << 30,
} as const;

/** INIT flags, bits 32 to 63 of the header file, which travel in flags2 shifted down by 32. */
export const InitFlag2 = {
  FUSE_HAS_EXPIRE_ONLY: 1 << 3,
  FUSE_DIRECT_IO_ALLOW_MMAP: 1 << 4,
  FUSE_PASSTHROUGH: 1 << 5,
  FUSE_NO_EXPORT_SUPPORT: 1 << 6,
  FUSE_REQUEST_TIMEOUT: 1 << 10,
} as const;

/** Flags of the answer to OPEN. */
export const OpenFlag = {
  FOPEN_DIRECT_IO: 1 << 0,
  FOPEN_KEEP_CACHE: 1 << 1,
  FOPEN_CACHE_DIR: 1 << 3,
  FOPEN_NOFLUSH: 1 << 5,
  FOPEN_PASSTHROUGH: 1 << 7,
} as const;

/** enum fuse_notify_code: in the error field of a message whose unique is 0. */
export const NotifyCode = {
  FUSE_NOTIFY_INVAL_INODE: 2,
  FUSE_NOTIFY_INVAL_ENTRY: 3,
  FUSE_NOTIFY_STORE: 4,
} as const;

export const FUSE_GETATTR_FH = 1 << 0;

/** ioctls of the device: _IOW(229, 1, struct fuse_backing_map) and _IOW(229, 2, uint32_t). */
export const FUSE_DEV_IOC_BACKING_OPEN = 0x4010e501;
export const FUSE_DEV_IOC_BACKING_CLOSE = 0x4004e502;

/** sizeof of the structs of linux/fuse.h, in bytes, as of protocol 7.36 where they grew. */
export const SizeOf = {
  fuse_in_header: 40,
  fuse_out_header: 16,
  fuse_init_in_old: 16,
  fuse_init_in: 64,
  fuse_init_out: 64,
  fuse_attr: 88,
  fuse_attr_out: 104,
  fuse_entry_out: 128,
  fuse_open_out: 16,
  fuse_kstatfs: 80,
  fuse_getxattr_out: 8,
  fuse_statx_out: 288,
  fuse_dirent: 24,
  fuse_direntplus: 152,
  fuse_notify_store_out: 40,
  fuse_notify_inval_entry_out: 16,
} as const;

/** File types, the upper bits of a mode. */
export const S_IFREG = 0o100000;
export const S_IFDIR = 0o040000;
/** d_type of a directory's entries is the type's bits shifted down so. */
export const DT_SHIFT = 12;
