// LZ4 block format (lz4_Block_format.md). Safe, resumable, two paths: a careful one, and a fast loop where there is room.
// State (u32 words at st; the caller writes 0..16 and zeroes the rest):
//   0 ip, 4 srcEnd, 8 dst, 12 op (= dst at first), 16 dstEnd, 20 length so far or literal bytes left,
//   24 phase, 28 match nibble of the token
// The output must be exactly dstEnd - dst bytes, and the block must end with literals (none will do). Reads stay in
// [ip, avail), writes in [dst, dstEnd). How far from the end the last match must be is a rule for compressors: blocks
// that break it are read, as other readers of Parquet do.
// dst below 65536 is allowed but takes the careful path only (the fast loop leans on op - off not wrapping).
import { DONE, NEED, E_TRUNC, E_LENGTH, E_OFFSET } from "./codes";
import { copyMatchExact, copyMatchWild } from "./match-copy";

// What comes next.
const TOKEN: u32 = 0, LITERAL_LENGTH: u32 = 1, LITERALS: u32 = 2, OFFSET: u32 = 3, MATCH_LENGTH: u32 = 4;
const MORE: i32 = 3; // a sequence is done, others follow

@inline function save(st: usize, ip: usize, op: usize, left: usize, phase: u32): void {
  store<u32>(st, <u32>ip); store<u32>(st, <u32>op, 12); store<u32>(st, <u32>left, 20); store<u32>(st, phase, 24);
}

// ---------------------------------------------------------------- careful path: one sequence, or what is there of it
function sequence(st: usize, avail: usize): i32 {
  let ip: usize = load<u32>(st), op: usize = load<u32>(st, 12), left: usize = load<u32>(st, 20);
  let phase = load<u32>(st, 24), nibble: usize = load<u32>(st, 28);
  const end: usize = load<u32>(st, 4), dst: usize = load<u32>(st, 8), oend: usize = load<u32>(st, 16);
  const stop = avail < end ? NEED : E_TRUNC;
  if (phase == TOKEN) {
    if (ip == avail) return stop;
    const token: usize = load<u8>(ip++);
    nibble = token & 15;
    store<u32>(st, <u32>nibble, 28);
    left = token >> 4;
    if (left > oend - op) return E_LENGTH;
    phase = LITERAL_LENGTH;
    if (left < 15) {
      phase = LITERALS;
      if (left > end - ip) return E_TRUNC;
    }
  }
  if (phase == LITERAL_LENGTH) {
    let more: usize = 255;
    while (more == 255) {
      if (ip == avail) { save(st, ip, op, left, phase); return stop; }
      more = load<u8>(ip++);
      left += more;
      if (left > oend - op) return E_LENGTH;
    }
    phase = LITERALS;
    if (left > end - ip) return E_TRUNC;
  }
  if (phase == LITERALS) {
    const n = min(avail - ip, left);
    memory.copy(op, ip, n);
    ip += n; op += n; left -= n;
    if (left > 0) { save(st, ip, op, left, phase); return stop; }
    phase = OFFSET;
  }
  if (phase == OFFSET) {
    if (avail - ip < 2) {
      save(st, ip, op, left, phase);
      return ip == end && op == oend ? DONE : stop;
    }
    const off: usize = load<u16>(ip);
    ip += 2;
    if (off == 0 || off > op - dst) return E_OFFSET;
    store<u32>(st, <u32>off, 32);
    left = nibble + 4;
    if (left > oend - op) return E_LENGTH;
    phase = MATCH_LENGTH;
  }
  // phase == MATCH_LENGTH
  if (nibble == 15) {
    let more: usize = 255;
    while (more == 255) {
      if (ip == avail) { save(st, ip, op, left, phase); return stop; }
      more = load<u8>(ip++);
      left += more;
      if (left > oend - op) return E_LENGTH;
    }
  }
  copyMatchExact(op, load<u32>(st, 32), left);
  save(st, ip, op + left, 0, TOKEN);
  return MORE;
}

const ISLACK: usize = 48; // a loop turn reads at most 1 + 14 + 2 + 1 bytes past ip, besides what it checks
const OSLACK: usize = 128; // and writes at most 14 + 18 + 15 past op
// Whole sequences, as long as there is room for wild copies and no length takes a second byte of 255.
function fast(st: usize, avail: usize): void {
  let ip: usize = load<u32>(st), op: usize = load<u32>(st, 12);
  const dst: usize = load<u32>(st, 8), oend: usize = load<u32>(st, 16);
  const ilim = avail - ISLACK, olim = oend - OSLACK;
  while (ip < ilim && op < olim) {
    const token: usize = load<u8>(ip);
    let p = ip + 1, q = op, len = token & 15, lit = token >> 4;
    v128.store(op, v128.load(p));
    if (lit == 15) {
      const more: usize = load<u8>(p++);
      lit += more;
      if (more == 255 || avail - p < lit + ISLACK || oend - op < lit + OSLACK) break;
      const e = op + lit;
      for (let s = p, d = op; d < e; s += 16, d += 16) v128.store(d, v128.load(s));
    }
    p += lit; q += lit;
    const off: usize = load<u16>(p);
    p += 2;
    if (off - 1 >= q - dst) break; // 0, or before the start
    if (len == 15) {
      const more: usize = load<u8>(p++);
      len += more;
      if (more == 255 || oend - q < len + OSLACK) break;
    }
    len += 4;
    const m = q - off;
    if (off < len) copyMatchWild(q, off, len);
    else {
      v128.store(q, v128.load(m));
      if (len > 16) {
        v128.store(q, v128.load(m, 16), 16);
        for (let d: usize = 32; d < len; d += 16) v128.store(q + d, v128.load(m + d));
      }
    }
    ip = p;
    op = q + len;
  }
  store<u32>(st, <u32>ip); store<u32>(st, <u32>op, 12);
}

export function lz4(st: usize, avail: usize): i32 {
  const oend: usize = load<u32>(st, 16);
  const roomy = load<u32>(st, 8) >= 65536;
  for (;;) {
    if (roomy && load<u32>(st, 24) == TOKEN && avail - load<u32>(st) > ISLACK && oend - load<u32>(st, 12) > OSLACK) {
      fast(st, avail);
    }
    const r = sequence(st, avail);
    if (r != MORE) return r;
  }
  return NEED;
}
