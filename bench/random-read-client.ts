/**
 * Reads a file here and there, as a program does that waits for each read, and prints the figures.
 *   node random-read-client.ts <file> <reads> <seed>
 */
import { fstatSync, openSync, readSync } from 'node:fs';
import { randomReads } from './random-reads.ts';

const [path, reads, seed] = process.argv.slice(2) as [string, string, string];
const file = openSync(path, 'r');
const plan = { fileBytes: fstatSync(file).size, reads: Number(reads), seed: Number(seed) };
const figures = await randomReads(plan, (offset, into) => {
  const bytes = readSync(file, into, 0, into.byteLength, offset);
  if (bytes !== into.byteLength) throw new Error(`${bytes} bytes of a read of ${into.byteLength}`);
});
console.log(JSON.stringify(figures));
