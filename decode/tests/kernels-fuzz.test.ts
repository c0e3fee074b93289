/**
 * Differential fuzz: every kernel in WebAssembly against its scalar twin on valid, cut and hostile input. The same
 * seed replays the same cases: QANAT_SEED=... (and QANAT_FUZZ_SECONDS=... per kernel group when they were many).
 */
import { test } from 'node:test';
import { Arena, chooseSeed, Random } from './kernel-fuzz.ts';
import { FUZZ_CASES } from './kernel-fuzz-cases.ts';

const seed = chooseSeed();
const seconds = Number(process.env.QANAT_FUZZ_SECONDS ?? '') || 0.4;
const pair = { wasm: new Arena('wasm'), scalar: new Arena('scalar') };

for (const [name, fuzz] of Object.entries(FUZZ_CASES)) {
  test(`kernel fuzz: ${name}`, (context) => {
    const random = new Random(seed);
    const end = performance.now() + 1000 * seconds;
    let cases = 0;
    for (; cases < 20 || performance.now() < end; cases++) {
      try {
        fuzz(pair, random);
      } catch (error) {
        throw new Error(`case ${cases} of ${name}, QANAT_SEED=${seed}`, { cause: error });
      }
    }
    context.diagnostic(`${name}: ${cases} cases, QANAT_SEED=${seed}`);
  });
}
