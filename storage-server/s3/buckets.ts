/**
 * Buckets: one for each root that is served, its objects the root's files, their keys the paths below it. Which objects
 * there are is worked out once for each region; nothing here keeps a region that has been replaced.
 */
import { basename, resolve } from 'node:path';
import { ServeError } from '../errors.ts';
import { findByPath } from '../http/path-order.ts';
import { fileRepresentation, type Representation, type Sight } from '../http/representation.ts';
import type { DirectoryEntry } from '../protocol/index.ts';
import type { Region } from '../region.ts';
import { BUCKET_NAME_MAX, BUCKET_NAME_MIN } from './limits.ts';

/** An object as a listing has it; `path` is its key. */
export interface ListedObject {
  readonly path: string;
  readonly entry: DirectoryEntry;
}

export class Buckets {
  /** In order. */
  readonly names: readonly string[];
  readonly #rootOf: ReadonlyMap<string, string>;
  readonly #objects = new WeakMap<Region, Map<string, readonly ListedObject[]>>();

  /** `name` is that of the one bucket of one root. Throws ServeError NAMES. */
  constructor(roots: readonly string[], name?: string) {
    const rootOf = new Map<string, string>();
    if (name !== undefined && roots.length > 1) {
      throw new ServeError('NAMES', 'a bucket can only be given a name when one root is served: each root is a bucket');
    }
    for (const root of roots) {
      const rootName = basename(resolve(root));
      const bucket = name ?? bucketName(rootName);
      const other = rootOf.get(bucket);
      if (other !== undefined) {
        throw new ServeError('NAMES', `${other} and ${rootName} would both be the bucket ${bucket}: rename one`);
      }
      rootOf.set(bucket, rootName);
    }
    this.#rootOf = rootOf;
    this.names = [...rootOf.keys()].sort();
  }

  has(bucket: string): boolean {
    return this.#rootOf.has(bucket);
  }

  /** The objects of a bucket, in the order of their keys. */
  objects(region: Region, bucket: string): readonly ListedObject[] {
    let byRoot = this.#objects.get(region);
    if (byRoot === undefined) {
      byRoot = objectsByRoot(region);
      this.#objects.set(region, byRoot);
    }
    return byRoot.get(this.#rootOf.get(bucket) ?? '') ?? [];
  }

  object(sight: Sight, bucket: string, key: string): Representation | undefined {
    const found = findByPath(this.objects(sight.regions.current, bucket), key);
    return found === undefined ? undefined : fileRepresentation(sight, found.entry);
  }
}

function objectsByRoot({ directory, files }: Region): Map<string, readonly ListedObject[]> {
  const roots = new Map(files.map(({ path, root }) => [path, root]));
  const byRoot = new Map<string, ListedObject[]>();
  // Entries are in the order of their paths, and so are what is left of them without a prefix that they share.
  for (const entry of directory.entries) {
    const { name, prefix } = roots.get(entry.path)!;
    let objects = byRoot.get(name);
    if (objects === undefined) {
      objects = [];
      byRoot.set(name, objects);
    }
    objects.push({ path: entry.path.slice(prefix.length), entry });
  }
  return byRoot;
}

/** A name that clients take for a bucket, made of that of a root. */
export function bucketName(root: string): string {
  const name = root
    .toLowerCase()
    .replace(/[^a-z0-9.-]+/g, '-')
    .replace(/\.{2,}|\.-|-\./g, '-')
    .slice(0, BUCKET_NAME_MAX)
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '');
  return name.length >= BUCKET_NAME_MIN ? name : `bucket-${name}`.replace(/-$/, '');
}
