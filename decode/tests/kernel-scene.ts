/** A kernel memory with fixed places, for tests on literal vectors. */
import { test } from 'node:test';
import type { KernelKind } from '../kernels/load.ts';
import { Arena } from './kernel-fuzz.ts';

export const SRC = 1 << 17;
export const OUT = 1 << 18;
export const DICTIONARY = 1 << 19;

export class Scene extends Arena {
  put(at: number, bytes: Iterable<number>): void {
    this.bytes.set([...bytes], at);
  }

  /** Zeroes the state and sets words of it. */
  start(words: Record<number, number>): void {
    this.bytes.fill(0, this.state, this.state + 128);
    for (const [word, value] of Object.entries(words)) this.setWord(Number(word), value);
  }

  out(size: number, at = OUT): number[] {
    return [...this.bytes.subarray(at, at + size)];
  }

  u32s(count: number, at = OUT): number[] {
    return Array.from({ length: count }, (_, i) => this.data.getUint32(at + 4 * i, true));
  }
}

/** A test in both implementations. */
export function each(name: string, body: (scene: Scene) => void): void {
  for (const kind of ['wasm', 'scalar'] as KernelKind[]) test(`${name} (${kind})`, () => body(new Scene(kind)));
}

export const text = (value: string): number[] => [...new TextEncoder().encode(value)];
