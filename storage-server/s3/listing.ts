/**
 * Lists objects: those with a prefix, behind a place, up to a number; with a delimiter, what lies deeper as one common
 * prefix each. Pure, and as quick as what it returns: a prefix of a million objects is jumped over.
 */
import { comparePaths, lowerBound } from '../http/path-order.ts';
import type { ListedObject } from './buckets.ts';

export interface ListRequest {
  readonly prefix: string;
  /** Empty for none. */
  readonly delimiter: string;
  /** Keys and common prefixes behind this one; empty for all. */
  readonly after: string;
  readonly keysMax: number;
}

export interface Listing {
  readonly objects: readonly ListedObject[];
  readonly prefixes: readonly string[];
  /** What to list behind for the rest; undefined if there is none. */
  readonly next: string | undefined;
}

/** Lists sorted objects. */
export function listObjects(all: readonly ListedObject[], { prefix, delimiter, after, keysMax }: ListRequest): Listing {
  const objects: ListedObject[] = [];
  const prefixes: string[] = [];
  let last: string | undefined;
  let at = comparePaths(after, prefix) < 0 ? lowerBound(all, prefix) : lowerBound(all, after);
  while (at < all.length) {
    const object = all[at]!;
    const { path } = object;
    if (!path.startsWith(prefix)) break;
    const cut = delimiter === '' ? -1 : path.indexOf(delimiter, prefix.length);
    const group = cut < 0 ? undefined : path.slice(0, cut + delimiter.length);
    const isDone = group === undefined ? path === after : group === after;
    if (!isDone) {
      if (objects.length + prefixes.length >= keysMax)
        return { objects, prefixes, next: keysMax === 0 ? undefined : last };
      if (group === undefined) objects.push(object);
      else prefixes.push(group);
      last = group ?? path;
    }
    at = group === undefined ? at + 1 : endOfPrefix(all, group, at);
  }
  return { objects, prefixes, next: undefined };
}

/** Index behind the last of the objects from `from` on whose keys begin with `prefix`, which that at `from` does. */
function endOfPrefix(all: readonly ListedObject[], prefix: string, from: number): number {
  let low = from;
  let high = all.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (all[middle]!.path.startsWith(prefix)) low = middle + 1;
    else high = middle;
  }
  return low;
}
