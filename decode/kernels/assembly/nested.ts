// Nested columns (Dremel levels): rows, slots, validity and list offsets of entries. An entry is a repetition and a
// definition level, u8 each; `rep` = 0 stands for repetition levels that are all 0. A slot is an entry with
// rep <= repMax and def >= defMin. Blocks of 64 entries become masks; what is over goes through the same code with a
// shorter mask. Reads stay in the n entries.
import { E_LENGTH } from "./codes";

const ALL: u64 = 0xffffffffffffffff;
// [mask] of eight lanes: the indices of its ones in order, then 0x80 (a swizzle makes 0 of it).
const PACK: usize = memory.data(256 * 8, 16);
function packInit(): void {
  for (let m: u32 = 0; m < 256; m++) {
    let t: u64 = 0x8080808080808080, at: u64 = 0;
    for (let k: u64 = 0; k < 8; k++) {
      if (!((m >> <u32>k) & 1)) continue;
      t ^= (0x80 ^ k) << at;
      at += 8;
    }
    store<u64>(PACK + <usize>(m << 3), t);
  }
}
packInit();

// Swizzle that moves the lanes of a 16-bit mask to the front of their half.
@inline function packer(m: u32): v128 {
  const low = v128.load64_zero(PACK + <usize>((m & 255) << 3));
  return i8x16.add(
    v128.load64_lane(PACK + <usize>((m >> 8) << 3), low, 1), i8x16(0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8)
  );
}
// 16 entries compared; R and D say (to the compiler) which of the two levels matter.
@inline function match(rep: usize, def: usize, rm: v128, dm: v128, R: bool, D: bool): v128 {
  return R && D ? v128.and(i8x16.le_u(v128.load(rep), rm), i8x16.ge_u(v128.load(def), dm))
    : R ? i8x16.le_u(v128.load(rep), rm) : i8x16.ge_u(v128.load(def), dm);
}
@inline function mask64(a: v128, b: v128, c: v128, d: v128): u64 {
  return <u64>(<u32>i8x16.bitmask(a) | (<u32>i8x16.bitmask(b) << 16))
    | (<u64>(<u32>i8x16.bitmask(c) | (<u32>i8x16.bitmask(d) << 16)) << 32);
}
@inline function matchMask(rep: usize, def: usize, rm: v128, dm: v128, R: bool, D: bool): u64 {
  return mask64(match(rep, def, rm, dm, R, D), match(rep + 16, def + 16, rm, dm, R, D),
    match(rep + 32, def + 32, rm, dm, R, D), match(rep + 48, def + 48, rm, dm, R, D));
}
// The same for fewer than 64 entries.
function tailMask(rep: usize, def: usize, n: u32, repMax: u32, defMin: u32): u64 {
  let x: u64 = 0, k: u32 = 0;
  const rm = i8x16.splat(<i8>repMax), dm = i8x16.splat(<i8>defMin);
  for (; k + 16 <= n; k += 16) {
    const d = i8x16.ge_u(v128.load(def + <usize>k), dm);
    const s = rep ? v128.and(d, i8x16.le_u(v128.load(rep + <usize>k), rm)) : d;
    x |= <u64>i8x16.bitmask(s) << k;
  }
  for (; k < n; k++) {
    const r = rep ? <u32>load<u8>(rep + <usize>k) : 0;
    x |= <u64>(u32(r <= repMax) & u32(load<u8>(def + <usize>k) >= defMin)) << k;
  }
  return x;
}

