// Snappy block format. Safe, resumable, three paths: a careful token at a time, and two fast loops.
// State (u32 words at st; the caller writes 0..16 and zeroes the rest):
//   0 ip, 4 srcEnd, 8 dst, 12 op (= dst at first), 16 dstEnd, 20 literal bytes left,
//   24 phase (0 preamble, 1 body), 28 preamble value, 32 preamble shift, 36 segments to run reloading
// The output must be exactly dstEnd - dst bytes. Reads stay in [ip, avail), writes in [dst, dstEnd).
// dst below 65536 is allowed but takes the careful path only (the fast loops lean on op - off not wrapping).
import { DONE, NEED, E_TRUNC, E_LENGTH, E_OFFSET, E_VARINT } from "./codes";

// ---------------------------------------------------------------- careful path: one token
// Returns DONE when a token (or a literal part) was consumed, NEED when the mark stops it.
function token(st: usize, avail: usize): i32 {
  let ip: usize = load<u32>(st), op: usize = load<u32>(st, 12);
  const end: usize = load<u32>(st, 4), dst: usize = load<u32>(st, 8), oend: usize = load<u32>(st, 16);
  let left: usize = load<u32>(st, 20);
  const stop = avail < end ? NEED : E_TRUNC;
  if (left == 0) {
    const tag: u32 = load<u8>(ip), t = tag & 3;
    const have = avail - ip;
    if (t == 0) {
      let len: usize = tag >> 2, nb: usize = 1;
      if (len >= 60) {
        nb = len - 58; // 2..5 bytes of tag and length
        if (have < nb) return stop;
        len = load<u8>(ip, 1);
        if (nb > 2) len |= <usize>load<u8>(ip, 2) << 8;
        if (nb > 3) len |= <usize>load<u8>(ip, 3) << 16;
        if (nb > 4) len |= <usize>load<u8>(ip, 4) << 24;
      }
      if (len >= oend - op) return E_LENGTH;
      ip += nb;
      left = len + 1;
      if (left > end - ip) return E_TRUNC;
    } else {
      let len: usize, off: usize, nb: usize;
      if (t == 1) {
        if (have < 2) return stop;
        len = ((tag >> 2) & 7) + 4; off = ((tag >> 5) << 8) | load<u8>(ip, 1); nb = 2;
      } else if (t == 2) {
        if (have < 3) return stop;
        len = (tag >> 2) + 1; off = load<u16>(ip, 1); nb = 3;
      } else {
        if (have < 5) return stop;
        len = (tag >> 2) + 1; off = load<u32>(ip, 1); nb = 5;
      }
      if (off == 0 || off > op - dst) return E_OFFSET;
      if (len > oend - op) return E_LENGTH;
      let m = op - off;
      const e = op + len;
      if (off >= 8) {
        while (op + 8 <= e) { store<u64>(op, load<u64>(m)); op += 8; m += 8; }
      }
      while (op < e) store<u8>(op++, load<u8>(m++));
      store<u32>(st, <u32>(ip + nb)); store<u32>(st, <u32>op, 12);
      return DONE;
    }
  }
  let n = avail - ip;
  if (n > left) n = left;
  memory.copy(op, ip, n);
  ip += n; op += n; left -= n;
  store<u32>(st, <u32>ip); store<u32>(st, <u32>op, 12); store<u32>(st, <u32>left, 20);
  return left == 0 ? DONE : stop;
}

function preamble(st: usize, avail: usize): i32 {
  let ip: usize = load<u32>(st), v = load<u32>(st, 28), s = load<u32>(st, 32);
  const end: usize = load<u32>(st, 4);
  for (;;) {
    if (ip >= avail) {
      store<u32>(st, <u32>ip); store<u32>(st, v, 28); store<u32>(st, s, 32);
      return avail < end ? NEED : E_TRUNC;
    }
    const b: u32 = load<u8>(ip++);
    if (s == 28 && b > 15) return E_VARINT;
    v |= (b & 127) << s;
    if (b < 128) break;
    s += 7;
  }
  if (v != load<u32>(st, 16) - load<u32>(st, 12)) return E_LENGTH;
  store<u32>(st, <u32>ip);
  store<u32>(st, 1, 24);
  return DONE;
}

