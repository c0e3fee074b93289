// Dictionary entries gathered by indices that are already checked: fixed widths, and strings in two steps (offsets,
// so that the room is known, then bytes).
import { E_LENGTH } from "./codes";

export function gatherWide(indices: usize, n: u32, dict: usize, width: u32, out: usize): void {
  const e = indices + (<usize>n << 2), W: usize = width;
  if (W == 4) {
    for (; indices < e; indices += 4, out += 4) store<u32>(out, load<u32>(dict + (<usize>load<u32>(indices) << 2)));
  } else if (W == 8) {
    for (; indices < e; indices += 4, out += 8) store<u64>(out, load<u64>(dict + (<usize>load<u32>(indices) << 3)));
  } else if (W == 12) {
    for (; indices < e; indices += 4, out += 12) {
      const p = dict + <usize>load<u32>(indices) * 12;
      store<u64>(out, load<u64>(p)); store<u32>(out, load<u32>(p, 8), 8);
    }
  } else if (W == 16) {
    for (; indices < e; indices += 4, out += 16) v128.store(out, v128.load(dict + (<usize>load<u32>(indices) << 4)));
  } else if (W > 64) {
    for (; indices < e; indices += 4, out += W) memory.copy(out, dict + <usize>load<u32>(indices) * W, W);
  } else if (W > 16) { // 16 bytes at a time, the last ones overlapping
    for (; indices < e; indices += 4, out += W) {
      const p = dict + <usize>load<u32>(indices) * W;
      for (let k: usize = 0; k + 16 < W; k += 16) v128.store(out + k, v128.load(p + k));
      v128.store(out + W - 16, v128.load(p + W - 16));
    }
  } else if (W >= 8) {
    for (; indices < e; indices += 4, out += W) {
      const p = dict + <usize>load<u32>(indices) * W;
      const last = load<u64>(p + W - 8);
      store<u64>(out, load<u64>(p)); store<u64>(out + W - 8, last);
    }
  } else {
    for (; indices < e; indices += 4, out += W) {
      const p = dict + <usize>load<u32>(indices) * W;
      for (let k: usize = 0; k < W; k++) store<u8>(out + k, load<u8>(p + k));
    }
  }
}

// End offsets; E_LENGTH when the last one passes 2^31 - 1.
export function gatherOffsets(indices: usize, n: u32, dictOffsets: usize, slot: usize, start: u32): i32 {
  let at: u64 = start;
  const e = indices + (<usize>n << 2);
  for (; indices < e; indices += 4, slot += 4) {
    const p = dictOffsets + (<usize>load<u32>(indices) << 2);
    at += load<u32>(p, 4) - load<u32>(p);
    store<u32>(slot, <u32>at);
  }
  return at > 0x7fffffff ? E_LENGTH : <i32>at;
}

// The bytes to [out, outEnd). Up to 64 bytes past the start of an entry are read whatever its length, so the
// dictionary's data must be followed by 64 readable bytes. Writes stay below outEnd: the last values go exactly.
export function gatherBytes(
  indices: usize, n: u32, dictOffsets: usize, dictData: usize, out: usize, outEnd: usize
): void {
  const e = indices + (<usize>n << 2);
  if (outEnd - out >= 64) {
    const limit = outEnd - 64;
    while (indices < e && out <= limit) {
      const p = dictOffsets + (<usize>load<u32>(indices) << 2);
      const from = load<u32>(p), len = <usize>(load<u32>(p, 4) - from), s = dictData + from;
      v128.store(out, v128.load(s));
      if (len > 16) {
        if (len > 64) memory.copy(out, s, len);
        else {
          v128.store(out, v128.load(s, 16), 16); v128.store(out, v128.load(s, 32), 32);
          v128.store(out, v128.load(s, 48), 48);
        }
      }
      out += len; indices += 4;
    }
  }
  for (; indices < e; indices += 4) {
    const p = dictOffsets + (<usize>load<u32>(indices) << 2);
    const from = load<u32>(p), len = <usize>(load<u32>(p, 4) - from);
    memory.copy(out, dictData + from, len);
    out += len;
  }
}
