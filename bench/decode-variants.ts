/**
 * One-thread decode by encoding, codec, share of nulls and shape, against DuckDB's scan of the same file: where the
 * decoder is fast and where it is not. Method as in decode.ts. Values are compared with DuckDB's, floats bit for bit
 * with parquet-wasm's.
 */
import type { DecodeEnvironment } from '../decode/index.ts';
import { check, checkParquetWasm, digestOurs } from './decode-check.ts';
import { openDuckdbScan } from './decode-duckdb.ts';
import { decodeColumn } from './decode-ours.ts';
import { readWithParquetWasm } from './decode-peers.ts';
import { VARIANTS, type Variant, variantFile } from './make-variants.ts';
import { alternate, formatTable, geometricMean, median } from './result.ts';

export interface VariantTimes {
  readonly name: string;
  readonly encoding: string;
  readonly rows: number;
  /** Milliseconds. */
  readonly oursMs: number;
  readonly duckdbMs: number;
  readonly ratio: number;
}

export async function timeVariants(
  environment: DecodeEnvironment,
  rows: number,
  runs: number,
): Promise<VariantTimes[]> {
  const times: VariantTimes[] = [];
  for (const variant of VARIANTS) times.push(await timeVariant(environment, variant, rows, runs));
  return times;
}

async function timeVariant(
  environment: DecodeEnvironment,
  variant: Variant,
  rows: number,
  runs: number,
): Promise<VariantTimes> {
  const file = await variantFile(variant, rows);
  const leaf = file.metadata.leaves[0]!;
  await using duckdb = await openDuckdbScan(file.path);
  const digests = digestOurs(environment, file, leaf);
  if (variant.text === undefined) checkParquetWasm(readWithParquetWasm(file).table, leaf, digests);
  else check('DuckDB', `${variant.name}, ${variant.encoding}`, await duckdb.digest(variant.text), digests.text);
  const samples = await alternate(runs, {
    ours: () => decodeColumn(environment, file, leaf, { output: 'dictionary' }),
    duckdb: () => duckdb.scanMs('v'),
  });
  const [oursMs, duckdbMs] = [median(samples.ours), median(samples.duckdb)];
  return { name: variant.name, encoding: variant.encoding, rows, oursMs, duckdbMs, ratio: duckdbMs / oursMs };
}

export function variantTable(times: readonly VariantTimes[]): string {
  const perSecond = (rows: number, milliseconds: number): string => (rows / milliseconds / 1000).toFixed(0);
  const rows = times.map(({ name, encoding, rows, oursMs, duckdbMs, ratio }) => [
    name,
    encoding,
    perSecond(rows, oursMs),
    perSecond(rows, duckdbMs),
    ratio.toFixed(2),
  ]);
  const mean = geometricMean(times.map(({ ratio }) => ratio)).toFixed(2);
  return formatTable([
    ['million rows/s', 'encoding', 'qanat', 'duckdb', 'ratio'],
    ...rows,
    ['geometric mean', '', '', '', mean],
  ]);
}