@inline function count(rep: usize, def: usize, n: u32, repMax: u32, defMin: u32, R: bool, D: bool): u32 {
  const rm = i8x16.splat(<i8>repMax), dm = i8x16.splat(<i8>defMin), N: usize = n;
  let total = i32x4.splat(0), i: usize = 0;
  while (N - i >= 64) {
    const e = i + min<usize>((N - i) & ~63, 63 * 64); // a byte counts to 4 * 63
    let c = i8x16.splat(0);
    do {
      const r = rep + i, d = def + i;
      const x = i8x16.add(match(r, d, rm, dm, R, D), match(r + 16, d + 16, rm, dm, R, D));
      const y = i8x16.add(match(r + 32, d + 32, rm, dm, R, D), match(r + 48, d + 48, rm, dm, R, D));
      c = i8x16.sub(c, i8x16.add(x, y));
      i += 64;
    } while (i < e);
    total = i32x4.add(total, i32x4.extadd_pairwise_i16x8_u(i16x8.extadd_pairwise_i8x16_u(c)));
  }
  let sum: u32 = i32x4.extract_lane(total, 0) + i32x4.extract_lane(total, 1)
    + i32x4.extract_lane(total, 2) + i32x4.extract_lane(total, 3);
  for (; i < N; i++) {
    sum += (R ? u32(load<u8>(rep + i) <= repMax) : 1) & (D ? u32(load<u8>(def + i) >= defMin) : 1);
  }
  return sum;
}
export function countRows(rep: usize, n: u32): u32 {
  return rep == 0 ? n : count(rep, 0, n, 0, 0, true, false);
}
export function countSlots(rep: usize, def: usize, n: u32, repMax: u32, defMin: u32): u32 {
  if (rep == 0) return defMin == 0 ? n : count(0, def, n, 0, defMin, false, true);
  if (defMin == 0) return count(rep, 0, n, repMax, 0, true, false);
  return count(rep, def, n, repMax, defMin, true, true);
}
// The first entry that can't follow what is before it, or n: see kernels.ts.
export function checkNesting(rep: usize, def: usize, n: u32, least: usize, before: u32): u32 {
  const table = v128.load(least), most = i8x16.splat(15);
  let i: u32 = 0;
  while (i < n) {
    if (i > 0 && n - i >= 16) {
      const r = v128.load(rep + <usize>i), d = def + <usize>i;
      if (!v128.any_true(i8x16.gt_u(r, most))) {
        const low = i8x16.min_u(v128.load(d), v128.load(d - 1));
        const bad = i8x16.lt_u(low, i8x16.swizzle(table, r));
        if (v128.any_true(bad)) return i + <u32>ctz(i8x16.bitmask(bad));
        i += 16;
        before = load<u8>(d + 15);
        continue;
      }
    }
    const d: u32 = load<u8>(def + <usize>i);
    if (min<u32>(d, before) < <u32>load<u8>(least + <usize>load<u8>(rep + <usize>i))) return i;
    before = d;
    i++;
  }
  return n;
}
export function findRow(rep: usize, n: u32, k: u32): u32 {
  if (rep == 0) return min<u32>(k, n);
  const zero = i8x16.splat(0);
  let i: u32 = 0;
  while (n - i >= 1024) {
    const c = countRows(rep + <usize>i, 1024);
    if (c > k) break;
    k -= c; i += 1024;
  }
  while (n - i >= 64) {
    let x = matchMask(rep + <usize>i, 0, zero, zero, true, false);
    const c = <u32>popcnt(x);
    if (c > k) {
      for (; k; k--) x &= x - 1;
      return i + <u32>ctz(x);
    }
    k -= c; i += 64;
  }
  for (; i < n; i++) if (load<u8>(rep + <usize>i) == 0 && k-- == 0) return i;
  return n;
}

