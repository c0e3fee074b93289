/** The corpus command's judgement: what counts as wrong, accepted, unsupported, and what is excused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CorpusFile } from '../corpus-files.ts';
import type { ColumnReading, FileReading, ReadingError } from '../corpus-reading.ts';
import { judge } from '../corpus-verdict.ts';

const CAP = 1000;

function file(changes: Partial<CorpusFile> = {}): CorpusFile {
  const oracle = { num_rows: 3, columns: [{ index: 0, name: 'a', nulls: 1, sha256: 'good' }] };
  return { sha12: 's', path: 'p', origin: 'o', expect: 'ok', oracle, ...changes };
}

function column(changes: Partial<ColumnReading> = {}): ColumnReading {
  return { leaf: 0, topLevel: 0, name: 'a', rows: 3, nulls: 1, sha256: 'good', ...changes };
}

function reading(columns: readonly ColumnReading[], changes: Partial<FileReading> = {}): FileReading {
  return { columns, peakRssBytes: CAP, leakedBytes: 0, ...changes };
}

const error = (code: string): ReadingError => ({ code, message: `${code} in a`, reason: 'because' });

test('equal values match, any difference in rows, nulls or values is wrong', () => {
  const matched = judge(file(), reading([column()]), CAP);
  assert.deepEqual([matched.outcome, matched.failure, matched.columnsMatched], ['matched', undefined, 1]);
  for (const changes of [{ rows: 2 }, { nulls: 0 }, { sha256: 'bad' }]) {
    const verdict = judge(file(), reading([column(changes)]), CAP);
    assert.equal(verdict.outcome, 'WRONG');
    assert.match(verdict.failure!, /^a: /);
  }
  assert.equal(judge(file(), reading([column()], { together: 'a: other' }), CAP).outcome, 'WRONG');
});

test('wrong values are wrong whatever else failed', () => {
  const columns = [column({ sha256: 'bad' }), column({ leaf: 1, topLevel: 1, error: error('UNSUPPORTED') })];
  assert.equal(judge(file(), reading(columns), CAP).outcome, 'WRONG');
});

test('a file that must be rejected is accepted only when no column failed', () => {
  for (const expect of ['must-reject', 'fuzz-must-reject'] as const) {
    const accepted = judge(file({ expect }), reading([column({ sha256: 'other' })]), CAP);
    assert.equal(accepted.failure, 'accepted');
    const columns = [column(), column({ leaf: 1, topLevel: 1, error: error('PAGE') })];
    const refused = judge(file({ expect }), reading(columns), CAP);
    assert.deepEqual([refused.outcome, refused.failure], ['refused', undefined]);
  }
});

test('only encrypted columns and LZO excuse a file that is ok', () => {
  const unsupported = reading([column({ error: error('UNSUPPORTED') })]);
  assert.equal(judge(file(), unsupported, CAP).failure, 'UNSUPPORTED in a');
  for (const excuse of [error('ENCRYPTED'), { ...error('UNSUPPORTED'), reason: 'codec LZO is not supported' }]) {
    const excused = judge(file(), reading([column({ error: excuse })]), CAP);
    assert.notEqual(excused.outcome, 'matched');
    assert.equal(excused.failure, undefined);
    assert.deepEqual(excused.reasons, [`${excuse.code}: ${excuse.reason}`]);
  }
  assert.equal(judge(file(), reading([], { error: error('METADATA') }), CAP).failure, 'METADATA in a');
});

test('untyped errors, leaks and memory past the cap fail on any file', () => {
  const anything = file({ expect: 'fuzz-any' });
  const untyped = { message: 'TypeError: x', reason: 'x' };
  assert.equal(judge(anything, reading([column({ error: untyped })]), CAP).outcome, 'crash');
  assert.match(judge(anything, reading([column()], { leakedBytes: 1 }), CAP).failure!, /did not come back/);
  assert.match(judge(anything, reading([column()], { peakRssBytes: CAP + 1 }), CAP).failure!, /memory/);
});

test('what the decoded view holds otherwise than the file is wrong, and its errors have types', () => {
  const view = (changes: object) => reading([column()], { view: { decoded: 1, errors: [], ...changes } });
  assert.deepEqual(judge(file(), view({}), CAP).failure, undefined);
  assert.equal(judge(file(), view({ errors: [error('PAGE')] }), CAP).outcome, 'matched');
  const wrong = judge(file(), view({ difference: 'a: other values in the view', errors: [error('PAGE')] }), CAP);
  assert.deepEqual([wrong.outcome, wrong.failure], ['WRONG', 'a: other values in the view; PAGE in a']);
  assert.equal(judge(file(), view({ errors: [{ message: 'a bug', reason: 'a bug' }] }), CAP).outcome, 'crash');
});
