// Strings: PLAIN BYTE_ARRAY -> Arrow offsets + data, lengths -> offsets, DELTA_BYTE_ARRAY.
import { DONE, NEED, FULL, E_TRUNC, E_LENGTH } from "./codes";

// State: 0 ip, 4 srcEnd, 8 next offset slot, 12 values still wanted, 16 data op, 20 dataEnd,
//   24 offset of the next value, 28 bytes of the current value still to come
// The caller writes the first offset itself (slot 0 = the starting offset) and passes slot 1 in 8: each
// value writes the offset of its end. Offsets stay below 2^31. A value that does not fit before dataEnd is FULL, with
// nothing of it consumed: the caller gives room (op, dataEnd, slot, and 24 when offsets start anew) and calls again.
export function plainBytes(st: usize, avail: usize): i32 {
  let ip: usize = load<u32>(st), slot: usize = load<u32>(st, 8), op: usize = load<u32>(st, 16);
  const end: usize = load<u32>(st, 4), dend: usize = load<u32>(st, 20);
  let left = load<u32>(st, 12), at = load<u32>(st, 24), pend: usize = load<u32>(st, 28);
  let rc: i32 = DONE;
  for (;;) {
    if (pend) {
      const n = min<usize>(pend, avail - ip);
      memory.copy(op, ip, n);
      ip += n; op += n; pend -= n;
      if (pend) { rc = avail < end ? NEED : E_TRUNC; break; }
    }
    // short values with room around them
    if (avail - ip >= 72 && dend - op >= 64) {
      const ilim = avail - 72, olim = dend - 64;
      while (left && ip <= ilim && op <= olim) {
        const len: usize = load<u32>(ip);
        if (len > 64 || at + <u32>len > 0x7fffffff) break;
        v128.store(op, v128.load(ip, 4)); v128.store(op, v128.load(ip, 20), 16); v128.store(op, v128.load(ip, 36), 32);
        if (len > 48) v128.store(op, v128.load(ip, 52), 48);
        ip += len + 4; op += len; at += <u32>len;
        store<u32>(slot, at); slot += 4; left--;
      }
    }
    if (!left) break;
    if (avail - ip < 4) { rc = avail < end ? NEED : E_TRUNC; break; }
    const len: usize = load<u32>(ip);
    if (len > end - ip - 4) return E_TRUNC;
    if (len > 0x7fffffff - at) return E_LENGTH;
    if (len > dend - op) { rc = FULL; break; }
    ip += 4; at += <u32>len; pend = len;
    store<u32>(slot, at); slot += 4; left--;
  }
  if (rc < 0) return rc;
  store<u32>(st, <u32>ip); store<u32>(st, <u32>slot, 8); store<u32>(st, left, 12); store<u32>(st, <u32>op, 16);
  store<u32>(st, at, 24); store<u32>(st, <u32>pend, 28);
  return rc;
}

// Sum of n lengths (i32); E_LENGTH when one is negative or the sum is over 2^31 - 1.
export function lengthsTotal(p: usize, n: u32): i32 {
  const e = p + (<usize>n << 2);
  let sum = i64x2.splat(0);
  for (; e - p >= 16; p += 16) {
    const v = v128.load(p);
    sum = i64x2.add(sum, i64x2.add(i64x2.extend_low_i32x4_u(v), i64x2.extend_high_i32x4_u(v)));
  }
  let total: u64 = i64x2.extract_lane(sum, 0) + i64x2.extract_lane(sum, 1);
  for (; p < e; p += 4) total += load<u32>(p);
  return total > 0x7fffffff ? E_LENGTH : <i32>total; // a negative length alone is over it
}

// n lengths at p (i32, from DELTA_BINARY_PACKED) become the end offsets in place; none negative, sum below limit.
export function lengthsToOffsets(p: usize, n: u32, start: u32, limit: u32): i32 {
  let at: u64 = start;
  const e = p + (<usize>n << 2);
  for (; p < e; p += 4) {
    const l = load<u32>(p);
    if (l > 0x7fffffff) return E_LENGTH;
    at += l;
    if (at > limit) return E_LENGTH;
    store<u32>(p, <u32>at);
  }
  return DONE;
}

// DELTA_BYTE_ARRAY: prefix lengths and suffix lengths already decoded (i32 each), suffix bytes arriving.
// State: 0 ip, 4 srcEnd, 8 next offset slot, 12 values still wanted, 16 data op, 20 dataEnd, 24 offset of the
//   next value, 28 prefixes (next), 32 suffix lengths (next), 36 previous value, 40 its length
export function deltaBytes(st: usize, avail: usize): i32 {
  let ip: usize = load<u32>(st), slot: usize = load<u32>(st, 8), op: usize = load<u32>(st, 16);
  const end: usize = load<u32>(st, 4), dend: usize = load<u32>(st, 20);
  let left = load<u32>(st, 12), at = load<u32>(st, 24);
  let pp: usize = load<u32>(st, 28), sp: usize = load<u32>(st, 32);
  let prev: usize = load<u32>(st, 36), plen: usize = load<u32>(st, 40);
  let rc: i32 = DONE;
  while (left) {
    const pre: usize = load<u32>(pp), suf: usize = load<u32>(sp);
    if (pre > plen || suf > 0x7fffffff) return E_LENGTH;
    const room = dend - op;
    if (pre > room || suf > room - pre || pre + suf > <usize>(0x7fffffff - at)) return E_LENGTH;
    if (suf > end - ip) return E_TRUNC;
    if (suf > avail - ip) { rc = NEED; break; }
    if (pre <= 16 && suf <= 16 && room >= 32 && avail - ip >= 16) {
      v128.store(op, v128.load(prev)); // prev < op, so prev + 16 <= op + 16 stays inside
      v128.store(op + pre, v128.load(ip));
    } else {
      memory.copy(op, prev, pre);
      memory.copy(op + pre, ip, suf);
    }
    prev = op; plen = pre + suf;
    op += plen; ip += suf; at += <u32>plen;
    store<u32>(slot, at); slot += 4; pp += 4; sp += 4; left--;
  }
  store<u32>(st, <u32>ip); store<u32>(st, <u32>slot, 8); store<u32>(st, left, 12); store<u32>(st, <u32>op, 16);
  store<u32>(st, at, 24); store<u32>(st, <u32>pp, 28); store<u32>(st, <u32>sp, 32);
  store<u32>(st, <u32>prev, 36); store<u32>(st, <u32>plen, 40);
  return rc;
}
