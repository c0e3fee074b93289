/** What a file's reading is worth against what was expected. Pure. */
import type { CorpusFile, OracleColumn } from './corpus-files.ts';
import type { ColumnReading, FileReading, ReadingError } from './corpus-reading.ts';

export type Outcome =
  | 'matched' // every column that can be read has the expected values, and none failed
  | 'refused' // a typed error, and no wrong value
  | 'unsupported' // the only errors say that this version does not do it, and no wrong value
  | 'WRONG'
  | 'crash'
  | 'hang';

export interface Verdict {
  readonly outcome: Outcome;
  /** Why it must not be so; absent when it may. */
  readonly failure?: string;
  /** What was not supported, or why it was refused. */
  readonly reasons: readonly string[];
  readonly columnsMatched: number;
}

const isUnsupported = (error: ReadingError): boolean => error.code === 'UNSUPPORTED';

/** Judges a file that was read to its end, well or not. `rssBytesMax` bounds the resident memory of its process. */
export function judge(file: CorpusFile, reading: FileReading, rssBytesMax: number): Verdict {
  const errors = [reading.error, ...reading.columns.map((column) => column.error)].filter(
    (error) => error !== undefined,
  );
  const viewErrors = reading.view?.errors ?? [];
  const reasons = [...new Set(errors.map((error) => `${error.code}: ${error.reason}`))];
  const wrong = wrongValues(file, reading);
  const columnsMatched = reading.columns.filter((column) => isMatched(file, column)).length;
  const verdict = (outcome: Outcome, failure?: string): Verdict => ({
    outcome,
    ...(failure === undefined ? {} : { failure }),
    reasons,
    columnsMatched,
  });

  const untyped = [...errors, ...viewErrors].find((error) => error.code === undefined);
  if (untyped !== undefined) return verdict('crash', `an error without a type: ${untyped.message}`);
  if (wrong !== undefined) return verdict('WRONG', wrong);
  const outcome = errors.length === 0 ? 'matched' : errors.every(isUnsupported) ? 'unsupported' : 'refused';
  if (reading.leakedBytes !== 0) return verdict(outcome, `${reading.leakedBytes} bytes of the pool did not come back`);
  if (reading.peakRssBytes > rssBytesMax) return verdict(outcome, `took ${reading.peakRssBytes} bytes of memory`);
  if (outcome === 'matched' && file.expect.endsWith('must-reject')) return verdict(outcome, 'accepted');
  const excused = errors.every(
    ({ code, reason }) => code === 'ENCRYPTED' || (code === 'UNSUPPORTED' && /LZO/.test(reason)),
  );
  if (outcome !== 'matched' && file.expect === 'ok' && !excused) return verdict(outcome, errors[0]!.message);
  return verdict(outcome);
}

function oracleColumn({ oracle }: CorpusFile, column: ColumnReading): OracleColumn | undefined {
  // readers decode a variant's bytes; here they come as they are stored
  return oracle?.columns.find(
    ({ index, nested, sha256 }) =>
      index === column.topLevel && nested?.logical?.t !== 'VARIANT' && sha256 !== undefined,
  );
}

function isMatched(file: CorpusFile, column: ColumnReading): boolean {
  const expected = oracleColumn(file, column);
  return column.error === undefined && expected !== undefined && expected.sha256 === column.sha256;
}

/** The first difference from the oracle; undefined when there is none. */
function wrongValues(file: CorpusFile, { columns, together, view }: FileReading): string | undefined {
  if (together !== undefined) return together;
  if (view?.difference !== undefined) {
    return [view.difference, ...view.errors.map(({ message }) => message)].join('; ');
  }
  // of files that are to be refused the readers that made the oracle read some parts, in their own ways
  if (file.oracle === undefined || file.expect.endsWith('must-reject')) return undefined;
  for (const column of columns) {
    const { name, error, rows, nulls, sha256 } = column;
    if (error !== undefined) continue;
    const expected = oracleColumn(file, column);
    if (expected === undefined) continue;
    if (rows !== file.oracle.num_rows) return `${name}: ${rows} rows, expected ${file.oracle.num_rows}`;
    if (nulls !== (expected.nulls ?? nulls)) return `${name}: ${nulls} nulls, expected ${expected.nulls}`;
    if (sha256 !== expected.sha256) return `${name}: other values than expected`;
  }
  return undefined;
}
