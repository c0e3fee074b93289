// The RLE / bit-packed hybrid (Parquet "Encodings": RLE = 3), fused with what is done to the values.
// State (bytes at st; the caller writes 0..24 and zeroes 28..63):
//   0 ip, 4 srcEnd, 8 op, 12 values still wanted, 16 bit width, 20 dictionary, 24 limit (value < limit),
//   28 run kind (0 none, 1 RLE, 2 bit-packed), 32 left of the run (RLE: values, bit-packed: groups, the one at ip
//   included), 36 RLE value, 40 pair table made, 44 values of the group at ip that are used already,
//   52 values wanted at the start of a bit-packed run (inside a call),
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

@inline function save(st: usize, ip: usize, op: usize, left: u32, kind: u32, run: u32, val: u32): void {
  store<u32>(st, <u32>ip); store<u32>(st, <u32>op, 8); store<u32>(st, left, 12);
  store<u32>(st, kind, 28); store<u32>(st, run, 32); store<u32>(st, val, 36);
}
// The group at ip that the call before used in part: what is wanted of its rest.
@inline function restGroup(st: usize, avail: usize, limit: u32, K: i32): i32 {
  const ip: usize = load<u32>(st), end: usize = load<u32>(st, 4);
  const w: u32 = load<u32>(st, 16), dict: usize = load<u32>(st, 20);
  const left = load<u32>(st, 12), used = load<u32>(st, 44), nv = min<u32>(left, 8 - used), have = avail - ip;
  let op: usize = load<u32>(st, 8), take: usize = w, got = nv;
  if (have < take) {
    if (avail < end) return NEED;
    take = have;
    got = min<u32>(nv, (<u32>have << 3) / w - used);
  }
  copyGroup(st, ip, take, w);
  if (!values(st + 128 + <usize>(used << 2), got, op, dict, limit, K)) return E_INDEX;
  if (got < nv) return E_TRUNC;
  op += <usize>nv << (K == G8 ? 3 : K == U8 ? 0 : K == U16 ? 1 : 2);
  store<u32>(st, <u32>op, 8); store<u32>(st, left - nv, 12);
  if (used + nv < 8) store<u32>(st, used + nv, 44);
  else {
    const groups = load<u32>(st, 32) - 1;
    store<u32>(st, 0, 44); store<u32>(st, groups, 32); store<u32>(st, <u32>ip + w);
    if (groups == 0) store<u32>(st, 0, 28);
  }
  return DONE;
}
// Up to w bytes of a group unpacked to u32 at st + 128, whatever they are followed by.
@inline function copyGroup(st: usize, ip: usize, take: usize, w: u32): void {
  const s = st + 128 + 2048; // 32 bytes of input, 16 spare
  v128.store(s, i32x4.splat(0)); v128.store(s, i32x4.splat(0), 16);
  for (let k: usize = 0; k < take; k++) store<u8>(s + k, load<u8>(ip + k));
  unpackTo32(s, w, 1, st + 128);
}
@inline function values(from: usize, n: u32, op: usize, dict: usize, limit: u32, K: i32): bool {
  for (let k: u32 = 0; k < n; k++) {
    const v = load<u32>(from + <usize>(k << 2));
    if (v >= limit) return false;
    if (K == U32) { store<u32>(op, v); op += 4; }
    else if (K == G4) { store<u32>(op, load<u32>(dict + (<usize>v << 2))); op += 4; }
    else if (K == G8) { store<u64>(op, load<u64>(dict + (<usize>v << 3))); op += 8; }
    else if (K == U8) { store<u8>(op, <u8>v); op += 1; }
    else { store<u16>(op, <u16>v); op += 2; }
  }
  return true;
}
// What the call before had over of an RLE run.
@inline function restRle(st: usize, limit: u32, K: i32): void {
  const left = load<u32>(st, 12), run = load<u32>(st, 32), n = min<u32>(run, left), op: usize = load<u32>(st, 8);
  fill(op, n, load<u32>(st, 36), load<u32>(st, 20), left, K);
  store<u32>(st, <u32>op + (n << (K == G8 ? 3 : K == U8 ? 0 : K == U16 ? 1 : 2)), 8);
  store<u32>(st, left - n, 12); store<u32>(st, run - n, 32);
  if (n == run) store<u32>(st, 0, 28);
}
// Width 0 is an RLE run of zeroes as long as wanted, whatever the input. True when not even 0 is allowed.
function zeroes(st: usize, limit: u32): bool {
  store<u32>(st, RLE, 28); store<u32>(st, load<u32>(st, 12), 32); store<u32>(st, 0, 36);
  return limit == 0 && load<u32>(st, 12) != 0;
}
@inline function hybrid(st: usize, avail: usize, K: i32): i32 {
  const end: usize = load<u32>(st, 4), w: u32 = load<u32>(st, 16), dict: usize = load<u32>(st, 20);
  let limit = load<u32>(st, 24);
  if (K == U8) limit = min<u32>(limit, 256);
  if (K == U16) limit = min<u32>(limit, 65536);
  if (w > 32) return E_WIDTH;
  if (w == 0 && zeroes(st, limit)) return E_INDEX;
  if (load<u32>(st, 28) == 0) store<u32>(st, 0, 44);
  else if (load<u32>(st, 12)) {
    if (load<u32>(st, 28) == RLE) restRle(st, limit, K);
    else if (load<u32>(st, 44)) {
      const rc = restGroup(st, avail, limit, K);
      if (rc != DONE) return rc;
    }
  }
  let left = load<u32>(st, 12);
  if (left == 0) return DONE;
  let ip: usize = load<u32>(st), op: usize = load<u32>(st, 8);
  let kind = load<u32>(st, 28), run = load<u32>(st, 32), val = load<u32>(st, 36);
  const vb: u32 = (w + 7) >> 3, size: usize = K == G8 ? 8 : K == U8 ? 1 : K == U16 ? 2 : 4;
  const vmask: u32 = vb == 0 ? 0 : 0xffffffff >> (32 - (vb << 3));
  // Below, `run` counts wanted values only. What the last run has over (groups, or values) is kept out of the loop's
  // registers: it is found from the run's header `h` and, when bit-packed, what was wanted at its start (in the state).
  let h: u32 = 1;
  store<u32>(st, 0, 52);
  if (kind == PACKED) {
    h = run << 1 | 1;
    store<u32>(st, left, 52);
    run = run > left >> 3 ? left : run << 3;
  }
  while (left) {
    if (kind == 0) {
      // a header and an RLE value are consumed together or not at all
      const have: usize = avail - ip;
      let n: usize;
      if (have >= 10 && load<u8>(ip) < 128) { h = load<u8>(ip); n = 1; }
      else {
        h = 0; n = 0;
        for (let s: u32 = 0; ; s += 7) {
          if (n >= have) { save(st, ip, op, left, 0, 0, 0); return avail < end ? NEED : E_TRUNC; }
          const b: u32 = load<u8>(ip + n); n++;
          if (s == 28 && b > 15) return E_VARINT;
          h |= (b & 127) << s;
          if (b < 128) break;
        }
      }
      if (h & 1) {
        const g = h >> 1;
        ip += n;
        store<u32>(st, left, 52);
        run = g > left >> 3 ? left : g << 3;
        if (run == 0) continue;
        kind = PACKED;
      } else {
        if (n + vb > have) { save(st, ip, op, left, 0, 0, 0); return avail < end ? NEED : E_TRUNC; }
        if (n + 4 <= have) val = load<u32>(ip + n) & vmask;
        else {
          val = load<u8>(ip + n);
          if (vb > 1) val |= <u32>load<u8>(ip + n, 1) << 8;
          if (vb > 2) val |= <u32>load<u8>(ip + n, 2) << 16;
        }
        ip += n + vb;
        run = min<u32>(h >> 1, left);
        if (run == 0) continue;
        if (val >= limit) return E_INDEX;
        fill(op, run, val, dict, left, K);
        op += <usize>run * size; left -= run;
        continue;
      }
    }
    // bit-packed: whole groups with 16 bytes to spare, then one at a time through the scratch
    const g = run >> 3;
    let have: usize = avail - ip;
    let gs: u32 = <u64>g * w + 16 <= <u64>have ? g : have >= <usize>w + 16 ? <u32>(have - 16) / w : 0;
    if ((K == G4 || K == G8) && w <= 5 && gs >= 16 && left >= 4096 && !load<u32>(st, 40)) {
      makePairs(st, w, dict, limit, K);
    }
    run -= gs << 3; left -= gs << 3;
    while (gs) {
      const b = min<u32>(gs, BLOCK);
      if (!block(ip, w, b, op, dict, limit, st, K)) return E_INDEX;
      ip += <usize>(b * w); op += <usize>(b << 3) * size; gs -= b;
    }
    while (run) {
      const nv = min<u32>(run, 8);
      have = avail - ip;
      let take: usize = w, got = nv;
      if (have < take) {
        if (avail < end) {
          save(st, ip, op, left, PACKED, (h >> 1) - ((load<u32>(st, 52) - left) >> 3), 0);
          return NEED;
        }
        take = have;
        got = min<u32>(nv, (<u32>have << 3) / w);
      }
      copyGroup(st, ip, take, w);
      if (!values(st + 128, got, op, dict, limit, K)) return E_INDEX;
      if (got < nv) return E_TRUNC;
      op += <usize>nv * size; run -= nv; left -= nv;
      if (nv == 8) ip += take;
      else store<u32>(st, nv, 44); // the last wanted values: the rest of the group is kept
    }
    kind = 0;
  }
  const over = (h >> 1) - (h & 1 ? load<u32>(st, 52) >> 3 : run);
  save(st, ip, op, 0, over == 0 ? 0 : h & 1 ? PACKED : RLE, over, val);
  return DONE;
}
export function hybridU32(st: usize, avail: usize): i32 { return hybrid(st, avail, U32); }
export function hybridDict4(st: usize, avail: usize): i32 { return hybrid(st, avail, G4); }
export function hybridDict8(st: usize, avail: usize): i32 { return hybrid(st, avail, G8); }
export function hybridU8(st: usize, avail: usize): i32 { return hybrid(st, avail, U8); }
export function hybridU16(st: usize, avail: usize): i32 { return hybrid(st, avail, U16); }
