// Definition levels of a flat nullable column (width-1 hybrid) -> Arrow validity bitmap.
// (Other level widths: hybridU8 / hybridU16 with limit = max level + 1; E_INDEX then means a bad level.)
import { DONE, NEED, E_TRUNC, E_VALUE, E_VARINT } from "./codes";

const RLE: u32 = 1;
const PACKED: u32 = 2;

// State: 0 ip, 4 srcEnd, 8 op (8-byte words are written from here: room for 8 * ceil(n / 64) bytes),
//   12 values still wanted, 16 ones so far, 28 run kind (0 none, 1 RLE, 2 bit-packed),
//   32 left of the run (RLE: values, bit-packed: bytes, the one at ip included), 36 RLE value,
//   40 bits pending (0..63), 44 bits of the byte at ip that are used already, 48 pending word (u64)
// Runs go on past the wanted values as in hybrid.ts; the pending bits are written by flushBits only.
export function levelBitmap(st: usize, avail: usize): i32 {
  let ip: usize = load<u32>(st), op: usize = load<u32>(st, 8);
  const end: usize = load<u32>(st, 4);
  let left = load<u32>(st, 12), ones = load<u32>(st, 16), kind = load<u32>(st, 28), run = load<u32>(st, 32), val = load<u32>(st, 36);
  let nb: u32 = load<u32>(st, 40), used = load<u32>(st, 44), acc = load<u64>(st, 48);
  let rc: i32 = DONE;
  while (left) {
    if (kind == 0) {
      const have: usize = avail - ip;
      let h: u32 = 0, n: usize = 0;
      let short = false;
      for (let s: u32 = 0; ; s += 7) {
        if (n >= have) { short = true; break; }
        const b: u32 = load<u8>(ip + n); n++;
        if (s == 28 && b > 15) return E_VARINT;
        h |= (b & 127) << s;
        if (b < 128) break;
      }
      if (short || (!(h & 1) && n >= have)) { rc = avail < end ? NEED : E_TRUNC; break; }
      run = h >> 1;
      if (h & 1) {
        ip += n;
        if (run == 0) continue;
        kind = PACKED; used = 0;
      } else {
        val = load<u8>(ip + n);
        ip += n + 1;
        if (run == 0) continue;
        if (val > 1) return E_VALUE;
        kind = RLE;
      }
    }
    if (kind == RLE) {
      let n = min<u32>(run, left);
      left -= n; run -= n;
      if (run == 0) kind = 0;
      if (val) ones += n;
      const bits: u64 = <u64>0 - <u64>val;
      // fill the pending word, then whole words, then what is over
      const k: u32 = <u32>64 - nb;
      if (n < k) { acc |= (bits & ((<u64>1 << n) - 1)) << nb; nb += n; continue; }
      acc |= bits << nb;
      store<u64>(op, acc); op += 8; n -= k;
      const by = <usize>(n >> 6) << 3;
      if (by) {
        if (by >= 256) memory.fill(op, <u8>bits, by);
        else for (let e = op + by, o = op; o < e; o += 8) store<u64>(o, bits);
      }
      op += by; nb = n & 63;
      acc = nb ? bits & ((<u64>1 << nb) - 1) : 0;
      continue;
    }
    // bit-packed: 64 values at a time, then bytes
    const resumed = used;
    let have: usize = avail - ip;
    if (!resumed) {
      while (run >= 8 && left >= 64 && have >= 8) {
        const x = load<u64>(ip);
        ones += <u32>popcnt(x);
        store<u64>(op, acc | (x << nb)); op += 8;
        acc = nb ? x >> (64 - nb) : 0;
        ip += 8; have -= 8; run -= 8; left -= 64;
      }
    }
    while (run && left && have) {
      const nv = min<u32>(left, 8 - used);
      const x: u64 = (<u64>load<u8>(ip) >> used) & ((1 << nv) - 1);
      ones += <u32>popcnt(x);
      acc |= x << nb;
      if (nb + nv >= 64) {
        store<u64>(op, acc); op += 8;
        acc = nb ? x >> (64 - nb) : 0; // nb > 0 here, as nv <= 8
        nb = nb + nv - 64;
      } else nb += nv;
      left -= nv; used += nv;
      if (used < 8) break; // nothing more is wanted
      used = 0; ip++; have--; run--;
      if (resumed) break; // aligned again: back to whole words
    }
    if (run == 0) kind = 0;
    else if (left && !have) { rc = avail < end ? NEED : E_TRUNC; break; }
  }
  if (rc < 0) return rc;
  store<u32>(st, <u32>ip); store<u32>(st, <u32>op, 8); store<u32>(st, left, 12); store<u32>(st, ones, 16);
  store<u32>(st, kind, 28); store<u32>(st, run, 32); store<u32>(st, val, 36);
  store<u32>(st, nb, 40); store<u32>(st, used, 44); store<u64>(st, acc, 48);
  return rc;
}

// The pending bits as a whole word at op. The state is left alone: more runs may follow and will write the word again.
export function flushBits(st: usize): void {
  if (load<u32>(st, 40)) store<u64>(load<u32>(st, 8), load<u64>(st, 48));
}
