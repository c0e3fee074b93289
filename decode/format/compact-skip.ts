/**
 * Where a struct of Thrift's compact protocol ends, as fast as JavaScript goes: a wide table's footer is megabytes of
 * column chunks of which a scan reads a few. One function without objects, which knows valid structs only: for anything
 * else it gives up, and `CompactReader.skip`, its twin, goes over the same bytes to say what is wrong. Grammar there.
 */
import { THRIFT_DEPTH_MAX } from './limits.ts';

/** A varint of 64 bits has at most this many bytes. */
const VARINT_BYTES_MAX = 10;

/**
 * The index after the struct that starts at `pos`, or -1 when it is not valid or does not end before `end`, which is at
 * most the length of `bytes`.
 */
export function structEnd(bytes: Uint8Array, start: number, end: number, depth = 0): number {
  if (depth >= THRIFT_DEPTH_MAX) return -1;
  let pos = start;
  while (pos < end) {
    const head = bytes[pos++]!;
    if (head === 0) return pos;
    // a zigzag varint with the field's id follows where its difference to the last is not in the head
    if (head < 0x10) {
      pos = varintEnd(bytes, pos, end);
      if (pos < 0) return -1;
    }
    const wire = head & 0x0f;
    if (wire >= 4 && wire <= 6) {
      // most integers have one or two bytes
      if (pos < end && bytes[pos]! < 0x80) pos++;
      else if (pos + 1 < end && bytes[pos + 1]! < 0x80) pos += 2;
      else pos = varintEnd(bytes, pos, end);
    } else if (wire > 2) pos = valueEnd(bytes, pos, end, wire, depth);
    else if (wire === 0) return -1;
    if (pos < 0) return -1;
  }
  return -1;
}

/** The index after a value that is no boolean of a field: those have no bytes of their own. */
function valueEnd(bytes: Uint8Array, start: number, end: number, wire: number, depth: number): number {
  let after: number;
  switch (wire) {
    case 3:
      after = start + 1;
      break;
    case 4:
    case 5:
    case 6:
      return varintEnd(bytes, start, end);
    case 7:
      after = start + 8;
      break;
    case 8: {
      const length = bytes[start];
      if (start < end && length! < 0x80) after = start + 1 + length!;
      else {
        const from = varintEnd(bytes, start, end);
        if (from < 0) return -1;
        const size = size32(bytes, start, from);
        if (size < 0) return -1;
        after = from + size;
      }
      break;
    }
    case 9:
    case 10:
      return listEnd(bytes, start, end, depth);
    case 12:
      return structEnd(bytes, start, end, depth + 1);
    case 13:
      after = start + 16;
      break;
    default:
      return -1; // maps, which footers do not have, and types that do not exist
  }
  return after <= end ? after : -1;
}

function listEnd(bytes: Uint8Array, start: number, end: number, depth: number): number {
  if (start >= end || depth + 1 >= THRIFT_DEPTH_MAX) return -1;
  const head = bytes[start]!;
  let pos = start + 1;
  let size = head >> 4;
  if (size === 15) {
    const from = varintEnd(bytes, pos, end);
    if (from < 0) return -1;
    size = size32(bytes, pos, from);
    if (size < 0) return -1;
    pos = from;
  }
  const wire = head & 0x0f;
  if (size > end - pos) return -1;
  for (let i = 0; i < size; i++) {
    pos = wire === 1 || wire === 2 ? pos + 1 : valueEnd(bytes, pos, end, wire, depth + 1);
    if (pos < 0 || pos > end) return -1;
  }
  return pos;
}

function varintEnd(bytes: Uint8Array, start: number, end: number): number {
  const last = Math.min(start + VARINT_BYTES_MAX, end);
  for (let pos = start; pos < last; pos++) {
    const b = bytes[pos]!;
    // the tenth byte holds the 64th bit alone
    if (b < 0x80) return pos - start === VARINT_BYTES_MAX - 1 && b > 1 ? -1 : pos + 1;
  }
  return -1;
}

/** The size in the varint at [start, end), or -1 for one of more than 31 bits. */
function size32(bytes: Uint8Array, start: number, end: number): number {
  if (end - start > 5) return -1;
  let size = 0;
  for (let pos = end - 1; pos >= start; pos--) size = size * 128 + (bytes[pos]! & 0x7f);
  return size <= 0x7fff_ffff ? size : -1;
}
