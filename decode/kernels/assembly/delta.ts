// DELTA_BINARY_PACKED (Parquet "Encodings": DELTA_BINARY_PACKED = 5) for 32- and 64-bit values, wrap-around.
import { DONE, NEED, E_TRUNC, E_LENGTH, E_WIDTH, E_VARINT, E_HEADER } from "./codes";
import { unpackTo32 } from "./unpack";

// State: 0 ip, 4 srcEnd, 8 op, 12 values still wanted by this call, 16 values left in all, 20 values in all (must be
//   the header's count), 24 phase (0 header, 1 block head, 2 miniblock), 28 miniblocks a block, 32 values a miniblock,
//   36 next miniblock, 40 values left in the miniblock (stored ones, padding counted), 44 width,
//   48 address of the block's widths, 52 values of the group of 8 at ip that are used already, 56 last value (u64),
//   64 minimum delta (u64), 128.. scratch 512 + 96 bytes
// The block's widths are read again after they were passed: the input must stay where it is.
// With the last value, ip steps over the padding of the last miniblock, so that a following section is found.

// A varint of up to 10 bytes at p; 0 when it is cut by `avail`, else the bytes used; -1 when over-long.
@inline function varint(p: usize, avail: usize, to: usize): i32 {
  let v: u64 = 0, s: u64 = 0, n: usize = 0, r: i32 = 0;
  while (p + n < avail) {
    const b: u64 = load<u8>(p + n); n++;
    if (s == 63 && b > 1) { r = -1; break; }
    v |= (b & 127) << s;
    if (b < 128) { store<u64>(to, v); r = <i32>n; break; }
    s += 7;
  }
  return r;
}
@inline function delta(st: usize, avail: usize, W: u32): i32 {
  let ip: usize = load<u32>(st), op: usize = load<u32>(st, 8);
  const end: usize = load<u32>(st, 4);
  const short = avail < end ? NEED : E_TRUNC, T = st + 128, size: usize = W >> 3;
  let phase = load<u32>(st, 24), left = load<u32>(st, 12), total = phase == 0 ? load<u32>(st, 20) : load<u32>(st, 16);
  if (left > total) return E_LENGTH;
  if (left == 0 && total) return DONE;
  if (phase == 0) {
    // the header is consumed whole
    let q = ip, n = varint(q, avail, T);
    if (n <= 0) return n < 0 ? E_VARINT : short;
    const bs = load<u64>(T); q += n;
    n = varint(q, avail, T); if (n <= 0) return n < 0 ? E_VARINT : short;
    const mb = load<u64>(T); q += n;
    n = varint(q, avail, T); if (n <= 0) return n < 0 ? E_VARINT : short;
    const count = load<u64>(T); q += n;
    n = varint(q, avail, T); if (n <= 0) return n < 0 ? E_VARINT : short;
    const f = load<u64>(T); q += n;
    if (bs == 0 || bs > 65536 || bs % 128 != 0 || mb == 0 || mb > 512) return E_HEADER;
    if (bs % mb != 0 || (bs / mb) % 32 != 0) return E_HEADER;
    if (count != total) return E_LENGTH;
    store<u32>(st, <u32>mb, 28); store<u32>(st, <u32>(bs / mb), 32);
    const first = (f >> 1) ^ (0 - (f & 1));
    store<u64>(st, first, 56);
    if (left) {
      if (W == 64) store<u64>(op, first); else store<u32>(op, <u32>first);
      op += size; left--; total--;
    }
    ip = q; phase = 1;
    store<u32>(st, <u32>ip); store<u32>(st, <u32>op, 8); store<u32>(st, left, 12); store<u32>(st, total, 16);
    store<u32>(st, 1, 24);
  }
  const beyond = total - left; // values that later calls will want
  let mini = load<u32>(st, 36), ml = load<u32>(st, 40), w = load<u32>(st, 44);
  let widths: usize = load<u32>(st, 48), last = load<u64>(st, 56), md = load<u64>(st, 64);
  const mb = load<u32>(st, 28), per = load<u32>(st, 32);
  let rc: i32 = DONE;
  while (left) {
    if (phase == 1) {
      const n = varint(ip, avail, T);
      if (n < 0) return E_VARINT;
      if (n == 0 || <usize>mb > avail - ip - n) { rc = short; break; }
      const z = load<u64>(T);
      md = (z >> 1) ^ (0 - (z & 1));
      ip += n; widths = ip; ip += mb; mini = 0; ml = 0;
      phase = 2;
    }
    if (ml == 0) {
      if (mini == mb) { phase = 1; continue; }
      w = load<u8>(widths + mini); mini++;
      // DuckDB takes differences of 32-bit values in 64 bits: up to 33 of them are stored
      if (w > 64) return E_WIDTH;
      ml = per;
    }
    // groups of 8, up to 16 at a time
    if (w == 0) {
      const n = min<u32>(ml, left);
      let k: u32 = 0;
      if (W == 64) {
        let v = i64x2.replace_lane(i64x2.splat(<i64>(last + md)), 1, <i64>(last + md + md));
        const step = i64x2.splat(<i64>(md + md));
        for (; k + 2 <= n; k += 2) { v128.store(op, v); v = i64x2.add(v, step); op += 16; }
      } else {
        const d = i32x4.splat(<i32>md), step = i32x4.shl(d, 2);
        let v = i32x4.add(i32x4.splat(<i32>last), i32x4.mul(d, i32x4(1, 2, 3, 4)));
        for (; k + 4 <= n; k += 4) { v128.store(op, v); v = i32x4.add(v, step); op += 16; }
      }
      last += md * k;
      for (; k < n; k++) { last += md; if (W == 64) store<u64>(op, last); else store<u32>(op, <u32>last); op += size; }
      left -= n; ml -= n;
      continue;
    }
    const have: usize = avail - ip;
    let g: u32 = load<u32>(st, 52) ? 0 : min<u32>(min<u32>(ml, left) >> 3, 16);
    if (g && <usize>(g * w + 16) > have) g = have >= <usize>w + 16 ? <u32>(have - 16) / w : 0;
    if (g) {
      if (w <= 32) {
        unpackTo32(ip, w, g, T);
        const e = T + <usize>(g << 5);
        if (W == 64) {
          for (let s = T; s < e; s += 16) {
            last += md + load<u32>(s); store<u64>(op, last);
            last += md + load<u32>(s, 4); store<u64>(op, last, 8);
            last += md + load<u32>(s, 8); store<u64>(op, last, 16);
            last += md + load<u32>(s, 12); store<u64>(op, last, 24);
            op += 32;
          }
        } else {
          // prefix sum of four lanes
          let run = i32x4.splat(<i32>last);
          const m = i32x4.splat(<i32>md), zero = i32x4.splat(0);
          for (let s = T; s < e; s += 16) {
            let v = i32x4.add(v128.load(s), m);
            v = i32x4.add(v, i32x4.shuffle(zero, v, 3, 4, 5, 6));
            v = i32x4.add(v, i32x4.shuffle(zero, v, 2, 3, 4, 5));
            v = i32x4.add(v, run);
            v128.store(op, v);
            run = i32x4.shuffle(v, v, 3, 3, 3, 3);
            op += 16;
          }
          last = <u64><u32>i32x4.extract_lane(run, 3);
        }
        ip += <usize>(g * w);
      } else {
        for (let k: u32 = 0; k < g; k++) {
          let bit: u32 = 0;
          for (let j: u32 = 0; j < 8; j++) {
            const a = ip + <usize>(bit >> 3), sh = bit & 7;
            let x = load<u64>(a) >> sh;
            if (sh) x |= <u64>load<u8>(a, 8) << (64 - sh);
            if (w < 64) x &= (<u64>1 << w) - 1;
            last += md + x;
            if (W == 64) store<u64>(op, last); else store<u32>(op, <u32>last);
            op += size; bit += w;
          }
          ip += w;
        }
      }
      ml -= g << 3; left -= g << 3;
      continue;
    }
    // one group, carefully: it may be cut by the mark, padded, or short at the very end
    let used = load<u32>(st, 52);
    const nv = min<u32>(left, 8 - used);
    let take: usize = w;
    if (have < take) {
      if (avail < end) { rc = NEED; break; }
      if (have < <usize>(((used + nv) * w + 7) >> 3)) return E_TRUNC;
      take = have;
    }
    const s = T + 512;
    for (let k: usize = 0; k < 80; k += 16) v128.store(s + k, i32x4.splat(0));
    for (let k: usize = 0; k < take; k++) store<u8>(s + k, load<u8>(ip + k));
    let bit: u32 = used * w;
    for (let j: u32 = 0; j < nv; j++) {
      const a = s + <usize>(bit >> 3), sh = bit & 7;
      let x = load<u64>(a) >> sh;
      if (sh) x |= <u64>load<u8>(a, 8) << (64 - sh);
      if (w < 64) x &= (<u64>1 << w) - 1;
      last += md + x;
      if (W == 64) store<u64>(op, last); else store<u32>(op, <u32>last);
      op += size; bit += w;
    }
    left -= nv; used += nv;
    if (used == 8 || left + beyond == 0) { ip += take; ml -= 8; used = 0; }
    store<u32>(st, used, 52);
  }
  if (rc < 0) return rc;
  if (rc == DONE && phase == 2 && w && beyond == 0) {
    // the last miniblock is padded to full size: step over what is there of it, so a following section is found
    const pad: usize = <usize>(((ml >> 3) * w));
    if (pad) {
      if (pad > avail - ip) {
        if (avail < end) rc = NEED; else { ip = end; ml = 0; }
      } else { ip += pad; ml = 0; }
    }
  }
  store<u32>(st, <u32>ip); store<u32>(st, <u32>op, 8); store<u32>(st, left, 12); store<u32>(st, left + beyond, 16);
  store<u32>(st, phase, 24);
  store<u32>(st, mini, 36); store<u32>(st, ml, 40); store<u32>(st, w, 44); store<u32>(st, <u32>widths, 48);
  store<u64>(st, last, 56); store<u64>(st, md, 64);
  return rc;
}
export function delta32(st: usize, avail: usize): i32 { return delta(st, avail, 32); }
export function delta64(st: usize, avail: usize): i32 { return delta(st, avail, 64); }

