/** The kernel build and loader, and that the benchmark runs (small). */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { benchKernels } from '../bench/kernels.ts';
import { buildKernels } from '../kernels/build.ts';
import { KERNELS_WASM } from '../kernels/layout.ts';
import { chooseKernels, loadKernels } from '../kernels/load.ts';

test('a build that is newer than its sources is left alone', () => {
  buildKernels();
  assert.equal(buildKernels(), false);
});

test('a source that does not compile fails with the compiler’s words and leaves no output', () => {
  const folder = mkdtempSync(join(tmpdir(), 'qanat-kernels-'));
  try {
    writeFileSync(join(folder, 'index.ts'), 'export function broken(): i32 { return nothing; }\n');
    const output = join(folder, 'out', 'kernels.wasm');
    assert.throws(() => buildKernels(output, folder), /kernel build failed[\s\S]*nothing/);
    assert.throws(() => buildKernels(output, folder), /kernel build failed/, 'nothing was left that looks up to date');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('QANAT_KERNELS chooses, and nothing else is taken for an answer', () => {
  const before = process.env.QANAT_KERNELS;
  try {
    delete process.env.QANAT_KERNELS;
    assert.equal(chooseKernels(), 'wasm');
    process.env.QANAT_KERNELS = 'scalar';
    assert.equal(chooseKernels(), 'scalar');
    process.env.QANAT_KERNELS = 'fast';
    assert.throws(chooseKernels, /QANAT_KERNELS is fast/);
  } finally {
    if (before === undefined) delete process.env.QANAT_KERNELS;
    else process.env.QANAT_KERNELS = before;
  }
});

test('both kinds have the same kernels, over memories of any maximum', () => {
  const names = [1, 1000, 65536].map((maximum) => {
    const memory = new WebAssembly.Memory({ initial: 1, maximum, shared: true });
    assert.deepEqual(
      Object.keys(loadKernels(memory, 'scalar')).filter((name) => !(name in loadKernels(memory, 'wasm'))),
      [],
    );
    return Object.keys(loadKernels(memory, 'wasm')).sort().join();
  });
  assert.equal(new Set(names).size, 1);
});

test('scalar kernels follow a memory that grows', () => {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 4, shared: true });
  const kernels = loadKernels(memory, 'scalar');
  memory.grow(2);
  const bytes = new Uint8Array(memory.buffer);
  bytes.set([1, 2, 3], 140000);
  kernels.copy(150000, 140000, 3);
  assert.deepEqual([...bytes.subarray(150000, 150003)], [1, 2, 3]);
});

test('the benchmark runs small, also against another build', () => {
  const rates = benchKernels(4096, 1, '', KERNELS_WASM);
  assert.ok(rates.length > 60);
  for (const { name, rate } of rates) assert.ok(rate > 0 && Number.isFinite(rate), name);
});
