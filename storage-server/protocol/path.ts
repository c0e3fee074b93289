/**
 * Names in a region: UTF-8 relative paths with "/" between segments. The rules keep a client that creates files or
 * serves a mount from ever leaving its folder. Also which names count as Parquet, said once for all who list files.
 */
import { ProtocolError } from './errors.ts';
import { PATH_BYTES_MAX } from './limits.ts';

/** Throws NAME unless `path` may stand in a directory. */
export function checkPath(path: string): void {
  const reason = pathFault(path);
  if (reason !== undefined) throw new ProtocolError('NAME', `path ${JSON.stringify(path.slice(0, 200))} ${reason}`);
}

/** A segment that may not be: empty, "." or "..". */
const NO_SEGMENT = /(?:^|\/)(\.{0,2})(?:\/|$)/;

function pathFault(path: string): string | undefined {
  if (path === '') return 'is empty';
  if (path.startsWith('/')) return 'is absolute';
  if (path.includes('\0')) return 'holds a NUL';
  if (!path.isWellFormed()) return 'is not well-formed text';
  if (path.length > PATH_BYTES_MAX / 3 && Buffer.byteLength(path) > PATH_BYTES_MAX) {
    return `is longer than ${PATH_BYTES_MAX} bytes`;
  }
  const segment = NO_SEGMENT.exec(path)?.[1];
  if (segment === undefined) return undefined;
  return segment === '' ? 'has an empty segment' : `has a segment ${JSON.stringify(segment)}`;
}

/** Throws NAME if two paths are equal, or if one path is a folder of another. Each path has passed `checkPath`. */
export function checkPathsTogether(paths: readonly string[]): void {
  const files = new Set(paths);
  if (files.size !== paths.length) {
    const twice = paths.find((path, k) => paths.indexOf(path) !== k);
    throw new ProtocolError('NAME', `two entries have the same path ${JSON.stringify(twice)}`);
  }
  const folders = new Set<string>();
  for (const path of paths) {
    for (let at = path.lastIndexOf('/'); at > 0; at = path.lastIndexOf('/', at - 1)) {
      const folder = path.slice(0, at);
      if (folders.has(folder)) break;
      if (files.has(folder)) {
        throw new ProtocolError('NAME', `${JSON.stringify(folder)} is both a file and a folder`);
      }
      folders.add(folder);
    }
  }
}

/** In the order of the UTF-8 bytes of their paths, in which directories are written and files are listed. */
export function sortedByPath<T extends { readonly path: string }>(items: readonly T[]): T[] {
  // Code units are in the same order, but for surrogates and what comes behind them.
  const beyond = items.some(({ path }) => /[\ud800-\uffff]/.test(path));
  const compare = beyond ? compareBytes : (a: string, b: string): number => (a === b ? 0 : a < b ? -1 : 1);
  return [...items].sort((a, b) => compare(a.path, b.path));
}

function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Whether a file of this name is taken for a packed region. */
export function isPackedPath(path: string): boolean {
  return /[^/]\.qanat$/i.test(path);
}

const PARQUET_NAME = /^[^.].*\.(parquet|parq|pq)$/is;

/** Whether a file of this path is taken for Parquet: by extension, hidden files not. */
export function isParquetPath(path: string): boolean {
  return PARQUET_NAME.test(path.slice(path.lastIndexOf('/') + 1));
}
