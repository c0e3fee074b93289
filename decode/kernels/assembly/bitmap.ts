// Bitmaps, least significant bit first: counting, copying at any bit offset, spreading.
import { DONE, E_LENGTH } from "./codes";

export function countOnes(bm: usize, n: u32): u32 {
  let c: u32 = 0;
  const words = n >> 6;
  for (let i: u32 = 0; i < words; i++) c += <u32>popcnt(load<u64>(bm + (<usize>i << 3)));
  for (let i = words << 6; i < n; i += 8) {
    const x: u32 = load<u8>(bm + <usize>(i >> 3)), r = n - i;
    c += <u32>popcnt(r >= 8 ? x : x & ((1 << r) - 1));
  }
  return c;
}

// n bits from bit srcBit of [src..) to bit dstBit of [dst..). Only target bits change and only bytes that hold
// source bits are read. The two may not overlap.
export function copyBits(src: usize, srcBit: u32, dst: usize, dstBit: u32, n: u32): void {
  src += srcBit >> 3; dst += dstBit >> 3;
  let s: u32 = srcBit & 7;
  const d: u32 = dstBit & 7;
  if (d && n) { // up to a whole byte of the target
    const k = min<u32>(n, 8 - d);
    const x: u32 = (<u32>load<u8>(src) | (s + k > 8 ? <u32>load<u8>(src, 1) << 8 : 0)) >> s;
    const m: u32 = ((1 << k) - 1) << d;
    store<u8>(dst, (load<u8>(dst) & ~m) | ((x << d) & m));
    s += k; src += s >> 3; s &= 7;
    dst++; n -= k;
  }
  if (s == 0) {
    const by = <usize>(n >> 3);
    if (by) memory.copy(dst, src, by);
    src += by; dst += by; n &= 7;
  } else {
    const up: u64 = 64 - s, down: u64 = s;
    for (; n >= 64; n -= 64) {
      store<u64>(dst, (load<u64>(src) >> down) | (<u64>load<u8>(src, 8) << up));
      src += 8; dst += 8;
    }
    for (; n >= 8; n -= 8) {
      store<u8>(dst, (<u32>load<u8>(src) >> s) | (<u32>load<u8>(src, 1) << (8 - s)));
      src++; dst++;
    }
  }
  if (n) {
    const x: u32 = (<u32>load<u8>(src) | (s + n > 8 ? <u32>load<u8>(src, 1) << 8 : 0)) >> s;
    const m: u32 = (1 << n) - 1;
    store<u8>(dst, (load<u8>(dst) & ~m) | (x & m));
  }
}

// The low bits of d, in order, to the set bits of x.
@inline function deposit(d: u64, x: u64): u64 {
  if (x == 0) return 0;
  if (x == <u64>0xffffffffffffffff) return d;
  if (popcnt(x) <= 32) {
    let out: u64 = 0;
    do {
      const low = x & (0 - x);
      out |= low & (0 - (d & 1));
      d >>= 1;
      x ^= low;
    } while (x);
    return out;
  }
  let gaps = ~x;
  do { // push what is above each gap up by one
    const below = (gaps & (0 - gaps)) - 1;
    d = (d & below) | ((d & ~below) << 1);
    gaps &= gaps - 1;
  } while (gaps);
  return d;
}
// `have` dense bits at the start of `at` are spread in place over the set bits of the bitmap, from the back, a word
// of 64 at a time; null slots and the bits past n in the last word become 0. `at` has room for whole words.
export function spreadBits(at: usize, bm: usize, n: u32, have: u32): i32 {
  if (have > n || countOnes(bm, n) != have) return E_LENGTH;
  let word: usize = n >> 6, j: u32 = have;
  const tail: u32 = n & 63;
  let x: u64 = 0;
  if (tail) {
    for (let k: u32 = 0; k < tail; k += 8) x |= <u64>load<u8>(bm + (word << 3) + (k >> 3)) << k;
    x &= (<u64>1 << tail) - 1;
  } else {
    if (word == 0) return DONE;
    word--;
    x = load<u64>(bm + (word << 3));
  }
  for (;;) {
    const c = <u32>popcnt(x);
    j -= c;
    let d: u64 = 0;
    if (c) {
      const p = at + (<usize>(j >> 6) << 3), s: u32 = j & 63;
      d = load<u64>(p) >> s;
      if (s + c > 64) d |= load<u64>(p, 8) << (64 - s);
    }
    store<u64>(at + (word << 3), deposit(c == 64 ? d : d & ((<u64>1 << c) - 1), x));
    if (word == 0 || <usize>j == word << 6) return DONE; // everything before is valid and in place
    word--;
    x = load<u64>(bm + (word << 3));
  }
  return DONE;
}
