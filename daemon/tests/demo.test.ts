/** The demo, small: it checks itself, so what is left is that it says so and leaves nothing. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { test } from 'node:test';
import { qanat } from './command-run.ts';
import { Lake } from './lake.ts';

test('the demo finds every value equal, accounts for every byte and removes its files', async () => {
  await using temporary = await Lake.create();
  const { code, text, errors } = await qanat(['demo', '--rows', '20000', '--json'], {
    env: { TMPDIR: temporary.folder },
  });
  assert.equal(errors, '');
  assert.equal(code, 0);
  const result = JSON.parse(text);
  assert.equal(result.equal, true);
  assert.equal(result.columns.length, 16);
  assert.ok(result.rows > 15_000 && result.rows < 25_000);
  assert.equal(result.report.bytes.accounted, result.report.bytes.onWire);
  assert.deepEqual(await readdir(temporary.folder), []);
  const shown = await qanat(['demo', '--rows', '20000'], { env: { TMPDIR: temporary.folder } });
  assert.match(shown.text, /^Every value is the one that DuckDB reads\.$/m);
  if (existsSync('/dev/fuse') && process.getuid?.() === 0) {
    for (const view of ['raw', 'decoded']) {
      assert.equal(result.mount.views?.[view].equal, true, JSON.stringify(result.mount));
      assert.ok(result.mount.views[view].series > 10);
      assert.match(shown.text, new RegExp(`^${view} view .* yes `, 'm'));
    }
  } else assert.match(shown.text, /^(raw view .* yes |No mount on this machine: .)/m);
  assert.deepEqual(await readdir(temporary.folder), []);
  assert.match(shown.text, /^l_comment .* yes {2}[0-9a-f]{12}$/m);
});
