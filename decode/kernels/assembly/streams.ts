import { DONE, E_LENGTH } from "./codes";

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
      const ab = i8x16.shuffle(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), AB = i8x16.shuffle(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
      const cd = i8x16.shuffle(c, d, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), CD = i8x16.shuffle(c, d, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
      const o = dst + (i << 2);
      v128.store(o, i16x8.shuffle(ab, cd, 0, 8, 1, 9, 2, 10, 3, 11)); v128.store(o, i16x8.shuffle(ab, cd, 4, 12, 5, 13, 6, 14, 7, 15), 16);
      v128.store(o, i16x8.shuffle(AB, CD, 0, 8, 1, 9, 2, 10, 3, 11), 32); v128.store(o, i16x8.shuffle(AB, CD, 4, 12, 5, 13, 6, 14, 7, 15), 48);
    }
  } else if (size == 8) {
    for (; i + 8 <= e; i += 8) {
      const p = src + i, z = i64x2.splat(0);
      const ae = i64x2.replace_lane(z, 0, load<u64>(p)), be = i64x2.replace_lane(z, 0, load<u64>(p + N)), ce = i64x2.replace_lane(z, 0, load<u64>(p + 2 * N)), de = i64x2.replace_lane(z, 0, load<u64>(p + 3 * N));
      const fe = i64x2.replace_lane(z, 0, load<u64>(p + 4 * N)), ge = i64x2.replace_lane(z, 0, load<u64>(p + 5 * N)), he = i64x2.replace_lane(z, 0, load<u64>(p + 6 * N)), ke = i64x2.replace_lane(z, 0, load<u64>(p + 7 * N));
      const ab = i8x16.shuffle(ae, be, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), cd = i8x16.shuffle(ce, de, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      const fg = i8x16.shuffle(fe, ge, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), hk = i8x16.shuffle(he, ke, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      const l = i16x8.shuffle(ab, cd, 0, 8, 1, 9, 2, 10, 3, 11), L = i16x8.shuffle(ab, cd, 4, 12, 5, 13, 6, 14, 7, 15);
      const m = i16x8.shuffle(fg, hk, 0, 8, 1, 9, 2, 10, 3, 11), M = i16x8.shuffle(fg, hk, 4, 12, 5, 13, 6, 14, 7, 15);
      const o = dst + (i << 3);
      v128.store(o, i32x4.shuffle(l, m, 0, 4, 1, 5)); v128.store(o, i32x4.shuffle(l, m, 2, 6, 3, 7), 16);
      v128.store(o, i32x4.shuffle(L, M, 0, 4, 1, 5), 32); v128.store(o, i32x4.shuffle(L, M, 2, 6, 3, 7), 48);
    }
  } else if (size == 2) {
    for (; i + 16 <= e; i += 16) {
      const a = v128.load(src + i), b = v128.load(src + i + N), o = dst + (i << 1);
      v128.store(o, i8x16.shuffle(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23));
      v128.store(o, i8x16.shuffle(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), 16);
    }
  }
  if (size > 4 && size != 8) { // four streams by sixteen values, scattered
    const q: usize = size & ~3, z: usize = size;
    for (; i + 16 <= e; i += 16) {
      for (let k: usize = 0; k < q; k += 4) {
        const p = src + k * N + i;
        const a = v128.load(p), b = v128.load(p + N), c = v128.load(p + 2 * N), d = v128.load(p + 3 * N);
        const ab = i8x16.shuffle(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), AB = i8x16.shuffle(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        const cd = i8x16.shuffle(c, d, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), CD = i8x16.shuffle(c, d, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        const v0 = i16x8.shuffle(ab, cd, 0, 8, 1, 9, 2, 10, 3, 11), v1 = i16x8.shuffle(ab, cd, 4, 12, 5, 13, 6, 14, 7, 15);
        const v2 = i16x8.shuffle(AB, CD, 0, 8, 1, 9, 2, 10, 3, 11), v3 = i16x8.shuffle(AB, CD, 4, 12, 5, 13, 6, 14, 7, 15);
        let o = dst + i * z + k;
        v128.store32_lane(o, v0, 0); o += z; v128.store32_lane(o, v0, 1); o += z; v128.store32_lane(o, v0, 2); o += z; v128.store32_lane(o, v0, 3); o += z;
        v128.store32_lane(o, v1, 0); o += z; v128.store32_lane(o, v1, 1); o += z; v128.store32_lane(o, v1, 2); o += z; v128.store32_lane(o, v1, 3); o += z;
        v128.store32_lane(o, v2, 0); o += z; v128.store32_lane(o, v2, 1); o += z; v128.store32_lane(o, v2, 2); o += z; v128.store32_lane(o, v2, 3); o += z;
        v128.store32_lane(o, v3, 0); o += z; v128.store32_lane(o, v3, 1); o += z; v128.store32_lane(o, v3, 2); o += z; v128.store32_lane(o, v3, 3);
      }
      for (let k = q; k < z; k++) for (let j: usize = 0; j < 16; j++) store<u8>(dst + (i + j) * z + k, load<u8>(src + k * N + i + j));
    }
  }
  for (; i < e; i++) {
    const o = dst + i * size;
    for (let k: usize = 0; k < <usize>size; k++) store<u8>(o + k, load<u8>(src + k * N + i));
  }
  return DONE;
}
export function copy(dst: usize, src: usize, n: usize): void { memory.copy(dst, src, n); }