const ISLACK: usize = 96; // a loop turn reads at most 1 + 64 + 5 + 16 bytes past ip
const OSLACK: usize = 192; // and writes at most 64 + 80 bytes past op
const SEGMENT: usize = 16384; // bytes of output between two choices of the loop
const PROBE: usize = 2048; // bytes for which the other loop is tried again
const RELOADS: u32 = 64; // segments until then
export function snappy(st: usize, avail: usize): i32 {
  if (load<u32>(st, 24) == 0) {
    const r = preamble(st, avail);
    if (r != DONE) return r;
  }
  const end: usize = load<u32>(st, 4), oend: usize = load<u32>(st, 16);
  for (;;) {
    let ip: usize = load<u32>(st);
    if (load<u32>(st, 20) == 0) {
      let op: usize = load<u32>(st, 12);
      if (ip == avail) {
        if (avail < end) return NEED;
        return op == oend ? DONE : E_TRUNC;
      }
      // one literal in sixteen tokens or so over 5 bytes, and the loop that expects them is the faster one
      while (avail - ip > ISLACK && oend - op > OSLACK && load<u32>(st, 8) >= 65536) {
        const re = load<u32>(st, 36);
        const size: usize = re == 1 ? PROBE : SEGMENT;
        const olim = oend - op > size + OSLACK ? op + size : oend - OSLACK;
        if (re > 1) {
          store<u32>(st, re - 1, 36);
          fastReload(st, avail - ISLACK, olim);
        } else {
          const long = fastPair(st, avail - ISLACK, olim);
          store<u32>(st, long > <i32>(size >> 7) ? RELOADS : 0, 36);
        }
        ip = load<u32>(st);
        op = load<u32>(st, 12);
        if (op < olim) break; // a token for the careful path, or the input's slack
      }
      if (ip == avail) continue;
    } else if (ip == avail) return avail < end ? NEED : E_TRUNC;
    const r = token(st, avail);
    if (r != DONE) return r;
  }
  return NEED;
}

// pattern[off] for overlapping copies: byte k of the pattern is k % off; step[off] = 16 - 16 % off.
// LEN[tag] is the length a tag carries. Every instance on a shared memory writes the same bytes here.
const PAT: usize = memory.data(256 + 16);
const LEN: usize = memory.data(256);
function snappyInit(): void {
  for (let o: usize = 1; o < 16; o++) {
    for (let k: usize = 0; k < 16; k++) store<u8>(PAT + (o << 4) + k, <u8>(k % o));
    store<u8>(PAT + 256 + o, <u8>(16 - 16 % o));
  }
  for (let i: u32 = 0; i < 256; i++) store<u8>(LEN + i, (i & 3) == 1 ? <u8>(((i >> 2) & 7) + 4) : <u8>((i >> 2) + 1));
}
snappyInit();
// The general copy, len <= 64, at least 80 bytes of room after op, off already checked.
@inline function copyAny(op: usize, off: usize, len: usize): void {
  let m = op - off;
  if (off >= 16) {
    v128.store(op, v128.load(m));
    if (len > 16) {
      v128.store(op, v128.load(m, 16), 16);
      if (len > 32) { v128.store(op, v128.load(m, 32), 32); v128.store(op, v128.load(m, 48), 48); }
    }
  } else {
    const v = i8x16.swizzle(v128.load(m), v128.load(PAT + (off << 4)));
    const step: usize = load<u8>(PAT + 256 + off);
    const e = op + len;
    do { v128.store(op, v); op += step; } while (op < e);
  }
}

@inline function copy64(op: usize, m: usize): void {
  const a = v128.load(m), b = v128.load(m, 16), c = v128.load(m, 32), d = v128.load(m, 48);
  v128.store(op, a); v128.store(op, b, 16); v128.store(op, c, 32); v128.store(op, d, 48);
}

