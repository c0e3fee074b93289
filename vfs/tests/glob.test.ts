import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FetchError } from '../../fetcher/index.ts';
import { escapeGlob, parseGlob } from '../glob.ts';

function matches(pattern: string, yes: readonly string[], no: readonly string[]): void {
  const glob = parseGlob(pattern);
  for (const path of yes) assert.ok(glob.matches(path), `${pattern} matches ${path}`);
  for (const path of no) assert.ok(!glob.matches(path), `${pattern} does not match ${path}`);
}

test('stars and question marks stay within a segment', () => {
  matches('*.parquet', ['a.parquet', '.parquet', '.hidden.parquet'], ['a/b.parquet', 'a.parquet.tmp', 'A.PARQUET']);
  matches('a/*/c', ['a/b/c', 'a/ü/c'], ['a/c', 'a/b/b/c', 'a//c/']);
  matches('part-?.pq', ['part-1.pq', 'part-漢.pq', 'part-😀.pq'], ['part-.pq', 'part-10.pq', 'part-/.pq']);
  matches('*a*b*', ['ab', 'xaxbx', 'aab'], ['ba', 'a/b']);
});

test('a double star of its own is any number of segments', () => {
  matches(
    'year=2024/**/*.parquet',
    ['year=2024/a.parquet', 'year=2024/m=1/d=2/a.parquet'],
    ['year=2024', 'year=20245/a.parquet'],
  );
  matches('**/x', ['x', 'a/x', 'a/b/x'], ['ax', 'a/bx', 'x/a']);
  matches('a/**', ['a/b', 'a/b/c'], ['a', 'ab', 'b/a/c']);
  matches('a/**/b', ['a/b', 'a/x/b', 'a/x/y/b'], ['ab', 'a/xb', 'a/b/c']);
  matches('**', ['a', 'a/b'], []);
  matches('a**b', ['ab', 'axb'], ['a/b']); // not of its own: a star
  matches('x,**', ['x,y'], ['x,y/z']);
});

test('sets', () => {
  matches('[a-c]', ['a', 'b', 'c'], ['d', '-', 'ab', '']);
  matches('[!a-c]', ['d', '-'], ['a', '/']);
  matches('[^a-c]', ['d'], ['a']);
  matches('[]x]', [']', 'x'], ['[', 'a']);
  matches('[a-]', ['a', '-'], ['b']);
  matches('[\\]a]', [']', 'a'], ['\\']);
  matches('a[!b]c', ['axc'], ['a/c', 'abc']);
  matches('[ä-ü]', ['ö'], ['o']);
});

test('alternatives', () => {
  matches('{a,b}.pq', ['a.pq', 'b.pq'], ['c.pq', 'a,b.pq', '.pq']);
  matches('{2023/*,2024/0[1-3]}/x', ['2023/99/x', '2024/02/x'], ['2024/04/x', '2023/x']);
  matches('a{,b,c{d,e}}z', ['az', 'abz', 'acdz', 'acez'], ['acz', 'acdez']);
  matches('{a,**}/x', ['a/x', 'b/c/x'], ['x/y']);
});

test('what is not closed, or escaped, stands for itself', () => {
  matches('a[b', ['a[b'], ['ab']);
  matches('a{b,c', ['a{b,c'], ['ab']);
  matches('a{b}c', ['a{b}c'], ['abc']);
  matches('a}b]c', ['a}b]c'], []);
  matches('a\\*b', ['a*b'], ['axb']);
  matches('a\\', ['a\\'], ['a']);
  matches('a.b(c)+$^|', ['a.b(c)+$^|'], ['axb(c)+$^|']);
  const name = 'odd *?[a-z]{b,c}\\ name';
  matches(escapeGlob(name), [name], ['odd x']);
  assert.equal(parseGlob(escapeGlob(name)).literal, name);
});

test('the literal part before the first wildcard is known', () => {
  const parts = (pattern: string) => {
    const { literal, lead, prefix, verbatim } = parseGlob(pattern);
    return { literal, lead, prefix, verbatim };
  };
  const literal = (path: string, prefix: string) => ({ literal: path, lead: path, prefix, verbatim: path });
  assert.deepEqual(parts('a/b.parquet'), literal('a/b.parquet', 'a/'));
  assert.deepEqual(parts(''), literal('', ''));
  const wild = (lead: string, prefix: string, verbatim: string) => ({ literal: undefined, lead, prefix, verbatim });
  assert.deepEqual(parts('a/b*/c'), wild('a/b', 'a/', 'a/b*/c'));
  assert.deepEqual(parts('a/{b,c}/d'), wild('a/', 'a/', 'a/{b,c}/d'));
  assert.deepEqual(parts('a\\*/\\[b]/?'), wild('a*/[b]/', 'a*/[b]/', 'a*/[b]/?'));
  assert.deepEqual(parts('**/x'), wild('', '', '**/x'));
});

test('hostile patterns take steps in proportion to pattern times path', () => {
  // Each of these takes for ever where globs become backtracking expressions or expand their braces.
  const path = 'a'.repeat(2000);
  matches(`${'*a'.repeat(1000)}b`, [], [path]);
  matches(`${'{a,aa}'.repeat(600)}b`, [], [path]);
  matches(`${'{a,b}'.repeat(500)}`, ['ab'.repeat(250)], [path]);
  matches(`${'**/'.repeat(500)}b`, [], ['a/'.repeat(1000)]);
  matches(`${'{*,'.repeat(15)}x${'}'.repeat(15)}`, ['x'], ['/']);
  const refuses = (pattern: string) =>
    assert.throws(
      () => parseGlob(pattern),
      (error) => error instanceof FetchError && error.code === 'BAD_URL',
    );
  refuses('{a,'.repeat(20) + '}'.repeat(20));
  refuses('a'.repeat(5000));
  matches('{'.repeat(2000), ['{'.repeat(2000)], []);
  matches('['.repeat(2000), ['['.repeat(2000)], []);
});
