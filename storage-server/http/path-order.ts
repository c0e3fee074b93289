/** The order of directories and of listings: that of the UTF-8 bytes of paths. Paths are well-formed text. */

/** Negative, zero or positive as `a` comes before, is, or comes after `b`. */
export function comparePaths(a: string, b: string): number {
  if (a === b) return 0;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    // Surrogates stand for what comes behind every single unit.
    const beyondX = (x & 0xf800) === 0xd800;
    const beyondY = (y & 0xf800) === 0xd800;
    return beyondX === beyondY ? x - y : beyondX ? 1 : -1;
  }
  return a.length - b.length;
}

/** Index of the first of sorted items whose path is not before `path`. */
export function lowerBound(items: readonly { readonly path: string }[], path: string): number {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (comparePaths(items[middle]!.path, path) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The one of sorted items that has exactly this path. */
export function findByPath<T extends { readonly path: string }>(items: readonly T[], path: string): T | undefined {
  const found = items[lowerBound(items, path)];
  return found?.path === path ? found : undefined;
}
