/** Numbers in structures of the library: read from where it put them, written to where it looks for them. */
import type { VerbsLibrary } from './library.ts';

/** A structure of the library, for reading. */
export function structAt(library: VerbsLibrary, address: bigint, bytes: number): DataView {
  return new DataView(library.view(address, bytes));
}

export function pointerIn(struct: DataView, at: number): bigint {
  return struct.getBigUint64(at, true);
}

export function u32In(struct: DataView, at: number): number {
  return struct.getUint32(at, true);
}
