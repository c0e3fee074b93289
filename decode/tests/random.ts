/** Random numbers for tests: the seed comes from QANAT_SEED or the clock, and is printed, so that a failure replays. */
export interface SeededRandom {
  /** An integer in [0, n), n up to 2^32. */
  below(n: number): number;
}

/** `fallback` is the seed when QANAT_SEED has none; the clock's without it. */
export function seededRandom(fallback = Date.now() % 2 ** 31): SeededRandom {
  const seed = Number(process.env.QANAT_SEED ?? fallback);
  console.log(`QANAT_SEED=${seed}`);
  return randomFrom(seed);
}

/** mulberry32 */
export function randomFrom(seed: number): SeededRandom {
  let state = seed >>> 0;
  return {
    below(n) {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = state;
      t = Math.imul(t ^ (t >>> 15), t | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * n);
    },
  };
}
