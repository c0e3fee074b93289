/**
 * The identity of one version of a local file, made of all that stat knows to change when bytes change: size,
 * modification and change time in nanoseconds, inode and device. Two writes within one tick of the file system's clock
 * that keep the size can't be told apart.
 */
export interface VersionStat {
  readonly size: bigint;
  readonly mtimeNs: bigint;
  readonly ctimeNs: bigint;
  readonly ino: bigint;
  readonly dev: bigint;
}

/** The strong etag of a file of which this is the stat. */
export function versionEtag(stat: VersionStat): string {
  return [stat.size, stat.mtimeNs, stat.ctimeNs, stat.ino, stat.dev].map((part) => part.toString(36)).join('-');
}

/** Whether the version of an etag, as `versionEtag` gives it, lies on this device. */
export function isOnDevice(etag: string, device: bigint): boolean {
  return etag.endsWith(`-${device.toString(36)}`);
}

/** Whether two stats are of the same version of the same file. */
export function sameVersion(a: VersionStat, b: VersionStat): boolean {
  return a.size === b.size && a.mtimeNs === b.mtimeNs && a.ctimeNs === b.ctimeNs && a.ino === b.ino && a.dev === b.dev;
}
