/**
 * Mounts and unmounts a folder: mount(2) and umount2(2) as root, fusermount3 for everyone else. A mount that a killed
 * process left behind is recognised and cleared away first. Everything is bounded in time, and the last step of an
 * unmount is to detach the folder lazily, which always works: it leaves no dead mount, whatever is still open on it.
 */
import { closeSync, constants as fsConstants, openSync } from 'node:fs';
import { lstat, readdir, realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Errno, errnoName } from '../errno.ts';
import { MountError } from '../errors.ts';
import { escapeOption, fusermount, fuserUnmount } from './fusermount.ts';
import type { Libc } from './libc.ts';
import { loadLibc } from './libc.ts';
import { FOLDER_MS, READ_REQUEST_BYTES_MAX, UNMOUNT_RETRY_MS } from './limits.ts';
import type { MountEntry } from './mount-table.ts';
import { MOUNT_TYPE, mountAt, probeMount } from './mount-table.ts';

export interface MountOptions {
  readonly folder: string;
  /** What is mounted, as `mount` and `df` show it. */
  readonly source: string;
  /** Other users may read it too. Root's mounts are for all unless told otherwise; a user's need a line in /etc/fuse.conf. */
  readonly allowOther?: boolean;
}

export interface Mounted {
  /** Of /dev/fuse, non-blocking. */
  readonly descriptor: number;
  /** The folder's real path. */
  readonly folder: string;
  /** A dead mount was there and has been cleared away. */
  readonly cleared: boolean;
}

const DEVICE = '/dev/fuse';
const MS_RDONLY = 1;
const MS_NOSUID = 2;
const MS_NODEV = 4;
const MS_NOATIME = 1024;
const MNT_DETACH = 2;
const UMOUNT_NOFOLLOW = 8;
const CONTAINER = 'in a container, run it with --device /dev/fuse --cap-add SYS_ADMIN';

/** Throws MountError, which says what to do. */
export async function mountFolder(options: MountOptions): Promise<Mounted> {
  const libc = await loadLibc();
  const cleared = await clearDeadMount(options.folder);
  const folder = await checkFolder(options.folder);
  const root = process.geteuid?.() === 0;
  const descriptor = root ? mountAsRoot(libc, folder, options) : await mountAsUser(libc, folder, options);
  return { descriptor, folder, cleared };
}

function mountAsRoot(libc: Libc, folder: string, options: MountOptions): number {
  const descriptor = openDevice();
  const data = [
    `fd=${descriptor}`,
    'rootmode=40000',
    'user_id=0',
    'group_id=0',
    'default_permissions',
    ...(options.allowOther === false ? [] : ['allow_other']),
    `max_read=${READ_REQUEST_BYTES_MAX}`,
  ].join(',');
  const flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOATIME;
  if (libc.mount(options.source, folder, MOUNT_TYPE, flags, data) === 0) return descriptor;
  const errno = libc.errno();
  closeSync(descriptor);
  if (errno === Errno.EPERM) throw new MountError('NOT_PERMITTED', `mount(2) is not permitted: ${CONTAINER}`);
  if (errno === Errno.ENODEV)
    throw new MountError('NO_DEVICE', 'the kernel has no FUSE: load its module, modprobe fuse');
  throw new MountError('REFUSED', `mount(2) of ${folder}: ${errnoName(errno)}`);
}

function openDevice(): number {
  try {
    return openSync(DEVICE, fsConstants.O_RDWR | fsConstants.O_NONBLOCK);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENODEV' || code === 'ENXIO') {
      const reason = `${DEVICE} is not there (${code}): modprobe fuse; ${CONTAINER}`;
      throw new MountError('NO_DEVICE', reason, { cause });
    }
    throw new MountError('NOT_PERMITTED', `${DEVICE} can't be opened (${code}): ${CONTAINER}`, { cause });
  }
}

async function mountAsUser(libc: Libc, folder: string, options: MountOptions): Promise<number> {
  return fusermount(libc, folder, [
    `fsname=${escapeOption(options.source)}`,
    'subtype=qanat',
    'ro',
    'nosuid',
    'nodev',
    'noatime',
    'default_permissions',
    ...(options.allowOther ? ['allow_other'] : []),
    `max_read=${READ_REQUEST_BYTES_MAX}`,
  ]);
}

/** The real path of a folder that is there and empty. */
async function checkFolder(folder: string): Promise<string> {
  const real = await within(FOLDER_MS, folder, async () => {
    const path = await realpath(folder);
    if (!(await lstat(path)).isDirectory()) throw new MountError('NOT_A_FOLDER', `${folder} is not a folder`);
    if ((await readdir(path)).length > 0) {
      throw new MountError(
        'NOT_EMPTY',
        `${folder} is not empty: a mount would hide what is there; take an empty folder`,
      );
    }
    return path;
  });
  const entry = mountAt(real);
  if (entry?.type.startsWith('fuse')) {
    throw new MountError('MOUNTED', `${entry.source} is mounted at ${folder} already: qanat unmount ${folder}`);
  }
  return real;
}

