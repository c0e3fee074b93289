// Dense values spread in place over the set bits of a bitmap, from the back; null slots become 0.
import { DONE, E_LENGTH } from "./codes";
import { countOnes } from "./bitmap";

// `have` dense values at the start of [at, at + n * size) are spread in place, from the back, over the set
// bits of the bitmap; null slots become 0. Refused unless the bitmap has exactly `have` ones.
@inline function move1(at: usize, i: usize, j: usize, SH: usize): void {
  if (SH == 3) store<u64>(at + (i << 3), load<u64>(at + (j << 3)));
  else if (SH == 2) store<u32>(at + (i << 2), load<u32>(at + (j << 2)));
  else if (SH == 1) store<u16>(at + (i << 1), load<u16>(at + (j << 1)));
  else if (SH == 0) store<u8>(at + i, load<u8>(at + j));
  else v128.store(at + (i << 4), v128.load(at + (j << 4)));
}
@inline function zero1(at: usize, i: usize, SH: usize): void {
  if (SH == 3) store<u64>(at + (i << 3), 0);
  else if (SH == 2) store<u32>(at + (i << 2), 0);
  else if (SH == 1) store<u16>(at + (i << 1), 0);
  else if (SH == 0) store<u8>(at + i, 0);
  else v128.store(at + (i << 4), i32x4.splat(0));
}
@inline function spread(at: usize, bm: usize, n: u32, have: u32, SH: usize): i32 {
  if (have > n || countOnes(bm, n) != have) return E_LENGTH;
  let i: usize = n, j: usize = have;
  while (i > j) { // once i == j everything before is valid and in place
    if ((i & 63) == 0) {
      const x = load<u64>(bm + ((i - 64) >> 3));
      if (x == 0) { memory.fill(at + ((i - 64) << SH), 0, <usize>64 << SH); i -= 64; continue; }
      if (x == <u64>0xffffffffffffffff) {
        memory.copy(at + ((i - 64) << SH), at + ((j - 64) << SH), <usize>64 << SH);
        i -= 64; j -= 64;
        continue;
      }
      if (j >= 64) { // without branches; j stays >= 1 throughout
        let y = x;
        const stop = i - 64;
        do {
          i--;
          const m: i64 = <i64>y >> 63; // -1 valid, 0 null
          if (SH == 4) v128.store(at + (i << 4), v128.and(v128.load(at + (j << 4) - 16), i64x2.splat(m)));
          else if (SH == 3) store<u64>(at + (i << 3), load<u64>(at + (j << 3) - 8) & m);
          else if (SH == 2) store<u32>(at + (i << 2), load<u32>(at + (j << 2) - 4) & <u32>m);
          else if (SH == 1) store<u16>(at + (i << 1), load<u16>(at + (j << 1) - 2) & <u16>m);
          else store<u8>(at + i, load<u8>(at + j - 1) & <u8>m);
          j += <usize>m;
          y <<= 1;
        } while (i > stop);
        continue;
      }
    }
    i--;
    if ((load<u8>(bm + (i >> 3)) >> <u8>(i & 7)) & 1) { j--; move1(at, i, j, SH); }
    else zero1(at, i, SH);
  }
  return DONE;
}
export function spread1(at: usize, bm: usize, n: u32, have: u32): i32 { return spread(at, bm, n, have, 0); }
export function spread2(at: usize, bm: usize, n: u32, have: u32): i32 { return spread(at, bm, n, have, 1); }
export function spread4(at: usize, bm: usize, n: u32, have: u32): i32 { return spread(at, bm, n, have, 2); }
export function spread8(at: usize, bm: usize, n: u32, have: u32): i32 { return spread(at, bm, n, have, 3); }
export function spread16(at: usize, bm: usize, n: u32, have: u32): i32 { return spread(at, bm, n, have, 4); }
// offsets: the `have` + 1 dense offsets at the start of n + 1 slots; a null is an empty string
export function spreadOffsets(at: usize, bm: usize, n: u32, have: u32): i32 {
  if (have > n || countOnes(bm, n) != have) return E_LENGTH;
  let i: usize = n, j: usize = have;
  while (i > j) {
    store<u32>(at + (i << 2), load<u32>(at + (j << 2)));
    i--;
    if ((load<u8>(bm + (i >> 3)) >> <u8>(i & 7)) & 1) j--;
  }
  return DONE;
}

// Any width, `width` bytes a value. A value moves up by at least its width, so source and target never overlap.
@inline function moveWide(to: usize, from: usize, width: usize): void {
  if (width >= 8) {
    let k: usize = 0;
    for (; k + 8 <= width; k += 8) store<u64>(to + k, load<u64>(from + k));
    if (k < width) store<u64>(to + width - 8, load<u64>(from + width - 8));
  } else {
    for (let k: usize = 0; k < width; k++) store<u8>(to + k, load<u8>(from + k));
  }
}
export function spreadWide(at: usize, bm: usize, n: u32, have: u32, width: u32): i32 {
  if (have > n || countOnes(bm, n) != have) return E_LENGTH;
  let i: usize = n, j: usize = have;
  const W: usize = width;
  while (i > j) { // once i == j everything before is valid and in place
    if ((i & 63) == 0) {
      const x = load<u64>(bm + ((i - 64) >> 3));
      if (x == 0) { memory.fill(at + (i - 64) * W, 0, W << 6); i -= 64; continue; }
      if (x == <u64>0xffffffffffffffff) {
        memory.copy(at + (i - 64) * W, at + (j - 64) * W, W << 6);
        i -= 64; j -= 64;
        continue;
      }
      if (W == 12 && j >= 64) { // as above: INT96 and small decimals are common
        let y = x;
        const stop = i - 64;
        do {
          i--;
          const m: i64 = <i64>y >> 63;
          const from = at + j * 12 - 12, to = at + i * 12;
          const high = load<u32>(from, 8) & <u32>m;
          store<u64>(to, load<u64>(from) & m);
          store<u32>(to, high, 8);
          j += <usize>m;
          y <<= 1;
        } while (i > stop);
        continue;
      }
    }
    i--;
    if ((load<u8>(bm + (i >> 3)) >> <u8>(i & 7)) & 1) { j--; if (i != j) moveWide(at + i * W, at + j * W, W); }
    else memory.fill(at + i * W, 0, W);
  }
  return DONE;
}
