// Decimals to 16-byte little-endian integers, and INT96 timestamps. Decimals go from the back, so that they may be
// widened in place.
import { DONE, E_VALUE } from "./codes";

export function widenDecimal4(src: usize, n: u32, dst: usize): void {
  let i: usize = n;
  for (; i & 3; i--) {
    const v = <i64>load<i32>(src + (i << 2) - 4), p = dst + (i << 4) - 16;
    store<i64>(p, v); store<i64>(p, v >> 63, 8);
  }
  for (; i; i -= 4) {
    const v = v128.load(src + (i << 2) - 16), s = i32x4.shr_s(v, 31), p = dst + (i << 4) - 64;
    v128.store(p, i32x4.shuffle(v, s, 3, 7, 7, 7), 48); v128.store(p, i32x4.shuffle(v, s, 2, 6, 6, 6), 32);
    v128.store(p, i32x4.shuffle(v, s, 1, 5, 5, 5), 16); v128.store(p, i32x4.shuffle(v, s, 0, 4, 4, 4));
  }
}
export function widenDecimal8(src: usize, n: u32, dst: usize): void {
  let i: usize = n;
  if (i & 1) {
    const v = load<i64>(src + (i << 3) - 8), p = dst + (i << 4) - 16;
    store<i64>(p, v); store<i64>(p, v >> 63, 8);
    i--;
  }
  for (; i; i -= 2) {
    const v = v128.load(src + (i << 3) - 16), s = i64x2.shr_s(v, 63), p = dst + (i << 4) - 32;
    v128.store(p, i64x2.shuffle(v, s, 1, 3), 16); v128.store(p, i64x2.shuffle(v, s, 0, 2));
  }
}

// Big-endian, `width` bytes: 16 bytes that end with the value are turned round, and its first byte fills the rest.
// Up to 15 bytes before the source are read, but not used; no source lies so low that they are not there.
export function reverseDecimal(src: usize, n: u32, width: u32, dst: usize): void {
  const W: usize = width, base = i8x16(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const turn = i8x16.max_u(base, i8x16.splat(<i8>(16 - width)));
  const rest = i8x16.lt_u(base, i8x16.splat(<i8>(16 - width)));
  for (let from = src + <usize>n * W, to = dst + (<usize>n << 4); from > src; from -= W) {
    const v = i8x16.swizzle(v128.load(from - 16), turn);
    to -= 16;
    v128.store(to, v128.bitselect(i8x16.lt_s(v, i8x16.splat(0)), v, rest));
  }
}

const EPOCH: i64 = 2440588; // Julian day of 1970-01-01
const DAY: i64 = 86400000000000; // ns
const DAYS: i64 = 106751; // whole days of an i64
// Nanoseconds that need not be of one day: exact, and false when over 64 bits.
function farNanos(days: i64, nanos: i64, dst: usize): bool {
  let d = nanos / DAY;
  let rest = nanos - d * DAY;
  if (rest < 0) { rest += DAY; d--; }
  d += days;
  if (d < 0) { d++; rest -= DAY; }
  if (d > DAYS || d < -DAYS) return false;
  const p = d * DAY, v = p + rest;
  store<i64>(dst, v);
  return ((p ^ v) & (rest ^ v)) >= 0;
}
export function int96ToNanos(src: usize, n: u32, dst: usize): i32 {
  let over: i64 = 0;
  for (const e = src + <usize>n * 12; src < e; src += 12, dst += 8) {
    const nanos = load<i64>(src), days = <i64>load<i32>(src, 8) - EPOCH;
    if (<u64>(days + DAYS) > <u64>(2 * DAYS)) {
      if (!farNanos(days, nanos, dst)) return E_VALUE;
      continue;
    }
    const p = days * DAY, v = p + nanos;
    over |= (p ^ v) & (nanos ^ v);
    store<i64>(dst, v);
  }
  return over < 0 ? E_VALUE : DONE;
}
