/** UTF-8 validation (RFC 3629, section 4), a character at a time. */
import { DONE, E_LENGTH, E_UTF8 } from '../kernels.ts';
import type { MemoryView } from './view.ts';

export function utf8(view: MemoryView, src: number, end: number): number {
  const { bytes } = view;
  for (let ip = src; ip < end; ) {
    const lead = bytes[ip]!;
    const more = continuations(lead);
    if (more < 0 || ip + more >= end) return E_UTF8;
    for (let k = 1; k <= more; k++) {
      const byte = bytes[ip + k]!;
      // the second byte rules out over-long forms, surrogates and what is over U+10FFFF
      const lowest = k === 1 && lead === 0xe0 ? 0xa0 : k === 1 && lead === 0xf0 ? 0x90 : 0x80;
      const highest = k === 1 && lead === 0xed ? 0x9f : k === 1 && lead === 0xf4 ? 0x8f : 0xbf;
      if (byte < lowest || byte > highest) return E_UTF8;
    }
    ip += 1 + more;
  }
  return DONE;
}

function continuations(lead: number): number {
  if (lead < 0x80) return 0;
  if (lead < 0xc2) return -1;
  if (lead < 0xe0) return 1;
  if (lead < 0xf0) return 2;
  return lead < 0xf5 ? 3 : -1;
}

export function utf8Starts(view: MemoryView, offsets: number, n: number, base: number, dataEnd: number): number {
  let bad = false;
  for (let i = 0; i < n; i++) {
    const offset = view.u32(offsets + 4 * i);
    if (offset > dataEnd - base) return E_LENGTH;
    if (offset < dataEnd - base && (view.bytes[base + offset]! & 0xc0) === 0x80) bad = true;
  }
  return bad ? E_UTF8 : DONE;
}
