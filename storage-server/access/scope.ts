/**
 * What of a region somebody may see: everything, or what lies under some paths. A prefix is whole segments: `a/b` is the
 * file a/b and all that is below a folder of that name, and never a/bc.
 */
import { PREFIXES_MAX } from './limits.ts';

export class Scope {
  /** Equal for scopes that see the same paths. */
  readonly key: string;
  readonly #prefixes: readonly string[];

  /** `prefixes` without slashes around them; an empty one is everything. */
  constructor(prefixes: readonly string[]) {
    const sorted = [...new Set(prefixes)].sort();
    // what lies below another one says nothing more
    this.#prefixes = sorted.filter((one) => !sorted.some((other) => other !== one && isBelow(one, other)));
    this.key = JSON.stringify(this.#prefixes);
  }

  get isEverything(): boolean {
    return this.#prefixes[0] === '';
  }

  covers(path: string): boolean {
    return this.#prefixes.some((prefix) => isBelow(path, prefix));
  }
}

export const EVERYTHING = new Scope(['']);

function isBelow(path: string, prefix: string): boolean {
  return prefix === '' || path === prefix || (path.startsWith(prefix) && path[prefix.length] === '/');
}

/** A prefix as it is written: percent-encoded where it has spaces, slashes around it or not. Undefined if it is none. */
export function parsePrefix(text: string): string | undefined {
  let path: string;
  try {
    path = decodeURIComponent(text);
  } catch {
    return undefined;
  }
  const bare = path.replace(/^\/|\/$/g, '');
  if (bare === '') return path === '/' ? '' : undefined;
  const isPath = bare.split('/').every((segment) => segment !== '' && segment !== '.' && segment !== '..');
  return isPath && !bare.includes('\0') ? bare : undefined;
}

/** Whether so many prefixes are too many for one token. */
export function isTooMany(count: number): boolean {
  return count > PREFIXES_MAX;
}
