/**
 * The contract of a transport (transport.ts) as tests, run over every implementation by transport-conformance.test.ts.
 * Where verbs test suites have a name for a case, it bears that name.
 */
import assert from 'node:assert/strict';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { FetchError, type FetchErrorCode } from '../errors.ts';
import type { FileVersion, Transport, TransportCounters } from '../transport/transport.ts';
import { seededRandom } from './random.ts';
import { makeFolder, pattern } from './transport-fixtures.ts';

export interface Source {
  readonly transport: Transport;
  readonly counters: Readonly<TransportCounters>;
  /** Brings what the folder has now into a source that does not look at it by itself. */
  readonly update?: () => Promise<void>;
  /** It may have bytes of versions that are gone, and then they are those. */
  readonly keepsVersions?: boolean;
}

/** Makes a transport over a folder; ends with the test. */
export type MakeSource = (t: TestContext, folder: string) => Promise<Source>;

const FILES: Record<string, Buffer> = {
  'a.parquet': pattern(20_000_000, 1),
  'b/empty.parquet': Buffer.alloc(0),
  'b/one.parquet': pattern(1, 2),
  'b/small.parquet': pattern(777, 3),
  'b0.parquet': pattern(65_536, 4),
  'ü.parquet': pattern(100_003, 5),
};

const isError =
  (code: FetchErrorCode) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof FetchError, String(error));
    assert.equal(error.code, code, error.message);
    return true;
  };

function sharedBytes(length: number): Uint8Array {
  const pages = Math.ceil(length / 65_536) + 1;
  return new Uint8Array(new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true }).buffer);
}

/** Keeps the books of all reads made through it. */
class Reader {
  readonly source: Source;
  readonly files = new Map<string, FileVersion>();
  /** Sum of the last `onArrived` of each read. */
  arrived = 0;

  constructor(source: Source, files: readonly FileVersion[]) {
    this.source = source;
    for (const file of files) this.files.set(file.path, file);
  }

  file(path: string): FileVersion {
    return this.files.get(path)!;
  }

  async read(path: string, start: number, into: Uint8Array, signal?: AbortSignal): Promise<void> {
    let last = 0;
    const expected = FILES[path]!;
    try {
      await this.source.transport.read(this.file(path), start, into, {
        ...(signal === undefined ? {} : { signal }),
        onArrived: (bytes) => {
          assert.ok(bytes > last && bytes <= into.byteLength, `arrived ${bytes} after ${last}`);
          assert.ok(Buffer.from(into.subarray(last, bytes)).equals(expected.subarray(start + last, start + bytes)));
          last = bytes;
        },
      });
      assert.equal(last, into.byteLength, 'all bytes were told before the read resolved');
      assert.ok(Buffer.from(into).equals(expected.subarray(start, start + into.byteLength)), `${path} at ${start}`);
    } finally {
      this.arrived += last;
    }
  }

  /** Used and wasted bytes are all bytes that came over the wire, or from a cache. */
  checkBooks(): void {
    const { bytesOnWire, bytesCached, bytesDirectory, bytesDiscarded } = this.source.counters;
    assert.equal(bytesOnWire + bytesCached, bytesDirectory + bytesDiscarded + this.arrived);
  }
}

