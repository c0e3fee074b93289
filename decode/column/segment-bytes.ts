/** How much a decoder put out, for who counts it: bytes of Arrow layout, not of the slabs that they lie in. */
import type { DictionaryValues, Segment } from './spec.ts';

const bitmapBytes = (address: number, slots: number): number => (address === 0 ? 0 : Math.ceil(slots / 8));

/** Bytes of a segment's validity, offsets, values and data; its dictionary is not one of them. */
export function segmentBytes({ layout, width, rows, validity, dataBytes, nested }: Segment): number {
  const slots = nested?.slots ?? rows;
  let bytes = bitmapBytes(validity, slots);
  if (layout === 'bits') bytes += Math.ceil(slots / 8);
  else if (layout === 'bytes') bytes += (slots + 1) * 4 + dataBytes;
  else bytes += slots * width;
  for (const node of nested?.nodes ?? []) {
    bytes += bitmapBytes(node.validity, node.slots);
    if (node.offsets !== 0) bytes += (node.slots + 1) * 4;
  }
  return bytes;
}

/** Bytes of a dictionary's offsets and data. */
export function dictionaryBytes({ count, dataBytes }: DictionaryValues): number {
  return (count + 1) * 4 + dataBytes;
}
