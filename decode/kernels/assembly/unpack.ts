// SIMD bit unpacking, 8 values (w bytes) at a time. No per-lane shifts in WebAssembly: each lane's
// bytes are gathered by a swizzle, a multiplication moves its value to the lane's top, one shift
// right brings it down and clears what was above it.
//   16-bit lanes when no value spans three bytes: w <= 9, 12, 16.   32-bit lanes: w <= 25.   Else scalar.
// Every unpack reads up to 16 bytes past the packed data, so callers hold `groups * w + 16` readable bytes.

// Tables are read-only after start-up; every instance on a shared memory writes the same bytes.
const S16: usize = memory.data(17 * 32, 16); // [w] swizzle, multipliers
const S32: usize = memory.data(26 * 64, 16); // [w] swizzle low 4, multipliers, swizzle high 4, multipliers
export function in16(w: u32): bool { return w <= 9 || w == 12 || w == 16; }
function unpackInit(): void {
  for (let w: u32 = 1; w <= 16; w++) {
    if (!in16(w)) continue;
    for (let k: u32 = 0; k < 8; k++) {
      const bit = k * w, a = bit >> 3, off = bit & 7;
      const p = S16 + <usize>(w << 5) + <usize>(k << 1);
      store<u8>(p, <u8>a); store<u8>(p, off + w > 8 ? <u8>(a + 1) : 0x80, 1);
      store<u16>(p, <u16>(<u32>1 << (16 - w - off)), 16);
    }
  }
  for (let w: u32 = 1; w <= 25; w++) {
    for (let k: u32 = 0; k < 8; k++) {
      const base = k < 4 ? 0 : (w >> 1); // the high half is loaded from ip + w / 2
      const bit = k * w - base * 8, a = bit >> 3, off = bit & 7;
      const p = S32 + <usize>(w << 6) + (k < 4 ? 0 : 32) + <usize>((k & 3) << 2);
      for (let j: u32 = 0; j < 4; j++) store<u8>(p + <usize>j, (j << 3) < off + w ? <u8>(a + j) : 0x80);
      store<u32>(p, <u32>1 << (32 - w - off), 16);
    }
  }
}
unpackInit();

@inline function max32(v: v128): u32 {
  const a = i32x4.max_u(v, i8x16.shuffle(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
  return <u32>max<u32>(i32x4.extract_lane(a, 0), i32x4.extract_lane(a, 1));
}
@inline function max16(v: v128): u32 {
  return max32(i32x4.max_u(i32x4.extend_low_i16x8_u(v), i32x4.extend_high_i16x8_u(v)));
}
// groups >= 1, w in 1..32. Each returns the largest value.
export function unpackTo16(ip: usize, w: u32, groups: u32, op: usize): u32 { // w <= 16
  if (!in16(w)) return unpackNarrow(ip, w, groups, op);
  const t = S16 + <usize>(w << 5), s = v128.load(t), m = v128.load(t, 16), sh = 16 - w;
  let mx = i16x8.splat(0);
  const e = op + <usize>(groups << 4);
  do {
    const v = i16x8.shr_u(i16x8.mul(i8x16.relaxed_swizzle(v128.load(ip), s), m), sh);
    v128.store(op, v);
    mx = i16x8.max_u(mx, v);
    ip += w; op += 16;
  } while (op < e);
  return max16(mx);
}
// w <= 16, through 32-bit lanes
function unpackNarrow(ip: usize, w: u32, groups: u32, op: usize): u32 {
  const t = S32 + <usize>(w << 6), s = v128.load(t), m = v128.load(t, 16), s2 = v128.load(t, 32), m2 = v128.load(t, 48);
  const sh = 32 - w, e = op + <usize>(groups << 4);
  const h: usize = w >> 1;
  let mx = i16x8.splat(0);
  do {
    const v = i32x4.shr_u(i32x4.mul(i8x16.relaxed_swizzle(v128.load(ip), s), m), sh);
    const u = i32x4.shr_u(i32x4.mul(i8x16.relaxed_swizzle(v128.load(ip + h), s2), m2), sh);
    const x = i16x8.narrow_i32x4_u(v, u);
    v128.store(op, x);
    mx = i16x8.max_u(mx, x);
    ip += w; op += 16;
  } while (op < e);
  return max16(mx);
}
export function unpackTo32(ip: usize, w: u32, groups: u32, op: usize): u32 {
  const e = op + <usize>(groups << 5);
  if (in16(w)) {
    const t = S16 + <usize>(w << 5), s = v128.load(t), m = v128.load(t, 16), sh = 16 - w;
    let mx = i16x8.splat(0);
    do {
      const v = i16x8.shr_u(i16x8.mul(i8x16.relaxed_swizzle(v128.load(ip), s), m), sh);
      v128.store(op, i32x4.extend_low_i16x8_u(v)); v128.store(op, i32x4.extend_high_i16x8_u(v), 16);
      mx = i16x8.max_u(mx, v);
      ip += w; op += 32;
    } while (op < e);
    return max16(mx);
  }
  if (w <= 25) {
    const t = S32 + <usize>(w << 6), s = v128.load(t), m = v128.load(t, 16);
    const s2 = v128.load(t, 32), m2 = v128.load(t, 48);
    const sh = 32 - w;
    const h: usize = w >> 1;
    let mx = i32x4.splat(0);
    do {
      const v = i32x4.shr_u(i32x4.mul(i8x16.relaxed_swizzle(v128.load(ip), s), m), sh);
      const u = i32x4.shr_u(i32x4.mul(i8x16.relaxed_swizzle(v128.load(ip + h), s2), m2), sh);
      v128.store(op, v); v128.store(op, u, 16);
      mx = i32x4.max_u(mx, i32x4.max_u(v, u));
      ip += w; op += 32;
    } while (op < e);
    return max32(mx);
  }
  const mask: u64 = (<u64>1 << w) - 1;
  let mx: u32 = 0;
  do {
    let bit: u32 = 0;
    for (let k: usize = 0; k < 32; k += 4) {
      const v = <u32>((load<u64>(ip + <usize>(bit >> 3)) >> (bit & 7)) & mask);
      store<u32>(op + k, v);
      mx = max<u32>(mx, v);
      bit += w;
    }
    ip += w; op += 32;
  } while (op < e);
  return mx;
}

// w <= 5: addresses of pairs of values in a table of 2^w x 2^w entries of 1 << sh bytes, four a group
export function unpackToPairs(ip: usize, w: u32, groups: u32, op: usize, base: usize, sh: i32): u32 {
  const e = op + <usize>(groups << 4), B = i32x4.splat(<i32>base);
  const t = S16 + <usize>(w << 5), s = v128.load(t), m = v128.load(t, 16);
  const down = 16 - w, c = i32x4.splat(<i32>(((<u32>1 << w) << 16) | 1));
  let mx = i16x8.splat(0);
  do {
    const v = i16x8.shr_u(i16x8.mul(i8x16.relaxed_swizzle(v128.load(ip), s), m), down);
    v128.store(op, i32x4.add(B, i32x4.shl(i32x4.dot_i16x8_s(v, c), sh)));
    mx = i16x8.max_u(mx, v);
    ip += w; op += 16;
  } while (op < e);
  return max16(mx);
}
