/** SECURITY.md names tests for what it promises: all of them are there. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = join(import.meta.dirname, '../..');

test('every test that SECURITY.md names exists', () => {
  const text = readFileSync(join(ROOT, 'SECURITY.md'), 'utf8');
  const named = [...text.matchAll(/^ +- `([\w./-]+\.(?:slow-)?test\.ts)`: (.+)$/gm)];
  assert.ok(named.length > 20);
  const missing = named.filter(
    ([, file, name]) =>
      !readFileSync(join(ROOT, file!), 'utf8').includes(name!.replaceAll("'", "\\'")) &&
      !readFileSync(join(ROOT, file!), 'utf8').includes(name!),
  );
  assert.deepEqual(
    missing.map(([line]) => line.trim()),
    [],
  );
  const promises = text.slice(text.indexOf('## What is promised'), text.indexOf('## What is not promised'));
  for (const promise of promises.split(/^\d+\. /m).slice(1)) assert.match(promise, /\.test\.ts`|slow-test\.ts`/);
});