// Expects a literal of 1-5 bytes and the copy after it, both in one 8-byte window. What limits the loop is how soon
// the next window is known, so it is loaded while the copy's tag is still on its way, as if the offset had one byte,
// and shifted when it has two (15 % on random integers). Returns how many literals were longer.
function fastPair(st: usize, ilim: usize, olim: usize): i32 {
  let ip: usize = load<u32>(st), op: usize = load<u32>(st, 12), long: i32 = 0;
  const dst: usize = load<u32>(st, 8);
  let x = load<u64>(ip); // at least 7 bytes from ip
  while (ip < ilim && op < olim) {
    if (!(<u32>x & 3)) {
      const b = <u32>x & 0xff; // 4 * (len - 1)
      const l: usize = b >> 2;
      if (b > 16) { // over 5 bytes
        if (b >= 240) break;
        long++;
        v128.store(op, v128.load(ip, 1));
        if (b >= 64) {
          v128.store(op, v128.load(ip, 17), 16); v128.store(op, v128.load(ip, 33), 32);
          v128.store(op, v128.load(ip, 49), 48);
        }
        ip += l + 2; op += l + 1;
        x = load<u64>(ip);
      } else {
        const at = ip + l;
        const y = load<u64>(at, 4); // what follows a pair with a 1-byte offset
        const w = (x >> 16) >> (x << 1); // the shift count is taken modulo 64: 8 * (len - 1)
        const t = <u32>w & 3;
        if (((t + 1) & 2) != 0) {
          store<u64>(op, load<u64>(ip, 1));
          op += l + 1;
          const tag: usize = <usize>(<u32>w & 0xff);
          const len: usize = load<u8>(LEN + tag);
          const off: usize = <usize>load<u8>(at, 3) | (select<usize>(tag >> 5, load<u8>(at, 4), t == 1) << 8);
          const m = op - off;
          if (m < dst) { ip = at + 2; break; }
          if (off < len) { if (off == 0) { ip = at + 2; break; } copyAny(op, off, len); }
          else if (len > 16) copy64(op, m);
          else v128.store(op, v128.load(m));
          op += len;
          x = y >> ((w & 2) << 2);
          ip = at + 3 + t;
          continue;
        }
        store<u64>(op, load<u64>(ip, 1));
        ip += l + 2; op += l + 1;
        x = load<u64>(ip);
      }
    }
    const t = <u32>x & 3;
    const tag: usize = <usize>(<u32>x & 0xff);
    if (((t + 1) & 2) == 0) { // not a copy with a 1- or 2-byte offset
      if (t == 0) continue;
      const len: usize = (tag >> 2) + 1, off: usize = load<u32>(ip, 1);
      if (off - 1 >= op - dst) break;
      copyAny(op, off, len);
      ip += 5; op += len;
      x = load<u64>(ip);
      continue;
    }
    const len: usize = load<u8>(LEN + tag);
    const off: usize = <usize>load<u8>(ip, 1) | (select<usize>(tag >> 5, load<u8>(ip, 2), t == 1) << 8);
    const m = op - off;
    if (m < dst) break;
    if (off < len) { if (off == 0) break; copyAny(op, off, len); }
    else if (len > 16) copy64(op, m);
    else v128.store(op, v128.load(m));
    ip += t + 1;
    op += len;
    x = load<u64>(ip);
  }
  store<u32>(st, <u32>ip); store<u32>(st, <u32>op, 12);
  return long;
}
// Literals of any short length and copies as they come, as in text. Whether there is a literal before a copy can't be
// foretold, so there always is one, of no bytes if need be: 32 bytes are written whatever the length, and only the
// steps are chosen (25 % on TPC-H comments over a branch).
function fastReload(st: usize, ilim: usize, olim: usize): void {
  let ip: usize = load<u32>(st), op: usize = load<u32>(st, 12);
  const dst: usize = load<u32>(st, 8);
  let x = load<u64>(ip); // at least the tag
  while (ip < ilim && op < olim) {
    const b: usize = <usize>(<u32>x & 0xff);
    const literal = (b & 3) == 0;
    v128.store(op, v128.load(ip, 1)); v128.store(op, v128.load(ip, 17), 16);
    if (literal && b >= 128) {
      if (b >= 240) break;
      v128.store(op, v128.load(ip, 33), 32);
      v128.store(op, v128.load(ip, 49), 48);
    }
    const l: usize = b >> 2;
    ip += select<usize>(l + 2, 0, literal); op += select<usize>(l + 1, 0, literal);
    x = load<u64>(ip);
    const t = <u32>x & 3;
    const tag: usize = <usize>(<u32>x & 0xff);
    if (((t + 1) & 2) == 0) { // not a copy with a 1- or 2-byte offset
      if (t == 0) continue;
      const len: usize = (tag >> 2) + 1, off: usize = load<u32>(ip, 1);
      if (off - 1 >= op - dst) break;
      copyAny(op, off, len);
      ip += 5; op += len;
      x = load<u64>(ip);
      continue;
    }
    const len: usize = load<u8>(LEN + tag);
    const off: usize = <usize>load<u8>(ip, 1) | (select<usize>(tag >> 5, load<u8>(ip, 2), !!(tag & 1)) << 8);
    const m = op - off;
    if (m < dst) break;
    if (off < len) { if (off == 0) break; copyAny(op, off, len); }
    else if (len > 16) copy64(op, m);
    else v128.store(op, v128.load(m));
    ip += t + 1;
    op += len;
    x >>= <u64>((t + 1) << 3);
  }
  store<u32>(st, <u32>ip); store<u32>(st, <u32>op, 12);
}
