import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CATALOGUE, catalogueText } from '../catalogue.ts';
import { DEFINITIONS } from '../definitions.ts';

const root = join(import.meta.dirname, '../..');

test('METRICS.md is made from the definitions', () => {
  assert.equal(readFileSync(CATALOGUE, 'utf8'), catalogueText(), 'run `node metrics/catalogue.ts`');
});

test('METRICS.md lists exactly the definitions', () => {
  const listed = [...readFileSync(CATALOGUE, 'utf8').matchAll(/^- \*\*`(\w+)`\*\*/gm)].map((match) => match[1]);
  assert.deepEqual([...listed].sort(), DEFINITIONS.map(({ name }) => name).sort());
});

test('code names no metric by a text of its own', () => {
  const tracked = execFileSync('git', ['ls-files', '-z', '*.ts'], { cwd: root, encoding: 'utf8' }).split('\0');
  const names = new RegExp(`['"\`](?:${DEFINITIONS.map(({ name }) => name).join('|')})(?:_bucket|_sum|_count)?['"\`]`);
  const problems = tracked.filter((path) => {
    if (path === '' || /^metrics\/(?:\w+-)?definitions\.ts$/.test(path) || !existsSync(join(root, path))) return false;
    return names.test(readFileSync(join(root, path), 'utf8'));
  });
  assert.deepEqual(problems, []);
});
