/**
 * Why footers have a reader of their own: parsing the footer of a wide table with it, with the `thrift` package's
 * compact protocol driven by tables (the twin, which only makes a tree), and with hyparquet. With ours every column chunk
 * is read, and ten of each row group, which is what it is lazy for. Run with
 * `node decode/bench/footer.ts [columns] [row groups] [--json]`.
 */
import assert from 'node:assert/strict';
import { parquetMetadata } from 'hyparquet';
import { parseFooter } from '../format/parse-footer.ts';
import { fileAround, footerBytes, plainFooter } from '../tests/footer-model.ts';
import { FILE_META_DATA } from '../tests/parquet-tables.ts';
import { readStruct } from '../tests/thrift-twin.ts';

const json = process.argv.includes('--json');
const [columns = 2000, rowGroups = 10] = process.argv
  .slice(2)
  .filter((word) => /^\d+$/.test(word))
  .map(Number);
const ROUNDS = 7;

const footer = footerBytes(plainFooter(columns, rowGroups));
const file = fileAround(footer, 1000);
const readers: Record<string, () => number> = {
  qanat: () => parseFooter(footer, file.length).rowGroups.map((group) => [...group.columns]).length,
  'ten read': () => parseFooter(footer, file.length).rowGroups.map((group) => group.columns.slice(0, 10)).length,
  thrift: () => (readStruct(FILE_META_DATA, footer).row_groups as unknown[]).length,
  hyparquet: () => parquetMetadata(file.buffer as ArrayBuffer).row_groups.length,
};
const times: Record<string, number[]> = { qanat: [], 'ten read': [], thrift: [], hyparquet: [] };
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, read] of Object.entries(readers)) {
    const start = performance.now();
    assert.equal(read(), rowGroups);
    times[name]!.push(performance.now() - start);
  }
}
const median = (name: string) => times[name]!.toSorted((a, b) => a - b)[ROUNDS >> 1]!;
const ratios = {
  'footer.thrift': median('thrift') / median('qanat'),
  'footer.hyparquet': median('hyparquet') / median('qanat'),
};
if (json) console.log(JSON.stringify({ columns, rowGroups, bytes: footer.length, ratios }));
else {
  console.log(`footer of ${columns} columns x ${rowGroups} row groups, ${footer.length} bytes; medians of ${ROUNDS}`);
  for (const name of Object.keys(readers)) {
    const ms = median(name);
    const perChunk = ((ms * 1e6) / (columns * rowGroups)).toFixed(0).padStart(6);
    const ratio = (ms / median('qanat')).toFixed(1);
    console.log(`${name.padEnd(10)} ${ms.toFixed(1).padStart(8)} ms  ${perChunk} ns per chunk  ${ratio}x`);
  }
}
