/**
 * Several kernel instances on one memory: a thread decodes and checks while another keeps making instances. An
 * instantiation that wrote its tables anew would show up as wrong pages on the other side.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { compress } from 'snappyjs';
import { loadKernels } from '../kernels/load.ts';

interface Report {
  pages: number;
  wrong: number;
}

const THREAD = `
  import { parentPort, workerData } from 'node:worker_threads';
  import { loadKernels } from ${JSON.stringify(new URL('../kernels/load.ts', import.meta.url).href)};
  const { memory, base, block, text, pages, instantiate } = workerData;
  const bytes = new Uint8Array(memory.buffer);
  const words = new Uint32Array(memory.buffer);
  const [state, src, dst] = [base, base + 65536, base + (1 << 20)];
  bytes.set(block, src);
  let kernels = loadKernels(memory, 'wasm');
  let wrong = 0;
  for (let page = 0; page < pages; page++) {
    if (instantiate) for (let i = 0; i < 20; i++) kernels = loadKernels(memory, 'wasm');
    words.fill(0, state / 4, state / 4 + 16);
    words.set([src, src + block.length, dst, dst, dst + text.length], state / 4);
    const code = kernels.snappy(state, src + block.length);
    if (code !== 0 || Buffer.compare(bytes.subarray(dst, dst + text.length), text) !== 0) wrong++;
  }
  parentPort.postMessage({ pages, wrong });
`;

test('instances on one shared memory do not disturb each other', async () => {
  const memory = new WebAssembly.Memory({ initial: 128, maximum: 65536, shared: true });
  loadKernels(memory, 'wasm'); // the threads take over the compiled module
  const text = new TextEncoder().encode(Array.from({ length: 4000 }, (_, i) => (i * 7919) % 1000).join(' '));
  const block = compress(text);
  const run = (base: number, instantiate: boolean, pages: number): Promise<Report> =>
    new Promise((resolve, reject) => {
      const workerData = { memory, base, block, text, pages, instantiate };
      const url = new URL(`data:text/javascript,${encodeURIComponent(THREAD)}`);
      new Worker(url, { workerData }).once('message', resolve).once('error', reject);
    });
  const reports = await Promise.all([run(1 << 20, false, 4000), run(4 << 20, true, 500)]);
  assert.deepEqual(reports, [
    { pages: 4000, wrong: 0 },
    { pages: 500, wrong: 0 },
  ]);
});
