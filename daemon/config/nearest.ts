/** The name that somebody meant: for suggestions after a mistake. */

/** The most similar of `names`, if one is similar enough to have been meant. */
export function nearest(written: string, names: readonly string[]): string | undefined {
  const plain = inWords(written);
  let best: string | undefined;
  let least = Math.min(3, Math.floor(plain.length / 3)) + 1;
  for (const name of names) {
    const distance = editDistance(plain, inWords(name));
    if (distance >= least) continue;
    best = name;
    least = distance;
  }
  return best;
}

/** maxGap and max_gap as max-gap. */
function inWords(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1-$2')
    .replace(/[_\s]+/g, '-')
    .toLowerCase();
}

/** Letters inserted, removed, changed, or swapped with their neighbour (optimal string alignment). */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 3) return Number.POSITIVE_INFINITY;
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, k) => k);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = a[i - 1] === b[j - 1] ? 0 : 1;
      let distance = Math.min(above[j]! + 1, row[j - 1]! + 1, above[j - 1]! + changed);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        distance = Math.min(distance, before[j - 2]! + 1);
      row.push(distance);
    }
    before = above;
    above = row;
  }
  return above[b.length]!;
}
