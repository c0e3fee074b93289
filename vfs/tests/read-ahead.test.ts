/** What comes ahead of readers of the raw view: of columns their next row groups, of copies what follows, nothing else. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { DuckDBInstance } from '@duckdb/node-api';
import { parseFooter } from '../../decode/index.ts';
import { RawContent } from '../raw/raw-content.ts';
import { FileUnits } from '../raw/units.ts';
import { readContent, ViewRig } from './view-rig.ts';

const GROUPS = 6;
const PIECE = 16 * 1024;
const WINDOW_BYTES_MAX = 64 * 1024;

describe('read-ahead', () => {
  let file: Uint8Array;

  before(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'qanat-ahead-'));
    const path = join(folder, 'f.parquet');
    const instance = await DuckDBInstance.create();
    const duckdb = await instance.connect();
    await duckdb.run(`COPY (SELECT hash(i) AS a, hash(i + 1) AS b, hash(i + 2) AS c, hash(i + 3) AS d
      FROM range(${GROUPS * 20480}) t(i)) TO '${path}' (FORMAT parquet, ROW_GROUP_SIZE 20480)`);
    duckdb.closeSync();
    instance.closeSync();
    file = new Uint8Array(readFileSync(path));
    rmSync(folder, { recursive: true, force: true });
  });

  const settle = async (rig: ViewRig): Promise<void> => {
    for (let turn = 0; turn < 20 || rig.transport.open > 0; turn++) await new Promise((next) => setImmediate(next));
  };

  for (const [name, what] of [
    ['f.parquet', 'a Parquet file'],
    ['blocks', 'any file'],
  ] as const) {
    test(`a copy of ${what} waits at its beginning only`, async () => {
      const rig = new ViewRig({ depth: 1 });
      // without its last byte nobody takes it for Parquet
      const bytes = name === 'blocks' ? file.subarray(0, -1) : file;
      const raw = rig.raw(rig.transport.add(name, bytes));
      let waited = 0;
      for (let at = 0; at < bytes.length; at += PIECE) {
        // of what is read in the first two row groups
        if (at < (bytes.length / GROUPS) * 2) waited = waitsOf(rig);
        const piece = await readContent(raw, at, Math.min(PIECE, bytes.length - at));
        assert.equal(Buffer.compare(piece, bytes.subarray(at, at + PIECE)), 0);
        await settle(rig);
      }
      assert.ok(waitsOf(rig) <= waited + 1, `${waitsOf(rig)} reads waited, ${waited} at first`);
      const fetched = rig.transport.log.reduce((sum, { start, end }) => sum + end - start, 0);
      assert.ok(fetched < bytes.length * 1.2 + 2 * 65536, 'nothing was fetched twice');
      raw.close();
      await settle(rig);
      assert.equal(rig.pool.usedBytes, 0);
      await settle(rig);
      assert.equal(rig.pool.usedBytes, 0);
    });
  }

  test('of a column, its chunks and no others', async () => {
    const rig = new ViewRig({ depth: 3 });
    const raw = rig.raw(rig.transport.add('f.parquet', file));
    const footer = footerBytes(file);
    const { rowGroups } = parseFooter(file.subarray(-footer, -8), file.length);
    for (const { columns } of rowGroups) {
      const { start, end } = columns[1]!.bytes;
      for (let at = start; at < end; at += PIECE) {
        await readContent(raw, at, Math.min(PIECE, end - at));
        await settle(rig);
      }
    }
    const chunks = rig.transport.log.filter(({ end }) => end < file.length - footer);
    const starts = rowGroups.map(({ columns }) => columns[1]!.bytes.start);
    assert.deepEqual(
      chunks.map(({ start }) => start),
      starts,
    );
    assert.equal(waitsOf(rig), 1, 'only the first read found nothing');
    raw.close();
    await settle(rig);
    assert.equal(rig.pool.usedBytes, 0);
  });

  test('a kernel that reads ahead of a column waits in the first row group only, and its surplus is small', async () => {
    const rig = new ViewRig();
    const version = rig.transport.add('f.parquet', file);
    const footer = footerBytes(file);
    const metadata = parseFooter(file.subarray(-footer, -8), file.length);
    const raw = new RawContent({
      depth: () => 3,
      opening: { serve: 'cached' },
      kernelAheadBytes: WINDOW_BYTES_MAX,
      stored: async () => rig.store.open(version, FileUnits.parquet(metadata, file.length, 4096)),
    });
    let needed = 0;
    let waits = 0;
    for (const [group, { columns }] of metadata.rowGroups.entries()) {
      for (const column of [0, 2]) {
        const { start, end } = columns[column]!.bytes;
        needed += end - start;
        for (const [from, to] of windowsOf(start, end, file.length)) {
          const before = waitsOf(rig);
          await readContent(raw, from, to - from);
          // the last window is nothing that the program waits for
          if (group > 0 && from < end) waits += waitsOf(rig) - before;
          await settle(rig);
        }
      }
    }
    assert.equal(waits, 0);
    const fetched = rig.transport.log.reduce((sum, { start, end }) => sum + end - start, 0);
    assert.ok(fetched < needed * 2 + 2 * 65536, `${fetched} bytes for ${needed}`);
    raw.close();
    await settle(rig);
    assert.equal(rig.pool.usedBytes, 0);
  });
});

/** Reads whose bytes were not there. */
const waitsOf = ({ store }: ViewRig): number => store.reads.absent + store.reads.late;

/** What the kernel asks for while a program reads [start, end): windows that double, one ahead of the program. */
function windowsOf(start: number, end: number, length: number): [from: number, to: number][] {
  const windows: [number, number][] = [];
  let bytes = 16 * 1024;
  for (let at = start - (start % 4096); at < length; ) {
    windows.push([at, Math.min(length, at + bytes)]);
    if (at >= end) break;
    at += bytes;
    bytes = Math.min(2 * bytes, WINDOW_BYTES_MAX);
  }
  return windows;
}

/** Bytes of the footer with its length and magic. */
function footerBytes(file: Uint8Array): number {
  return new DataView(file.buffer, file.byteOffset).getUint32(file.length - 8, true) + 8;
}
