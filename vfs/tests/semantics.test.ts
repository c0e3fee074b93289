/** SEMANTICS.md and the tests say the same: which promises there are, which tests stand for them, which errors exist. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Errno } from '../errno.ts';

const root = join(import.meta.dirname, '../..');
const document = readFileSync(join(root, 'vfs/SEMANTICS.md'), 'utf8');

/** A title as a pattern: what a template puts in is an ellipsis in the document. */
const asWritten = (title: string): string => title.replace(/\$\{(?:[^{}]|\{[^{}]*\})*\}/g, '…').replace(/\\(.)/g, '$1');

/** The promises that the document ties to tests, as "number file: title". */
function promised(): string[] {
  const found: string[] = [];
  let number = 0;
  for (const line of document.split('\n')) {
    const sentence = /^(\d+)\. /.exec(line);
    if (sentence !== null) {
      assert.equal(Number(sentence[1]), ++number, 'numbers count up from 1');
      continue;
    }
    const tied = /^ +- `([^`]+\.test\.ts)`: (.+)$/.exec(line);
    if (tied !== null) found.push(`${number} ${tied[1]}: ${tied[2]}`);
  }
  assert.ok(number > 30);
  return found;
}

/** The same by the comments above the tests. */
function claimed(): string[] {
  const found: string[] = [];
  for (const path of globSync('{vfs,daemon,fetcher}/tests/*.test.ts', { cwd: root })) {
    const source = readFileSync(join(root, path), 'utf8');
    for (const { 1: numbers, index, 0: comment } of source.matchAll(/^ *\/\/ SEMANTICS ([\d, ]+)\n/gm)) {
      const call = /^\s*test\(\s*(['`])((?:\\.|(?!\1).)*)\1/s.exec(source.slice(index + comment.length));
      assert.ok(call !== null, `${path}: no test below ${comment.trim()}`);
      for (const number of numbers!.split(',')) found.push(`${Number(number)} ${path}: ${asWritten(call[2]!)}`);
    }
  }
  return found;
}

test('every promise names tests that exist and name it', () => {
  assert.deepEqual(promised().sort(), claimed().sort());
});

test('every promise has a test', () => {
  const numbers = new Set(promised().map((line) => Number(line.split(' ')[0])));
  const all = [...document.matchAll(/^(\d+)\. /gm)].map((match) => Number(match[1]));
  assert.deepEqual([...numbers], all);
});

test('the table of errors has every number that there is', () => {
  const rows = document.split('\n').filter((line) => line.startsWith('| `E'));
  const names = rows.flatMap((line) => [...line.split('|')[1]!.matchAll(/`(E\w+)`/g)].map((match) => match[1]!));
  assert.deepEqual(names.sort(), Object.keys(Errno).sort());
});
