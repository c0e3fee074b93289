/**
 * Compiles the kernels: `node decode/kernels/build.ts` turns `assembly/*.ts` into `build/kernels.wasm` with the
 * AssemblyScript compiler and a second Binaryen pass (worth 2-3 % on Snappy). Nothing is done when the output is newer
 * than its sources. The file appears by a rename, so that concurrent builds and readers never see half of it.
 *
 * `--zeroFilledMemory` matters: without it every instantiation would first write zeroes over the tables that instances
 * already running on the same shared memory are reading.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KERNELS_WASM, MEMORY_PAGES_MAX, TABLES_END, TABLES_START } from './layout.ts';

const SOURCES = fileURLToPath(new URL('./assembly/', import.meta.url));
const LAYOUT = fileURLToPath(new URL('./layout.ts', import.meta.url));

/** Builds `output` from the assembly sources in `sources` when it is missing or older; says whether it did. */
export function buildKernels(output = KERNELS_WASM, sources = SOURCES): boolean {
  if (!isStale(output, sources)) return false;
  const require = createRequire(import.meta.url);
  const compiler = require.resolve('assemblyscript/package.json');
  const asc = join(dirname(compiler), 'bin/asc.js');
  const wasmOpt = join(dirname(createRequire(compiler).resolve('binaryen')), 'bin/wasm-opt');
  const draft = `${output}.${process.pid}`;
  mkdirSync(dirname(output), { recursive: true });
  try {
    runTool(asc, [
      join(sources, 'index.ts'),
      ...['-o', draft, '--runtime', 'stub', '--use', 'abort=', '--noAssert', '-O3', '--converge'],
      ...['--importMemory', '--sharedMemory', '--initialMemory', '1', '--maximumMemory', String(MEMORY_PAGES_MAX)],
      ...['--noExportMemory', '--memoryBase', String(TABLES_START), '--zeroFilledMemory'],
      ...['--enable', 'simd,bulk-memory,threads,relaxed-simd'],
    ]);
    runTool(wasmOpt, [draft, '--all-features', '-O4', '-o', draft]);
    checkTables(draft);
    renameSync(draft, output);
  } finally {
    rmSync(draft, { force: true });
  }
  return true;
}

function isStale(output: string, sources: string): boolean {
  const built = statSync(output, { throwIfNoEntry: false });
  if (built === undefined) return true;
  const inputs = [fileURLToPath(import.meta.url), LAYOUT, ...readdirSync(sources).map((name) => join(sources, name))];
  return inputs.some((path) => statSync(path).mtimeMs >= built.mtimeMs);
}

function runTool(script: string, args: string[]): void {
  const result = spawnSync(process.execPath, [script, ...args], { encoding: 'utf8' });
  if (result.error !== undefined) throw result.error;
  if (result.status !== 0) {
    throw new Error(`kernel build failed: ${script} ended with ${result.status}\n${result.stdout}${result.stderr}`);
  }
}

/** The module's tables must stay in the part of the pool that is set aside for them. */
function checkTables(path: string): void {
  const memory = new WebAssembly.Memory({ initial: 1, maximum: MEMORY_PAGES_MAX, shared: true });
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(path)), { env: { memory } });
  const { tablesEnd } = exports as { tablesEnd: () => number };
  if (tablesEnd() > TABLES_END) throw new Error(`kernel tables end at ${tablesEnd()}, over ${TABLES_END}`);
}

if (import.meta.main) {
  try {
    process.stdout.write(buildKernels() ? `built ${KERNELS_WASM}\n` : `${KERNELS_WASM} is up to date\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
