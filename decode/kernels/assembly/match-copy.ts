// Copies of a match, a string that was written before: bytes [op - off, ...) to [op, op + len), where the two may overlap.

// Byte k of the pattern of `off` is k % off; STEP[off] = 16 - 16 % off, so that patterns put one after the other go on
// where they repeat. Every instance on a shared memory writes the same bytes here.
const PATTERN: usize = memory.data(256);
const STEP: usize = memory.data(16);
function fillPatterns(): void {
  for (let o: usize = 1; o < 16; o++) {
    for (let k: usize = 0; k < 16; k++) store<u8>(PATTERN + (o << 4) + k, <u8>(k % o));
    store<u8>(STEP + o, <u8>(16 - 16 % o));
  }
}
fillPatterns();

// May write up to 15 bytes after the match. 0 < len; off is not over what has been written, and not 0.
@inline export function copyMatchWild(op: usize, off: usize, len: usize): void {
  const e = op + len;
  if (off >= 16) {
    let m = op - off;
    do { v128.store(op, v128.load(m)); op += 16; m += 16; } while (op < e);
  } else {
    const v = i8x16.swizzle(v128.load(op - off), v128.load(PATTERN + (off << 4)));
    const step: usize = load<u8>(STEP + off);
    do { v128.store(op, v); op += step; } while (op < e);
  }
}

// Writes the match and nothing else.
export function copyMatchExact(op: usize, off: usize, len: usize): void {
  const e = op + len;
  if (len > 31) {
    const whole = len - 15;
    copyMatchWild(op, off, whole);
    op += whole;
  }
  for (let m = op - off; op < e; op++, m++) store<u8>(op, load<u8>(m));
}
