/** Random numbers for tests: printed seed, replayable with QANAT_SEED. */
export interface Random {
  /** An integer from 0 to n - 1. */
  below(n: number): number;
}

/** A generator (mulberry32) whose seed is printed with the name of the test that uses it. */
export function randomFrom(name: string): Random {
  const seed = Number(process.env.QANAT_SEED ?? Math.floor(Math.random() * 2 ** 32)) >>> 0;
  console.log(`${name}: QANAT_SEED=${seed}`);
  let state = seed;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = state;
    x = Math.imul(x ^ (x >>> 15), x | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
  return { below: (n) => Math.floor(next() * n) };
}
