/** What a decoder counts of its pages: each page once, when its last value is out, by encoding and by codec. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DecodeEnvironment } from '../column/environment.ts';
import { codecCounts, encodingCounts, PageTally } from '../column/page-tally.ts';
import { Codec, Encoding, Physical } from '../format/enums.ts';
import { assertDecodes, LINES, makeEnvironments, runChunk, specOf, WHOLE } from './chunk-run.ts';
import { type ChunkPlan, writeChunk } from './writer/index.ts';

const { wasm } = makeEnvironments(16 << 20);
const tallied = (): DecodeEnvironment & { tally: PageTally } => ({ ...wasm, tally: new PageTally() });

const ROWS = 3000;
const values = Array.from({ length: ROWS }, (_, k) => (k % 7 === 0 ? null : k % 50));
const plan: ChunkPlan = {
  column: { name: 'n', physical: Physical.INT32, optional: true },
  values,
  codec: Codec.SNAPPY,
  pages: [
    { type: 'dictionary' },
    { type: 'index' },
    { rows: 1000, encoding: Encoding.RLE_DICTIONARY },
    { rows: 1200, encoding: Encoding.RLE_DICTIONARY, version: 2 },
    { rows: 500, encoding: Encoding.DELTA_BINARY_PACKED, version: 2, stored: true },
    { encoding: Encoding.PLAIN },
  ],
};

const bodyBytes = (page: { body: number; end: number }): number => page.end - page.body;

test('pages are counted once, by encoding and codec, however they arrive and whatever the windows', () => {
  const { pages } = writeChunk(plan);
  for (const feed of [WHOLE, LINES]) {
    for (const windowRows of [100, 4096]) {
      const environment = tallied();
      assertDecodes(environment, plan, { windowRows }, { feed });
      const { counts, isChanged } = environment.tally;
      assert.ok(isChanged);
      const dictionary = encodingCounts(counts, Encoding.RLE_DICTIONARY);
      assert.deepEqual([dictionary.pages, dictionary.values], [2, 2200]);
      const delta = encodingCounts(counts, Encoding.DELTA_BINARY_PACKED);
      assert.deepEqual(delta, { pages: 1, values: 500, bytes: bodyBytes(pages[4]!) });
      const plain = encodingCounts(counts, Encoding.PLAIN);
      assert.deepEqual([plain.pages, plain.values], [1, 300]);
      // a page that is stored as it is has no codec
      assert.deepEqual(codecCounts(counts, Codec.UNCOMPRESSED), {
        values: 500,
        compressedBytes: bodyBytes(pages[4]!),
        bytes: bodyBytes(pages[4]!),
      });
      const snappy = codecCounts(counts, Codec.SNAPPY);
      assert.equal(snappy.values, 2500);
      const compressed = [0, 2, 3, 5].map((k) => bodyBytes(pages[k]!)).reduce((sum, bytes) => sum + bytes, 0);
      assert.equal(
        snappy.compressedBytes,
        compressed,
        'dictionary pages are compressed bytes too, index pages are not read',
      );
      assert.equal(snappy.bytes, dictionary.bytes + plain.bytes + 50 * 4);
    }
  }
});

test('a chunk that is given up has counted the pages that were decoded, not the one at hand', () => {
  const environment = tallied();
  const chunk = writeChunk(plan);
  const spec = specOf(plan, chunk, { windowRows: 600 });
  runChunk(environment, spec, chunk.bytes, { feed: WHOLE, onSegment: (rows) => rows < 1200 });
  const { pages, values: counted } = encodingCounts(environment.tally.counts, Encoding.RLE_DICTIONARY);
  assert.deepEqual([pages, counted], [1, 1000]);
  assert.equal(encodingCounts(environment.tally.counts, Encoding.PLAIN).pages, 0);
});
