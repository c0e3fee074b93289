/** Files of the writers that npm has, over their types and options, read back equal to what was written. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { seededRandom } from '../../decode/tests/random.ts';
import { ScanEngine } from '../scan/engine.ts';
import { JAVASCRIPT_WRITERS } from './interop/javascript-writers.ts';
import { readWritten } from './interop/reading.ts';

const random = seededRandom();
let folder: string;
let engine: ScanEngine;
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'qanat-interop-'));
  engine = new ScanEngine({ memoryBytes: 128 << 20, decoders: 1 });
});
after(async () => {
  await engine.close();
  rmSync(folder, { recursive: true });
});

for (const { name, write, meets } of JAVASCRIPT_WRITERS) {
  test(name, async () => {
    const problems: string[] = [];
    const met = new Set<string>();
    let files = 0;
    for await (const written of write(folder, random)) {
      files++;
      const { reading, problem } = await readWritten(engine, folder, written);
      if (problem !== undefined) problems.push(problem);
      for (const one of [...(reading?.encodings ?? []), ...(reading?.codecs ?? [])]) met.add(one);
    }
    assert.equal(problems.length, 0, problems.join('\n'));
    for (const one of meets) assert.ok(met.has(one), `no file has ${one}; met are ${[...met].sort().join(', ')}`);
    console.log(`${name}: ${files} files`);
  });
}
