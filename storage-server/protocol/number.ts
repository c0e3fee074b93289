/**
 * Numbers of the wire as JavaScript numbers. A u64 beyond 2^53 can't be held exactly, so it is refused where it is
 * read, once; everything after that computes with exact integers.
 */
import { ProtocolError } from './errors.ts';

const TWO_32 = 0x1_0000_0000;

/** Largest high half of a u64 that still is a safe integer. */
const HIGH_MAX = 0x1f_ffff;

/** Reads a u64, little-endian; `address` is where it lies in a region, if it does. Throws NUMBER beyond 2^53 - 1. */
export function readU64(view: DataView, at: number, what: string, address?: number): number {
  const high = view.getUint32(at + 4, true);
  if (high > HIGH_MAX) throw new ProtocolError('NUMBER', `${what} is beyond 2^53`, address);
  return high * TWO_32 + view.getUint32(at, true);
}

/** Writes a safe non-negative integer as u64, little-endian. Throws NUMBER on anything else. */
export function writeU64(view: DataView, at: number, value: number, what: string): void {
  if (!Number.isSafeInteger(value) || value < 0)
    throw new ProtocolError('NUMBER', `${what} ${value} is not a u64 we can hold`);
  view.setUint32(at, value % TWO_32, true);
  view.setUint32(at + 4, Math.floor(value / TWO_32), true);
}

/** a + b, or NUMBER if the sum is no safe integer. */
export function addExact(a: number, b: number, what: string): number {
  const sum = a + b;
  if (!Number.isSafeInteger(sum)) throw new ProtocolError('NUMBER', `${what} overflows`);
  return sum;
}

/** The next multiple of `align` (a power of two) at or above `value`, or NUMBER if that is no safe integer. */
export function alignUp(value: number, align: number, what: string): number {
  const over = value % align;
  return over === 0 ? value : addExact(value, align - over, what);
}

/** A view of the same bytes, for numbers. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
