// The RLE / bit-packed hybrid (Parquet "Encodings": RLE = 3), fused with what is done to the values.
// State (bytes at st; the caller writes 0..24 and zeroes 28..63):
//   0 ip, 4 srcEnd, 8 op, 12 values still wanted, 16 bit width, 20 dictionary, 24 limit (value < limit),
//   28 run kind (0 none, 1 RLE, 2 bit-packed), 32 left of the run (RLE: values, bit-packed: groups, the one at ip
//   included), 36 RLE value, 40 pair table made, 44 values of the group at ip that are used already,
//   128.. scratch, 2048 + 128 bytes, then the pair table, 16 KiB; the state belongs to one caller at a time
// A run may go on past the wanted values: at DONE its rest is in the state, and with a new `wanted` (and op) the next
// call goes on with it; ip then is the start of the group that is used in part.
// Reads stay in [ip, avail) and [dict, dict + limit * size), writes in [op, op + wanted * size).
// Lenient where writers are sloppy: the last bit-packed group may be cut short after the last wanted value, runs may
// claim more values than are ever wanted, and padding values are not checked. Width 0: all values 0, no input read.
import { DONE, NEED, E_TRUNC, E_WIDTH, E_INDEX, E_VARINT } from "./codes";
import { unpackTo32 } from "./unpack";
import { U32, G4, G8, U8, U16, fill, block, makePairs } from "./hybrid-values";

const BLOCK: u32 = 64; // groups unpacked at a time: 512 indices in L1
const RLE: u32 = 1;
const PACKED: u32 = 2;

@inline function save(st: usize, ip: usize, op: usize, left: u32, kind: u32, run: u32, val: u32, used: u32): void {
  store<u32>(st, <u32>ip); store<u32>(st, <u32>op, 8); store<u32>(st, left, 12);
  store<u32>(st, kind, 28); store<u32>(st, run, 32); store<u32>(st, val, 36); store<u32>(st, used, 44);
}
@inline function hybrid(st: usize, avail: usize, K: i32): i32 {
  let ip: usize = load<u32>(st), op: usize = load<u32>(st, 8);
  const end: usize = load<u32>(st, 4), w: u32 = load<u32>(st, 16), dict: usize = load<u32>(st, 20);
  let limit = load<u32>(st, 24);
  if (K == U8) limit = min<u32>(limit, 256);
  if (K == U16) limit = min<u32>(limit, 65536);
  let left = load<u32>(st, 12), kind = load<u32>(st, 28), run = load<u32>(st, 32), val = load<u32>(st, 36);
  let used = load<u32>(st, 44);
  if (w > 32) return E_WIDTH;
  const scr = st + 128, vb: u32 = (w + 7) >> 3, size: usize = K == G8 ? 8 : K == U8 ? 1 : K == U16 ? 2 : 4;
  const vmask: u32 = vb == 0 ? 0 : 0xffffffff >> (32 - (vb << 3));
  if (w == 0 && left) {
    if (limit == 0) return E_INDEX;
    fill(op, left, 0, dict, left, K);
    op += <usize>left * size; left = 0;
  }
  while (left) {
    if (kind == 0) {
      // a header and an RLE value are consumed together or not at all
      const have: usize = avail - ip;
      let h: u32, n: usize;
      if (have >= 10 && load<u8>(ip) < 128) { h = load<u8>(ip); n = 1; }
      else {
        h = 0; n = 0;
        for (let s: u32 = 0; ; s += 7) {
          if (n >= have) { save(st, ip, op, left, 0, 0, 0, 0); return avail < end ? NEED : E_TRUNC; }
          const b: u32 = load<u8>(ip + n); n++;
          if (s == 28 && b > 15) return E_VARINT;
          h |= (b & 127) << s;
          if (b < 128) break;
        }
      }
      run = h >> 1;
      if (h & 1) {
        ip += n;
        if (run == 0) continue;
        kind = PACKED; used = 0;
      } else {
        if (n + vb > have) { save(st, ip, op, left, 0, 0, 0, 0); return avail < end ? NEED : E_TRUNC; }
        if (n + 4 <= have) val = load<u32>(ip + n) & vmask;
        else {
          val = load<u8>(ip + n);
          if (vb > 1) val |= <u32>load<u8>(ip + n, 1) << 8;
          if (vb > 2) val |= <u32>load<u8>(ip + n, 2) << 16;
        }
        ip += n + vb;
        if (run == 0) continue;
        if (val >= limit) return E_INDEX;
        kind = RLE;
      }
    }
    if (kind == RLE) {
      const n = min<u32>(run, left);
      fill(op, n, val, dict, left, K);
      op += <usize>n * size; left -= n; run -= n;
      if (run == 0) kind = 0;
      continue;
    }
    // bit-packed: whole groups with 16 bytes to spare, then one at a time through the scratch
    const resumed = used;
    let have: usize = avail - ip;
    if (!resumed) {
      const g = min<u32>(run, left >> 3);
      let gs: u32 = <u64>g * w + 16 <= <u64>have ? g : have >= <usize>w + 16 ? <u32>(have - 16) / w : 0;
      if ((K == G4 || K == G8) && w <= 5 && gs >= 16 && left >= 4096 && !load<u32>(st, 40)) makePairs(st, w, dict, limit, K);
      run -= gs; left -= gs << 3;
      while (gs) {
        const b = min<u32>(gs, BLOCK);
        if (!block(ip, w, b, op, dict, limit, st, K)) return E_INDEX;
        ip += <usize>(b * w); op += <usize>(b << 3) * size; gs -= b;
      }
    }
    while (run && left) {
      const nv = min<u32>(left, 8 - used);
      have = avail - ip;
      let take: usize = w;
      if (have < take) {
        if (avail < end) { save(st, ip, op, left, PACKED, run, 0, used); return NEED; }
        if (have < <usize>(((used + nv) * w + 7) >> 3)) return E_TRUNC;
        take = have;
      }
      const s = scr + 2048; // 32 bytes of input, 16 spare; values at scr
      v128.store(s, i32x4.splat(0)); v128.store(s, i32x4.splat(0), 16);
      for (let k: usize = 0; k < take; k++) store<u8>(s + k, load<u8>(ip + k));
      unpackTo32(s, w, 1, scr);
      const from = scr + <usize>(used << 2);
      for (let k: u32 = 0; k < nv; k++) {
        const v = load<u32>(from + <usize>(k << 2));
        if (v >= limit) return E_INDEX;
        if (K == U32) store<u32>(op, v);
        else if (K == G4) store<u32>(op, load<u32>(dict + (<usize>v << 2)));
        else if (K == G8) store<u64>(op, load<u64>(dict + (<usize>v << 3)));
        else if (K == U8) store<u8>(op, <u8>v);
        else store<u16>(op, <u16>v);
        op += size;
      }
      left -= nv; used += nv;
      if (used < 8) break; // nothing more is wanted
      used = 0; ip += w; run--;
      if (resumed) break; // aligned again: back to whole groups
    }
    if (run == 0) kind = 0;
  }
  save(st, ip, op, 0, kind, run, val, used);
  return DONE;
}
export function hybridU32(st: usize, avail: usize): i32 { return hybrid(st, avail, U32); }
export function hybridDict4(st: usize, avail: usize): i32 { return hybrid(st, avail, G4); }
export function hybridDict8(st: usize, avail: usize): i32 { return hybrid(st, avail, G8); }
export function hybridU8(st: usize, avail: usize): i32 { return hybrid(st, avail, U8); }
export function hybridU16(st: usize, avail: usize): i32 { return hybrid(st, avail, U16); }
