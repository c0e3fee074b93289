/** The soak run for a few seconds finds nothing wrong. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

test('a run of some seconds', async () => {
  const soak = fileURLToPath(new URL('../soak.ts', import.meta.url));
  const { stdout } = await run(process.execPath, [soak, '--minutes', '0.1', '--json']).catch((error) => {
    assert.fail(`${error.stdout}\n${error.stderr}`);
  });
  const { scans, generations, kills, complaints } = JSON.parse(stdout) as {
    scans: Record<string, Record<string, number>>;
    generations: number;
    kills: number;
    complaints: string[];
  };
  assert.deepEqual(complaints, []);
  assert.ok(kills > 0 && generations > 2, `${kills} kills, ${generations} generations`);
  assert.deepEqual(Object.keys(scans).sort(), ['program', 'quick', 'slow']);
  assert.ok(scans.quick!.complete! > 0);
});
