// Definition levels of a flat nullable column (width-1 hybrid) -> Arrow validity bitmap.
// (Other level widths: hybridU8 / hybridU16 with limit = max level + 1; E_INDEX then means a bad level.)
import { DONE, NEED, E_TRUNC, E_VALUE, E_VARINT } from "./codes";

const RLE: u32 = 1;
const PACKED: u32 = 2;

// State: 0 ip, 4 srcEnd, 8 op (8-byte words are written from here: room for 8 * ceil(n / 64) bytes),
//   12 values still wanted, 16 ones so far, 28 run kind (0 none, 1 RLE, 2 bit-packed),
//   32 left of the run (RLE: values, bit-packed: bytes, the one at ip included), 36 RLE value,
//   40 bits pending (0..63), 44 bits of the byte at ip that are used already, 48 pending word (u64),
//   56 bytes past the wanted ones (inside a call)
// Runs go on past the wanted values as in hybrid.ts; the pending bits are written by flushBits only.

// n bits, up to 64, are appended to the pending ones.
function appendBits(st: usize, x: u64, n: u32): void {
  const op: usize = load<u32>(st, 8), nb = load<u32>(st, 40);
  if (n < 64) x &= (<u64>1 << n) - 1;
  let acc = load<u64>(st, 48) | (x << nb);
  if (nb + n >= 64) {
    store<u64>(op, acc);
    store<u32>(st, <u32>op + 8, 8);
    acc = nb ? x >> (64 - nb) : 0;
  }
  store<u64>(st, acc, 48);
  store<u32>(st, (nb + n) & 63, 40);
  store<u32>(st, load<u32>(st, 12) - n, 12);
  store<u32>(st, load<u32>(st, 16) + <u32>popcnt(x), 16);
}
// What the call before left of its last run, as far as the hot loop would not take it up as it is.
function resume(st: usize, avail: usize): i32 {
  const kind = load<u32>(st, 28), used = load<u32>(st, 44);
  let run = load<u32>(st, 32);
  if (kind == RLE) {
    const bits: u64 = <u64>0 - <u64>load<u32>(st, 36);
    for (let left = load<u32>(st, 12); run && left; left = load<u32>(st, 12)) {
      const n = min<u32>(min<u32>(run, left), 64);
      appendBits(st, bits, n);
      run -= n;
    }
  } else if (used) {
    const ip: usize = load<u32>(st), n = min<u32>(load<u32>(st, 12), 8 - used);
    if (ip >= avail) return avail < <usize>load<u32>(st, 4) ? NEED : E_TRUNC;
    appendBits(st, <u64>load<u8>(ip) >> used, n);
    store<u32>(st, (used + n) & 7, 44);
    if (used + n == 8) { store<u32>(st, <u32>ip + 1); run--; }
  }
  store<u32>(st, run, 32);
  if (run == 0) store<u32>(st, 0, 28);
  return DONE;
}
export function levelBitmap(st: usize, avail: usize): i32 {
  if (load<u32>(st, 28) == 0) store<u32>(st, 0, 44);
  else if (load<u32>(st, 12)) {
    const r = resume(st, avail);
    if (r != DONE) return r;
  }
  let left = load<u32>(st, 12);
  if (left == 0) return DONE;
  let ip: usize = load<u32>(st), op: usize = load<u32>(st, 8);
  const end: usize = load<u32>(st, 4);
  let ones = load<u32>(st, 16), kind = load<u32>(st, 28), run = load<u32>(st, 32), val: u32 = 0;
  let nb: u32 = load<u32>(st, 40), acc = load<u64>(st, 48);
  // As in hybrid.ts: `run` counts wanted values only, and what the last run has over stays out of the loop's registers.
  let h: u32 = 1;
  store<u32>(st, 0, 56);
  if (kind) {
    if (run > left >> 3) { store<u32>(st, run - (left >> 3), 56); run = left; } else run <<= 3;
  }
  let rc: i32 = DONE;
  while (left) {
    if (kind == 0) {
      const have: usize = avail - ip;
      let n: usize = 0;
      h = 0;
      let short = false;
      if (have >= 2 && load<u8>(ip) < 128) { h = load<u8>(ip); n = 1; }
      else if (have >= 3 && load<u8>(ip, 1) < 128) {
        h = (<u32>load<u8>(ip) & 127) | (<u32>load<u8>(ip, 1) << 7);
        n = 2;
      } else for (let s: u32 = 0; ; s += 7) {
        if (n >= have) { short = true; break; }
        const b: u32 = load<u8>(ip + n); n++;
        if (s == 28 && b > 15) return E_VARINT;
        h |= (b & 127) << s;
        if (b < 128) break;
      }
      if (short || (!(h & 1) && n >= have)) { rc = avail < end ? NEED : E_TRUNC; break; }
      if (h & 1) {
        const g = h >> 1;
        ip += n;
        if (g > left >> 3) { store<u32>(st, g - (left >> 3), 56); run = left; }
        else { if (g == 0) continue; run = g << 3; }
        kind = PACKED;
      } else {
        val = load<u8>(ip + n);
        ip += n + 1;
        run = min<u32>(h >> 1, left);
        if (run == 0) continue;
        if (val > 1) return E_VALUE;
        left -= run;
        if (val) ones += run;
        const bits: u64 = <u64>0 - <u64>val;
        // fill the pending word, then whole words, then what is over
        const k: u32 = <u32>64 - nb;
        if (run < k) { acc |= (bits & ((<u64>1 << run) - 1)) << nb; nb += run; continue; }
        acc |= bits << nb;
        store<u64>(op, acc); op += 8;
        const more = run - k, by = <usize>(more >> 6) << 3;
        if (by) {
          if (by >= 256) memory.fill(op, <u8>bits, by);
          else for (let e = op + by, o = op; o < e; o += 8) store<u64>(o, bits);
        }
        op += by; nb = more & 63;
        acc = nb ? bits & ((<u64>1 << nb) - 1) : 0;
        continue;
      }
    }
    // bit-packed: 64 values at a time, then bytes
    let have: usize = avail - ip;
    while (run >= 64 && have >= 8) {
      const x = load<u64>(ip);
      ones += <u32>popcnt(x);
      store<u64>(op, acc | (x << nb)); op += 8;
      acc = nb ? x >> (64 - nb) : 0;
      ip += 8; have -= 8; run -= 64; left -= 64;
    }
    while (run && have) {
      const nv = min<u32>(run, 8);
      const x: u64 = <u64>load<u8>(ip) & ((1 << nv) - 1);
      ones += <u32>popcnt(x);
      acc |= x << nb;
      if (nb + nv >= 64) {
        store<u64>(op, acc); op += 8;
        acc = nb ? x >> (64 - nb) : 0; // nb > 0 here, as nv <= 8
        nb = nb + nv - 64;
      } else nb += nv;
      run -= nv; left -= nv; have--;
      if (nv == 8) ip++;
      else store<u32>(st, nv, 44); // the last wanted values: the rest of the byte is kept
    }
    if (run) { rc = avail < end ? NEED : E_TRUNC; break; }
    kind = 0;
  }
  if (rc < 0) return rc;
  let over = load<u32>(st, 56);
  if (rc == NEED) over = kind ? over + (run >> 3) : 0;
  else {
    if (!(h & 1)) over = (h >> 1) - run;
    kind = over == 0 ? 0 : h & 1 ? PACKED : RLE;
  }
  store<u32>(st, <u32>ip); store<u32>(st, <u32>op, 8); store<u32>(st, left, 12); store<u32>(st, ones, 16);
  store<u32>(st, kind, 28); store<u32>(st, over, 32); store<u32>(st, val, 36);
  store<u32>(st, nb, 40); store<u64>(st, acc, 48);
  return rc;
}

// The pending bits as a whole word at op. The state is left alone: more runs may follow and will write the word again.
export function flushBits(st: usize): void {
  if (load<u32>(st, 40)) store<u64>(load<u32>(st, 8), load<u64>(st, 48));
}
