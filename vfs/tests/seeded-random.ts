/** Random numbers for tests: the seed comes from QANAT_SEED or the clock, and is printed, so that a failure replays. */
export interface SeededRandom {
  /** A whole number from 0 to below `bound`. */
  below(bound: number): number;
  bytes(length: number): Buffer<ArrayBuffer>;
  pick<T>(from: readonly T[]): T;
  /** Another source of numbers, for what draws at its own pace. */
  fork(): SeededRandom;
}

/** `name` says in the output whose seed it is. */
export function newRandom(name: string): SeededRandom {
  const seed = Number(process.env.QANAT_SEED ?? Date.now() % 2 ** 31);
  console.log(`${name}: QANAT_SEED=${seed}`);
  return randomFrom(seed);
}

function randomFrom(seed: number): SeededRandom {
  let state = seed >>> 0;
  // mulberry32
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (bound: number): number => Math.floor(next() * bound);
  return {
    below,
    bytes(length) {
      const bytes = Buffer.alloc(length);
      for (let k = 0; k < length; k++) bytes[k] = below(256);
      return bytes;
    },
    pick: (from) => from[below(from.length)]!,
    fork: () => randomFrom(below(2 ** 32)),
  };
}
