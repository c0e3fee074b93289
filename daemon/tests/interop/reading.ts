/**
 * A whole file read as a user would read it, twice: as checksums of its columns, and, when asked for, as the Arrow IPC
 * stream of `qanat scan`. Also says what the file is made of, so that a test sees that it has met what it wanted to meet.
 */
import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Codec, Encoding, nameOf } from '../../../decode/index.ts';
import { openSource, type Source } from '../../../vfs/index.ts';
import { ArrowStreamSink } from '../../output/arrow-stream.ts';
import { ChecksumSink, type ColumnChecksum } from '../../output/checksum.ts';
import type { Output } from '../../output/output.ts';
import type { Sink } from '../../output/sink.ts';
import type { ScanEngine } from '../../scan/engine.ts';
import { Scan, type ScanOptions } from '../../scan/scan.ts';
import type { ExpectedColumn, WrittenFile } from './written.ts';

export interface Reading {
  readonly rows: number;
  readonly columns: readonly ColumnChecksum[];
  readonly encodings: ReadonlySet<string>;
  readonly codecs: ReadonlySet<string>;
}

/** Where the Arrow stream goes, and how it is asked for. */
export interface ArrowCopy {
  readonly path: string;
  readonly options: ScanOptions;
}

export async function readWhole(engine: ScanEngine, path: string, arrow?: ArrowCopy): Promise<Reading> {
  const source = await openSource(path);
  try {
    const [version] = await source.list();
    const { rowGroups, numRows } = await (await source.open(version!)).footer();
    const chunks = rowGroups.flatMap((group) => group.columns);
    const checksums = await scanInto(engine, source, (scan) => new ChecksumSink(engine.pool, scan.fields));
    if (arrow !== undefined) await writeArrow(engine, source, arrow);
    return {
      rows: numRows,
      columns: checksums.checksums(),
      encodings: new Set(chunks.flatMap(({ encodings }) => encodings.map((one) => nameOf(Encoding, one)))),
      codecs: new Set(chunks.map(({ codec }) => nameOf(Codec, codec))),
    };
  } finally {
    await source.close();
  }
}

async function writeArrow(engine: ScanEngine, source: Source, { path, options }: ArrowCopy): Promise<void> {
  const file = openSync(path, 'w');
  let bytes = 0;
  const output: Output = {
    get bytes() {
      return bytes;
    },
    write: async (data) => {
      bytes += writeSync(file, data);
    },
    finish: async () => {},
    discard: async () => {},
  };
  try {
    const sinkOf = (scan: Scan): Sink => new ArrowStreamSink(scan.schema, (batch) => scan.toArrow(batch), output);
    await scanInto(engine, source, sinkOf, options);
  } finally {
    closeSync(file);
  }
}

async function scanInto<T extends Sink>(
  engine: ScanEngine,
  source: Source,
  sinkOf: (scan: Scan) => T,
  options: ScanOptions = {},
): Promise<T> {
  const scan = await Scan.open(engine, source, options);
  try {
    const sink = sinkOf(scan);
    await sink.begin();
    for (;;) {
      const batch = await scan.nextBatch();
      if (batch === undefined) break;
      try {
        await sink.write(batch);
      } finally {
        batch.release();
      }
    }
    await sink.end();
    return sink;
  } finally {
    await scan.close();
  }
}

/** Reads a written file; `problem` tells, with how the file was made, what failed or differs from what was written. */
export async function readWritten(
  engine: ScanEngine,
  folder: string,
  { file, options, rows, columns }: WrittenFile,
  arrow?: ArrowCopy,
): Promise<{ reading?: Reading; problem?: string }> {
  const told = (lines: readonly string[]): string => `${file} ${JSON.stringify(options)}\n  ${lines.join('\n  ')}`;
  try {
    const reading = await readWhole(engine, join(folder, file), arrow);
    const lines = differences(reading, rows, columns);
    return lines.length === 0 ? { reading } : { reading, problem: told(lines) };
  } catch (cause) {
    return { problem: told([String(cause)]) };
  }
}

/** What differs from what was written, a line for each column; empty when nothing does. */
function differences(reading: Reading, rows: number, expected: readonly ExpectedColumn[]): string[] {
  if (reading.columns.length !== expected.length) {
    return [`${reading.columns.length} columns, ${expected.length} were written`];
  }
  return expected.flatMap(({ name, nulls, sha256 }, k) => {
    const read = reading.columns[k]!;
    if (read.name !== name) return [`column ${k} is ${read.name}, not ${name}`];
    if (read.rows !== rows) return [`${name}: ${read.rows} rows, ${rows} were written`];
    if (read.nulls !== nulls) return [`${name}: ${read.nulls} nulls, ${nulls} were written`];
    return read.sha256 === sha256 ? [] : [`${name}: other values than were written`];
  });
}