/** Runs what touches folders, which may lie in a mount that hangs. */
async function within<T>(timeoutMs: number, folder: string, run: () => Promise<T>): Promise<T> {
  const late = new AbortController();
  try {
    return await Promise.race([
      run(),
      sleep(timeoutMs, undefined, { signal: late.signal, ref: false }).then(() => {
        throw new MountError('TIMEOUT', `${folder} does not answer: it lies in a mount that hangs`);
      }),
    ]);
  } catch (error) {
    if (error instanceof MountError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT')
      throw new MountError('NOT_FOUND', `${folder} does not exist: mkdir ${folder}`, { cause: error });
    if (code === 'ENOTDIR') throw new MountError('NOT_A_FOLDER', `${folder} is not a folder`, { cause: error });
    if (code === 'ENOTCONN') {
      const reason = `${folder} lies in a dead mount of another file system: fusermount3 -u -z ${folder}`;
      throw new MountError('MOUNTED', reason, { cause: error });
    }
    if (code === 'EACCES') throw new MountError('NOT_PERMITTED', `${folder} is not accessible`, { cause: error });
    throw error;
  } finally {
    late.abort();
  }
}

/** The path that a mount at `folder` has in the table. Touches only the folder that it lies in. */
async function mountPathOf(folder: string): Promise<string> {
  const path = resolve(folder);
  return within(FOLDER_MS, folder, async () => join(await realpath(dirname(path)), basename(path)));
}

/** Clears away what a killed process of ours left at the folder. Says whether there was such. */
async function clearDeadMount(folder: string): Promise<boolean> {
  let cleared = false;
  for (;;) {
    const entry = await ourMountAt(folder);
    if (entry === undefined) return cleared;
    const health = await probeMount(entry.folder);
    if (health === 'silent') {
      const reason = `a mount at ${folder} does not answer; qanat unmount ${folder}, then try again`;
      throw new MountError('MOUNTED', reason);
    }
    if (health !== 'dead') {
      throw new MountError('MOUNTED', `${entry.source} is mounted at ${folder} already: qanat unmount ${folder}`);
    }
    await detach(await loadLibc(), entry.folder);
    cleared = true;
  }
}

async function ourMountAt(folder: string): Promise<MountEntry | undefined> {
  const direct = mountAt(await mountPathOf(folder));
  if (direct !== undefined) return direct.type === MOUNT_TYPE ? direct : undefined;
  // a symbolic link to a mount
  const link = await within(FOLDER_MS, folder, () => realpath(folder)).catch(() => undefined);
  const behind = link === undefined ? undefined : mountAt(link);
  return behind?.type === MOUNT_TYPE ? behind : undefined;
}

export interface UnmountOptions {
  /** Milliseconds to wait for those who use it, before it is detached under them. */
  readonly graceMs: number;
  /** What is still in use then is left mounted: an error, BUSY. */
  readonly keepBusy?: boolean;
  /** Called after half of the time: the last chance to make readers go. */
  readonly onBusy?: () => void;
}

/** detached: out of sight, while programs still have files of it open. */
export type Unmounted = 'unmounted' | 'detached';

/** Unmounts a folder of ours. Throws MountError NOT_MOUNTED, NOT_PERMITTED, REFUSED or BUSY. */
export async function unmountFolder(folder: string, options: UnmountOptions): Promise<Unmounted> {
  const libc = await loadLibc();
  const entry = await ourMountAt(folder);
  if (entry === undefined) throw new MountError('NOT_MOUNTED', `nothing of qanat is mounted at ${folder}`);
  const until = performance.now() + options.graceMs;
  let told = false;
  for (;;) {
    const busy = await tryUnmount(libc, entry.folder);
    if (!busy) return 'unmounted';
    const left = until - performance.now();
    if (left <= 0) break;
    if (!told && left < options.graceMs / 2) {
      told = true;
      options.onBusy?.();
    }
    await sleep(Math.min(left, UNMOUNT_RETRY_MS));
  }
  if (options.keepBusy) throw new MountError('BUSY', `${folder} is in use`);
  await detach(libc, entry.folder);
  return 'detached';
}

/** Whether it is in use. */
async function tryUnmount(libc: Libc, folder: string): Promise<boolean> {
  if (process.geteuid?.() !== 0) {
    const said = await fuserUnmount(folder, false);
    if (said === '' || mountAt(folder)?.type !== MOUNT_TYPE) return false;
    if (/busy/i.test(said)) return true;
    throw new MountError(/not permitted|denied|not owned|not found/i.test(said) ? 'NOT_PERMITTED' : 'REFUSED', said);
  }
  const errno = await libc.umount(folder, UMOUNT_NOFOLLOW);
  if (errno === 0 || errno === Errno.EINVAL) return false;
  if (errno === Errno.EBUSY) return true;
  throw refusedUnmount(folder, errno);
}

async function detach(libc: Libc, folder: string): Promise<void> {
  if (process.geteuid?.() !== 0) {
    const said = await fuserUnmount(folder, true);
    if (said !== '' && mountAt(folder)?.type === MOUNT_TYPE) throw new MountError('REFUSED', said);
    return;
  }
  const errno = await libc.umount(folder, MNT_DETACH | UMOUNT_NOFOLLOW);
  if (errno !== 0 && errno !== Errno.EINVAL) throw refusedUnmount(folder, errno);
}

function refusedUnmount(folder: string, errno: number): MountError {
  if (errno === Errno.EPERM) return new MountError('NOT_PERMITTED', `umount(2) of ${folder} is not permitted`);
  return new MountError('REFUSED', `umount(2) of ${folder}: ${errnoName(errno)}`);
}