/** Runs the suite over one kind of transport. */
export function testTransport(kind: string, makeSource: MakeSource): void {
  const conforms = (name: string, run: (t: TestContext, reader: Reader, folder: string) => Promise<void>): void => {
    test(`${kind}: ${name}`, async (t) => {
      const folder = makeFolder(t, FILES);
      const source = await makeSource(t, folder);
      t.after(() => source.transport.close());
      const reader = new Reader(source, await source.transport.list(''));
      await run(t, reader, folder);
      reader.checkBooks();
    });
  };

  conforms('list, in the order of the paths bytes, and by prefix', async (_t, reader) => {
    const { transport } = reader.source;
    const all = await transport.list('');
    assert.deepEqual(
      all.map(({ path, length }) => [path, length]),
      Object.entries(FILES).map(([path, { byteLength }]) => [path, byteLength]),
    );
    assert.equal(new Set(all.map(({ etag }) => etag)).size, all.length);
    for (const { modifiedMs } of all) assert.ok(Math.abs(Date.now() - modifiedMs) < 3_600_000);
    const paths = async (prefix: string) => (await transport.list(prefix)).map(({ path }) => path);
    assert.deepEqual(await paths('b/'), ['b/empty.parquet', 'b/one.parquet', 'b/small.parquet']);
    assert.deepEqual(await paths('b'), ['b/empty.parquet', 'b/one.parquet', 'b/small.parquet', 'b0.parquet']);
    assert.deepEqual(await paths('b/one.parquet'), ['b/one.parquet']);
    assert.deepEqual(await paths('none/'), []);
  });

  conforms('basic read', async (_t, reader) => {
    await reader.read('a.parquet', 4096, new Uint8Array(8192));
    await reader.read('b/one.parquet', 0, new Uint8Array(1));
  });

  conforms('large read', async (_t, reader) => {
    await reader.read('a.parquet', 1, sharedBytes(19_999_999).subarray(0, 19_999_999));
  });

  conforms('read to the last byte', async (_t, reader) => {
    for (const [path, { byteLength }] of Object.entries(FILES)) {
      if (byteLength > 0) await reader.read(path, byteLength - 1, new Uint8Array(1));
    }
    await reader.read('ü.parquet', 3, new Uint8Array(100_000));
  });

  conforms('read exceeding front and rear', async (_t, reader) => {
    for (const [start, length] of [
      [-1, 10],
      [768, 10],
      [777, 1],
      [0, 778],
      [2 ** 53, 1],
      [0.5, 1],
      [Number.NaN, 1],
    ] as const) {
      await assert.rejects(reader.read('b/small.parquet', start, new Uint8Array(length)), isError('OUT_OF_RANGE'));
    }
    await reader.read('b/small.parquet', 0, new Uint8Array(777));
  });

  conforms('zero-byte read, inside and outside', async (_t, reader) => {
    await reader.read('a.parquet', 5, new Uint8Array(0));
    await reader.read('b/empty.parquet', 0, new Uint8Array(0));
    await assert.rejects(reader.read('b/empty.parquet', 1, new Uint8Array(0)), isError('OUT_OF_RANGE'));
  });

  conforms('nothing but the destination is written to', async (_t, reader) => {
    const memory = sharedBytes(2_000_000).fill(0xee);
    await reader.read('a.parquet', 12_345, memory.subarray(1001, 1_500_001));
    assert.ok(memory.subarray(0, 1001).every((byte) => byte === 0xee));
    assert.ok(memory.subarray(1_500_001).every((byte) => byte === 0xee));
  });

  conforms('many reads at once', async (_t, reader) => {
    const memory = sharedBytes(40 * 300_000);
    await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        reader.read('a.parquet', i * 400_000, memory.subarray(i * 300_000, (i + 1) * 300_000)),
      ),
    );
  });

  conforms('a version that is not there', async (_t, reader) => {
    const { transport } = reader.source;
    const a = reader.file('a.parquet');
    await assert.rejects(transport.read({ ...a, etag: 'other' }, 0, new Uint8Array(1)), isError('STALE'));
    await assert.rejects(transport.read({ ...a, path: 'gone.parquet' }, 0, new Uint8Array(1)), isError('STALE'));
  });

  conforms('a file that changes underneath is an error, never other bytes', async (_t, reader, folder) => {
    await reader.read('ü.parquet', 0, new Uint8Array(100));
    writeFileSync(join(folder, 'new'), pattern(100_003, 99));
    renameSync(join(folder, 'new'), join(folder, 'ü.parquet'));
    writeFileSync(join(folder, 'b0.parquet'), pattern(65_536, 99));
    rmSync(join(folder, 'b/small.parquet'));
    await reader.source.update?.();
    for (const path of ['ü.parquet', 'b0.parquet', 'b/small.parquet']) {
      const isGone = (error: unknown): boolean =>
        error instanceof FetchError && (error.code === 'STALE' || error.code === 'SERVER');
      const reading = reader.read(path, 50, new Uint8Array(100));
      if (reader.source.keepsVersions) await reading.catch((error: unknown) => assert.ok(isGone(error), String(error)));
      else await assert.rejects(reading, isGone);
    }
    await reader.read('a.parquet', 0, new Uint8Array(100));
  });

  conforms('cancelled before, while waiting and in the middle', async (_t, reader) => {
    await assert.rejects(reader.read('a.parquet', 0, new Uint8Array(10), AbortSignal.abort()), isError('CANCELLED'));
    const memory = sharedBytes(16_000_000);
    const untouched = Buffer.alloc(16_000_000, 0xee);
    for (let round = 0; round < 8; round++) {
      const controller = new AbortController();
      const into = memory.subarray(0, untouched.length);
      const cancelled = assert.rejects(
        reader.source.transport.read(reader.file('a.parquet'), 0, into, {
          signal: controller.signal,
          onArrived: (bytes) => {
            arrived = bytes;
            if (bytes >= round * 1_000_000) controller.abort();
          },
        }),
        isError('CANCELLED'),
      );
      let arrived = 0;
      const other = reader.read('a.parquet', 1_000_000, new Uint8Array(1_000_000));
      await cancelled;
      reader.arrived += arrived;
      into.fill(0xee);
      await other;
      await sleep(20);
      assert.ok(untouched.equals(into), 'nothing lands after the read has been cancelled');
    }
    await reader.read('a.parquet', 0, memory.subarray(0, 16_000_000));
  });

  conforms('random walk against a model', async (_t, reader) => {
    const random = seededRandom();
    const paths = Object.keys(FILES);
    let left = 10_000;
    const walk = async (): Promise<void> => {
      while (left-- > 0) {
        const path = paths[random.below(paths.length)]!;
        const start = random.below(FILES[path]!.byteLength + 1);
        const length = random.below(
          Math.min(FILES[path]!.byteLength - start, random.below(20) === 0 ? 50_000 : 500) + 1,
        );
        await reader.read(path, start, new Uint8Array(length));
      }
    };
    await Promise.all(Array.from({ length: 8 }, walk));
  });

  conforms('closed', async (_t, reader) => {
    const { transport } = reader.source;
    await transport.close();
    await assert.rejects(transport.read(reader.file('a.parquet'), 0, new Uint8Array(1)), isError('CLOSED'));
    await assert.rejects(async () => transport.list(''), isError('CLOSED'));
    await transport.close();
  });
}
