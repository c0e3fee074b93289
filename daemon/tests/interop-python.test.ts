/**
 * Files of pyarrow, polars and ClickHouse read back equal to what was written, and our Arrow streams equal to what
 * pyarrow makes of the same files. Needs the environment that interop/setup.sh makes; QANAT_INTEROP_PYTHON names its
 * interpreter. QANAT_INTEROP_FILES names a folder that the files are left in.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { ScanEngine } from '../scan/engine.ts';
import { differences, type ExpectedColumn, readWhole } from './interop/reading.ts';

const PYTHON = process.env.QANAT_INTEROP_PYTHON ?? '';
const skip = PYTHON === '' && 'QANAT_INTEROP_PYTHON names no interpreter (daemon/tests/interop/setup.sh makes one)';
const SCRIPTS = join(import.meta.dirname, 'interop');

interface WrittenFile {
  readonly file: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly rows: number;
  readonly columns: readonly ExpectedColumn[];
}

async function python(script: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(PYTHON, [join(SCRIPTS, script), ...args], { maxBuffer: 64 << 20 });
  return stdout;
}

describe('files of Python writers', { skip }, () => {
  let folder: string;
  let files: readonly WrittenFile[];
  let engine: ScanEngine;
  before(async () => {
    folder = process.env.QANAT_INTEROP_FILES ?? mkdtempSync(join(tmpdir(), 'qanat-interop-'));
    const seed = process.env.QANAT_SEED;
    console.log((await python('write_files.py', folder, ...(seed === undefined ? [] : [seed]))).trim());
    const lines = readFileSync(join(folder, 'manifest.jsonl'), 'utf8').trim().split('\n');
    files = lines.map((line) => JSON.parse(line));
    engine = new ScanEngine({ memoryBytes: 128 << 20, decoders: 1 });
  });
  after(async () => {
    await engine.close();
    if (process.env.QANAT_INTEROP_FILES === undefined) rmSync(folder, { recursive: true });
  });

  test('read back equal; as Arrow, equal to what pyarrow reads', async () => {
    const problems: string[] = [];
    const met = new Set<string>();
    const writers = new Map<string, number>();
    let columns = 0;
    for (const [k, { file, options, rows, columns: expected }] of files.entries()) {
      const writer = file.split('-')[0]!;
      writers.set(writer, (writers.get(writer) ?? 0) + 1);
      columns += expected.length;
      try {
        // batches that begin in the middle of bytes and of pages, in both forms of strings
        const arrow = { path: join(folder, `${file}.arrows`), options: { batchRows: 97, dictionary: k % 2 === 1 } };
        const reading = await readWhole(engine, join(folder, file), arrow);
        for (const one of [...reading.encodings, ...reading.codecs]) met.add(`${writer} ${one}`);
        const different = differences(reading, rows, expected);
        if (different.length > 0) problems.push(`${file} ${JSON.stringify(options)}\n  ${different.join('\n  ')}`);
      } catch (cause) {
        problems.push(`${file} ${JSON.stringify(options)}\n  ${cause}`);
      }
    }
    assert.equal(problems.length, 0, problems.join('\n'));
    assert.deepEqual([...writers.keys()], ['pyarrow', 'polars', 'clickhouse']);
    for (const one of MUST_MEET) assert.ok(met.has(one), `no file has ${one}; met are ${[...met].sort().join(', ')}`);
    console.log(
      `${files.length} files, ${columns} columns: ${[...writers].map((entry) => entry.join(' ')).join(', ')}`,
    );
    assert.equal(await python('compare_arrow.py', folder), `${files.length} files are equal\n`);
  });
});

const CODECS = ['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'BROTLI', 'ZSTD', 'LZ4_RAW'];
const ENCODINGS = [
  'PLAIN',
  'RLE',
  'RLE_DICTIONARY',
  'DELTA_BINARY_PACKED',
  'DELTA_LENGTH_BYTE_ARRAY',
  'DELTA_BYTE_ARRAY',
  'BYTE_STREAM_SPLIT',
];
/** What the writers' options are there for. */
const MUST_MEET: readonly string[] = [
  ...[...CODECS, ...ENCODINGS].map((one) => `pyarrow ${one}`),
  ...[...CODECS, 'PLAIN', 'RLE_DICTIONARY'].flatMap((one) => [`polars ${one}`, `clickhouse ${one}`]),
];
