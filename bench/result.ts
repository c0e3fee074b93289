/** What every benchmark gives back, and how samples become figures. Ratios are such that the targets can be read off. */

export interface BenchResult {
  /** For people. */
  readonly table: string;
  /** For programs: flat, name to number. */
  readonly ratios: Readonly<Record<string, number>>;
  /** Whatever else was measured, as plain data. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** Why there is nothing to compare with. */
  readonly skipped?: string;
}

export interface BenchOptions {
  /** Seconds instead of minutes: checks that the benchmark works, its figures mean little. */
  readonly small?: boolean;
  /** Rows of the generated table. */
  readonly rows?: number;
  /** File for the picture, of benchmarks that have one. */
  readonly svg?: string;
}

/** Runs of each side, small or not: medians need at least five. */
export const RUNS = { small: 5, full: 7 } as const;

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >>> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The least value that at least `share` of all do not exceed. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!;
}

export function geometricMean(values: readonly number[]): number {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

export const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

/**
 * Runs every side once a round, in an order that turns from round to round, so that a slow moment of the machine does
 * not always meet the same side. A side returns its figure; the result has the samples of each.
 */
export async function alternate<Side extends string>(
  rounds: number,
  sides: Readonly<Record<Side, () => number | Promise<number>>>,
): Promise<Record<Side, number[]>> {
  const names = Object.keys(sides) as Side[];
  const samples = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Side, number[]>;
  for (let round = 0; round < rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) samples[name].push(await sides[name]());
  }
  return samples;
}

/** Rows of cells to lines: the first column to the left, the others to the right. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  const line = (row: readonly string[]): string =>
    row.map((cell, k) => (k === 0 ? cell.padEnd(widths[k]!) : cell.padStart(widths[k]!))).join('  ');
  return rows.map((row) => line(row).trimEnd()).join('\n');
}
