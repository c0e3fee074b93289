/** The fuzzer: a small budget of it, and that it sees what it is there to see. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ScanEngine } from '../../daemon/index.ts';
import { seededRandom } from '../../decode/tests/random.ts';
import { fuzz } from '../fuzz.ts';
import { Bases, randomOf } from '../fuzz-bases.ts';
import { closePage, dissect, footerBytes, openPage, splice, withFooter } from '../fuzz-dissect.ts';
import { makeMutant } from '../fuzz-mutants.ts';
import { type ScanMode, scanOutcome } from '../fuzz-scan.ts';

const seed = seededRandom().below(2 ** 31);
const engine = new ScanEngine({ memoryBytes: 64 << 20, decoders: 1 });
after(() => engine.close());
const MODE: ScanMode = { output: 'text', stepBytes: 0, options: {} };

test('300 mutants: rows or a typed error each, in bounded time and memory', async () => {
  const { mutants, outcomes, findings } = await fuzz({ seed, mutants: 300 });
  assert.deepEqual(findings, [], `npm run fuzz -- --seed ${seed}`);
  assert.equal(mutants, 300);
  const counted = Object.values(outcomes).reduce((sum, count) => sum + count, 0);
  assert.equal(counted, 300);
  assert.ok((outcomes.rows ?? 0) > 0 && Object.keys(outcomes).length > 5, JSON.stringify(outcomes));
});

test('a mutant is made again from its seed and number', () => {
  const make = (index: number): Uint8Array => makeMutant(randomOf(seed, 2, index), new Bases(seed, undefined)).bytes;
  const all = Array.from({ length: 50 }, (_, index) => make(index));
  for (const index of [49, 7, 0]) assert.deepEqual(make(index), all[index]);
  assert.ok(new Set(all.map((bytes) => Buffer.from(bytes).toString('latin1'))).size > 40, 'and others are others');
});

test('files that are taken apart and put together again hold the same rows', async () => {
  const bases = new Bases(seed, undefined);
  let spliced = 0;
  for (let k = 0; k < 40; k++) {
    const base = bases.pick(randomOf(seed, 4, k));
    const file = dissect(base.bytes)!;
    const expected = await scanOutcome(engine, base.bytes, MODE);
    assert.deepEqual(await scanOutcome(engine, withFooter(file, footerBytes(file.footer)), MODE), expected);
    for (const page of file.pages.slice(0, 5)) {
      const parts = openPage(file, page);
      if (parts === undefined) continue;
      const again = splice(file, page, [page.start, page.end], closePage(page, parts, true));
      assert.deepEqual(await scanOutcome(engine, again, MODE), expected, base.name);
      spliced++;
    }
  }
  assert.ok(spliced > 50);
});

for (const [how, says] of [
  ['hang', /no sign of life/],
  ['crash', /the process ended with SIGABRT/],
] as const) {
  test(`a ${how} is put down to its mutant, and the next ones are scanned`, async () => {
    const result = await fuzz({ seed, mutants: 9, silenceMs: 6000, trip: { at: 4, how } });
    assert.equal(result.mutants, 9);
    assert.deepEqual(
      result.findings.map(({ index }) => index),
      [4],
    );
    assert.match(result.findings[0]!.what, says);
  });
}
