/**
 * Files of pyarrow, polars and ClickHouse read back equal to what was written, and our Arrow streams equal to what
 * pyarrow makes of the same files. Needs the environment that interop/setup.sh makes; QANAT_INTEROP_PYTHON names its
 * interpreter. QANAT_INTEROP_FILES names a folder that the files are left in.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { seededRandom } from '../../decode/tests/random.ts';
import { ScanEngine } from '../scan/engine.ts';
import { copyBroken, TestApi } from './api-fixture.ts';
import { JAVASCRIPT_WRITERS } from './interop/javascript-writers.ts';
import { type ArrowCopy, readWhole, readWritten } from './interop/reading.ts';
import type { WrittenFile } from './interop/written.ts';
import { Lake, numbersQuery } from './lake.ts';

const PYTHON = process.env.QANAT_INTEROP_PYTHON ?? '';
const skip = PYTHON === '' && 'QANAT_INTEROP_PYTHON names no interpreter (daemon/tests/interop/setup.sh makes one)';
const SCRIPTS = join(import.meta.dirname, 'interop');

async function python(script: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(PYTHON, [join(SCRIPTS, script), ...args], { maxBuffer: 64 << 20 });
  return stdout;
}

/** Batches begin in the middle of bytes and of pages, strings come in both forms. */
const arrowCopy = (folder: string, file: string, dictionary: boolean): ArrowCopy => ({
  path: join(folder, `${file}.arrows`),
  options: { batchRows: 97, dictionary },
});

/** How many of the folder's files pyarrow reads, each as our Arrow stream of it has it. */
async function compareWithPyarrow(folder: string): Promise<{ equal: number; refused: number }> {
  return JSON.parse(await python('compare_arrow.py', folder));
}

describe('interop with Python', { skip }, () => {
  let folder: string;
  let engine: ScanEngine;
  const folderOf = (name: string): string => {
    const path = join(folder, name);
    mkdirSync(path, { recursive: true });
    return path;
  };
  before(() => {
    folder = process.env.QANAT_INTEROP_FILES ?? mkdtempSync(join(tmpdir(), 'qanat-interop-'));
    engine = new ScanEngine({ memoryBytes: 128 << 20, decoders: 1 });
  });
  after(async () => {
    await engine.close();
    if (process.env.QANAT_INTEROP_FILES === undefined) rmSync(folder, { recursive: true });
  });

  test('files of pyarrow, polars and ClickHouse read back equal; as Arrow, equal to what pyarrow reads', async () => {
    const target = folderOf('python');
    const seed = process.env.QANAT_SEED;
    console.log((await python('write_files.py', target, ...(seed === undefined ? [] : [seed]))).trim());
    const lines = readFileSync(join(target, 'manifest.jsonl'), 'utf8').trim().split('\n');
    const files: WrittenFile[] = lines.map((line) => JSON.parse(line));
    const problems: string[] = [];
    const met = new Set<string>();
    const writers = new Map<string, number>();
    for (const [k, written] of files.entries()) {
      const { file } = written;
      const writer = file.split('-')[0]!;
      writers.set(writer, (writers.get(writer) ?? 0) + 1);
      const { reading, problem } = await readWritten(engine, target, written, arrowCopy(target, file, k % 2 === 1));
      if (problem !== undefined) problems.push(problem);
      for (const one of [...(reading?.encodings ?? []), ...(reading?.codecs ?? [])]) met.add(`${writer} ${one}`);
    }
    assert.equal(problems.length, 0, problems.join('\n'));
    assert.deepEqual([...writers.keys()], ['pyarrow', 'polars', 'clickhouse']);
    for (const one of MUST_MEET) assert.ok(met.has(one), `no file has ${one}; met are ${[...met].sort().join(', ')}`);
    console.log(`${files.length} files: ${[...writers].map((entry) => entry.join(' ')).join(', ')}`);
    assert.deepEqual(await compareWithPyarrow(target), { equal: files.length, refused: 0 });
  });

  test('files of the writers that npm has, as Arrow, are equal to what pyarrow reads', async () => {
    const target = folderOf('javascript');
    const random = seededRandom();
    let files = 0;
    for (const { write } of JAVASCRIPT_WRITERS) {
      for await (const { file } of write(target, random)) {
        await readWhole(engine, join(target, file), arrowCopy(target, file, files++ % 2 === 1));
      }
    }
    const { equal, refused } = await compareWithPyarrow(target);
    console.log(`${equal} files are equal, pyarrow refuses ${refused}`);
    assert.equal(equal + refused, files);
    assert.ok(refused < files / 4);
  });
});

test('pyarrow.ipc.open_stream reads scans of a daemon as they come', { skip }, async () => {
  await using lake = await Lake.create();
  await lake.write('numbers.parquet', numbersQuery(60_000));
  await lake.write('none.parquet', numbersQuery(0));
  const nested = `select i as id, [i, null, i + 1] as list, {'a': i, 'b': 'text ' || i} as struct,
    map([i % 7, 8], ['x', null]) as map, (i / 3)::decimal(20, 4) as price, date '2020-01-01' + i::int as day
    from range(20000) t(i)`;
  await lake.write('nested.parquet', nested);
  await copyBroken(lake.path('numbers.parquet'), lake.path('broken.parquet'));
  await using api = await TestApi.start({ lake: lake.folder });
  const { equal } = JSON.parse(await python('read_daemon.py', `127.0.0.1:${api.port}`, 'lake', lake.folder));
  assert.equal(equal, 3);
  await api.idle();
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
