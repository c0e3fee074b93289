// What becomes of the values of a hybrid run: stored as u32, u16 or u8, or replaced by their dictionary entry.
import { unpackTo16, unpackTo32, unpackToPairs } from "./unpack";

/** Offset of the pair table in a hybrid state (16 KiB, the last part of it). */
const PAIRS: usize = 128 + 2048 + 128;

// what becomes of a value
export const U32: i32 = 0;
export const G4: i32 = 1;
export const G8: i32 = 2;
export const U8: i32 = 3;
export const U16: i32 = 4;

@inline export function fill(op: usize, n: u32, val: u32, dict: usize, room: u32, K: i32): void {
  let v: v128, e: usize;
  if (K == U32) { v = i32x4.splat(val); e = op + (<usize>n << 2); }
  else if (K == G4) { v = v128.load32_splat(dict + (<usize>val << 2)); e = op + (<usize>n << 2); }
  else if (K == G8) { v = v128.load64_splat(dict + (<usize>val << 3)); e = op + (<usize>n << 3); }
  else if (K == U8) { v = i8x16.splat(<i8>val); e = op + n; }
  else { v = i16x8.splat(<i16>val); e = op + (<usize>n << 1); }
  const per: u32 = K == G8 ? 2 : K == U8 ? 16 : K == U16 ? 8 : 4;
  // whole vectors may overshoot by up to 64 bytes when that many wanted values follow
  if (room - n >= 4 * per) {
    do {
      v128.store(op, v); v128.store(op, v, 16); v128.store(op, v, 32); v128.store(op, v, 48);
      op += 64;
    } while (op < e);
  } else {
    while (op + 16 <= e) { v128.store(op, v); op += 16; }
    while (op < e) {
      if (K == G8) { v128.store64_lane(op, v, 0); op += 8; }
      else if (K == U8) { v128.store8_lane(op, v, 0); op += 1; }
      else if (K == U16) { v128.store16_lane(op, v, 0); op += 2; }
      else { v128.store32_lane(op, v, 0); op += 4; }
    }
  }
}
// Dictionary entries joined to one vector.
@inline function four(dict: usize, i: u32, j: u32, k: u32, l: u32): v128 {
  const a = v128.load32_zero(dict + (<usize>i << 2));
  const b = v128.load32_lane(dict + (<usize>j << 2), a, 1);
  const c = v128.load32_lane(dict + (<usize>k << 2), b, 2);
  return v128.load32_lane(dict + (<usize>l << 2), c, 3);
}
@inline function two(dict: usize, i: u32, j: u32): v128 {
  return v128.load64_lane(dict + (<usize>j << 3), v128.load64_zero(dict + (<usize>i << 3)), 1);
}
// b groups from ip; false when a value is over the limit
@inline export function block(ip: usize, w: u32, b: u32, op: usize, dict: usize, limit: u32, st: usize, K: i32): bool {
  let s = st + 128;
  if (K == U32) return unpackTo32(ip, w, b, op) < limit;
  if (K == U16 && w <= 16) return unpackTo16(ip, w, b, op) < limit;
  if (K == U8 && w <= 15) {
    if (unpackTo16(ip, w, b, s) >= limit) return false;
    const e = op + (<usize>b << 3);
    do {
      const v = v128.load(s);
      v128.store64_lane(op, i8x16.narrow_i16x8_u(v, v), 0);
      s += 16; op += 8;
    } while (op < e);
    return true;
  }
  if (K == G4 || K == G8) {
    if (load<u32>(st, 40)) { // two values a look-up
      if (unpackToPairs(ip, w, b, s, st + PAIRS, K == G4 ? 3 : 4) >= limit) return false;
      const e = s + (<usize>b << 4);
      do {
        if (K == G4) {
          store<u64>(op, load<u64>(load<u32>(s))); store<u64>(op, load<u64>(load<u32>(s, 4)), 8);
          store<u64>(op, load<u64>(load<u32>(s, 8)), 16); store<u64>(op, load<u64>(load<u32>(s, 12)), 24);
          op += 32;
        } else {
          v128.store(op, v128.load(load<u32>(s))); v128.store(op, v128.load(load<u32>(s, 4)), 16);
          v128.store(op, v128.load(load<u32>(s, 8)), 32); v128.store(op, v128.load(load<u32>(s, 12)), 48);
          op += 64;
        }
        s += 16;
      } while (s < e);
      return true;
    }
    // values are joined into 16-byte stores: three memory operations a value would be the limit otherwise
    if (w <= 16) {
      if (unpackTo16(ip, w, b, s) >= limit) return false;
      const e = s + (<usize>b << 4);
      do {
        if (K == G4) {
          v128.store(op, four(dict, load<u16>(s, 0), load<u16>(s, 2), load<u16>(s, 4), load<u16>(s, 6)), 0);
          v128.store(op, four(dict, load<u16>(s, 8), load<u16>(s, 10), load<u16>(s, 12), load<u16>(s, 14)), 16);
          op += 32;
        } else {
          v128.store(op, two(dict, load<u16>(s, 0), load<u16>(s, 2)), 0);
          v128.store(op, two(dict, load<u16>(s, 4), load<u16>(s, 6)), 16);
          v128.store(op, two(dict, load<u16>(s, 8), load<u16>(s, 10)), 32);
          v128.store(op, two(dict, load<u16>(s, 12), load<u16>(s, 14)), 48);
          op += 64;
        }
        s += 16;
      } while (s < e);
    } else {
      if (unpackTo32(ip, w, b, s) >= limit) return false;
      const e = s + (<usize>b << 5);
      do {
        if (K == G4) {
          v128.store(op, four(dict, load<u32>(s, 0), load<u32>(s, 4), load<u32>(s, 8), load<u32>(s, 12)), 0);
          v128.store(op, four(dict, load<u32>(s, 16), load<u32>(s, 20), load<u32>(s, 24), load<u32>(s, 28)), 16);
          op += 32;
        } else {
          v128.store(op, two(dict, load<u32>(s, 0), load<u32>(s, 4)), 0);
          v128.store(op, two(dict, load<u32>(s, 8), load<u32>(s, 12)), 16);
          v128.store(op, two(dict, load<u32>(s, 16), load<u32>(s, 20)), 32);
          v128.store(op, two(dict, load<u32>(s, 24), load<u32>(s, 28)), 48);
          op += 64;
        }
        s += 32;
      } while (s < e);
    }
    return true;
  }
  if (unpackTo32(ip, w, b, s) >= limit) return false;
  const e = s + (<usize>b << 5);
  do {
    if (K == U8) {
      store<u8>(op, load<u8>(s)); store<u8>(op, load<u8>(s, 4), 1);
      store<u8>(op, load<u8>(s, 8), 2); store<u8>(op, load<u8>(s, 12), 3);
      op += 4;
    } else {
      store<u16>(op, load<u16>(s)); store<u16>(op, load<u16>(s, 4), 2);
      store<u16>(op, load<u16>(s, 8), 4); store<u16>(op, load<u16>(s, 12), 6);
      op += 8;
    }
    s += 16;
  } while (s < e);
  return true;
}
// dictionary of pairs, entry lo | hi << w, made when it pays
@inline export function makePairs(st: usize, w: u32, dict: usize, limit: u32, K: i32): void {
  const n: u32 = min<u32>(<u32>1 << w, limit);
  for (let h: u32 = 0; h < n; h++) {
    let p = st + PAIRS + (<usize>(h << w) << (K == G4 ? 3 : 4));
    for (let l: u32 = 0; l < n; l++) {
      if (K == G4) {
        store<u32>(p, load<u32>(dict + (<usize>l << 2)));
        store<u32>(p, load<u32>(dict + (<usize>h << 2)), 4);
        p += 8;
      } else {
        store<u64>(p, load<u64>(dict + (<usize>l << 3)));
        store<u64>(p, load<u64>(dict + (<usize>h << 3)), 8);
        p += 16;
      }
    }
  }
  store<u32>(st, 1, 40);
}

