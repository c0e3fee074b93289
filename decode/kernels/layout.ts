/**
 * Where the kernel module lives: its file, and the part of every kernel memory that holds its read-only tables. All
 * instances on one memory write the same bytes there; nothing else may use it.
 */
import { fileURLToPath } from 'node:url';

export const KERNELS_WASM = fileURLToPath(new URL('../../build/kernels.wasm', import.meta.url));

/** Bytes [1024, 8192) of the memory are the module's: about 5 KiB of tables, the rest is margin. */
export const TABLES_START = 1024;
export const TABLES_END = 8192;

/** Pages of the largest memory (4 GiB, all of wasm32); the import declares it, so that any shared memory matches. */
export const MEMORY_PAGES_MAX = 65536;
