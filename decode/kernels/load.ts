/**
 * Kernels for one memory. The WebAssembly module is compiled once per process: threads started after the first load
 * find it in their environment data. Each call makes an instance of its own, which costs microseconds.
 */
import { existsSync, readFileSync } from 'node:fs';
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';
import type { Kernels } from './kernels.ts';
import { KERNELS_WASM, TABLES_END } from './layout.ts';
import { scalarKernels } from './scalar/index.ts';

export type KernelKind = 'wasm' | 'scalar';

const SHARED_MODULE = 'qanat.kernels';
/** `v128.const 0; drop`: whether the engine takes SIMD at all. */
const SIMD_PROBE = Uint8Array.of(
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 3, 2, 1, 0, 10, 23, 1, 21, 0, 0xfd, 12],
  ...new Uint8Array(16),
  ...[0x1a, 0x0b],
);

/** `QANAT_KERNELS` (`wasm` or `scalar`), else wasm where the engine has SIMD. */
export function chooseKernels(): KernelKind {
  const wanted = process.env.QANAT_KERNELS;
  if (wanted === 'wasm' || wanted === 'scalar') return wanted;
  if (wanted !== undefined && wanted !== '') throw new Error(`QANAT_KERNELS is ${wanted}, expected wasm or scalar`);
  return WebAssembly.validate(SIMD_PROBE) ? 'wasm' : 'scalar';
}

/**
 * Kernels over a shared memory of any size up to 65536 pages; addresses are byte offsets into it. Bytes below
 * `TABLES_END` belong to the kernels, and the last 64 bytes of a 4 GiB memory may not be used, so that no end
 * address wraps to 0.
 */
export function loadKernels(memory: WebAssembly.Memory, kind: KernelKind = chooseKernels()): Kernels {
  if (memory.buffer.byteLength < TABLES_END) throw new Error('kernel memory has no room for the tables');
  if (kind === 'scalar') return scalarKernels(memory);
  return new WebAssembly.Instance(wasmModule(), { env: { memory } }).exports as unknown as Kernels;
}

let compiled: WebAssembly.Module | undefined;

function wasmModule(): WebAssembly.Module {
  if (compiled !== undefined) return compiled;
  const shared = getEnvironmentData(SHARED_MODULE);
  if (shared instanceof WebAssembly.Module) {
    compiled = shared;
  } else {
    if (!existsSync(KERNELS_WASM)) {
      throw new Error(`${KERNELS_WASM} is missing: run "node decode/kernels/build.ts", or set QANAT_KERNELS=scalar`);
    }
    compiled = new WebAssembly.Module(readFileSync(KERNELS_WASM));
    setEnvironmentData(SHARED_MODULE, compiled as never);
  }
  return compiled;
}
