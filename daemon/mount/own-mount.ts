/**
 * Keeps a mount from reading itself. A source of local files may neither contain the folder that it is to be mounted
 * on, nor lie in it; what still leads there (links, bind mounts) is recognised by its device and left out.
 */
import { realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { mountAt } from '../../vfs/fuse/index.ts';
import type { Source } from '../../vfs/index.ts';
import { CommandError } from '../errors.ts';

/** Throws CommandError USAGE. */
export async function refuseOwnMount(source: Source, folder: string): Promise<void> {
  const { scheme, glob, pack, text } = source.location;
  if (scheme !== 'file') return;
  const mount = await realFolder(folder);
  // of a packed file, its own place; of a glob, the folder that it begins in
  const root = await realFolder(`/${pack ?? glob.literal ?? glob.prefix}`);
  if (contains(root, mount)) {
    const why = `it would hold itself: ${folder} lies in ${text}`;
    throw new CommandError('USAGE', `${why}; mount it on a folder elsewhere`);
  }
  if (contains(mount, root)) {
    throw new CommandError('USAGE', `${text} lies in ${folder}, which the mount would hide; mount it elsewhere`);
  }
}

/** Throws CommandError USAGE for a cache that would lie in the mount which it is for. */
export async function refuseCacheInMount(cache: string, folder: string): Promise<void> {
  if (!contains(await realFolder(folder), await realFolder(cache))) return;
  throw new CommandError(
    'USAGE',
    `--cache-dir ${cache} lies in ${folder}, which the mount would hide; name another one`,
  );
}

/** The real path, of a folder that may be a mount which does not answer: only what it lies in is looked at. */
async function realFolder(folder: string): Promise<string> {
  const path = resolve(folder);
  if (path === '/') return path;
  const parent = await realpath(dirname(path)).catch(() => dirname(path));
  const direct = join(parent, basename(path));
  // what is a mount is no link
  if (mountAt(direct) !== undefined) return direct;
  return realpath(direct).catch(() => direct);
}

/** The real path of the mount that a folder is; undefined when nothing is mounted there. The mount is not asked. */
export async function mountPath(folder: string): Promise<string | undefined> {
  const path = await realFolder(folder);
  return mountAt(path) === undefined ? undefined : path;
}

function contains(outer: string, inner: string): boolean {
  return inner === outer || inner.startsWith(outer.endsWith(sep) ? outer : outer + sep);
}

/** The device number of what is mounted at a real path, as stat has it, from the table of mounts: nothing is touched. */
export function deviceOf(folder: string): bigint | undefined {
  const [major, minor] = mountAt(folder)?.device.split(':').map(BigInt) ?? [];
  if (major === undefined || minor === undefined) return undefined;
  // glibc's gnu_dev_makedev
  return (minor & 0xffn) | ((major & 0xfffn) << 8n) | ((minor & ~0xffn) << 12n) | ((major & ~0xfffn) << 32n);
}
