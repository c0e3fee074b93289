/** Decimals to 16-byte little-endian integers, from the back; INT96 timestamps to nanoseconds. */
import { DONE, E_VALUE } from '../kernels.ts';
import type { MemoryView } from './view.ts';

const EPOCH_JULIAN_DAY = 2440588n;
const DAY_NANOS = 86_400_000_000_000n;

function setI128(view: MemoryView, address: number, value: bigint): void {
  view.setU64(address, value);
  view.setU64(address + 8, value >> 64n);
}

export function widenDecimal4(view: MemoryView, src: number, n: number, dst: number): void {
  for (let i = n - 1; i >= 0; i--) setI128(view, dst + 16 * i, BigInt(view.data.getInt32(src + 4 * i, true)));
}

export function widenDecimal8(view: MemoryView, src: number, n: number, dst: number): void {
  for (let i = n - 1; i >= 0; i--) setI128(view, dst + 16 * i, view.data.getBigInt64(src + 8 * i, true));
}

export function reverseDecimal(view: MemoryView, src: number, n: number, width: number, dst: number): void {
  for (let i = n - 1; i >= 0; i--) {
    let value = 0n;
    for (let k = 0; k < width; k++) value = (value << 8n) | BigInt(view.bytes[src + i * width + k]!);
    setI128(view, dst + 16 * i, BigInt.asIntN(8 * width, value));
  }
}

export function int96ToNanos(view: MemoryView, src: number, n: number, dst: number): number {
  for (let i = 0; i < n; i++) {
    const nanos = view.data.getBigInt64(src + 12 * i, true);
    const days = BigInt(view.data.getInt32(src + 12 * i + 8, true)) - EPOCH_JULIAN_DAY;
    const value = days * DAY_NANOS + nanos;
    if (BigInt.asIntN(64, value) !== value) return E_VALUE;
    view.setU64(dst + 8 * i, value);
  }
  return DONE;
}
