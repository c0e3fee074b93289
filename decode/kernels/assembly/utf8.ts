// UTF-8 validation of a whole buffer, and the check that no value starts inside a character.
import { DONE, E_LENGTH, E_UTF8 } from "./codes";

// Three 16-entry tables (the lookup method of Keiser and Lemire): one bit per kind of error for the pair
// (previous byte, byte); a pair is bad when all three agree on a bit. Third and fourth bytes are checked apart.
const TS: u8 = 1;    // too short: lead not followed by a continuation
const TL: u8 = 2;    // too long: ASCII followed by a continuation
const O3: u8 = 4;    // overlong 3-byte
const SU: u8 = 16;   // surrogate
const O2: u8 = 32;   // overlong 2-byte
const T2: u8 = 128;  // two continuations (allowed where a 3- or 4-byte character says so)
const LG: u8 = 8;    // over U+10FFFF
const L4: u8 = 64;   // over U+10FFFF in the large half, or overlong 4-byte
@inline function prev(a: v128, b: v128, n: i32): v128 {
  return n == 1 ? i8x16.shuffle(a, b, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30)
    : n == 2 ? i8x16.shuffle(a, b, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29)
    : i8x16.shuffle(a, b, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28);
}
@inline function check16(v: v128, p: v128): v128 {
  const C: u8 = TS | TL | T2; // carried where the low half cannot tell
  const F: i8 = <i8>(C | LG | L4);
  const hi1 = i8x16(
    TL, TL, TL, TL, TL, TL, TL, TL,
    <i8>T2, <i8>T2, <i8>T2, <i8>T2, TS | O2, TS, TS | O3 | SU, TS | LG | L4
  );
  const lo1 = i8x16(
    <i8>(C | O3 | O2 | L4), <i8>(C | O2), <i8>C, <i8>C, <i8>(C | LG), F, F, F,
    F, F, F, F, F, <i8>(C | LG | L4 | SU), F, F
  );
  const hi2 = i8x16(
    TS, TS, TS, TS, TS, TS, TS, TS,
    <i8>(TL | O2 | T2 | O3 | L4), <i8>(TL | O2 | T2 | O3 | LG), <i8>(TL | O2 | T2 | SU | LG), <i8>(TL | O2 | T2 | SU | LG),
    TS, TS, TS, TS
  );
  const p1 = prev(p, v, 1), f = i8x16.splat(15);
  const before = v128.and(i8x16.relaxed_swizzle(hi1, i8x16.shr_u(p1, 4)), i8x16.relaxed_swizzle(lo1, v128.and(p1, f)));
  const sc = v128.and(before, i8x16.relaxed_swizzle(hi2, i8x16.shr_u(v, 4)));
  // bytes that must be the 3rd or 4th of a character
  const third = i8x16.sub_sat_u(prev(p, v, 2), i8x16.splat(0x60)), fourth = i8x16.sub_sat_u(prev(p, v, 3), i8x16.splat(0x70));
  const m = v128.or(third, fourth);
  return v128.xor(v128.and(m, i8x16.splat(<i8>0x80)), sc);
}
// Whole buffer [src, end). scr: 16 bytes of the caller's. DONE or E_UTF8.
export function utf8(src: usize, end: usize, scr: usize): i32 {
  let p = i8x16.splat(0), err = i8x16.splat(0), ip = src;
  while (ip < end) {
    const left = end - ip;
    if (left >= 64) {
      const a = v128.load(ip), b = v128.load(ip, 16), c = v128.load(ip, 32), d = v128.load(ip, 48);
      if (!i8x16.bitmask(v128.or(v128.or(a, b), v128.or(c, d))) && !i8x16.bitmask(p)) {
        p = d; ip += 64;
        continue;
      }
      err = v128.or(err, check16(a, p));
      err = v128.or(err, check16(b, a));
      err = v128.or(err, check16(c, b));
      err = v128.or(err, check16(d, c));
      p = d; ip += 64;
      if (v128.any_true(err)) return E_UTF8;
      continue;
    }
    let v: v128;
    if (left >= 16) { v = v128.load(ip); ip += 16; }
    else {
      v128.store(scr, i8x16.splat(0));
      for (let k: usize = 0; k < left; k++) store<u8>(scr + k, load<u8>(ip + k));
      v = v128.load(scr);
      ip = end;
    }
    err = v128.or(err, check16(v, p));
    p = v;
  }
  err = v128.or(err, check16(i8x16.splat(0), p)); // nothing may be left open
  return v128.any_true(err) ? E_UTF8 : DONE;
}
// With valid data, every value is valid when no value starts on a continuation byte.
// n + 1 offsets at `offs`, relative to `base`; data ends at dataEnd.
export function utf8Starts(offs: usize, n: u32, base: usize, dataEnd: usize): i32 {
  const room = dataEnd - base;
  let bad: u32 = 0;
  for (let i: u32 = 0; i < n; i++) {
    const o: usize = load<u32>(offs + (<usize>i << 2));
    if (o >= room) { if (o > room) return E_LENGTH; continue; }
    bad |= <u32>((load<u8>(base + o) & 0xc0) == 0x80);
  }
  return bad ? E_UTF8 : DONE;
}
