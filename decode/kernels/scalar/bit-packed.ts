/** Levels in the deprecated BIT_PACKED encoding (Parquet "Encodings", BIT_PACKED = 4), one bit at a time. */
import { DONE, E_TRUNC, E_VALUE, E_WIDTH } from '../kernels.ts';
import type { MemoryView } from './view.ts';

export function bitPackedLevels(
  { bytes }: MemoryView,
  src: number,
  srcEnd: number,
  width: number,
  n: number,
  dst: number,
  limit: number,
): number {
  if (width > 8) return E_WIDTH;
  if (srcEnd - src < Math.ceil((n * width) / 8)) return E_TRUNC;
  let bit = 0;
  for (let i = 0; i < n; i++) {
    let value = 0;
    for (let k = 0; k < width; k++, bit++) {
      value = 2 * value + ((bytes[src + Math.floor(bit / 8)]! >> (7 - (bit % 8))) & 1);
    }
    if (value >= limit) return E_VALUE;
    bytes[dst + i] = value;
  }
  return DONE;
}
