// The deprecated BIT_PACKED encoding of levels (Parquet "Encodings", BIT_PACKED = 4): values of one width from the most
// significant bit of each byte down, without padding between them. Eight values are w bytes; a value spans at most two.
import { DONE, E_TRUNC, E_VALUE, E_WIDTH } from "./codes";

// [w] swizzle to big-endian pairs of bytes, multipliers that drop the bits before a value
const PAIRS: usize = memory.data(9 * 32, 16);
function pairsInit(): void {
  for (let w: u32 = 1; w <= 8; w++) {
    for (let k: u32 = 0; k < 8; k++) {
      const bit = k * w, a = bit >> 3, off = bit & 7;
      const p = PAIRS + <usize>(w << 5) + <usize>(k << 1);
      store<u8>(p, <u8>(a + 1)); store<u8>(p, <u8>a, 1);
      store<u16>(p, <u16>(<u32>1 << off), 16);
    }
  }
}
pairsInit();

export function bitPackedLevels(ip: usize, end: usize, w: u32, n: u32, op: usize, limit: u32): i32 {
  if (w > 8) return E_WIDTH;
  if (<u64>(end - ip) < (<u64>n * w + 7) >> 3) return E_TRUNC;
  if (n == 0) return DONE;
  if (w == 0) {
    memory.fill(op, 0, n);
    return limit ? DONE : E_VALUE;
  }
  const t = PAIRS + <usize>(w << 5), s = v128.load(t), m = v128.load(t, 16), sh = 16 - w;
  let mx = i8x16.splat(0);
  for (; n >= 16 && end - ip >= <usize>w + 16; n -= 16) {
    const a = i16x8.shr_u(i16x8.mul(i8x16.relaxed_swizzle(v128.load(ip), s), m), sh);
    const b = i16x8.shr_u(i16x8.mul(i8x16.relaxed_swizzle(v128.load(ip + <usize>w), s), m), sh);
    const x = i8x16.narrow_i16x8_u(a, b);
    v128.store(op, x);
    mx = i8x16.max_u(mx, x);
    ip += <usize>w << 1; op += 16;
  }
  let most: u32 = 0;
  const mask: u32 = (<u32>1 << w) - 1;
  for (let bit: u32 = 0; n; n--, bit += w, op++) { // what is over: few values, or few bytes
    const p = ip + <usize>(bit >> 3), off = bit & 7;
    let x = <u32>load<u8>(p) << 8;
    if (off + w > 8) x |= load<u8>(p, 1);
    x = (x >> (16 - off - w)) & mask;
    store<u8>(op, <u8>x);
    most = max<u32>(most, x);
  }
  if (most >= limit) return E_VALUE;
  return limit < 256 && v128.any_true(i8x16.ge_u(mx, i8x16.splat(<i8>limit))) ? E_VALUE : DONE;
}
