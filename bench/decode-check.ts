/**
 * That all sides of the decode benchmark see the same values: digests of whole columns, as canonical text against
 * DuckDB, as raw bytes against Arrow, and hyparquet's JavaScript values as text on the rows that it reads.
 */
import { createHash, type Hash } from 'node:crypto';
import { type Table, Type } from 'apache-arrow';
import { canonicalLines } from '../daemon/output/canonical-text.ts';
import type { BytesOutput, DecodeEnvironment, LeafColumn, Segment } from '../decode/index.ts';
import { buildFields } from '../decode/index.ts';
import type { DuckdbScan } from './decode-duckdb.ts';
import { decodeColumn, type LoadedFile, leafNamed } from './decode-ours.ts';
import { readWithHyparquet } from './decode-peers.ts';

export interface ColumnDigests {
  /** SHA-256 of the values' canonical texts. */
  readonly text: string;
  /** SHA-256 of the values' bytes, and of their lengths where these vary. */
  readonly raw: string;
}

/** Digests of our own values; `groups` row groups of the file, all by default. */
export function digestOurs(
  environment: DecodeEnvironment,
  file: LoadedFile,
  leaf: LeafColumn,
  options: { output?: BytesOutput; groups?: number } = {},
): ColumnDigests {
  const { pool } = environment;
  const text = createHash('sha256');
  const raw = new RawDigest();
  const field = buildFields(file.metadata.root, [leaf])[0]!;
  decodeColumn(environment, file, leaf, options, (segment: Segment) => {
    const { rows, values, width, data, layout } = segment;
    const ranges = new Map([[leaf.index, { segment, start: 0, count: rows }]]);
    for (const lines of canonicalLines(pool, field, ranges)) text.update(lines);
    if (layout === 'fixed') raw.add(pool.u8.slice(values, values + rows * width));
    if (layout === 'bytes') {
      raw.addStrings(pool.u32.slice(values >>> 2, (values >>> 2) + rows + 1), pool.u8.slice(data));
    }
  });
  return { text: text.digest('hex'), raw: raw.digest() };
}

/** Bytes of values one after the other, however they are cut into batches. */
class RawDigest {
  readonly #values: Hash = createHash('sha256');
  readonly #lengths: Hash = createHash('sha256');

  add(bytes: Uint8Array): void {
    this.#values.update(bytes);
  }

  /** Strings `offsets[k]` to `offsets[k + 1]` of `data`. */
  addStrings(offsets: Uint32Array | Int32Array, data: Uint8Array): void {
    const lengths = new Uint32Array(offsets.length - 1);
    for (let k = 0; k < lengths.length; k++) lengths[k] = offsets[k + 1]! - offsets[k]!;
    this.#lengths.update(new Uint8Array(lengths.buffer));
    this.#values.update(data.subarray(offsets[0], offsets.at(-1)));
  }

  digest(): string {
    return `${this.#values.digest('hex')} ${this.#lengths.digest('hex')}`;
  }
}

/** Throws unless DuckDB has the same values in every row. */
export async function checkDuckdb(duckdb: DuckdbScan, leaf: LeafColumn, ours: ColumnDigests): Promise<void> {
  const { name, logicalType } = leaf;
  const expression =
    logicalType?.kind === 'DECIMAL'
      ? `(${name} * ${10 ** logicalType.scale})::bigint::varchar`
      : logicalType?.kind === 'DATE'
        ? `(${name} - date '1970-01-01')::varchar`
        : logicalType?.kind === 'STRING'
          ? `'"' || ${name} || '"'`
          : `${name}::varchar`;
  check('DuckDB', name, await duckdb.digest(expression), ours.text);
}

/** Throws unless parquet-wasm has the same values in every row. */
export function checkParquetWasm(table: Table, leaf: LeafColumn, ours: ColumnDigests): void {
  const raw = new RawDigest();
  for (const { values, valueOffsets, offset, length, typeId } of table.getChild(leaf.name)!.data) {
    if (typeId === Type.Utf8) {
      raw.addStrings(valueOffsets.subarray(offset, offset + length + 1), values as Uint8Array);
      continue;
    }
    const { buffer, byteOffset, byteLength } = values as Int32Array;
    const bytes = new Uint8Array(buffer, byteOffset, byteLength);
    raw.add(typeId === Type.Decimal ? lowWords(bytes) : bytes);
  }
  check('parquet-wasm', leaf.name, raw.digest(), ours.raw);
}

/** The lower halves of 16-byte integers: arrow-rs has no 8-byte decimals. */
function lowWords(bytes: Uint8Array): Uint8Array {
  const wide = new BigInt64Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 8);
  return new Uint8Array(BigInt64Array.from({ length: wide.length / 2 }, (_, k) => wide[2 * k]!).buffer);
}

/** Throws unless hyparquet has the same values in the first `groups` row groups. */
export async function checkHyparquet(
  environment: DecodeEnvironment,
  file: LoadedFile,
  names: readonly string[],
  groups: number,
): Promise<void> {
  const rows = file.metadata.rowGroups.slice(0, groups).reduce((total, group) => total + group.numRows, 0);
  for (const name of names) {
    const leaf = leafNamed(file, name);
    const text = createHash('sha256');
    await readWithHyparquet(file, [name], rows, (_, values) => {
      const lines: string[] = [];
      for (let k = 0; k < values.length; k++) lines.push(hyparquetText(leaf, values[k]), '\n');
      text.update(lines.join(''));
    });
    check('hyparquet', name, text.digest('hex'), digestOurs(environment, file, leaf, { groups }).text);
  }
}

function hyparquetText({ logicalType }: LeafColumn, value: unknown): string {
  if (value instanceof Date) return String(value.getTime() / 86_400_000);
  if (logicalType?.kind === 'DECIMAL') return String(Math.round(Number(value) * 10 ** logicalType.scale));
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}

/** Throws unless two digests of a column are equal. */
export function check(peer: string, column: string, theirs: string, ours: string): void {
  if (theirs !== ours) throw new Error(`${column}: our values are not those of ${peer}`);
}