@inline function validity(
  rep: usize, def: usize, n: u32, repMax: u32, defMin: u32, defValid: u32, out: usize, R: bool, D: bool
): u32 {
  const rm = i8x16.splat(<i8>repMax), dm = i8x16.splat(<i8>defMin), vm = i8x16.splat(<i8>defValid), N: usize = n;
  let acc: u64 = 0, nb: u64 = 0, ones: u64 = 0, i: usize = 0;
  for (; i + 64 <= N; i += 64) {
    const p = def + i;
    const v0 = i8x16.ge_u(v128.load(p), vm), v1 = i8x16.ge_u(v128.load(p, 16), vm);
    const v2 = i8x16.ge_u(v128.load(p, 32), vm), v3 = i8x16.ge_u(v128.load(p, 48), vm);
    let x = mask64(v0, v1, v2, v3), c: u64 = 64;
    if (R || D) {
      const s = matchMask(rep + i, p, rm, dm, R, D);
      if (s != ALL) {
        c = popcnt(s);
        x &= s;
        if (x == s) x = (<u64>1 << c) - 1;
        else if (x) x = pack64(v0, v1, v2, v3, s);
      }
    }
    ones += popcnt(x);
    acc |= x << nb;
    if (nb + c >= 64) {
      store<u64>(out, acc); out += 8;
      acc = x >> 1 >> (63 - nb);
    }
    nb = (nb + c) & 63;
  }
  if (i < N) {
    const left = <u32>(N - i);
    let s = tailMask(R ? rep + i : 0, def + i, left, repMax, defMin);
    const v = tailMask(0, def + i, left, 0, defValid), c = popcnt(s);
    let x: u64 = 0;
    for (let at: u64 = 0; s; at++) {
      x |= (v >> ctz(s) & 1) << at;
      s &= s - 1;
    }
    ones += popcnt(x);
    acc |= x << nb;
    if (nb + c >= 64) {
      store<u64>(out, acc); out += 8;
      acc = x >> (64 - nb);
    }
    nb = (nb + c) & 63;
  }
  if (nb) store<u64>(out, acc);
  return <u32>ones;
}
// The bits of 16 lanes (0 or -1 each) at the ones of a mask, moved together.
@inline function pack16(v: v128, m: u32): u64 {
  const b = <u32>i8x16.bitmask(i8x16.relaxed_swizzle(v, packer(m)));
  return <u64>((b & 255) | ((b >> 8) << popcnt(m & 255)));
}
@inline function pack64(v0: v128, v1: v128, v2: v128, v3: v128, s: u64): u64 {
  const m0 = <u32>s & 0xffff, m1 = <u32>s >> 16, m2 = <u32>(s >> 32) & 0xffff, m3 = <u32>(s >> 48);
  const c1 = <u64>popcnt(m0), c2 = c1 + <u64>popcnt(m1), c3 = c2 + <u64>popcnt(m2);
  return pack16(v0, m0) | (pack16(v1, m1) << c1) | (pack16(v2, m2) << c2) | (pack16(v3, m3) << c3);
}
export function nestedValidity(
  rep: usize, def: usize, n: u32, repMax: u32, defMin: u32, defValid: u32, out: usize
): u32 {
  if (rep == 0) {
    if (defMin == 0) return validity(0, def, n, 0, 0, defValid, out, false, false);
    return validity(0, def, n, 0, defMin, defValid, out, false, true);
  }
  if (defMin == 0) return validity(rep, def, n, repMax, 0, defValid, out, true, false);
  return validity(rep, def, n, repMax, defMin, defValid, out, true, true);
}

