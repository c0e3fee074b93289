/**
 * A corpus of Parquet files with expected values: `inventory.tsv` (one line per file, columns named by its header),
 * `files/<sha12>.parquet` and `oracle/<sha12>.json` (rows, nulls and a SHA-256 of canonical texts per column, where
 * several independent readers agree). It is read in place.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a reader must do with a file. */
export type Expect = 'ok' | 'must-reject' | 'may-reject' | 'unsupported-by-most' | 'fuzz-must-reject' | 'fuzz-any';

export interface OracleColumn {
  /** Place among the top-level fields. */
  readonly index: number;
  readonly name: string;
  /** The schema below it, for columns that are not flat. */
  readonly nested?: { readonly logical?: { readonly t?: string } };
  readonly nulls?: number;
  /** Absent when readers do not agree. */
  readonly sha256?: string;
}

export interface Oracle {
  readonly num_rows: number;
  readonly columns: readonly OracleColumn[];
}

export interface CorpusFile {
  readonly sha12: string;
  readonly path: string;
  /** Where the file comes from, for people. */
  readonly origin: string;
  readonly expect: Expect;
  readonly oracle: Oracle | undefined;
}

/** Bytes: the cap that scans of corpus files are given. */
export const MEMORY_BYTES = 256 << 20;

/** The folder to look in when none is named. */
export function defaultCorpusFolder(): string {
  return process.env.QANAT_CORPUS ?? join(import.meta.dirname, '../../shared/corpus/given');
}

/** Undefined when there is no corpus in the folder. Throws on an inventory without the columns that are needed. */
export function readCorpus(folder: string): CorpusFile[] | undefined {
  const inventory = join(folder, 'inventory.tsv');
  if (!existsSync(inventory)) return undefined;
  const [header = '', ...lines] = readFileSync(inventory, 'utf8').trimEnd().split('\n');
  const names = header.split('\t');
  const place = (name: string): number => {
    const at = names.indexOf(name);
    if (at < 0) throw new Error(`${inventory} has no column ${name}`);
    return at;
  };
  const at = {
    sha12: place('sha12'),
    repo: place('repo'),
    source: place('source_path'),
    expect: place('expect'),
  };
  return lines.map((line) => {
    const cells = line.split('\t');
    const cell = (name: keyof typeof at): string => cells[at[name]] ?? '';
    return {
      sha12: cell('sha12'),
      path: join(folder, 'files', `${cell('sha12')}.parquet`),
      origin: `${cell('repo')}:${cell('source')}`,
      expect: cell('expect') as Expect,
      oracle: readOracle(join(folder, 'oracle', `${cell('sha12')}.json`)),
    };
  });
}

function readOracle(path: string): Oracle | undefined {
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Oracle) : undefined;
}
