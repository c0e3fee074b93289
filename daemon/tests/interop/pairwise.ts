/** Few combinations of options in which every two choices meet at least once. */
import type { SeededRandom } from '../../../decode/tests/random.ts';

type Dimensions = Readonly<Record<string, readonly unknown[]>>;
export type Choice<D extends Dimensions> = { readonly [Name in keyof D]: D[Name][number] };

/** Random combinations tried for a row; the one with most new pairs is taken. */
const TRIES = 50;

export function pairwise<const D extends Dimensions>(random: SeededRandom, dimensions: D): Choice<D>[] {
  const names = Object.keys(dimensions);
  const sizes = names.map((name) => dimensions[name]!.length);
  const left = new Map<string, readonly [i: number, a: number, j: number, b: number]>();
  for (const [i, size] of sizes.entries()) {
    for (let j = i + 1; j < sizes.length; j++) {
      for (let a = 0; a < size; a++) for (let b = 0; b < sizes[j]!; b++) left.set(`${i} ${a} ${j} ${b}`, [i, a, j, b]);
    }
  }
  const newPairs = (row: readonly number[]): string[] =>
    row
      .flatMap((a, i) => row.slice(i + 1).map((b, k) => `${i} ${a} ${i + 1 + k} ${b}`))
      .filter((pair) => left.has(pair));
  const rows: Choice<D>[] = [];
  for (const [i, a, j, b] of left.values()) {
    let best: readonly number[] = [];
    let most: string[] = [];
    for (let k = 0; k < TRIES; k++) {
      const row = sizes.map((size) => random.below(size));
      row[i] = a;
      row[j] = b;
      const pairs = newPairs(row);
      if (pairs.length > most.length) [best, most] = [row, pairs];
    }
    for (const pair of most) left.delete(pair);
    rows.push(Object.fromEntries(names.map((name, n) => [name, dimensions[name]![best[n]!]])) as Choice<D>);
  }
  return rows;
}