// Offsets of the slots in a mask, one by one; exactly as many are written.
@inline function offsetsOf(s: u64, e: u64, total: u32, out: usize): void {
  for (; s; out += 4) {
    const low = s & (0 - s);
    store<u32>(out, total + <u32>popcnt(e & (low - 1)));
    s ^= low;
  }
}
// Offsets of the slots in 16 entries with elements `e` (0 or -1). Writes up to eight offsets past those that it makes.
@inline function offsets16(e: v128, m: u32, total: u32, out: usize): void {
  let p = i8x16.neg(e);
  p = i8x16.add(p, i64x2.shl(p, 8)); p = i8x16.add(p, i64x2.shl(p, 16)); p = i8x16.add(p, i64x2.shl(p, 32));
  const half = i8x16.shuffle(p, i8x16.splat(0), 16, 16, 16, 16, 16, 16, 16, 16, 7, 7, 7, 7, 7, 7, 7, 7);
  p = i8x16.add(i8x16.add(p, half), e); // elements before each entry, without its own
  p = i8x16.relaxed_swizzle(p, packer(m));
  const base = i32x4.splat(total), a = i16x8.extend_low_i8x16_u(p), b = i16x8.extend_high_i8x16_u(p);
  const next = out + (<usize>popcnt(m & 255) << 2);
  v128.store(out, i32x4.add(base, i32x4.extend_low_i16x8_u(a)));
  v128.store(out, i32x4.add(base, i32x4.extend_high_i16x8_u(a)), 16);
  v128.store(next, i32x4.add(base, i32x4.extend_low_i16x8_u(b)));
  v128.store(next, i32x4.add(base, i32x4.extend_high_i16x8_u(b)), 16);
}
@inline function offsets(
  rep: usize, def: usize, n: u32, repMax: u32, defMin: u32, repElement: u32, defElement: u32, first: usize, R: bool
): i32 {
  const rm = i8x16.splat(<i8>repMax), dm = i8x16.splat(<i8>defMin);
  const re = i8x16.splat(<i8>repElement), de = i8x16.splat(<i8>defElement), N: usize = n;
  let out = first, total: u32 = 0, i: usize = 0, safe: usize = N & ~63;
  for (let more: u32 = 0; safe && more < 8; ) { // eight slots follow those of the blocks before `safe`
    safe -= 64;
    more += <u32>popcnt(matchMask(rep + safe, def + safe, rm, dm, R, true));
  }
  for (; i + 64 <= N; i += 64) {
    const r = rep + i, d = def + i;
    const e0 = match(r, d, re, de, R, true), e1 = match(r + 16, d + 16, re, de, R, true);
    const e2 = match(r + 32, d + 32, re, de, R, true), e3 = match(r + 48, d + 48, re, de, R, true);
    const s = matchMask(r, d, rm, dm, R, true), e = mask64(e0, e1, e2, e3), c = <usize>popcnt(s);
    if ((s & e) == ALL) { // one element each
      let x = i32x4.add(i32x4.splat(total), i32x4(0, 1, 2, 3));
      for (let k: usize = 0; k < 256; k += 16) {
        v128.store(out + k, x);
        x = i32x4.add(x, i32x4.splat(4));
      }
    } else if (c <= 10 || i >= safe) offsetsOf(s, e, total, out);
    else {
      const c1 = <u32>popcnt(e & 0xffff), c2 = <u32>popcnt(e & 0xffffffff), c3 = <u32>popcnt(e & 0xffffffffffff);
      const s1 = <usize>popcnt(s & 0xffff), s2 = <usize>popcnt(s & 0xffffffff), s3 = <usize>popcnt(s & 0xffffffffffff);
      offsets16(e0, <u32>s & 0xffff, total, out);
      offsets16(e1, <u32>s >> 16, total + c1, out + (s1 << 2));
      offsets16(e2, <u32>(s >> 32) & 0xffff, total + c2, out + (s2 << 2));
      offsets16(e3, <u32>(s >> 48), total + c3, out + (s3 << 2));
    }
    out += c << 2; total += <u32>popcnt(e);
  }
  if (i < N) {
    const r = R ? rep + i : 0, left = <u32>(N - i);
    const s = tailMask(r, def + i, left, repMax, defMin), e = tailMask(r, def + i, left, repElement, defElement);
    offsetsOf(s, e, total, out);
    out += <usize>popcnt(s) << 2; total += <u32>popcnt(e);
  }
  store<u32>(out, total);
  return load<u32>(first) ? E_LENGTH : <i32>total; // the first offset counts elements before the first slot
}
export function nestedOffsets(
  rep: usize, def: usize, n: u32, repMax: u32, defMin: u32, repElement: u32, defElement: u32, out: usize
): i32 {
  if (rep == 0) return offsets(0, def, n, 0, defMin, 0, defElement, out, false);
  return offsets(rep, def, n, repMax, defMin, repElement, defElement, out, true);
}
