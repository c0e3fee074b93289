/** The benchmarks run on small tables: sides agree on the values, and `--json` prints one object and nothing else. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const BENCH = fileURLToPath(new URL('../bench.ts', import.meta.url));
const run = promisify(execFile);

const RATIOS: Readonly<Record<string, readonly string[]>> = {
  decode: [
    'duckdb.fixed.overall',
    'duckdb.fixed.min',
    'duckdb.fixed.geomean',
    'duckdb.strings.overall',
    'parquet-wasm.overall',
    'hyparquet.overall',
  ],
  scan: ['wall.overBound', 'profiler.cost.scan', 'profiler.cost.decode', 'profiler.cost.cpu'],
  memory: ['rss.overCap'],
  serve: [
    'nginx.throughput.small',
    'nginx.throughput.large',
    'nginx.throughput.pinned.small',
    'nginx.throughput.pinned.large',
  ],
  footer: ['duckdb.time', 'hyparquet.time', 'parquet-wasm.time'],
  cache: ['cache.sequential', 'cache.random.time', 'cache.cold.wall', 'cache.cold.cpu', 'cache.warm.wall'],
};

for (const [name, expected] of Object.entries(RATIOS)) {
  test(`bench ${name} --small --json`, async () => {
    const { stdout } = await run(process.execPath, [BENCH, name, '--small', '--json', '--rows', '40000']);
    const { ratios, benchmarks } = JSON.parse(stdout) as {
      ratios: Record<string, number>;
      benchmarks: Record<string, { skipped?: string; variants?: readonly { ratio: number }[] }>;
    };
    if (benchmarks[name]?.skipped !== undefined) return;
    for (const ratio of expected) assert.ok(ratios[ratio]! > 0 && Number.isFinite(ratios[ratio]), ratio);
    if (name === 'decode') assert.ok(benchmarks.decode?.variants?.every(({ ratio }) => ratio > 0));
  });
}

test('an unknown benchmark is refused with the usage', async () => {
  await assert.rejects(
    run(process.execPath, [BENCH, 'speed']),
    ({ code, stderr }: { code: number; stderr: string }) => {
      assert.equal(code, 1);
      assert.match(stderr, /no benchmark speed/);
      assert.match(stderr, /usage: npm run bench/);
      return true;
    },
  );
});
