/**
 * The corpus of real files with expected values, for tests that use it when it is there: QANAT_CORPUS, or
 * `../shared/corpus/given` next to the repository. It is read in place and is no part of the repository.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = process.env.QANAT_CORPUS ?? join(import.meta.dirname, '../../../shared/corpus/given');

/** Why there is no corpus, or false when there is. */
export const corpusAbsent: string | false = existsSync(join(FOLDER, 'inventory.tsv'))
  ? false
  : `no corpus in ${FOLDER} (set QANAT_CORPUS)`;

/** A line of the inventory, by the names of its header. */
export type CorpusEntry = Readonly<Record<string, string>>;

export function corpusEntries(): CorpusEntry[] {
  const [header = '', ...lines] = readFileSync(join(FOLDER, 'inventory.tsv'), 'utf8').trimEnd().split('\n');
  const names = header.split('\t');
  return lines.map((line) => {
    const values = line.split('\t');
    return Object.fromEntries(names.map((name, i) => [name, values[i] ?? '']));
  });
}

export function corpusFile(entry: CorpusEntry): Uint8Array {
  return Uint8Array.from(readFileSync(join(FOLDER, 'files', `${entry.sha12}.parquet`)));
}
