// BYTE_STREAM_SPLIT (Parquet "Encodings", 9) by byte shuffles, and plain copies.
import { DONE, E_LENGTH } from "./codes";

// The bytes, or pairs of bytes, of two vectors in turn.
@inline function low8(a: v128, b: v128): v128 {
  return i8x16.shuffle(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
@inline function high8(a: v128, b: v128): v128 {
  return i8x16.shuffle(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
@inline function low16(a: v128, b: v128): v128 { return i16x8.shuffle(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
@inline function high16(a: v128, b: v128): v128 { return i16x8.shuffle(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }

// BYTE_STREAM_SPLIT: n values of `size` bytes, stream k at src + k * n. Values [from, to) are joined into
// dst + i * size. The caller may go on as the last stream arrives: to = avail - src - (size - 1) * n.
export function joinStreams(src: usize, n: u32, size: u32, dst: usize, from: u32, to: u32): i32 {
  if (from > to || to > n) return E_LENGTH;
  let i: usize = from;
  const e: usize = to, N: usize = n;
  if (size == 4) {
    for (; i + 16 <= e; i += 16) {
      const p = src + i;
      const a = v128.load(p), b = v128.load(p + N), c = v128.load(p + 2 * N), d = v128.load(p + 3 * N);
      const ab = low8(a, b), AB = high8(a, b);
      const cd = low8(c, d), CD = high8(c, d);
      const o = dst + (i << 2);
      v128.store(o, low16(ab, cd)); v128.store(o, high16(ab, cd), 16);
      v128.store(o, low16(AB, CD), 32); v128.store(o, high16(AB, CD), 48);
    }
  } else if (size == 8) {
    for (; i + 8 <= e; i += 8) {
      const p = src + i;
      const ae = v128.load64_zero(p), be = v128.load64_zero(p + N);
      const ce = v128.load64_zero(p + 2 * N), de = v128.load64_zero(p + 3 * N);
      const fe = v128.load64_zero(p + 4 * N), ge = v128.load64_zero(p + 5 * N);
      const he = v128.load64_zero(p + 6 * N), ke = v128.load64_zero(p + 7 * N);
      const ab = low8(ae, be), cd = low8(ce, de);
      const fg = low8(fe, ge), hk = low8(he, ke);
      const l = low16(ab, cd), L = high16(ab, cd);
      const m = low16(fg, hk), M = high16(fg, hk);
      const o = dst + (i << 3);
      v128.store(o, i32x4.shuffle(l, m, 0, 4, 1, 5)); v128.store(o, i32x4.shuffle(l, m, 2, 6, 3, 7), 16);
      v128.store(o, i32x4.shuffle(L, M, 0, 4, 1, 5), 32); v128.store(o, i32x4.shuffle(L, M, 2, 6, 3, 7), 48);
    }
  } else if (size == 2) {
    for (; i + 16 <= e; i += 16) {
      const a = v128.load(src + i), b = v128.load(src + i + N), o = dst + (i << 1);
      v128.store(o, low8(a, b));
      v128.store(o, high8(a, b), 16);
    }
  }
  if (size > 4 && size != 8) { // four streams by sixteen values, scattered
    const q: usize = size & ~3, z: usize = size;
    for (; i + 16 <= e; i += 16) {
      for (let k: usize = 0; k < q; k += 4) {
        const p = src + k * N + i;
        const a = v128.load(p), b = v128.load(p + N), c = v128.load(p + 2 * N), d = v128.load(p + 3 * N);
        const ab = low8(a, b), AB = high8(a, b);
        const cd = low8(c, d), CD = high8(c, d);
        const v0 = low16(ab, cd), v1 = high16(ab, cd);
        const v2 = low16(AB, CD), v3 = high16(AB, CD);
        let o = dst + i * z + k;
        v128.store32_lane(o, v0, 0); o += z; v128.store32_lane(o, v0, 1); o += z;
        v128.store32_lane(o, v0, 2); o += z; v128.store32_lane(o, v0, 3); o += z;
        v128.store32_lane(o, v1, 0); o += z; v128.store32_lane(o, v1, 1); o += z;
        v128.store32_lane(o, v1, 2); o += z; v128.store32_lane(o, v1, 3); o += z;
        v128.store32_lane(o, v2, 0); o += z; v128.store32_lane(o, v2, 1); o += z;
        v128.store32_lane(o, v2, 2); o += z; v128.store32_lane(o, v2, 3); o += z;
        v128.store32_lane(o, v3, 0); o += z; v128.store32_lane(o, v3, 1); o += z;
        v128.store32_lane(o, v3, 2); o += z; v128.store32_lane(o, v3, 3);
      }
      for (let k = q; k < z; k++) {
        for (let j: usize = 0; j < 16; j++) store<u8>(dst + (i + j) * z + k, load<u8>(src + k * N + i + j));
      }
    }
  }
  for (; i < e; i++) {
    const o = dst + i * size;
    for (let k: usize = 0; k < <usize>size; k++) store<u8>(o + k, load<u8>(src + k * N + i));
  }
  return DONE;
}
export function copy(dst: usize, src: usize, n: usize): void { memory.copy(dst, src, n); }
