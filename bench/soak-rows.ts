/**
 * The rows of the soak run's files, and their check: every value follows from the file's number, the version of the file
 * that it is in, and the row's number, so that any row tells which bytes it was read from. The same formulas in SQL, which
 * writes them, and in JavaScript, which checks what a scan gives.
 */
import type { RecordBatch, Vector } from 'apache-arrow';

/** How many files there are; the last `FIXED` of them are never rewritten. */
export const FILES = 6;
export const FIXED = 2;

const FIXED_ROWS = 100_000;
const ROWS_LEAST = 10_000;
const ROWS_SPREAD = 20_000;

export function pathOf(file: number): string {
  return file < FILES - FIXED ? `moving-${file}.parquet` : `fixed-${file}.parquet`;
}

export const CHECKED_COLUMNS = ['file', 'version', 'id'] as const;
export const FURTHER_COLUMNS = ['mix', 'half', 'name', 'pad'] as const;

export function rowsOf(file: number, version: number): number {
  return file < FILES - FIXED ? ROWS_LEAST + ((version * 7919 + file * 104_729) % ROWS_SPREAD) : FIXED_ROWS;
}

const MIX_FACTOR = 2_654_435_761;
const MIX_LIMIT = 2 ** 31;

export function rowsQuery(file: number, version: number): string {
  return `select ${file}::int as file, ${version}::int as version, i::bigint as id,
    ((i * ${MIX_FACTOR} + ${version} * 40503 + ${file}) % ${MIX_LIMIT})::int as mix,
    case when (i + ${version}) % 5 = 0 then null else i / 2.0 + ${version} end::double as half,
    'version ' || ${version} || ' of row ' || (i % 997) as name,
    repeat(chr(97 + ((i + ${version}) % 26)::int), (i % 40)::int) as pad
    from range(${rowsOf(file, version)}) t(i)`;
}

/** Of one value: what it has to be. */
const EXPECTED: Readonly<Record<string, (file: number, version: number, id: number) => unknown>> = {
  mix: (file, version, id) => (id * MIX_FACTOR + version * 40_503 + file) % MIX_LIMIT,
  half: (_, version, id) => ((id + version) % 5 === 0 ? null : id / 2 + version),
  name: (_, version, id) => `version ${version} of row ${id % 997}`,
  pad: (_, version, id) => String.fromCharCode(97 + ((id + version) % 26)).repeat(id % 40),
};

/** The version of each file that a scan has given rows of, in the order of the rows. */
export type SeenVersions = readonly (readonly [file: number, version: number])[];

/** Checks the rows of one scan, which come in the order of the files and of the rows in them. */
export class RowCheck {
  rows = 0;
  readonly #seen: [file: number, version: number][] = [];
  #next = 0;

  get seen(): SeenVersions {
    return this.#seen;
  }

  /** Throws an Error that names the first row that is wrong. */
  add(batch: RecordBatch): void {
    const column = (name: string): Vector => batch.getChild(name)!;
    const [files, versions, ids] = CHECKED_COLUMNS.map((name) => column(name).toArray()) as [
      Int32Array,
      Int32Array,
      BigInt64Array,
    ];
    for (let row = 0; row < batch.numRows; row++) this.#row(files[row]!, versions[row]!, Number(ids[row]));
    for (const name of FURTHER_COLUMNS) {
      if (batch.schema.fields.some((field) => field.name === name)) {
        checkValues(name, column(name), { files, versions, ids });
      }
    }
    this.rows += batch.numRows;
  }

  /** The scan has come to its end: every file that it began must be whole. */
  end(): void {
    this.#endFile();
  }

  #row(file: number, version: number, id: number): void {
    const current = this.#seen.at(-1);
    if (current === undefined || current[0] !== file) {
      this.#endFile();
      this.#seen.push([file, version]);
      this.#next = 0;
    } else if (current[1] !== version) {
      throw new Error(`${pathOf(file)}: versions ${current[1]} and ${version} in one scan, at row ${id}`);
    }
    if (id !== this.#next) throw new Error(`${pathOf(file)}, version ${version}: row ${id} instead of ${this.#next}`);
    this.#next++;
  }

  #endFile(): void {
    const current = this.#seen.at(-1);
    if (current === undefined) return;
    const [file, version] = current;
    const rows = rowsOf(file, version);
    if (this.#next !== rows) {
      throw new Error(`${pathOf(file)}, version ${version}: ${this.#next} rows instead of ${rows}`);
    }
  }
}

interface Keys {
  readonly files: Int32Array;
  readonly versions: Int32Array;
  readonly ids: BigInt64Array;
}

function checkValues(name: string, values: Vector, { files, versions, ids }: Keys): void {
  const expectedOf = EXPECTED[name]!;
  for (let row = 0; row < values.length; row++) {
    const expected = expectedOf(files[row]!, versions[row]!, Number(ids[row]));
    const found: unknown = values.get(row);
    if (found === expected) continue;
    const where = `${pathOf(files[row]!)}, version ${versions[row]}, row ${ids[row]}`;
    throw new Error(`${where}: ${name} is ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
  }
}
